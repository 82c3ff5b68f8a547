"""Commands about the actions of a project: list, lint, test, run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.prompt import Confirm

from loopagent.action import Action, ActionContext
from loopagent.actions.build import FileAction
from loopagent.actions.listing import action_rows
from loopagent.actions.preview import preview
from loopagent.actions.reading import Reading, read_actions
from loopagent.cli.opening import AsJson, ProjectDir
from loopagent.cli.output import err, out, print_json, table
from loopagent.cli.scenarios import FAILED, show_result
from loopagent.cli.session import json_or_text, run_async
from loopagent.core.names import closest
from loopagent.core.params import check_params
from loopagent.errors import ActionError, ConfigError
from loopagent.models import open_model
from loopagent.ports import ModelReply, ModelRequest
from loopagent.project import Project, load_project
from loopagent.project.action_files import PATTERNS
from loopagent.redaction import Redactor, secrets_of
from loopagent.runtime.invoke import Invoker
from loopagent.trials.action_tests import run_action_tests


actions = typer.Typer(
    help="Actions: list, lint, test, run, import, publish, export.", no_args_is_help=True
)
WRONG = 2
_COMPLAINT: Final = re.compile(
    r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?:(?P<where>[^ ]+): )?(?P<what>.*)", re.DOTALL
)


@actions.command("list")
def list_actions(project: ProjectDir = Path(), as_json: AsJson = False) -> None:
    """List the actions: what they do to the world, where they call, which agents use them."""
    loaded = load_project(project)
    rows = action_rows(loaded.actions, loaded.agents)
    if as_json:
        print_json(rows)
        return
    columns = ["name", "kind", "effects", "approval", "hosts", "agents", "tests"]
    table(columns, [_cells(one) for one in rows])


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        row["name"],
        row["kind"],
        row["effects"],
        row["approval"] or "",
        ", ".join(row["hosts"]),
        ", ".join(row["usedBy"]),
        str(row["tests"] or ""),
    ]


@actions.command("lint")
def lint(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Action files, or folders of them, by themselves; default: all of the project."
        ),
    ] = None,
    project: ProjectDir = Path(),
    as_json: AsJson = False,
) -> None:
    """Check action files: every complaint with file, line and column; exit code 2 when there is one."""
    if not files:
        _lint_project(project, as_json=as_json)
        return
    readings = [_read(one) for given in files for one in _action_files(given)]
    if as_json:
        print_json([one for reading in readings for one in reading.public()])
    else:
        _show(readings)
    raise typer.Exit(WRONG if any(one.problems for one in readings) else 0)


def _lint_project(folder: Path, *, as_json: bool) -> None:
    """Check all of a project, what its files say of each other included."""
    try:
        loaded = load_project(folder)
    except ConfigError as error:
        if not as_json:
            raise
        print_json([_as_json(one, warning=False) for one in error.problems or [str(error)]])
        raise typer.Exit(WRONG) from None
    if as_json:
        print_json([_as_json(one, warning=True) for one in loaded.warnings])
        return
    for one in loaded.warnings:
        err.print(f"warning: {one}", markup=False)
    made = [one for one in loaded.actions.values() if isinstance(one, FileAction)]
    out.print(f"{len(made)} action(s) in files: fine")


def _as_json(line: str, *, warning: bool) -> dict[str, Any]:
    """A line of a complaint as the object that files by themselves give."""
    found = _COMPLAINT.fullmatch(line)
    if found is None:
        return {"message": line, "warning": warning}
    place = {"line": int(found["line"]), "column": int(found["column"])}
    said = {"where": found["where"] or "(file)", "what": found["what"], "warning": warning}
    return {"file": found["file"], **place, **said}


def _action_files(given: Path) -> list[Path]:
    """A file, or all action files of a folder; an empty folder is a mistake, and so is itself in the list."""
    if not given.is_dir():
        return [given]
    names = (one.removeprefix("actions/") for one in PATTERNS)
    return sorted({one for name in names for one in given.rglob(name)}) or [given]


def _read(path: Path) -> Reading:
    if path.is_dir():
        return Reading(path, unreadable=[f"{path}:1:1: (file): holds no *.action.yaml"])
    try:
        return read_actions(path.read_text(encoding="utf-8-sig"), path)
    except (OSError, UnicodeDecodeError) as error:
        return Reading(path, unreadable=[f"{path}:1:1: (file): cannot be read: {error}"])


def _show(readings: list[Reading]) -> None:
    for reading in readings:
        for one in reading.problems:
            err.print(one, markup=False, soft_wrap=True)
        for one in reading.warnings:
            err.print(f"warning: {one}", markup=False, soft_wrap=True)
    problems = sum(len(one.problems) for one in readings)
    count = sum(len(one.written) for one in readings)
    out.print(f"{count} action(s): {f'{problems} problem(s)' if problems else 'fine'}")


@actions.command("test")
def run_tests(
    name: Annotated[str, typer.Argument(help="Only tests with this text in their name.")] = "",
    project: ProjectDir = Path(),
    as_json: AsJson = False,
) -> None:
    """Run the tests inside of action files against a stand-in; exit code 1 when one fails."""
    loaded = load_project(project)
    results = run_action_tests(loaded.actions.values(), means=loaded.means, named=name)
    if not results:
        raise ConfigError(f"there is no test{f' with {name!r} in its name' if name else ''}")
    failed = sum(not one.passed for one in results)
    if as_json:
        listed = [one.public() for one in results]
        print_json({"passed": len(results) - failed, "failed": failed, "tests": listed})
    else:
        for one in results:
            show_result(one)
        out.print(f"{len(results) - failed} passed, {failed} failed")
    raise typer.Exit(FAILED if failed else 0)


@actions.command("run")
def run(
    name: Annotated[str, typer.Argument(help="Name of the action.")],
    project: ProjectDir = Path(),
    params: Annotated[str, typer.Option(help="Parameters as a JSON object.")] = "{}",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Set a parameter: name=JSON or text.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the request, and send nothing.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before it changes something.")
    ] = False,
) -> None:
    """Call an action once and print its result as JSON; exit code 1 when it fails."""
    loaded = load_project(project)
    action = _action(loaded, name)
    given, problems, _ = check_params(action.spec.parameters, _params(params, set_ or []))
    if problems:
        raise ConfigError(f"the parameters of {name} are wrong", [str(one) for one in problems])
    if dry_run:
        print_json(_previewed(action, given))
        return
    effects = action.spec.effects
    if effects != "read" and not yes and not Confirm.ask(f"{name} has {effects} effects. Call it?"):
        raise typer.Exit(FAILED)
    run_async(_call(loaded, action, given))


def _action(project: Project, name: str) -> Action[..., Any]:
    action = project.actions.get(name)
    if action is None:
        near = closest(name, list(project.actions))
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ConfigError(f"there is no action {name!r}{hint}")
    return action


def _params(text: str, settings: list[str]) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--params is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise ConfigError("--params must be a JSON object")
    for one in settings:
        key, separator, value = one.partition("=")
        if not separator or not key:
            raise ConfigError(f"--set {one!r}: must be name=value, for example --set city=Porto")
        given[key] = json_or_text(value)
    return given


def _previewed(action: Action[..., Any], params: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(action, FileAction):
        raise ConfigError(f"{action.spec.name} is written in Python; it has no request to show")
    try:
        return preview(action.sent, params)
    except ActionError as error:
        raise ConfigError(str(error)) from error


async def _call(project: Project, action: Action[..., Any], params: dict[str, Any]) -> int:
    """Call an action and print what comes of it; gives the exit code."""
    settings = project.settings
    env = project.env
    hidden = [*secrets_of(env, settings.secrets), *project.secret_values]

    async def ask(request: ModelRequest, model: str | None) -> ModelReply:
        name = model or settings.model or env.get("LOOPAGENT_MODEL")
        if not name:
            raise ConfigError("no model is configured; set LOOPAGENT_MODEL")
        opened = open_model(name, env=env, base_dir=project.folder)
        try:
            return await opened.generate(request)
        finally:
            await opened.aclose()

    invoker = Invoker(mask=Redactor(hidden).mask)
    context = ActionContext("cli", "1:action.0", on_progress=_tell, ask=ask)
    try:
        outcome = await invoker.invoke(action, params, context)
    finally:
        await invoker.aclose()
    print_json(outcome.value if outcome.error is None else {"error": outcome.error.public()})
    return 0 if outcome.error is None else FAILED


def _tell(text: str) -> None:
    err.print(text, markup=False)
