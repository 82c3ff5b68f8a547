"""Driving one run from a terminal: show its events, put its questions, and end with the right exit code."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import typer
from rich.prompt import Prompt
from rich.text import Text

from loopagent.app import App
from loopagent.cli.following import Answerer, Output, follow, stopping
from loopagent.cli.output import err, out, print_json, visible
from loopagent.cli.typed import typed, unless
from loopagent.cli.who import KEY_VARIABLE, show_preview, show_terms, who_here
from loopagent.clients import ToolAnswer
from loopagent.core.lineage import ARROW
from loopagent.errors import ConfigError, RequestError
from loopagent.ports import RequestRow
from loopagent.request_view import preview_of, shown_params
from loopagent.runview import RunView
from loopagent.stores.memory import MemoryStore


Json = dict[str, Any]
UNKEPT = "the run is not kept: name a file with --db to answer it later"
EXIT = {"completed": 0, "failed": 1, "cancelled": 4}
EXIT_WAITING = 3
EXIT_TIME_LIMIT = 124
UNFIT = 422
"""Status of an answer that does not fit what was asked."""


def exit_code(view: RunView) -> int:
    """The exit code that says how a run stands; never 0 for one that did not complete."""
    state = view.state
    if not state.ended:
        return EXIT_WAITING
    if state.result is not None and state.result.detail.get("limit") == "maxSeconds":
        return EXIT_TIME_LIMIT
    return EXIT[state.status]


async def drive(
    app: App, view: RunView, *, output: Output, answer: Answerer | None, after: int = 0
) -> int:
    """Follow a run to its end, or to a question that nobody here can answer.

    Whoever can answer is asked as soon as anything is, also while the rest of the run goes on.

    Args:
        app: An open app.
        view: The run.
        output: What is printed.
        answer: Answers the open requests of a run and of those below it, or None when nobody can.
        after: Number of the last event that is not to be printed again.

    Returns:
        The exit code.
    """
    async with stopping(app, view.id) as stopped:
        asks = None if answer is None else partial(_answered_or_stopped, answer, stopped)
        await follow(app, view.id, output, asks, after)
    view = await app.get(view.id)
    if output == "json":
        print_json(view.public())
    elif output == "timeline":
        _summary(view, kept=not isinstance(app.store, MemoryStore))
    return exit_code(view)


async def _answered_or_stopped(
    answer: Answerer, stopped: asyncio.Event, app: App, view: RunView
) -> None:
    """Have what a run asks answered, unless it is stopped meanwhile."""
    await unless(stopped, answer(app, view))


async def last_event(app: App, run_id: str) -> int:
    """Number of the last event of the tree that a run belongs to."""
    view = await app.get(run_id)
    return (await app.get(view.state.root_id)).seq


def _summary(view: RunView, *, kept: bool) -> None:
    public = view.public()
    usage = public["usage"]
    out.print()
    out.print(
        f"run {view.id}: {public['status']}"
        + (f" ({public['reason']})" if public["reason"] else "")
    )
    spent = f"{usage['modelCalls']} model calls, {usage['inputTokens']} + {usage['outputTokens']} tokens"
    out.print(f"{view.state.turn} turns, {spent}, {public['activeSeconds']:.2f} s")
    out.print("payload:", end=" ")
    print_json(public["payload"])
    for one in public["requests"]:
        how = "--result JSON" if one["kind"] == "client_tool" else "…"
        later = f"loopagent requests answer {one['requestId']} {how}"
        out.print(f"waits for: {one['title']} ({later if kept else UNKEPT})", markup=False)


def terminal_answerer() -> Answerer | None:
    """Asks the person at the terminal, or None when there is none."""
    return ask_in_terminal if sys.stdin.isatty() and sys.stdout.isatty() else None


async def ask_in_terminal(app: App, view: RunView) -> None:
    """Put every open request of a run to the person at the terminal, again where an answer does not fit."""
    for ask in view.asks:
        request = await app.store.request(ask["requestId"])
        if request is None or request.status != "open":
            continue
        give = _do if request.body.get("kind") == "client_tool" else _put
        while not await _taken(partial(give, app, request)):
            pass


async def _taken(answer: Callable[[], Awaitable[Any]]) -> bool:
    """Give an answer; False when it does not fit and is to be given again."""
    try:
        await answer()
    except RequestError as error:
        if error.code == "not_an_approver":
            raise ConfigError(f"{error} {KEY_VARIABLE} may hold it.") from error
        err.print(visible(str(error)))
        return error.status != UNFIT
    return True


async def _put(app: App, request: RequestRow) -> None:
    who = await who_here(app)
    show_card(request.body)
    show_preview(await preview_of(app, request))
    given = await typed(lambda: _questions(request.body))
    await app.answer(request.id, **given, by=who.by, who=who)


async def _do(app: App, request: RequestRow) -> None:
    call = request.body
    answer = await typed(lambda: _play_client(call))
    await app.answer_call(request.run_id, call["callId"], answer)


def _play_client(call: Json) -> ToolAnswer:
    """The person at the terminal stands in for the client."""
    out.print()
    out.print(visible(call["title"]), style="bold yellow")
    out.print(visible(call["text"]))
    out.print(visible(json.dumps(call["params"], ensure_ascii=False, indent=2)))
    given = Prompt.ask("Result, as JSON or text (empty: it failed)", default="")
    if not given:
        return ToolAnswer(success=False, error=Prompt.ask("Why?", default=""))
    return ToolAnswer(result=json_or_text(given))


def json_or_text(text: str) -> Any:
    """What a person typed: the JSON value it is, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def show_card(body: Json) -> None:
    """What a request asks, as data: nothing in it is read as markup."""
    subject = body.get("subject") or {}
    out.print()
    out.print(visible(body["title"]), style="bold yellow")
    if len(body.get("agents", ())) > 1:
        out.print(visible(ARROW.join(body["agents"])))
    if body["kind"] == "plan":
        out.print(visible(subject["diff"] or body["text"]))
        out.print(Text(f"SHA-256 {subject['sha256']}", style="dim"))
    elif body.get("text"):
        out.print(visible(body["text"]))
    if subject.get("params") is not None:
        out.print(visible(json.dumps(shown_params(subject), ensure_ascii=False, indent=2)))
    for number, params in enumerate(subject.get("first", ()), 1):
        line = f"call {number} of {subject['passes']}: {json.dumps(params, ensure_ascii=False)}"
        out.print(visible(line))
    if isinstance(subject.get("effects"), str):
        by = f", brought by the skill {subject['skill']}" if subject.get("skill") else ""
        out.print(visible(f"effects: {subject['effects']}{by}"))
    for key in ("effects", "unlocks", "reads"):
        listed = subject.get(key)
        if isinstance(listed, list) and listed:
            out.print(visible(f"{key}: " + "; ".join(_entry(one) for one in listed)))
    show_terms(subject, body.get("expiresAt"))


