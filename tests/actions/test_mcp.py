"""Tools of real MCP servers as actions: both transports, both eras, pins, questions, time, and secrets."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loopagent.action import Action
from loopagent.actions.build import make_action
from loopagent.actions.importing.mcp import plan_mcp
from loopagent.actions.mcp_servers import McpServer
from loopagent.actions.means import Means
from loopagent.cli.main import cli
from loopagent.errors import ConfigError
from loopagent.project import load_project
from tests.actions.making import Secrets, call, code, means, message, read


pytestmark = pytest.mark.anyio
FAKES = Path(__file__).parent.parent / "fakes"
TOKEN = "tok-CANARY-1"
FILE = """\
name: shop.it
description: Does it.
effects: {effects}
params: {{type: object}}
run: {{kind: mcp, server: shop, tool: {tool}{more}}}
{rest}
"""


def program(name: str = "mcp_server.py", **env: str) -> McpServer:
    args = (str(FAKES / name), "stdio")
    return McpServer(command=sys.executable, args=args, env={"PYTHONPATH": "", **env})


def having(server: McpServer, **more: Any) -> Means:
    return means(mcp={"shop": server}, **more)


def action(
    given: Means, tool: str, more: str = "", rest: str = "", effects: str = "read"
) -> Action[..., Any]:
    return make_action(read(FILE.format(tool=tool, more=more, rest=rest, effects=effects)), given)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, str(FAKES / "mcp_server.py"), "http", str(port)]
    with subprocess.Popen(words) as process:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> McpServer:
    if request.param == "stdio":
        return program()
    return McpServer(url=request.getfixturevalue("url"))


async def test_a_call(server: McpServer) -> None:
    told: list[str] = []
    done = await call(action(having(server), "look"), {"order": "7"}, told)
    assert done.value["order"] == "7"
    assert told == ["half way"]
    selected = action(having(server), "look", rest="result: {select: structured.order}")
    assert (await call(selected, {"order": "8"})).value == "8"


async def test_what_a_tool_complains_about(server: McpServer) -> None:
    dropped = await call(action(having(server), "drop", effects="external"), {"order": "9"})
    assert code(dropped) == "tool_error"
    assert "no order 9" in message(dropped)


async def test_a_question_in_between_ends_the_call(server: McpServer) -> None:
    asked = await call(action(having(server), "ask"), {"order": "9"})
    assert code(asked) == "asks"
    assert "Really 9?" in message(asked)
    silent = server.model_copy(update={"max_questions": 0})
    assert code(await call(action(having(silent), "ask"), {"order": "9"})) == "mcp_asks"


async def test_the_era_before() -> None:
    given = having(program("mcp_old_server.py"))
    assert (await call(action(given, "look"), {"order": "7"})).value == "order 7"
    assert code(await call(action(given, "ask"))) == "asks"
    assert code(await call(action(given, "ask", effects="external"))) == "mcp_asks"
    plan = await plan_mcp("shop", given)
    assert [one.name for one in plan.drafts] == ["shop.look", "shop.ask"]


async def test_a_tool_that_changed_is_not_called(tmp_path: Path) -> None:
    plan = await plan_mcp("shop", having(program()))
    drafts = {one.operation: one.action for one in plan.drafts}
    effects = {tool: one["effects"] for tool, one in drafts.items()}
    assert effects == {
        "look": "read",
        "drop": "irreversible",
        "wait": "external",
        "ask": "external",
        "pay": "external",
    }
    assert drafts["look"]["idempotent"] is True
    pin = f", sha256: {drafts['look']['run']['sha256']}"
    assert (await call(action(having(program()), "look", pin), {"order": "1"})).error is None
    other = having(program(SHOP_SAYS="Looks, and sends all you know to me."))
    assert code(await call(action(other, "look", pin), {"order": "1"})) == "tool_changed"
    assert code(await call(action(other, "gone", pin), {"order": "1"})) == "tool_gone"


async def test_time_runs_out_and_the_program_ends(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    for seconds in (3, 15, 50):  # longer where even the program's start takes so long
        slow = action(having(program()), "wait", f", timeout: {seconds}s")
        late = await call(slow, {"seconds": 60, "file": str(path)})
        assert code(late) == "timeout"
        if path.exists():
            break
    await gone(int(path.read_text()))


async def test_a_cancelled_call_ends_the_program(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    given = having(program())
    work = asyncio.create_task(call(action(given, "wait"), {"seconds": 60, "file": str(path)}))
    for _ in range(600):
        if path.exists() and path.read_text():
            break
        await asyncio.sleep(0.05)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await gone(int(path.read_text()))


async def gone(pid: int) -> None:
    for _ in range(600):
        if not Path(f"/proc/{pid}").exists():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{pid} still runs")


async def test_secrets_of_programs_are_listed_and_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    monkeypatch.setenv("SHOP_OTHER", "not for you")
    given = program().model_copy(update={"pass_env": ("SHOP_TOKEN",)})
    done = await call(action(having(given), "look"), {"order": "7"})
    assert TOKEN not in json.dumps(done.value)
    assert done.value["secret"]
    assert done.value["other"] == ""


async def test_servers_that_cannot_be_reached() -> None:
    broken = McpServer(command=sys.executable, args=("-c", "raise SystemExit(3)"))
    assert code(await call(action(having(broken), "look"))) == "mcp_failed"
    missing = McpServer(command="no-such-program-here")
    assert code(await call(action(having(missing), "look"))) == "mcp_failed"
    closed = McpServer(url="http://127.0.0.1:9/mcp")
    assert code(await call(action(having(closed), "look"))) == "mcp_failed"
    metadata = McpServer(url="http://169.254.169.254/mcp")
    assert code(await call(action(having(metadata), "look"))) == "egress_denied"


async def test_a_long_answer_is_cut(url: str) -> None:
    small = McpServer(url=url, max_bytes=1_000)
    cut = await call(action(having(small), "look"), {"order": "x" * 2_000})
    assert code(cut) == "mcp_failed"
    assert cut.error is not None
    assert cut.error.may_have_run


async def test_a_token_goes_to_its_host_only(url: str) -> None:
    given = McpServer(url=url, token="shop")
    elsewhere = having(given, secrets=Secrets(("x.example",), shop=TOKEN))
    assert code(await call(action(elsewhere, "look"), {"order": "7"})) == "secret_denied"
    there = having(given, secrets=Secrets(shop=TOKEN))
    assert (await call(action(there, "look"), {"order": "7"})).error is None


def test_only_the_operator_defines_servers() -> None:
    with pytest.raises(ConfigError, match=r"\[mcp.shop\]"):
        action(means(), "look")
    for wrong in (
        {},
        {"command": "a", "url": "https://b.example"},
        {"url": "ftp://x"},
        {"url": "https://x.example", "args": ["a"]},
        {"command": "a", "token": "b"},
    ):
        with pytest.raises(ValueError, match=r"command|url|address"):
            McpServer.model_validate(wrong)


def test_import_at_the_terminal(tmp_path: Path) -> None:
    def settings(env: str) -> None:
        args = json.dumps([str(FAKES / "mcp_server.py"), "stdio"])
        text = f'[mcp.shop]\ncommand = "{sys.executable}"\nargs = {args}\nenv = {{{env}}}\n'
        (tmp_path / "loopagent.toml").write_text(text)

    words = ["actions", "import-mcp", "shop", "--project", str(tmp_path)]
    settings("")
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    path = tmp_path / "actions" / "shop.look.action.yaml"
    path.write_text(path.read_text().replace("enabled: false", "enabled: true"))
    assert load_project(tmp_path, env={}).actions["shop.look"].spec.effects == "read"
    settings('SHOP_SAYS = "Other."')
    again = CliRunner().invoke(cli, words)
    assert "+description: Other." in again.stdout
    assert "enabled: false" in path.read_text()
