"""Commands about files and texts rather than runs: prompts, schemas, replies, the demo, a new project."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
import webbrowser
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

import typer

from loopagent import resources
from loopagent import schemas as schema_files
from loopagent.access import AccessSettings
from loopagent.app import App
from loopagent.cli.output import err, out, print_json
from loopagent.cli.session import drive
from loopagent.core.agent_spec import AgentSpec
from loopagent.core.prompt import PromptPart, system_parts, volatile_message
from loopagent.core.reply import check_text
from loopagent.core.state import RunState
from loopagent.errors import ConfigError
from loopagent.http.server import make_server
from loopagent.project import Project, load_project
from loopagent.project.scenarios import load_scenarios
from loopagent.runview import RunView


agents = typer.Typer(help="Agents: lint, prompt.", no_args_is_help=True)
schemas = typer.Typer(help="JSON Schemas of the protocol: write, check.", no_args_is_help=True)
reply = typer.Typer(help="Replies: check what becomes of a model text.", no_args_is_help=True)
ProjectDir = Annotated[Path, typer.Option("--project", help="Folder of the project.")]
DEMO_TASK = "Which orders are late, and what do we tell the region?"


@agents.command("lint")
def lint(project: ProjectDir = Path()) -> None:
    """Check a project: every complaint with file, line and column; exit code 2 when there is one."""
    loaded = load_project(project)
    for warning in loaded.warnings:
        err.print(f"warning: {warning}", markup=False)
    scenarios = load_scenarios(loaded)
    counts = f"{len(loaded.agents)} agent(s), {len(loaded.actions)} action(s), {len(loaded.skills)} skill(s)"
    more = f"{len(scenarios)} scenario(s), {len(loaded.triggers)} trigger(s)"
    out.print(f"{counts}, {more}: fine")


@agents.command("prompt")
def prompt(
    name: Annotated[str, typer.Argument(help="Name of the agent.")],
    project: ProjectDir = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the exact system prompt of an agent, and about how many tokens each part has."""
    loaded = load_project(project)
    agent = loaded.agents.get(name)
    if agent is None:
        message = f"there is no agent {name!r}; known: {', '.join(loaded.agents) or 'none'}"
        raise ConfigError(message)
    parts = system_parts(resources.prompt("system.md.j2"), agent.spec)
    text = "".join(one.text for one in parts)
    state = PromptPart("message: state", volatile_message(_fresh_run(agent.spec)))
    counts = {one.name: one.tokens for one in (*parts, state)}
    protocol = sum(one.tokens for one in parts if one.protocol)
    total = sum(counts.values())
    if as_json:
        print_json(
            {
                "agent": name,
                "system": text,
                "parts": [{"part": part, "tokens": count} for part, count in counts.items()],
                "protocolTokens": protocol,
                "tokens": total,
            }
        )
        return
    sys.stdout.write(text)
    for part, count in counts.items():
        err.print(f"{count:>7}  {part}", markup=False)
    err.print(f"{total:>7}  tokens in all, about; {protocol} of them explain the protocol")


def _fresh_run(spec: AgentSpec) -> RunState:
    """A run of the agent as it starts, for the message that shows its state."""
    initial = {} if spec.payload.initial is None else spec.payload.initial
    return RunState(id="run", spec=spec, model=spec.model or "", payload=initial)


@schemas.command("write")
def write_schemas() -> None:
    """Write the schema files again from the classes."""
    for path in schema_files.write(resources.folder("schemas")):
        out.print(str(path), markup=False)


@schemas.command("check")
def check_schemas() -> None:
    """Prove that the schema files are what the classes say; exit code 1 when they have drifted apart."""
    wrong = schema_files.check(resources.folder("schemas"))
    for one in wrong:
        err.print(one, markup=False)
    if wrong:
        err.print("run `loopagent schemas write`")
        raise typer.Exit(1)
    out.print("the schemas are in step with the classes")


@reply.command("check")
def check_reply(
    file: Annotated[str, typer.Argument(help="File with the text; - reads standard input.")] = "-",
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Read lines of {id, raw, finishReason?}.")
    ] = False,
) -> None:
    """Say what becomes of a model's text, as JSON."""
    text = _read(file)
    if not jsonl:
        print_json(check_text(text))
        return
    for number, line in enumerate(_lines(text), start=1):
        sys.stdout.write(json.dumps(_checked(line, number), ensure_ascii=False) + "\n")


def _lines(text: str) -> Iterator[str]:
    return (line for line in text.split("\n") if line.strip())


