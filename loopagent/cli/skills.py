"""Commands about the skills of a project: list, show, review."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.prompt import Confirm

from loopagent.cli.opening import AsJson, ProjectDir
from loopagent.cli.output import err, out, print_json, short, table
from loopagent.errors import ConfigError
from loopagent.project import Project, load_project
from loopagent.project.lock import Lock, write_lock
from loopagent.skill import Skill


skills = typer.Typer(help="Skills: list, show, review.", no_args_is_help=True)


@skills.command("list")
def list_skills(project: ProjectDir = Path(), as_json: AsJson = False) -> None:
    """List the skills: who may activate them, whether they are reviewed, which agents accept them."""
    loaded = load_project(project)
    rows = [_row(loaded, one) for one in loaded.skills.values()]
    if as_json:
        print_json(rows)
        return
    table(
        ["name", "activation", "state", "agents", "description"],
        [
            [
                one["name"],
                one["activation"],
                one["state"],
                ", ".join(one["acceptedBy"]),
                short(one["description"]),
            ]
            for one in rows
        ],
    )


@skills.command("show")
def show_skill(
    name: Annotated[str, typer.Argument(help="Name of the skill.")],
    project: ProjectDir = Path(),
    as_json: AsJson = False,
) -> None:
    """Show all of a skill: what it is told, what it brings, its files, and what changed since its review."""
    loaded = load_project(project)
    skill = _find(loaded, name)
    about = {**_row(loaded, skill), **_details(loaded.lock, skill)}
    if as_json:
        print_json({**about, "instructions": skill.spec.instructions})
        return
    for key, value in about.items():
        if value:
            out.print(f"{key}:", end=" ")
            print_json(value)
    out.print()
    sys.stdout.write(skill.spec.instructions + "\n")


@skills.command("review")
def review_skills(
    names: Annotated[list[str] | None, typer.Argument(help="Names of the skills.")] = None,
    project: ProjectDir = Path(),
    every: Annotated[
        bool, typer.Option("--all", help="All skills that are new or changed.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take the review back.")] = False,
) -> None:
    """Accept the present content of skills, after looking at it; only reviewed skills can be activated."""
    loaded = load_project(project)
    if bool(names) == every or (every and revoke):
        raise ConfigError("name the skills, or use --all for those that are new or changed")
    lock = loaded.lock
    if revoke:
        for name in names or ():
            lock = lock.without(name)
    else:
        open_ = [one for one in loaded.skills.values() if not one.spec.reviewed]
        for skill in open_ if every else [_find(loaded, one) for one in names or ()]:
            if _accepted(lock, skill, yes=yes):
                lock = lock.with_reviewed(skill)
    if lock == loaded.lock:
        out.print("nothing changed")
        return
    out.print(f"wrote {write_lock(loaded.folder, lock)}", markup=False)


def _accepted(lock: Lock, skill: Skill, *, yes: bool) -> bool:
    """Show what there is to accept, and ask."""
    if skill.spec.reviewed:
        return False
    out.print(f"[bold]{skill.name}[/] is {_state(lock, skill)}")
    for key, value in _details(lock, skill).items():
        if value and key != "files":
            out.print(f"  {key}: {short(value, 2_000)}", markup=False)
    if yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError("nobody is at the terminal to accept this; say --yes if you have looked")
    err.print(f"look at {skill.folder}, or `loopagent skills show {skill.name}`", markup=False)
    return Confirm.ask(f"Accept {skill.name} as it is now?", default=False)


def _find(project: Project, name: str) -> Skill:
    skill = project.skills.get(name)
    if skill is None:
        raise ConfigError(
            f"there is no skill {name!r}; known: {', '.join(project.skills) or 'none'}"
        )
    return skill


def _row(project: Project, skill: Skill) -> dict[str, Any]:
    accepting = [
        name for name, one in project.agents.items() if one.spec.skill(skill.name) is not None
    ]
    return {
        "name": skill.name,
        "description": skill.spec.description,
        "activation": skill.spec.activation,
        "state": _state(project.lock, skill),
        "acceptedBy": accepting,
    }


def _state(lock: Lock, skill: Skill) -> str:
    if skill.spec.reviewed:
        return "reviewed"
    return "changed" if skill.name in lock.skills else "new"


def _details(lock: Lock, skill: Skill) -> dict[str, Any]:
    spec = skill.spec
    return {
        "sha256": spec.hash,
        "sinceReview": {} if spec.reviewed else lock.changes(skill),
        "actions": {one.name: one.effects for one in spec.actions},
        "subAgents": list(spec.agents),
        "files": {one.path: one.size_bytes for one in spec.files},
        "about": {
            key: one for key, one in skill.about.items() if key not in {"name", "description"}
        },
    }
