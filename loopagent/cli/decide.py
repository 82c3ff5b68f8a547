"""Requests to people from a terminal: the inbox, and deciding."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer
from rich.text import Text

from loopagent.app import App
from loopagent.cli.manage import with_app
from loopagent.cli.opening import AsJson, Database, ProjectDir
from loopagent.cli.output import out, print_json, short, table, wire
from loopagent.cli.session import (
    drive,
    json_or_text,
    last_event,
    show_card,
    show_form,
    terminal_answerer,
)
from loopagent.cli.who import show_preview, who_here
from loopagent.clients import ToolAnswer
from loopagent.core.lineage import ARROW
from loopagent.errors import ConfigError
from loopagent.ports import RequestRow
from loopagent.request_view import preview_of
from loopagent.runview import RunView


requests = typer.Typer(
    help="Requests to people: list, show, approve, edit, reject, answer, audit.",
    no_args_is_help=True,
)
RequestId = Annotated[str, typer.Argument(help="Id of the request.")]
Revision = Annotated[
    int | None, typer.Option(help="Revision that was seen; a stale one is refused.")
]
Digest = Annotated[
    str | None, typer.Option("--hash", help="Content hash that was seen; a stale one is refused.")
]


RequestStatus = Literal["open", "resolved", "cancelled", "expired", "all"]
Remembered = Annotated[
    Literal["run", "session"] | None,
    typer.Option(
        help="Do not ask about the very same call again: in this run, or in its conversation."
    ),
]


class Seen(NamedTuple):
    """What the person looked at before deciding."""

    revision: int | None
    digest: str | None


@requests.command("list")
def list_requests(
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
    status: Annotated[RequestStatus, typer.Option(help="Only requests that stand so.")] = "open",
) -> None:
    """List requests, oldest first."""

    async def work(app: App) -> int:
        rows, _ = await app.requests(status=None if status == "all" else status, limit=200)
        if as_json:
            print_json([wire(one) for one in rows])
            return 0
        shown = [
            (one.id, _who(one), one.status, one.body["kind"], short(one.body["title"], 60))
            for one in rows
        ]
        table(("request", "agent", "status", "kind", "title"), shown)
        return 0

    with_app(project, db, work)


def _who(request: RequestRow) -> str:
    """The agents from the root run to the one that asks."""
    return ARROW.join(request.body.get("agents") or [request.agent])


@requests.command("show")
def show_request(
    request_id: RequestId,
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show one request: what is asked, and what may be decided."""

    async def work(app: App) -> int:
        found = await app.store.request(request_id)
        if found is None:
            message = f"there is no request {request_id!r}"
            raise ConfigError(message)
        if as_json:
            print_json(wire(found))
            return 0
        show_card(found.body)
        show_preview(await preview_of(app, found))
        show_form(found.body)
        out.print(Text(f"{found.status}: {_how(found)}"))
        return 0

    with_app(project, db, work)


def _how(row: RequestRow) -> str:
    """What may be done about a request, or how it ended."""
    if row.status != "open":
        said = row.resolution or {}
        return f"{said.get('decision', '')} {said.get('feedback', '')}".strip() or "closed"
    held = f"; {row.holder.removeprefix('human:')} takes care of it" if row.holder else ""
    return "may be decided: " + ", ".join(row.body["decisions"]) + held


@requests.command("approve")
def approve_request(
    request_id: RequestId,
    feedback: Annotated[str, typer.Option(help="Text for the agent.")] = "",
    remember: Remembered = None,
    revision: Revision = None,
    digest: Digest = None,
    project: ProjectDir = Path(),
    db: Database = None,
) -> None:
    """Approve what is shown, and go on with its run here to its end or its next question."""
    seen = Seen(revision, digest)
    given = remember or ""
    _decide(project, db, request_id, seen, decision="approve", feedback=feedback, remember=given)


@requests.command("edit")
def edit_request(
    request_id: RequestId,
    file: Annotated[
        str | None,
        typer.Option(
            help="File with the changed plan, or parameters as JSON; - is standard input."
        ),
    ] = None,
    text: Annotated[str | None, typer.Option(help="The same, given here.")] = None,
    feedback: Annotated[str, typer.Option(help="Text for the agent.")] = "",
    revision: Revision = None,
    digest: Digest = None,
    project: ProjectDir = Path(),
    db: Database = None,
) -> None:
    """Change a plan or the parameters of a call, and approve it as changed."""
    changed = changed_text(file, text)
    seen = Seen(revision, digest)
    _decide(project, db, request_id, seen, decision="approve", edited=changed, feedback=feedback)


@requests.command("reject")
def reject_request(
    request_id: RequestId,
    feedback: Annotated[str, typer.Option(help="Why, and what to do instead.")] = "",
    revision: Revision = None,
    digest: Digest = None,
    project: ProjectDir = Path(),
    db: Database = None,
) -> None:
    """Refuse what is shown, and go on with its run here to its end or its next question."""
    seen = Seen(revision, digest)
    _decide(project, db, request_id, seen, decision="reject", feedback=feedback)


