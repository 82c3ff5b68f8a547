"""The OpenAPI description is complete and true: schemathesis sends what it allows and what it forbids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.http.server import make_project, serving


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
STREAMS = ("/api/v1/runs/stream", "/api/v1/runs/{run_id}/stream")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder: Path = make_project(tmp_path_factory.mktemp("openapi") / "project")
    with serving(folder, folder.parent / "runs.db") as (client, _):
        address = str(client.base_url).replace("/api/v1/", "")
        client.post("/runs", json={"agent": "looker", "message": "Go."})
        yield schemathesis.openapi.from_url(f"{address}/openapi.json")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_every_route_keeps_its_promises(api: Any, method: str) -> None:
    tried = 0
    for found in api.get_all_operations():
        operation = found.ok()
        if operation.method.upper() == method and operation.path not in STREAMS:
            _hammer(operation)
            tried += 1
    assert tried >= {"GET": 9, "POST": 5, "PUT": 1, "DELETE": 1}[method]


def _hammer(operation: Any) -> None:
    @given(case=operation.as_strategy())
    @settings(
        max_examples=15,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    def send(case: Any) -> None:
        query = case.query if isinstance(case.query, dict) else {}
        query.pop("wait", None)
        case.call_and_validate(checks=CHECKS, timeout=60)

    send()