def show_form(body: Json) -> None:
    """The questions of a form, as `--value id=…` takes their answers."""
    for one in (body.get("form") or {}).get("questions", []):
        kind = one["type"]
        offered = " | ".join(json.dumps(option["value"]) for option in kind.get("options", ()))
        required = ", required" if one.get("required") else ""
        out.print(visible(f"{one['id']}: {one['label']} ({offered or kind['type']}{required})"))


def _entry(one: Any) -> str:
    return one if isinstance(one, str) else f"{one['action']} ({one['effects']})"


def _questions(body: Json) -> Json:
    if body["kind"] == "plan":
        return _plan_decision(body)
    if body["kind"] == "approval":
        return _approval(body.get("subject") or {})
    if body["kind"] == "limit":
        return _decide("Raise it?", {"y": "approve", "n": "reject", "s": "terminate"})
    if body["kind"] == "guard":
        return _decide("Try another way?", {"y": "approve", "g": "answer", "s": "terminate"})
    return _answered(body)


def _answered(body: Json) -> Json:
    """The answer to a question; a server's may be declined as well."""
    questions = (body.get("form") or {}).get("questions", [])
    if "server" in (body.get("subject") or {}):
        answer = "answer" if questions else "approve"
        chosen = _decide("Answer it?", {"y": answer, "n": "reject", "s": "terminate"}, words=False)
        if chosen["decision"] != "answer":
            return chosen
    if not questions:
        return {"decision": "answer", "feedback": Prompt.ask("Answer")}
    return {"decision": "answer", "values": {one["id"]: _question(one) for one in questions}}


