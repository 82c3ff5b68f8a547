"""`loopagent test`: play scenarios and say what came out otherwise than expected."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from xml.etree import ElementTree as ET

import typer
from rich.text import Text

from loopagent.cli.output import out, print_json
from loopagent.core.names import closest
from loopagent.errors import ConfigError
from loopagent.project import load_project
from loopagent.project.scenarios import FOLDER, Scenario, load_scenarios
from loopagent.testing.scenarios import ScenarioResult, run_scenario


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
    """Run agents against scripted replies and fake results, and compare what comes of it.

    Exit code 0: all as expected; 1: something is not; 2: a file is wrong, or there is no such scenario.
    """
    chosen = [one for one in _chosen(scenarios or [], project) if keyword in one.name]
    if not chosen:
        wanted = f" with {keyword!r} in its name" if keyword else ""
        raise ConfigError(f"there is no scenario{wanted}; they are files in {project / FOLDER}")
    results: list[ScenarioResult] = []
    for one in chosen:
        results.append(run_scenario(one))
        if not as_json:
            _show(results[-1])
    if junit is not None:
        _write(junit, results)
    failed = sum(not one.passed for one in results)
    if as_json:
        listed = [one.public() for one in results]
        print_json({"passed": len(results) - failed, "failed": failed, "scenarios": listed})
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


def _short(folder: Path) -> Path:
    """A folder without `..`, from where we are if it lies below."""
    full = folder.resolve()
    return full.relative_to(Path.cwd()) if full.is_relative_to(Path.cwd()) else full


def _all(folder: Path) -> list[Scenario]:
    return load_scenarios(load_project(folder))


def _show(result: ScenarioResult) -> None:
    line = Text()
    word, style = ("ok    ", "green") if result.passed else ("FAIL  ", "bold red")
    line.append(word, style)
    line.append(result.scenario.name)
    calls = len(result.played.prompts) if result.played else 0
    line.append(f"  {calls} model calls, {result.seconds:.2f} s", "dim")
    out.print(line)
    for one in result.text().splitlines():
        out.print(Text(f"      {one}"))


def _write(path: Path, results: Sequence[ScenarioResult]) -> None:
    """The results as JUnit XML, which build servers read."""
    suite = ET.Element("testsuite", name="loopagent", **_numbers(results))
    for one in results:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=one.scenario.spec.agent,
            name=one.scenario.name,
            file=str(one.scenario.path),
            time=f"{one.seconds:.3f}",
        )
        if not one.passed:
            first = one.problems[0].message
            failure = ET.SubElement(case, "failure", message=_NOT_XML.sub("\ufffd", first))
            failure.text = _NOT_XML.sub("\ufffd", one.text())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror or error}"
        raise ConfigError(message) from error


def _numbers(results: Sequence[ScenarioResult]) -> dict[str, Any]:
    failed = sum(not one.passed for one in results)
    seconds = sum(one.seconds for one in results)
    return {"tests": str(len(results)), "failures": str(failed), "time": f"{seconds:.3f}"}
