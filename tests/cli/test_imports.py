"""`loopagent actions import-openapi` and `import-curl` as typed, and what the server shows of imports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner, Result

from loopagent.actions.build import FileAction
from loopagent.cli.main import cli
from loopagent.errors import ConfigError
from loopagent.project import load_project
from tests.fakes.web import Got, Reply, Web, as_json
from tests.http.server import make_project, serving


AGENT = "name: clerk\nmodel: scripted:script.jsonl\nactions: [shop.get_order]\n"
PIPELINE = """\
name: both
description: Does it.
effects: read
params: {type: object, required: [id], properties: {id: {type: string}}}
run: {kind: pipeline, steps: [{id: one, action: shop.get_order, with: {id: {from: params.id}}}]}
"""


def document(url: str) -> dict[str, object]:
    parameter = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    key = {"type": "apiKey", "in": "header", "name": "X-Key"}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": url}],
        "components": {"securitySchemes": {"key": key}},
        "paths": {
            "/orders/{id}": {
                "parameters": [parameter],
                "get": {"operationId": "getOrder", "summary": "Look at an order"},
                "delete": {"operationId": "deleteOrder", "security": [{"key": []}]},
            }
        },
    }


@pytest.fixture
def web() -> Iterator[Web]:
    def answer(got: Got) -> Reply:
        return as_json(
            document(running.url) if got.target == "/openapi.json" else {"path": got.target}
        )

    with Web(answer) as running:
        yield running


def typed(folder: Path, *words: str, given: str | None = None) -> Result:
    words = ("actions", *words, "--project", str(folder))
    return CliRunner().invoke(cli, words, input=given)


def written(folder: Path, web: Web) -> Path:
    path = folder / "shop.json"
    path.write_text(json.dumps(document(web.url)))
    return path


def test_import_enable_and_call(tmp_path: Path, web: Web) -> None:
    settings = '[egress]\nprivateNetworks = ["127.0.0.0/8"]\n'
    (tmp_path / "loopagent.toml").write_text(settings)
    looked = typed(tmp_path, "import-openapi", f"{web.url}/openapi.json", "--dry-run", "--json")
    assert looked.exit_code == 0
    assert [one["effects"] for one in json.loads(looked.stdout)["operations"]] == [
        "read",
        "irreversible",
    ]
    assert not (tmp_path / "actions").exists()
    done = typed(tmp_path, "import-openapi", f"{web.url}/openapi.json")
    assert done.exit_code == 0
    assert "new      shop.get_order: GET /orders/{id} (read, auth none" in done.stdout
    assert "[credentials.shop_key]" in done.stderr
    call = ("run", "shop.get_order", "--set", "id=a/b")
    assert "action_disabled" in typed(tmp_path, *call).stdout
    path = tmp_path / "actions" / "shop.get_order.action.yaml"
    path.write_text(path.read_text().replace("enabled: false", "enabled: true"))
    assert json.loads(typed(tmp_path, *call).stdout)["path"] == "/orders/a%2Fb"


def test_importing_again_shows_the_difference(tmp_path: Path, web: Web) -> None:
    path = written(tmp_path, web)
    assert typed(tmp_path, "import-openapi", str(path)).exit_code == 0
    path.write_text(path.read_text().replace("Look at an order", "Show an order"))
    again = typed(tmp_path, "import-openapi", str(path), "--dry-run")
    assert "+title: Show an order" in again.stdout
    assert "Nothing was written." in again.stderr
    listed = json.loads(typed(tmp_path, "list", "--json").stdout)
    assert [one["enabled"] for one in listed] == [False, False]


def test_nobody_uses_what_is_disabled(tmp_path: Path, web: Web) -> None:
    typed(tmp_path, "import-openapi", str(written(tmp_path, web)))
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "clerk.agent.yaml").write_text(AGENT)
    (tmp_path / "script.jsonl").write_text("")
    (tmp_path / "actions" / "both.action.yaml").write_text(PIPELINE)
    with pytest.raises(ConfigError) as caught:
        load_project(tmp_path, env={})
    problems = caught.value.problems
    assert len(problems) == len([one for one in problems if "enabled: true" in one]) == 2
    path = tmp_path / "actions" / "shop.get_order.action.yaml"
    path.write_text(path.read_text().replace("enabled: false", "enabled: true"))
    project = load_project(tmp_path, env={})
    assert isinstance(project.actions["both"], FileAction)
    assert any("shop_key" in one for one in project.warnings)


def test_what_goes_wrong_is_said(tmp_path: Path, web: Web) -> None:
    path = tmp_path / "old.json"
    path.write_text('{"swagger": "2.0"}')
    for words, said in (
        (("import-openapi", str(path)), "swagger2openapi"),
        (("import-openapi", str(tmp_path / "none.json")), "cannot be read"),
        (("import-openapi", f"{web.url}/openapi.json"), "not allowed here"),
        (("import-openapi", str(written(tmp_path, web)), "--server-var", "x"), "name=value"),
        (("import-curl", "curl"), "no address"),
    ):
        result = typed(tmp_path, *words)
        assert isinstance(result.exception, ConfigError), words
        assert said in str(result.exception)


def test_import_curl(tmp_path: Path) -> None:
    command = "curl https://x.example/a -H 'Authorization: Bearer CANARY'"
    shown = typed(tmp_path, "import-curl", command, "--dry-run")
    assert "type: bearer" in shown.stdout
    assert not (tmp_path / "actions").exists()
    done = typed(tmp_path, "import-curl", "--name", "x.look", given=command)
    assert "[credentials.x_example_token]" in done.stderr
    path = tmp_path / "actions" / "x.look.action.yaml"
    assert "CANARY" not in path.read_text()
    again = typed(tmp_path, "import-curl", command, "--name", "x.look")
    assert "choose another --name" in str(again.exception)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    folder = tmp_path_factory.mktemp("imports")
    with serving(make_project(folder / "project"), folder / "runs.db") as (found, _):
        yield found


def test_previews_over_http(client: httpx2.Client) -> None:
    body = {"document": json.dumps(document("https://shop.example")), "pick": ["get*"]}
    preview = client.post("/actions/import/openapi", json=body).json()
    assert preview["name"] == "shop"
    assert [one["name"] for one in preview["operations"]] == ["shop.get_order"]
    assert "enabled: false" in preview["operations"][0]["yaml"]
    refused = client.post("/actions/import/openapi", json={"document": '{"swagger": "2.0"}'})
    assert refused.status_code == 422
    assert "swagger2openapi" in refused.json()["detail"]
    curl = {"command": "curl -u me:CANARY https://x.example/a"}
    made = client.post("/actions/import/curl", json=curl)
    assert made.json()["secrets"] == ["x_example_password"]
    assert "CANARY" not in made.text
    assert client.post("/actions/import/curl", json={"command": "wget x"}).status_code == 422
