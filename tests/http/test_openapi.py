"""The OpenAPI description is complete and true: schemathesis sends what it allows and what it forbids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.http.server import make_project, serving


CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[schemathesis.openapi.OpenApiSchema]:
    folder: Path = make_project(tmp_path_factory.mktemp("openapi") / "project")
    with serving(folder, folder.parent / "runs.db") as (client, _):
        address = str(client.base_url).replace("/api/v1/", "")
        client.post("/runs", json={"agent": "looker", "message": "Go."})
        yield schemathesis.openapi.from_url(f"{address}/openapi.json", config=SchemathesisConfig())


schema = schemathesis.pytest.from_fixture("api")


@schema.include(method=["GET", "DELETE"]).exclude(path_regex="/stream$").parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_reading_keeps_its_promises(case: schemathesis.Case) -> None:
    case.call_and_validate(checks=CHECKS, timeout=20)


@schema.include(method="POST").exclude(path_regex="/stream$").parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_writing_keeps_its_promises(case: schemathesis.Case) -> None:
    case.query.pop("wait", None) if isinstance(case.query, dict) else None
    case.call_and_validate(checks=CHECKS, timeout=20)