def _checked(line: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
        raw = row["raw"]
    except (ValueError, TypeError, KeyError) as error:
        message = f"line {number}: must be a JSON object with id and raw ({error})"
        raise ConfigError(message) from error
    return {"id": row.get("id"), **check_text(str(raw), str(row.get("finishReason") or "stop"))}


def _read(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        message = f"{file}: cannot be read: {error.strerror}"
        raise ConfigError(message) from error
    return data.decode("utf-8", "replace")


async def headless_demo(project: Project) -> int:
    """Run the bundled example to its end, answering what it asks with the defaults."""
    app = App(
        agents=project.agents.values(),
        model=project.settings.model,
        base_dir=project.folder,
        env={},
    )
    async with app:
        view = await app.start("order-analyst", DEMO_TASK)
        return await drive(app, view, output="timeline", answer=_answer_by_default)


async def _answer_by_default(app: App, view: RunView) -> None:
    rows, _ = await app.requests(run_id=view.id)
    for row in rows:
        questions = (row.body.get("form") or {}).get("questions", [])
        values = {
            one["id"]: one["defaultValue"]
            for one in questions
            if one.get("defaultValue") is not None
        }
        decision = "approve" if "approve" in row.body["decisions"] else "answer"
        feedback = "" if values or decision == "approve" else "Go on."
        await app.answer(row.id, decision=decision, values=values, feedback=feedback, by="demo")


def page_demo(project: Project, port: int, *, browse: bool) -> None:
    """Serve the bundled example over a file of its own, with a run whose plan waits in the page.

    Args:
        project: The example.
        port: Where to listen; 0 takes any free port.
        browse: Open the page in a browser, if there is one.
    """

    async def begin(app: App, site: str) -> None:
        view = await app.start("order-analyst", DEMO_TASK)
        page = f"{site}/runs/{view.id}"
        out.print(f"a run has begun and will ask you to approve its plan: {page}", markup=False)
        if browse:
            await asyncio.to_thread(webbrowser.open, page)

    with tempfile.TemporaryDirectory() as folder:
        app = App(
            agents=project.agents.values(),
            store=f"sqlite:///{folder}/demo.db",
            model=project.settings.model,
            base_dir=project.folder,
            env={},
        )
        serve_forever(app, "127.0.0.1", port, begin)


@dataclass(frozen=True, slots=True)
class Letting:
    """Who is let in to a server: how callers are known, or `anybody`."""

    settings: AccessSettings = field(default_factory=AccessSettings)
    anybody: bool = False


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve_forever(
    app: App,
    host: str,
    port: int,
    then: Callable[[App, str], Awaitable[None]] | None = None,
    *,
    letting: Letting | None = None,
) -> None:
    """Serve until a stop signal comes.

    Args:
        app: What to serve.
        host: Address to listen on.
        port: Where to listen; 0 takes any free port.
        then: Called with the app and the address of the pages once it listens.
        letting: Who is let in.

    Raises:
        ConfigError: Everybody who can connect would be let in, from other machines as well.
    """
    letting, token = letting or Letting(), app.env.get("LOOPAGENT_API_TOKEN") or None
    if letting.anybody and not is_loopback(host):
        raise ConfigError(f"--no-auth lets everybody in: it needs --host 127.0.0.1, not {host}.")
    server = make_server(
        app,
        host=host,
        port=port,
        token=token,
        access=letting.settings,
        anybody=letting.anybody,
        must_have_keys=token is None and not is_loopback(host),
    )
    asyncio.run(_served(server, app, host, then))


async def _served(
    server: Any, app: App, host: str, then: Callable[[App, str], Awaitable[None]] | None
) -> None:
    async def announce() -> None:
        while not server.started and not server.should_exit:
            await asyncio.sleep(0.02)
        sockets = [socket for one in server.servers for socket in one.sockets]
        sites = [f"http://{host}:{one.getsockname()[1]}" for one in sockets]
        for site in sites:
            out.print(f"listening on {site}/api/v1", markup=False)
            out.print(f"pages on {site}/", markup=False)
        if then is not None and sites:
            await then(app, sites[0])

    announcing = asyncio.create_task(announce())
    try:
        await server.serve()
    finally:
        announcing.cancel()


def make_project(folder: Path) -> None:
    """Copy the example project to a folder that does not exist or is empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        message = f"{folder} exists and is not empty; name another folder"
        raise ConfigError(message)
    source = resources.folder("examples") / "demo"
    left_out = shutil.ignore_patterns("__pycache__", "README.md")
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore=left_out)
    load_project(folder)
    out.print(f"made {folder}; try:", markup=False)
    out.print(
        f'  loopagent run order-analyst "Which orders are late?" --project {folder}', markup=False
    )
    out.print(f"  loopagent test {folder}", markup=False)
