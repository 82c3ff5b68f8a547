"""The commands: where each one is, so that a call imports no more than its own."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from loopagent.version import VERSION


COMMANDS: Final = {
    "run": (
        "run:run",
        "Run an agent to its end, or to its first question when nobody is at the terminal.",
    ),
    "demo": (
        "serving:demo",
        "Try it: a bundled project with a scripted model, real actions over a real data file, no network.",
    ),
    "serve": (
        "serving:serve",
        "Serve the HTTP API of a project, and run its agents, in this process unless told otherwise.",
    ),
    "worker": (
        "worker:worker",
        "Work on the runs of a shared database, without HTTP, until SIGTERM or Ctrl-C.",
    ),
    "init": (
        "init:init",
        "Make a project that runs, from the example, in a folder that does not exist or is empty.",
    ),
    "test": (
        "scenarios:run_scenarios",
        "Run agents against scripted replies, and actions against a stand-in; compare what comes of it.",
    ),
    "runs": ("replay:runs", "Runs: look at them, pause, resume, fork, cancel, delete, prune."),
    "replay": (
        "replay:replay_log",
        "Go through the log of a run again, performing nothing, and tell where this version leads elsewhere.",
    ),
    "requests": (
        "audit:requests",
        "Requests to people: list, show, approve, edit, reject, answer, audit.",
    ),
    "conversations": ("conversations:conversations", "Conversations: list, show, delete."),
    "keys": ("keys:keys", "API keys and sessions: create, list, revoke, sign out."),
    "memory": ("memory:memory", "Notes that agents keep: list, show, edit, delete, export."),
    "triggers": (
        "triggers:triggers",
        "Triggers, schedules and webhooks that start runs: list, check, fire, log.",
    ),
    "notifications": (
        "notifications:notifications",
        "Notifications of open requests and ended runs: list, replay, send; receivers, enable.",
    ),
    "agents": ("tools:agents", "Agents: lint, prompt."),
    "actions": ("library:actions", "Actions: list, lint, test, run, import, publish, export."),
    "skills": ("skills:skills", "Skills: list, show, review."),
    "schemas": ("tools:schemas", "JSON Schemas of the protocol: write, check."),
    "reply": ("tools:reply", "Replies: check what becomes of a model text."),
}
"""Module and attribute of each command, and its line in the list of commands."""


class _Commands(TyperGroup):
    """A group that imports a command when it is called."""

    _listing = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands by what stands in the table."""
        self._listing = True
        super().format_help(ctx, formatter)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Find a command; the list of commands needs only its line."""
        listed = super().get_command(ctx, cmd_name)
        return listed if listed is None or self._listing else load_command(cmd_name)


def load_command(name: str) -> Any:
    """Import a command.

    Args:
        name: One of `COMMANDS`.

    Returns:
        The command, or the group of commands.
    """
    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(import_module(f"loopagent.cli.{module}"), attribute)
    holder = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    return typer.main.get_group(holder).commands[name]


cli = typer.Typer(
    name="loopagent",
    cls=_Commands,
    help="Run loop agents: durable, explainable, one JSON reply a turn.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(VERSION)
        raise typer.Exit


@cli.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Options of loopagent itself."""


def _listed() -> None:
    """Stands in the list for a command that is not imported yet."""


for _name, (_, _help) in COMMANDS.items():
    cli.command(_name, help=_help)(_listed)
