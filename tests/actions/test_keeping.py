"""Imported drafts keep where they came from: the same document again changes nothing, another shows what is different."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from loopagent.actions.importing.document import read_api
from loopagent.actions.importing.keeping import (
    FILE,
    There,
    changes_of,
    kept_text,
    key_of,
    part_of,
    rename,
    text_of,
)
from loopagent.actions.importing.openapi import Plan, plan_import
from loopagent.actions.importing.operations import Options


ID = {"name": "id", "in": "path", "required": True, "schema": {"$ref": "#/components/schemas/Id"}}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Shop"},
    "servers": [{"url": "https://api.shop.example"}],
    "paths": {
        "/orders/{id}": {
            "parameters": [{"$ref": "#/components/parameters/id"}],
            "get": {"operationId": "getOrder", "summary": "Reads one."},
            "delete": {"operationId": "dropOrder"},
        },
        "/ping": {"get": {}},
    },
    "components": {
        "parameters": {"id": ID},
        "schemas": {"Id": {"type": "string"}, "Unused": {"type": "object"}},
    },
}


def plan(document: dict[str, Any] = DOCUMENT) -> Plan:
    return plan_import(read_api(json.dumps(document), "shop.json"), Options("shop"))


def saved(made: Plan) -> dict[str, There]:
    return {
        draft.name: There(text_of(draft, change), {FILE: kept_text(made, draft)})
        for draft, change in zip(made.drafts, changes_of(made, {}), strict=True)
    }


def fates(made: Plan, there: dict[str, There]) -> dict[str, str]:
    return {one.name: one.what for one in changes_of(made, there)}


def test_the_same_document_again_changes_nothing() -> None:
    there = saved(plan())
    assert set(fates(plan(), there).values()) == {"same"}


def test_drafts_are_not_disabled() -> None:
    assert all("enabled" not in one.text for one in saved(plan()).values())


def test_another_document_shows_what_is_different() -> None:
    there, after = saved(plan()), copy.deepcopy(DOCUMENT)
    after["servers"][0]["url"] = "https://new.shop.example"
    del after["paths"]["/orders/{id}"]["delete"]
    after["paths"]["/pong"] = {"get": {"operationId": "pong"}}
    mine = there["shop.get_order"]
    there["shop.get_order"] = There(f"# mine\n{mine.text}", mine.files)
    found = {one.name: one for one in changes_of(plan(after), there)}
    order = found["shop.get_order"]
    assert (order.what, order.text[:6]) == ("changed", "# mine")
    assert any("new.shop.example" in one for one in order.lines)
    assert "look at it again before you publish" in order.notes[0]
    assert found["shop.drop_order"].what == "gone"
    assert found["shop.pong"].what == "new"


def test_what_was_not_imported_is_left_alone() -> None:
    there = {"shop.get_order": There("name: shop.get_order", {})}
    [found] = [one for one in changes_of(plan(), there) if one.name == "shop.get_order"]
    assert (found.what, "not imported" in found.notes[0]) == ("refused", True)
    [found] = [one for one in changes_of(plan(), {}, ["shop.get_order"]) if one.what == "refused"]
    assert "of the project" in found.notes[0]


def test_names_are_chosen_and_found_again() -> None:
    first = plan()
    rename(first, {}, {"GET /ping": "alive", "DELETE /orders/{id}": "No Name"})
    assert [one.name for one in first.drafts] == ["shop.get_order", "No Name", "alive"]
    assert first.drafts[1].problems
    there = {name: one for name, one in saved(first).items() if name in {"alive", "shop.get_order"}}
    again = plan()
    rename(again, there, {})
    assert [one.name for one in again.drafts] == ["shop.get_order", "shop.drop_order", "alive"]
    assert fates(again, there)["alive"] == "same"


def test_two_of_one_name_are_refused() -> None:
    made = plan()
    rename(made, {}, {"GET /ping": "shop.get_order"})
    assert fates(made, {})["shop.get_order"] == "refused"


@pytest.mark.parametrize("at", [0, 1, 2])
def test_the_part_that_is_kept_gives_the_same_action(at: int) -> None:
    made = plan()
    draft = made.drafts[at]
    part = part_of(made.document, draft.method, draft.path)
    assert "Unused" not in json.dumps(part)
    [again] = [one for one in plan(part).drafts if key_of(one) == key_of(draft)]
    assert again.action == draft.action
