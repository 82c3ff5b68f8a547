"""Questions of real MCP servers in the middle of a call: asked as requests of the run, answered, and passed on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App
from loopagent.actions.elicitation import NotAQuestionError, question_of
from loopagent.actions.mcp_servers import McpServer
from loopagent.runview import RunView
from tests.actions.test_mcp import action, having, program, url
from tests.runtime.hooked import Listening


__all__ = ["url"]
pytestmark = pytest.mark.anyio
DONE = {"taskComplete": True, "message": "Done."}


def calling(
    server: McpServer, tool: str, effects: str = "external", *, after: bool = False, **params: Any
) -> Agent[Any]:
    """An agent that calls a tool and is done; `after`: that has called it already."""
    made = action(
        having(server), tool, effects=effects, rest="approval: {policy: auto}\ntimeout: 60s"
    )
    calls = [{"name": "shop.it", "params": params}]
    asks = {"taskComplete": False, "nextStep": {"type": "Actions", "actions": calls}}
    return Agent("buyer", model=Listening(*([] if after else [asks]), DONE), actions=[made])


async def asked(app: App) -> tuple[RunView, dict[str, Any]]:
    view = await app.wait((await app.start("buyer", "Go.")).id)
    [row] = (await app.requests(status="open"))[0]
    return view, {"id": row.id, **row.body}


async def result(app: App, run_id: str) -> dict[str, Any]:
    await app.wait(run_id)
    events = await app.store.events(run_id)
    found: dict[str, Any] = next(one["data"] for one in events if one["type"] == "action.completed")
    return found


async def test_a_write_is_asked_about_after_a_restart_too(url: str, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    agent = calling(McpServer(url=url), "ask", order="9")
    async with App(agents=[agent], store=store, env={}) as app:
        view, request = await asked(app)
        assert view.loop.state == "followup"
        assert (request["text"], request["subject"]["server"]) == ("Really 9?", "shop")
        labels = [
            (one["id"], one["label"], one["required"]) for one in request["form"]["questions"]
        ]
        assert labels == [("sure", "Sure?", True), ("when", "when", False)]
    agent = calling(McpServer(url=url), "ask", after=True)
    async with App(agents=[agent], store=store, env={}) as app:
        with pytest.raises(Exception, match="required"):
            await app.answer(request["id"], decision="answer", values={"when": "now"})
        await app.answer(request["id"], decision="answer", values={"sure": "Yes"})
        done = await result(app, view.id)
        assert done["result"] == "9: accept {'sure': True}, back: x"


async def test_a_refusal_is_passed_on(url: str) -> None:
    async with App(agents=[calling(McpServer(url=url), "ask", order="9")], env={}) as app:
        view, request = await asked(app)
        await app.answer(request["id"], decision="reject")
        assert "9: decline None" in str((await result(app, view.id))["result"])


async def test_a_program_that_forgot_its_state_is_called_anew_only_to_read() -> None:
    server = program()  # a new one for each call, with keys of its own
    async with App(agents=[calling(server, "ask", "read", order="9")], env={}) as app:
        view, request = await asked(app)
        await app.answer(request["id"], decision="answer", values={"sure": True})
        assert "9: accept" in str((await result(app, view.id))["result"])
    async with App(agents=[calling(server, "ask", order="9")], env={}) as app:
        view, request = await asked(app)
        await app.answer(request["id"], decision="answer", values={"sure": True})
        assert (await result(app, view.id))["error"]["mayHaveRun"]


async def test_an_address_is_shown_and_asking_over_and_over_is_bounded(url: str) -> None:
    server = McpServer(url=url, max_questions=2)
    async with App(agents=[calling(server, "pay")], env={}) as app:
        view, request = await asked(app)
        subject = request["subject"]
        assert (subject["url"], subject["host"]) == ("https://pay.example/7?x=1", "pay.example")
        assert request["decisions"] == ["approve", "reject", "terminate"]
        await app.answer(request["id"], decision="approve")
        await app.wait(view.id)
        [again] = (await app.requests(status="open"))[0]
        await app.answer(again.id, decision="approve")
        assert (await result(app, view.id))["error"]["code"] == "asks_too_often"


async def test_the_era_before_is_called_again_to_read() -> None:
    server = program("mcp_old_server.py")
    async with App(agents=[calling(server, "ask", "read")], env={}) as app:
        view, request = await asked(app)
        await app.answer(request["id"], decision="answer", values={"sure": False})
        assert "they said accept" in str((await result(app, view.id))["result"])


async def held_question(app: App) -> str:
    """The request of a call that goes on meanwhile."""
    for _ in range(600):
        rows = (await app.requests(status="open"))[0]
        if rows:
            return rows[0].id
        await asyncio.sleep(0.1)
    raise AssertionError("nobody was asked")


async def test_the_era_before_is_answered_within_its_call_to_write() -> None:
    server = program("mcp_old_server.py")
    async with App(agents=[calling(server, "ask")], env={}) as app:
        view = await app.start("buyer", "Go.")
        request = await held_question(app)
        await app.answer(request, decision="answer", values={"sure": True})
        assert "they said accept" in str((await result(app, view.id))["result"])
    silent = server.model_copy(update={"answer_seconds": 0.2})
    async with App(agents=[calling(silent, "ask")], env={}) as app:
        view = await app.start("buyer", "Go.")
        assert "they said cancel" in str((await result(app, view.id))["result"])
        assert (await app.requests(status="expired"))[0]


async def test_a_write_that_waited_in_its_call_is_in_doubt_after_a_crash(tmp_path: Path) -> None:
    server = program("mcp_old_server.py")
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    async with App(agents=[calling(server, "ask")], store=store, env={}) as app:
        view = await app.start("buyer", "Go.")
        request = await held_question(app)
    async with App(agents=[calling(server, "ask", after=True)], store=store, env={}) as app:
        ended = await result(app, view.id)
        assert (ended["error"]["code"], ended["error"]["mayHaveRun"]) == ("interrupted", True)
        row = await app.store.request(request)
        assert row is not None
        assert row.status == "cancelled"
        with pytest.raises(Exception, match="closed"):
            await app.answer(request, decision="answer", values={"sure": True})


# --- what servers ask ------------------------------------------------------------------------------


def form(**properties: Any) -> dict[str, Any]:
    return {"message": "M", "requestedSchema": {"type": "object", "properties": properties}}


def test_every_kind_of_field_has_a_question() -> None:
    asked = form(
        mail={"type": "string", "format": "email"},
        day={"type": "string", "format": "date", "description": "Which?"},
        short={"type": "string", "maxLength": 9, "default": "a"},
        count={"type": "integer", "minimum": 1, "maximum": 3},
        size={"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
        tint={"type": "string", "oneOf": [{"const": "r", "title": "Red"}]},
        many={"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    )
    kinds = {one["id"]: one["type"] for one in question_of("q", asked)["form"]["questions"]}
    assert {name: one["type"] for name, one in kinds.items()} == {
        "mail": "email",
        "day": "date",
        "short": "text",
        "count": "number",
        "size": "dropdown",
        "tint": "dropdown",
        "many": "checkbox",
    }
    assert kinds["count"] == {"type": "number", "min": 1, "max": 3}
    assert kinds["size"]["options"][1] == {"label": "Large", "value": "l"}
    assert "warning" not in question_of("q", asked)


@pytest.mark.parametrize("field", ["password", "apiKey", "api_key", "PIN", "cardNumber"])
def test_what_looks_like_a_secret_is_marked(field: str) -> None:
    assert "secret" in question_of("q", form(**{field: {"type": "string"}}))["warning"]


@pytest.mark.parametrize(
    "params",
    [
        {"mode": "url", "message": "m", "url": "javascript:alert(1)"},
        {"mode": "url", "message": "m", "url": "https://user:pw@x.example"},
        form(**{f"f{number}": {"type": "string"} for number in range(51)}),
        form(rest={"type": "array", "items": {}}),
    ],
)
def test_what_cannot_be_asked(params: dict[str, Any]) -> None:
    with pytest.raises(NotAQuestionError):
        question_of("q", params)
