"""`loopagent run`: one run, in this terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from loopagent.attachments import Attachment
from loopagent.cli.attach import read_files
from loopagent.cli.following import Output
from loopagent.cli.opening import Database, ProjectDir, open_app
from loopagent.cli.session import drive, payload_of, run_async, terminal_answerer
from loopagent.conversations import OnBusy
from loopagent.core.agent_spec import Limits
from loopagent.errors import ConfigError
from loopagent.project import Project, load_project


Conversation = Annotated[
    str | None, typer.Option(help="Id of the conversation to continue, or to begin.")
]
User = Annotated[str, typer.Option(help="Who the run is for.")]
Tenant = Annotated[str, typer.Option(help="Organisation of that user.")]
Attach = Annotated[
    list[Path] | None,
    typer.Option(help="A file that the model can look into; may be given several times."),
]
Busy = Annotated[
    OnBusy,
    typer.Option(help="When another run of the conversation has not ended."),
]


def run(
    agent: Annotated[str, typer.Argument(help="Name of the agent.")],
    message: Annotated[str, typer.Argument(help="The task; - reads it from standard input.")],
    project: ProjectDir = Path(),
    model: Annotated[
        str | None, typer.Option(help="provider:model, scripted:FILE or http://HOST/v1#NAME.")
    ] = None,
    payload: Annotated[
        Path | None, typer.Option(help="JSON file with the payload to start with.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Set a payload value: path=JSON or text.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the run as JSON at its end.")
    ] = False,
    as_events: Annotated[
        bool, typer.Option("--events", help="Print every event as a line of JSON.")
    ] = False,
    db: Database = None,
    plan: Annotated[
        bool | None,
        typer.Option("--plan/--no-plan", help="Approve a plan before anything changes."),
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(help="Working time the run may take.")
    ] = None,
    conversation: Conversation = None,
    user: User = "",
    tenant: Tenant = "",
    on_busy: Busy = "reject",
    attach: Attach = None,
) -> None:
    """Run an agent to its end, or to its first question when nobody is at the terminal."""
    loaded = load_project(project)
    output = _output(as_json=as_json, as_events=as_events)
    start = _payload(payload, set_ or [])
    task = sys.stdin.read() if message == "-" else message
    limits = None if max_seconds is None else {"maxSeconds": max_seconds}
    asked: dict[str, Any] = {"model": model, "limits": limits, "plan_mode": plan}
    asked |= {"conversation": conversation, "user": user, "tenant": tenant, "on_busy": on_busy}
    asked["attachments"] = _attached(loaded, agent, attach or [])

    async def work() -> int:
        async with open_app(loaded, db, recover=False) as app:
            view = await app.start(agent, task, payload=start, **asked)
            return await drive(
                app, view, output=output, answer=None if as_json else terminal_answerer()
            )

    run_async(work())


def _output(*, as_json: bool, as_events: bool) -> Output:
    if as_json and as_events:
        raise ConfigError("Give --json or --events, not both.")
    return "json" if as_json else "events" if as_events else "timeline"


def _attached(project: Project, agent: str, files: list[Path]) -> list[Attachment]:
    """Files for a run; none is read that could not be taken anyway."""
    known = project.agents.get(agent)
    most = (known.spec.limits if known else Limits()).max_attachment_bytes
    return read_files(files, most)


def _payload(file: Path | None, settings: list[str]) -> Any:
    """The payload to start with, from a file and from `path=value` options."""
    payload: Any = None
    if file is not None:
        payload = payload_of(file)
    for one in settings:
        path, separator, text = one.partition("=")
        if not separator or not path:
            message = f"--set {one!r}: must be path=value, for example --set customer.name=Ann"
            raise ConfigError(message)
        payload = _set(payload, path.split("."), _value(text))
    return payload


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _set(payload: Any, path: list[str], value: Any) -> Any:
    if payload is not None and not isinstance(payload, dict):
        message = f"--set {'.'.join(path)}: the payload is not an object there"
        raise ConfigError(message)
    inner = value if len(path) == 1 else _set((payload or {}).get(path[0]), path[1:], value)
    return {**(payload or {}), path[0]: inner}