def _approval(subject: Json) -> Json:
    """Approve once or, where the action lets that be, the very same call from now on."""
    keys = {"y": "approve", "n": "reject", "s": "terminate"}
    lasting = {"r": "run", "c": "session"}
    offered = {key: one for key, one in lasting.items() if one in subject.get("remember", ())}
    chosen = _decide(
        "Approve?", {**keys, **{key: f"approve, {one}" for key, one in offered.items()}}
    )
    decision, _, remember = chosen["decision"].partition(", ")
    return {**chosen, "decision": decision, "remember": remember}


def _plan_decision(body: Json) -> Json:
    """Approve, edit or reject exactly the plan that was shown."""
    keys = {"y": "approve", "e": "edit", "n": "reject", "s": "terminate"}
    if body["subject"].get("reads"):
        keys["r"] = "approve, and do not ask about reads"
    if body["subject"]["diff"]:
        keys["w"] = "whole"
    seen = {"revision": body["revision"], "content_hash": body["contentHash"]}
    while True:
        chosen = _decide("Approve this plan?", keys)
        if chosen["decision"] == "whole":
            out.print(visible(body["text"]))
        elif chosen["decision"] == "edit":
            return {"decision": "approve", "edited": _typed_text(), **seen}
        elif "," in chosen["decision"]:
            return {"decision": "approve", "remember": "run", **seen}
        else:
            return {**chosen, **seen}


def _typed_text() -> str:
    """Lines from the terminal, up to one that holds a single dot."""
    out.print("Type the whole plan; a line with a single dot ends it.")
    lines: list[str] = []
    while (line := out.input()) != ".":
        lines.append(line)
    return "\n".join(lines)


def _decide(text: str, keys: dict[str, str], *, words: bool = True) -> Json:
    hints = ", ".join(f"{key} = {decision}" for key, decision in keys.items())
    key = Prompt.ask(f"{text} ({hints})", choices=list(keys))
    decision = keys[key]
    feedback = (
        Prompt.ask("What should it know?", default="")
        if words and decision in {"reject", "answer"}
        else ""
    )
    return {"decision": decision, "feedback": feedback}


def _question(question: Json) -> Any:
    """One answer from the terminal; its type is checked, and made, where it is taken."""
    kind, label = question["type"], str(visible(question["label"]))
    if kind["type"] == "daterange":
        return {
            one: Prompt.ask(f"{label}, {one} (YYYY-MM-DD)", default="") for one in ("start", "end")
        }
    offered = [str(one["value"]) for one in kind.get("options", ())]
    several = kind["type"] == "checkbox" and kind.get("multiple")
    default = question.get("defaultValue")
    if several:
        given = Prompt.ask(f"{label} (some of {', '.join(offered)}; commas between)", default="")
        return [one.strip() for one in given.split(",") if one.strip()] or None
    shown = "" if default is None and not question.get("required") else default
    answer = Prompt.ask(
        label, choices=offered or None, default=None if shown is None else str(shown)
    )
    return answer or None


def payload_of(file: Path) -> Any:
    """The payload in a JSON file.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        message = f"{file}: the payload cannot be read as JSON: {error}"
        raise ConfigError(message) from error


def run_async(work: Any) -> None:
    """Run a coroutine that returns an exit code, and exit with it."""
    raise typer.Exit(asyncio.run(work))