def _decide(
    project: Path,
    db: str | None,
    request_id: str,
    seen: Seen,
    *,
    decision: str,
    edited: str | None = None,
    feedback: str = "",
    remember: Literal["", "run", "session"] = "",
) -> None:
    async def answer(app: App) -> RunView:
        found = await app.store.request(request_id)
        if found is None:
            message = f"there is no request {request_id!r}"
            raise ConfigError(message)
        plan = found.body["kind"] == "plan"
        who = await who_here(app)
        changed = edited if edited is None or plan else _json(edited, "the changed parameters")
        return await app.answer(
            request_id,
            decision=decision,
            edited=changed,
            feedback=feedback,
            revision=seen.revision,
            content_hash=seen.digest,
            remember=remember,
            by=who.by,
            who=who,
        )

    async def work(app: App) -> int:
        return await _and_go_on(app, request_id, answer)

    with_app(project, db, work)


def changed_text(file: str | None, text: str | None) -> str:
    """The text that a person gives instead of what was shown: in a file, on standard input, or as an option.

    Raises:
        ConfigError: It is not given exactly once, or the file cannot be read.
    """
    if (file is None) == (text is None):
        message = "give the changed text with --file or with --text"
        raise ConfigError(message)
    if text is not None:
        return text
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(str(file)).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        message = f"{file}: cannot be read as text: {error}"
        raise ConfigError(message) from error


@requests.command("answer")
def answer_request(
    request_id: RequestId,
    approve: Annotated[bool, typer.Option("--approve", help="Approve what is shown.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Refuse it.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop the run.")] = False,
    feedback: Annotated[
        str, typer.Option(help="Text for the agent; alone it answers a question.")
    ] = "",
    value: Annotated[
        list[str] | None,
        typer.Option("--value", help="A form value: id=JSON or text; again for several."),
    ] = None,
    edited: Annotated[
        str | None, typer.Option(help="With --approve: parameters to run instead, as JSON.")
    ] = None,
    result: Annotated[
        str | None, typer.Option(help="For a client tool: what it brought, as JSON or text.")
    ] = None,
    error: Annotated[str | None, typer.Option(help="For a client tool: why it failed.")] = None,
    project: ProjectDir = Path(),
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Answer a request or a client tool's call, and go on with its run here to its end or its next question."""
    decision = _decision(approve=approve, reject=reject, stop=stop)
    values = _values(value or [])
    call = _call_answer(result, error)

    async def answer(app: App) -> RunView:
        if call is not None:
            run_id, _, call_id = request_id.partition(":")
            return await app.answer_call(run_id, call_id, call)
        await _refuse_no_decision(app, request_id, decision)
        who = await who_here(app)
        changed = None if edited is None else _json(edited, "--edited")
        return await app.answer(
            request_id,
            decision=decision,
            values=values,
            feedback=feedback,
            edited=changed,
            by=who.by,
            who=who,
        )

    async def work(app: App) -> int:
        return await _and_go_on(app, request_id, answer, as_json=as_json)

    with_app(project, db, work)


async def _and_go_on(
    app: App, request_id: str, answer: Callable[[App], Awaitable[RunView]], *, as_json: bool = False
) -> int:
    """Give an answer, and follow what comes of it to the end or the next question."""
    known = await app.store.request(request_id)
    after = 0 if known is None else await last_event(app, known.run_id)
    view = await answer(app)
    root = await app.get(view.state.root_id)
    return await drive(
        app,
        root,
        output="json" if as_json else "timeline",
        answer=None if as_json else terminal_answerer(),
        after=after,
    )


async def _refuse_no_decision(app: App, request_id: str, decision: str) -> None:
    """Say which options decide a request that words and values cannot answer."""
    known = await app.store.request(request_id)
    if decision == "answer" and known is not None and "approve" in known.body.get("decisions", ()):
        if "answer" in known.body["decisions"]:
            return
        message = f"{known.body['title']}: give one of --approve, --reject and --stop"
        raise ConfigError(message)


def _call_answer(result: str | None, error: str | None) -> ToolAnswer | None:
    """The answer to a client tool's call, or None when it is a person that was asked."""
    if result is not None and error is not None:
        message = "give one of --result and --error"
        raise ConfigError(message)
    if error is not None:
        return ToolAnswer(success=False, error=error)
    return None if result is None else ToolAnswer(result=json_or_text(result))


def _decision(*, approve: bool, reject: bool, stop: bool) -> str:
    if approve + reject + stop > 1:
        message = "give one of --approve, --reject and --stop"
        raise ConfigError(message)
    return "approve" if approve else "reject" if reject else "terminate" if stop else "answer"


def _values(texts: list[str]) -> dict[str, Any]:
    """Form values by question; one that is named again gets all of them as a list."""
    given: dict[str, list[Any]] = {}
    for one in texts:
        key, separator, text = one.partition("=")
        if not separator:
            message = f"--value {one!r}: must be id=value"
            raise ConfigError(message)
        given.setdefault(key, []).append(_value(text))
    return {key: found[0] if len(found) == 1 else found for key, found in given.items()}


def _value(text: str) -> Any:
    """A list, an object, a text in quotes or null as JSON; all else as it stands, since the form knows the type."""
    if text.lstrip()[:1] not in {"[", "{", '"'} and text.strip() != "null":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        message = f"{name}: not JSON: {error}"
        raise ConfigError(message) from error
