"""Holes that other products had, each tried here where it would be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopagent.actions.build import make_action
from loopagent.actions.importing.fetching import fetch_api
from loopagent.actions.means import Means
from loopagent.actions.reading import read_actions
from loopagent.egress import EgressSettings
from loopagent.errors import ConfigError
from loopagent.project import load_project
from tests.actions.making import LOCAL, call, called, code, http_text, means, read
from tests.fakes.web import Got, Reply, Web, as_json


pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with Web(lambda _: as_json({})) as running:
        yield running


@pytest.fixture(autouse=True)
def forget(web: Web) -> None:
    web.seen.clear()


def _complaints(text: str) -> str:
    return "\n".join(read_actions(text, Path("x.action.yaml")).problems)


@pytest.mark.parametrize("url", ["{to}", "https://{to}/x", "https://a.{to}.example/", "{to}://a/"])
def test_no_text_of_a_model_chooses_the_host(web: Web, url: str) -> None:
    """API chains and HTTP nodes whose address came out of the prompt."""
    params = "params: {type: object, required: [to], properties: {to: {type: string}}}\n"
    text = http_text(web, params).replace(f"{web.url}/x", f'"{url}"')
    assert "run.url: " in _complaints(text)


@pytest.mark.parametrize(
    "given",
    [
        "@169.254.169.254",
        "//169.254.169.254/",
        "..//169.254.169.254",
        "#@evil.example",
        "?x=\r\nHost: e",
    ],
)
async def test_a_parameter_leads_to_no_other_host(web: Web, given: str) -> None:
    params = "params: {type: object, required: [to], properties: {to: {type: string}}}\n"
    await called(web, params, {"to": given}, path="/{to}")
    assert all(one.headers["host"] == f"127.0.0.1:{web.port}" for one in web.seen)
    assert all(one.target.count("/") == 1 for one in web.seen)


async def test_nobody_has_to_switch_the_guard_on(web: Web) -> None:
    """Guards that were off until a variable was set, or held only calls with a secret."""
    plain = await called(web, "", egress=EgressSettings())
    assert (code(plain), web.seen) == ("egress_denied", [])


async def test_an_action_file_opens_no_network(web: Web) -> None:
    text = http_text(web, "").replace("egress: {", "egress: {privateNetworks: [127.0.0.0/8], ")
    action = make_action(read(text), means(egress=EgressSettings()))
    assert (code(await call(action)), web.seen) == ("egress_denied", [])


@pytest.mark.parametrize(
    "address",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://[::ffff:a9fe:a9fe]/",
        "http://metadata.google.internal/",
        "file:///etc/passwd",
        "ftp://example.com/a.json",
    ],
)
async def test_a_document_to_import_is_fetched_under_the_same_guard(address: str) -> None:
    """Guards that the import of API documents went around."""
    with pytest.raises(ConfigError, match="cannot be fetched"):
        await fetch_api(address, Means(egress=LOCAL))


async def test_a_document_is_no_way_around_by_redirection(web: Web) -> None:
    web.answer = lambda _: Reply(302, headers={"location": "http://127.0.0.1:1/openapi.json"})
    with pytest.raises(ConfigError, match="status 302"):
        await fetch_api(f"{web.url}/openapi.json", Means(egress=LOCAL))
    assert len(web.seen) == 1


async def test_what_a_document_refers_to_is_not_fetched(web: Web) -> None:
    """References that read files and called servers while a document was imported."""
    document = {
        "openapi": "3.1.0",
        "info": {"title": "x", "version": "1"},
        "paths": {"/a": {"get": {"parameters": [{"$ref": f"{web.url}/p.json"}]}}},
    }

    def answer(got: Got) -> Reply:
        return as_json(document if got.target == "/openapi.json" else {"name": "stolen"})

    web.answer = answer
    await fetch_api(f"{web.url}/openapi.json", Means(egress=LOCAL))
    assert [one.target for one in web.seen] == ["/openapi.json"]


def test_what_is_imported_runs_no_program(tmp_path: Path) -> None:
    """Flows whose configuration of a tool server became a command when they were imported."""
    folder = tmp_path / "actions"
    folder.mkdir()
    mcp = {"kind": "mcp", "server": "x", "tool": "t", "command": "touch", "args": ["stolen"]}
    action = {"name": "x.t", "description": "d", "effects": "read", "run": mcp}
    (folder / "x.action.json").write_text(json.dumps(action))
    python = {"kind": "python", "callable": "os:system"}
    (folder / "y.action.json").write_text(json.dumps({**action, "name": "y.t", "run": python}))
    with pytest.raises(ConfigError) as found:
        load_project(tmp_path)
    told = "\n".join(found.value.problems)
    assert "run.command: unknown key" in told
    assert "y.action.json" in told
    assert "os" in told
