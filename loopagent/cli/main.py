"""The commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from loopagent import resources
from loopagent.attachments import Attachment
from loopagent.cli import control, decide, imports, scenarios, tools
from loopagent.cli.actions import actions
from loopagent.cli.attach import read_files
from loopagent.cli.conversations import conversations
from loopagent.cli.keys import keys
from loopagent.cli.memory import memory
from loopagent.cli.notifications import notifications
from loopagent.cli.opening import Database, ProjectDir, open_app
from loopagent.cli.session import Output, drive, payload_of, run_async, terminal_answerer
from loopagent.cli.skills import skills
from loopagent.cli.triggers import triggers
from loopagent.cli.worker import worker
from loopagent.conversations import OnBusy
from loopagent.core.agent_spec import Limits
from loopagent.errors import ConfigError
from loopagent.project import Project, load_project


cli = typer.Typer(
    name="loopagent",
    help="Run loop agents: durable, explainable, one JSON reply a turn.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
cli.add_typer(control.runs, name="runs")
cli.add_typer(decide.requests, name="requests")
cli.add_typer(conversations, name="conversations")
cli.add_typer(keys, name="keys")
cli.add_typer(memory, name="memory")
cli.add_typer(triggers, name="triggers")
cli.add_typer(notifications, name="notifications")
cli.add_typer(tools.agents, name="agents")
cli.add_typer(actions, name="actions")
cli.add_typer(skills, name="skills")
cli.add_typer(tools.schemas, name="schemas")
cli.add_typer(tools.reply, name="reply")
actions.command("import-openapi")(imports.import_openapi)
actions.command("import-curl")(imports.import_curl_command)
actions.command("import-mcp")(imports.import_mcp)
cli.command("test")(scenarios.run_scenarios)
cli.command("worker")(worker)
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


@cli.command()
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
    output: Output = "json" if as_json else "events" if as_events else "timeline"
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


@cli.command()
def demo(
    headless: Annotated[
        bool, typer.Option(help="Run it here to its end, answering by itself.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8080,
    browse: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Try it: a bundled project with a scripted model, real actions over a real data file, no network.

    A run begins; its plan waits for you in the page.
    """
    loaded = load_project(resources.folder("examples") / "demo")
    if headless:
        run_async(tools.headless_demo(loaded))
        return
    tools.page_demo(loaded, port, browse=browse)


@cli.command()
def serve(
    project: ProjectDir = Path(),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8080,
    db: Database = None,
    work: Annotated[
        bool,
        typer.Option(
            "--work/--no-work",
            help="Run agents in this process, or leave that to workers on the same database.",
        ),
    ] = True,
    auth: Annotated[
        bool,
        typer.Option(
            "--auth/--no-auth",
            help="Ask callers for a key once there is one; without, only on an address of this machine.",
        ),
    ] = True,
) -> None:
    """Serve the HTTP API of a project, and run its agents in this process unless told not to."""
    loaded = load_project(project)
    app = open_app(loaded, db or loaded.settings.db or "runs.db", serving=True, work=work)
    letting = tools.Letting(loaded.settings.access, anybody=not auth)
    tools.serve_forever(app, host, port, letting=letting)


@cli.command()
def init(folder: Annotated[Path, typer.Argument(help="Folder to make.")]) -> None:
    """Make a project that runs."""
    tools.make_project(folder)


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
