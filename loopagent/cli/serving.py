"""`loopagent serve` and `loopagent demo`: the HTTP API and the pages."""

from __future__ import annotations

import asyncio
import tempfile
import webbrowser
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

import typer

from loopagent import resources
from loopagent.access import AccessSettings
from loopagent.app import App
from loopagent.cli.opening import Database, ProjectDir, open_app
from loopagent.cli.output import out
from loopagent.cli.session import drive, run_async
from loopagent.cli.worker import shared
from loopagent.cli.workforce import Workforce
from loopagent.egress import EgressSettings
from loopagent.errors import ConfigError
from loopagent.http.server import make_server
from loopagent.oidc.spec import OidcSettings
from loopagent.project import Project, load_project
from loopagent.runview import RunView


DEMO_TASK = "Which orders are late, and what do we tell the region?"

MIN_TOKEN_CHARS = 20
"""Shortest token that other machines may try to guess."""
SHORT_TOKEN = (
    f"LOOPAGENT_API_TOKEN has fewer than {MIN_TOKEN_CHARS} characters and opens everything, so others could guess it:"
    " set one of random characters, such as those of `openssl rand -hex 32`, or make keys with"
    " `loopagent keys create NAME`."
)


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
        run_async(headless_demo(loaded))
        return
    page_demo(loaded, port, browse=browse)


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
    workers: Annotated[
        int,
        typer.Option(
            min=0,
            max=100,
            help="Run agents in so many processes beside this one; 0 runs them in this one.",
        ),
    ] = 0,
    auth: Annotated[
        bool,
        typer.Option(
            "--auth/--no-auth",
            help="Ask callers for a key once there is one; without, only on an address of this machine.",
        ),
    ] = True,
) -> None:
    """Serve the HTTP API of a project, and run its agents, in this process unless told otherwise."""
    if workers and not work:
        raise ConfigError("Give --workers or --no-work, not both.")
    loaded = load_project(project)
    url = db or loaded.settings.db or "runs.db"
    force = Workforce(workers, project, shared(url)) if workers else None
    app = open_app(loaded, url, serving=True, work=work and not workers)
    known = loaded.settings
    letting = Letting(known.access, not auth, known.oidc, known.egress)
    serve_forever(app, host, port, force, letting=letting)


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
    oidc: OidcSettings = field(default_factory=OidcSettings)
    egress: EgressSettings = field(default_factory=EgressSettings)


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
    if token and len(token) < MIN_TOKEN_CHARS and not is_loopback(host):
        raise ConfigError(SHORT_TOKEN)
    server = make_server(
        app,
        host=host,
        port=port,
        token=token,
        access=letting.settings,
        anybody=letting.anybody,
        oidc=letting.oidc,
        egress=letting.egress,
        must_have_keys=not (token or letting.oidc.providers or is_loopback(host)),
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
        await asyncio.gather(announcing, return_exceptions=True)
