"""`loopagent test`: play scenarios and say what came out otherwise than expected."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from xml.etree import ElementTree as ET

import typer
from rich.text import Text

from loopagent.cli.output import out, print_json
from loopagent.core.names import closest
from loopagent.errors import ConfigError
from loopagent.project import load_project
from loopagent.project.scenarios import FOLDER, Scenario, load_scenarios
from loopagent.testing.scenarios import ScenarioResult, run_scenario
from loopagent.trials.action_tests import ActionTestResult, run_action_tests


Result: TypeAlias = ScenarioResult | ActionTestResult
FAILED = 1
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold."""


def run_scenarios(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(help="Names, files, or project folders; default: all of the project."),
    ] = None,
    project: Annotated[Path, typer.Option("--project", help="Folder of the project.")] = Path(),
    keyword: Annotated[
        str, typer.Option("-k", help="Only scenarios with this text in their name.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    junit: Annotated[
        Path | None, typer.Option(help="Write the results to this file as JUnit XML.")
    ] = None,
) -> None:
    """Run agents against scripted replies, and actions against a stand-in; compare what comes of it.

    Without names, all scenarios and all tests inside of action files are run.

    Exit code 0: all as expected; 1: something is not; 2: a file is wrong, or there is no such scenario.
    """
    chosen = [one for one in _chosen(scenarios or [], project) if keyword in one.name]
    folders = [Path(one) for one in scenarios or [] if Path(one).is_dir()]
    tests = _action_tests(folders if scenarios else [project], keyword)
    if not chosen and not tests:
        wanted = f" with {keyword!r} in its name" if keyword else ""
        raise ConfigError(f"there is no scenario{wanted}; they are files in {project / FOLDER}")
    results: list[Result] = []
    for one in chosen:
        results.append(run_scenario(one))
        if not as_json:
            show_result(results[-1])
    results += tests
    for ended in [] if as_json else tests:
        show_result(ended)
    if junit is not None:
        _write(junit, results)
    failed = sum(not one.passed for one in results)
    if as_json:
        played = [one.public() for one in results if isinstance(one, ScenarioResult)]
        counts = {"passed": len(results) - failed, "failed": failed}
        called = [one.public() for one in results if isinstance(one, ActionTestResult)]
        print_json({**counts, "scenarios": played, "actions": called})
    else:
        out.print(f"{len(results) - failed} passed, {failed} failed")
    raise typer.Exit(FAILED if failed else 0)


def _chosen(given: Sequence[str], folder: Path) -> list[Scenario]:
    """The scenarios that somebody names, each once."""
    found = [one for text in given for one in _named(text, folder)] if given else _all(folder)
    return list({one.path.resolve(): one for one in found}.values())


def _named(text: str, folder: Path) -> list[Scenario]:
    path = Path(text)
    if path.is_dir():
        return _all(path)
    if path.is_file():
        home = path.resolve().parent
        own = path.parent / ".." if home.name == FOLDER else folder
        return load_scenarios(load_project(_short(own)), [path])
    known = _all(folder)
    fitting = [one for one in known if one.name == text]
    if not fitting:
        near = closest(text, [one.name for one in known])
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ConfigError(f"there is no scenario and no file {text!r}{hint}")
    return fitting


def _name(result: Result) -> str:
    return result.scenario.name if isinstance(result, ScenarioResult) else result.name


def _short(folder: Path) -> Path:
    """A folder without `..`, from where we are if it lies below."""
    full = folder.resolve()
    return full.relative_to(Path.cwd()) if full.is_relative_to(Path.cwd()) else full


def _all(folder: Path) -> list[Scenario]:
    return load_scenarios(load_project(folder))


def _action_tests(folders: Sequence[Path], keyword: str) -> list[ActionTestResult]:
    projects = [load_project(one) for one in folders]
    return [
        result
        for one in projects
        for result in run_action_tests(one.actions.values(), means=one.means, named=keyword)
    ]


def show_result(result: Result) -> None:
    """Show how a scenario or a test ended."""
    line = Text()
    word, style = ("ok    ", "green") if result.passed else ("FAIL  ", "bold red")
    line.append(word, style)
    line.append(_name(result))
    calls = ""
    if isinstance(result, ScenarioResult):
        calls = f"{len(result.played.prompts) if result.played else 0} model calls, "
    line.append(f"  {calls}{result.seconds:.2f} s", "dim")
    out.print(line)
    for one in result.text().splitlines():
        out.print(Text(f"      {one}"))


def _write(path: Path, results: Sequence[Result]) -> None:
    """The results as JUnit XML, which build servers read."""
    suite = ET.Element("testsuite", name="loopagent", **_numbers(results))
    for one in results:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=one.scenario.spec.agent if isinstance(one, ScenarioResult) else one.action,
            name=one.scenario.name if isinstance(one, ScenarioResult) else one.test,
            file=str(one.scenario.path if isinstance(one, ScenarioResult) else one.path),
            time=f"{one.seconds:.3f}",
        )
        if not one.passed:
            first = str(getattr(one.problems[0], "message", one.problems[0]))
            failure = ET.SubElement(case, "failure", message=_NOT_XML.sub("\ufffd", first))
            failure.text = _NOT_XML.sub("\ufffd", one.text())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror or error}"
        raise ConfigError(message) from error


def _numbers(results: Sequence[Result]) -> dict[str, Any]:
    failed = sum(not one.passed for one in results)
    seconds = sum(one.seconds for one in results)
    return {"tests": str(len(results)), "failures": str(failed), "time": f"{seconds:.3f}"}
