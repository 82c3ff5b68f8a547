"""OpenAPI documents as actions: what becomes of each part, what is refused, and what a second import does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loopagent.actions.importing.document import read_api
from loopagent.actions.importing.openapi import Plan, file_of, plan_import, write_import
from loopagent.actions.importing.operations import Draft, Options, drafts
from loopagent.actions.reading import read_actions
from loopagent.core.params import check_params
from loopagent.errors import ConfigError


SERVERS = [{"url": "https://api.shop.example/v1"}]
OPTIONS = Options("shop")


def document(paths: dict[str, Any], version: str = "3.1.0", **more: Any) -> str:
    info = {"title": "The Shop", "version": "1"}
    return json.dumps(
        {"openapi": version, "info": info, "servers": SERVERS, "paths": paths, **more}
    )


def drafted(operation: dict[str, Any], path: str = "/x", method: str = "get", **more: Any) -> Draft:
    version = more.pop("version", "3.1.0")
    options = more.pop("options", OPTIONS)
    item = {method: operation, **more.pop("item", {})}
    text = document({path: item}, version, **more)
    return drafts(read_api(text, "shop.json"), options)[0]


def query(schema: Any, name: str = "q", **more: Any) -> dict[str, Any]:
    return {"parameters": [{"name": name, "in": "query", "schema": schema, **more}]}


def body(schema: Any, kind: str = "application/json", *, required: bool = True) -> dict[str, Any]:
    return {"requestBody": {"required": required, "content": {kind: {"schema": schema}}}}


def fits(draft: Draft, params: dict[str, Any]) -> bool:
    assert draft.problems == []
    return not check_params(draft.action["params"], params)[1]


def test_an_operation_becomes_a_disabled_action() -> None:
    operation = {
        "operationId": "getOrderItems",
        "summary": "Items of an order",
        "description": "Lists them.",
        "tags": ["orders"],
        "parameters": [{"name": "page", "in": "query", "schema": {"type": "integer"}}],
    }
    shared = {
        "parameters": [
            {"name": "order-id", "in": "path", "required": True, "schema": {"type": "string"}}
        ]
    }
    draft = drafted(operation, "/orders/{order-id}/items", item=shared)
    assert draft.action == {
        "apiVersion": "loopagent/v1",
        "kind": "Action",
        "name": "shop.get_order_items",
        "enabled": False,
        "title": "Items of an order",
        "description": "Lists them.",
        "tags": ["orders"],
        "effects": "read",
        "params": {
            "type": "object",
            "required": ["order_id"],
            "additionalProperties": False,
            "properties": {"order_id": {"type": "string"}, "page": {"type": "integer"}},
        },
        "egress": {"hosts": ["api.shop.example"]},
        "run": {
            "kind": "http",
            "method": "GET",
            "url": "https://api.shop.example/v1/orders/{order_id}/items",
            "query": {"page": {"from": "params.page"}},
        },
    }


@pytest.mark.parametrize(
    ("method", "effects"),
    [
        ("get", "read"),
        ("head", "read"),
        ("post", "external"),
        ("put", "external"),
        ("patch", "external"),
        ("delete", "irreversible"),
    ],
)
def test_effects_are_guessed_from_the_method(method: str, effects: str) -> None:
    draft = drafted({}, method=method)
    assert draft.action["effects"] == draft.public()["effects"] == effects


def test_a_consequential_operation_asks() -> None:
    asks = drafted({"x-openai-isConsequential": True}, method="post").action
    loosened = drafted({"x-openai-isConsequential": False}, method="post").action
    assert asks["approval"] == {"policy": "ask"}
    assert "approval" not in loosened


def test_recursive_schemas_survive() -> None:
    node = {
        "type": "object",
        "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/components/schemas/Node"}},
        "required": ["v"],
    }
    given = body({"$ref": "#/components/schemas/Node"})
    draft = drafted(given, method="post", components={"schemas": {"Node": node}})
    assert fits(draft, {"v": 1, "next": {"v": 2, "next": {"v": 3}}})
    assert not fits(draft, {"v": 1, "next": {"v": 2, "next": {"v": "three"}}})


def test_alternatives_are_kept() -> None:
    draft = drafted(query({"oneOf": [{"type": "integer"}, {"type": "string", "pattern": "^a"}]}))
    assert fits(draft, {"q": 3})
    assert fits(draft, {"q": "abc"})
    assert not fits(draft, {"q": "b"})


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "nullable": True}, [None, "a"], [1]),
        ({"type": "string", "nullable": True, "enum": ["a"]}, [None, "a"], ["b"]),
        ({"nullable": True, "oneOf": [{"type": "integer"}]}, [None, 1], ["b"]),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, [2], [1]),
        ({"type": "integer", "maximum": 3, "exclusiveMaximum": False}, [3], [4]),
        ({"type": "string", "required": True, "description": ["odd"]}, ["a"], [1]),
    ],
)
def test_schemas_of_version_3_0(schema: Any, good: list[Any], bad: list[Any]) -> None:
    draft = drafted(query(schema), version="3.0.3")
    assert all(fits(draft, {"q": one}) for one in good)
    assert not any(fits(draft, {"q": one}) for one in bad)


def test_an_example_becomes_one_of_several() -> None:
    draft = drafted(
        query({"type": "string", "example": "a", "xml": {"name": "b"}}), version="3.0.0"
    )
    assert draft.action["params"]["properties"]["q"] == {"type": "string", "examples": ["a"]}


def test_what_is_the_servers_alone_is_no_parameter() -> None:
    properties = {"id": {"type": "string", "readOnly": True}, "name": {"type": "string"}}
    schema = {"type": "object", "required": ["id", "name"], "properties": properties}
    flat = drafted(body(schema), method="post").action
    assert flat["params"]["required"] == ["name"]
    assert flat["run"]["body"] == {"name": {"from": "params.name"}}
    nested = drafted(body({"type": "array", "items": schema}), method="post")
    assert fits(nested, {"body": [{"name": "a"}]})


def test_names_that_collide_are_told_apart() -> None:
    given = {
        "operationId": "change",
        "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
            {"name": "id", "in": "query", "schema": {"type": "string"}},
        ],
        **body({"type": "object", "properties": {"id": {"type": "string"}}}),
    }
    draft = drafted(given, "/x/{id}", "put")
    assert list(draft.action["params"]["properties"]) == ["id", "query_id", "body_id"]
    assert draft.action["run"]["query"] == {"id": {"from": "params.query_id"}}
    assert draft.action["run"]["body"] == {"id": {"from": "params.body_id"}}
    text = document(
        {"/a": {"get": {"operationId": "Find"}}, "/b": {"get": {"operationId": "find"}}}
    )
    first, second = drafts(read_api(text, "a.json"), OPTIONS)
    assert [first.name, second.name] == ["shop.find", "shop.find_2"]
    assert "another operation" in second.notes[0]


def test_an_operation_without_id_is_named_after_method_and_path() -> None:
    draft = drafted({}, "/orders/{orderId}/items")
    assert draft.name == "shop.get_orders_order_id_items"
    assert any("no operationId" in one for one in draft.notes)
    assert draft.action["params"]["required"] == ["orderId"]


def test_server_variables_have_defaults_choices_and_values() -> None:
    variables = {"region": {"default": "eu", "enum": ["eu", "us"]}}
    servers = [{"url": "https://{region}.shop.example", "variables": variables}]
    chosen = Options("shop", variables={"region": "us"})
    wrong = Options("shop", variables={"region": "x.evil.example/"})
    assert drafted({}, servers=servers).server == "https://eu.shop.example"
    assert drafted({}, servers=servers, options=chosen).server == "https://us.shop.example"
    assert "one of eu, us" in drafted({}, servers=servers, options=wrong).problems[0]
    bare = [{"url": "https://{host}/"}]
    assert "--server-var" in drafted({}, servers=bare).problems[0]


def test_servers_of_operation_and_path_come_first_and_relative_ones_need_a_base() -> None:
    own = [{"url": "https://own.example:8443"}]
    draft = drafted({"servers": own})
    assert draft.action["egress"] == {"hosts": ["own.example"], "ports": [8443]}
    relative = [{"url": "/v2"}]
    assert "--base-url" in drafted({}, servers=relative).problems[0]
    based = Options("shop", "https://base.example/docs/")
    assert drafted({}, servers=relative, options=based).server == "https://base.example/v2"
    assert drafted({}, options=based).server == "https://base.example/docs/"


SCHEMES = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "other": {"type": "apiKey", "in": "header", "name": "X-Other"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "bearer": {"type": "http", "scheme": "Bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "digest": {"type": "http", "scheme": "digest"},
    "machine": {
        "type": "oauth2",
        "flows": {"clientCredentials": {"tokenUrl": "https://id.shop.example/token", "scopes": {}}},
    },
    "person": {"type": "oauth2", "flows": {"authorizationCode": {}}},
    "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://id.shop.example"},
}


@pytest.mark.parametrize(
    ("security", "auth", "secrets"),
    [
        ([{"key": []}], "api_key", ["shop_key"]),
        ([{"bearer": []}], "bearer", ["shop_bearer"]),
        ([{"basic": []}], "basic", ["shop_basic_user", "shop_basic_password"]),
        ([{"machine": ["read"]}], "oauth2", ["shop_machine_id", "shop_machine_secret"]),
        ([{"person": []}], "bearer", ["shop_person"]),
        ([{"oidc": []}], "bearer", ["shop_oidc"]),
        ([{"cookie": []}, {"key": []}], "api_key", ["shop_key"]),
        ([{"key": [], "other": []}], "api_key", ["shop_key", "shop_other"]),
        ([{"digest": []}], "none", []),
        ([{"nowhere": []}], "none", []),
        ([{}], "none", []),
        ([], "none", []),
    ],
)
def test_security_schemes_become_secrets(security: Any, auth: str, secrets: list[str]) -> None:
    draft = drafted({"security": security}, components={"securitySchemes": SCHEMES})
    assert (draft.auth, draft.action.get("secrets", [])) == (auth, secrets)
    assert draft.problems == []
    by_hand = [one for one in draft.notes if "by hand" in one]
    assert bool(by_hand) == (security in ([{"digest": []}], [{"nowhere": []}]))


def test_the_host_that_gives_tokens_may_be_called() -> None:
    draft = drafted({"security": [{"machine": []}]}, components={"securitySchemes": SCHEMES})
    assert draft.action["egress"]["hosts"] == ["api.shop.example", "id.shop.example"]


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("https://evil.example/s.json#/S", "another document"),
        ("file:///etc/passwd", "another document"),
        ("other.yaml#/S", "another document"),
        ("#/components/schemas/Nowhere", "leads to nothing"),
    ],
)
def test_references_lead_nowhere_else(reference: str, said: str) -> None:
    for given in (query({"$ref": reference}), {"parameters": [{"$ref": reference}]}):
        draft = drafted(given)
        assert said in draft.problems[0]
        assert draft.action == {}


def test_references_in_a_circle_and_schemas_without_end_are_refused() -> None:
    loop = {"a": {"$ref": "#/components/parameters/b"}, "b": {"$ref": "#/components/parameters/a"}}
    given = {"parameters": [{"$ref": "#/components/parameters/a"}]}
    assert "on and on" in drafted(given, components={"parameters": loop}).problems[0]
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(62):
        deep = {"items": deep}
    assert "too large" in drafted(query(deep)).problems[0]
    many = {f"S{one}": {"$ref": f"#/components/schemas/S{one + 1}"} for one in range(400)}
    given = query({"$ref": "#/components/schemas/S0"})
    assert "too many" in drafted(given, components={"schemas": many}).problems[0]


@pytest.mark.parametrize("kind", ["multipart/form-data", "application/octet-stream"])
def test_bodies_that_cannot_be_sent_are_refused(kind: str) -> None:
    assert kind in drafted(body({"type": "object"}, kind), method="post").problems[0]
    optional = drafted(body({"type": "object"}, kind, required=False), method="post")
    assert optional.problems == []
    assert kind in optional.notes[-1]


def test_forms_texts_and_vendor_json() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    form = drafted(body(schema, "application/x-www-form-urlencoded"), method="post").action["run"]
    assert (form["bodyType"], form["body"]) == ("form", {"a": {"from": "params.a"}})
    text = drafted(body({"type": "string"}, "text/plain; charset=utf-8"), method="post").action[
        "run"
    ]
    assert (text["bodyType"], text["body"]) == ("text", {"from": "params.body"})
    vendor = drafted(body(schema, "application/vnd.shop+json"), method="post").action["run"]
    assert vendor["headers"] == {"Content-Type": "application/vnd.shop+json"}


def test_parameters_that_cannot_be_sent() -> None:
    deep = query({"type": "object"}, style="deepObject")
    assert "deepObject" in drafted(deep).notes[-1]
    cookie = {"parameters": [{"name": "c", "in": "cookie", "required": True, "schema": {}}]}
    assert "cookie" in drafted(cookie).problems[0]
    header = {"parameters": [{"name": "X-Api-Key", "in": "header", "schema": {"type": "string"}}]}
    assert "credential" in drafted(header).notes[-1]
    listed = drafted(query({"type": "array", "items": {"type": "string"}}, explode=False))
    assert listed.action["run"]["arrays"] == "comma"


def test_a_pattern_that_cannot_be_matched_safely_is_left_to_the_server() -> None:
    draft = drafted(query({"type": "string", "pattern": "^(?!a)b"}))
    assert "pattern" not in draft.action["params"]["properties"]["q"]
    assert "left to the server" in draft.notes[-1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"swagger": "2.0"}', "swagger2openapi"),
        ("swagger: '2.0'", "swagger2openapi"),
        ('{"openapi": "2.9"}', "3.0 and 3.1"),
        ("{}", "no OpenAPI document"),
        ("[]", "YAML"),
        ('{"openapi": ', "no JSON"),
        ("openapi: !!python/object:os.system x", "YAML"),
        ('{"openapi": "3.0.0", "x": ' + "[" * 5_000 + "]" * 5_000 + "}", "levels deep"),
    ],
)
def test_other_documents_are_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_api(text, "a.json")
    assert said in str(caught.value)
    with pytest.raises(ConfigError, match="bytes"):
        read_api("x" * 11, "a.json", max_bytes=10)


# --- choosing, importing, and importing again -----------------------------------------------------------


PATHS = {
    "/orders": {
        "get": {"operationId": "listOrders", "tags": ["a"], "description": "Lists.  \nAll.\n"}
    },
    "/orders/{id}": {
        "delete": {"operationId": "deleteOrder", "tags": ["b"]},
        "get": {"operationId": "getOrder", "tags": ["b"]},
    },
}


def planned(out: Path, paths: dict[str, Any] | None = None, **more: Any) -> Plan:
    text = document(PATHS if paths is None else paths, **more.pop("root", {}))
    return plan_import(read_api(text, "shop.json"), OPTIONS, out=out, **more)


def imported(out: Path, paths: dict[str, Any] | None = None, **more: Any) -> dict[str, str]:
    plan = planned(out, paths, **more)
    write_import(plan, out)
    return {one.name.partition(".")[2]: one.what for one in plan.changes}


@pytest.mark.parametrize(
    ("picks", "tags", "names"),
    [
        ((), (), ["list_orders", "get_order", "delete_order"]),
        (("get_*",), (), ["get_order"]),
        (("listOrders", "DELETE /orders/{id}"), (), ["list_orders", "delete_order"]),
        ((), ("b",), ["get_order", "delete_order"]),
    ],
)
def test_choosing(tmp_path: Path, picks: Any, tags: Any, names: list[str]) -> None:
    plan = planned(tmp_path, picks=picks, tags=tags)
    assert [one.name.partition(".")[2] for one in plan.drafts] == names
    assert list(tmp_path.iterdir()) == []


def test_choosing_nothing_or_too_much(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no operation is named 'nope'"):
        planned(tmp_path, picks=["nope"])
    with pytest.raises(ConfigError, match="no such operation"):
        planned(tmp_path, tags=["nope"])
    many = {f"/p{one}": {"get": {}} for one in range(201)}
    with pytest.raises(ConfigError, match="--pick"):
        planned(tmp_path, many)


def test_importing_again_changes_nothing(tmp_path: Path) -> None:
    assert set(imported(tmp_path).values()) == {"new"}
    before = {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(before) == 5
    assert set(imported(tmp_path).values()) == {"same"}
    assert {path: path.read_text() for path in before} == before
    for path in tmp_path.glob("*.action.yaml"):
        assert read_actions(path.read_text(), path).problems == []


def test_importing_again_keeps_what_a_person_edited_and_takes_what_the_document_changed(
    tmp_path: Path,
) -> None:
    imported(tmp_path)
    path = file_of(tmp_path, "shop.list_orders")
    mine = (
        path.read_text()
        .replace("enabled: false", "enabled: true # looked at")
        .replace("Lists.", "Mine.")
    )
    path.write_text(mine + "timeout: 5s # slow\n")
    changed = json.loads(json.dumps(PATHS))
    changed["/orders"]["get"] |= {"summary": "All orders", "description": "Other."}
    plan = planned(tmp_path, changed)
    (change,) = [one for one in plan.changes if one.name == "shop.list_orders"]
    assert change.what == "changed"
    assert "+title: All orders" in change.lines
    assert change.notes == ["description: changed here and in the document; yours stays"]
    write_import(plan, tmp_path)
    text = path.read_text()
    assert "enabled: true # looked at" in text
    assert "timeout: 5s # slow" in text
    assert "Mine." in text
    assert "title: All orders" in text


def test_an_action_that_does_something_else_now_is_disabled_again(tmp_path: Path) -> None:
    imported(tmp_path)
    path = file_of(tmp_path, "shop.list_orders")
    path.write_text(path.read_text().replace("enabled: false", "enabled: true"))
    imported(tmp_path, root={"servers": [{"url": "https://elsewhere.example"}]})
    text = path.read_text()
    assert "enabled: false" in text
    assert "https://elsewhere.example/orders" in text


def test_operations_that_went_files_that_went_and_files_of_others(tmp_path: Path) -> None:
    imported(tmp_path)
    file_of(tmp_path, "shop.get_order").unlink()
    less = {"/orders": PATHS["/orders"], "/orders/{id}": {"get": {"operationId": "getOrder"}}}
    assert imported(tmp_path, less) == {
        "list_orders": "same",
        "get_order": "removed",
        "delete_order": "gone",
    }
    assert file_of(tmp_path, "shop.delete_order").exists()
    assert not file_of(tmp_path, "shop.get_order").exists()
    assert imported(tmp_path, less, picks=["getOrder"])["get_order"] == "new"
    file_of(tmp_path, "shop.other").write_text("mine\n")
    more = {"/other": {"get": {"operationId": "other"}}}
    assert imported(tmp_path, more)["other"] == "refused"
    assert file_of(tmp_path, "shop.other").read_text() == "mine\n"
