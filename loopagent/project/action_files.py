"""Low-code actions of a project: `actions/*.action.yaml` or `.json`, each with one action or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loopagent.actions.build import FileAction, make_action
from loopagent.actions.checks_secrets import check_known
from loopagent.actions.means import Means
from loopagent.actions.reading import Written, read_actions
from loopagent.actions.secrets import Credentials
from loopagent.actions.together import check_together
from loopagent.errors import ConfigError


if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loopagent.action import Action
    from loopagent.agent import Agent
    from loopagent.project.files import Files
    from loopagent.settings import Settings

PATTERNS: Final = ("actions/*.action.yaml", "actions/*.action.yml", "actions/*.action.json")
_STRAYS: Final = ("actions/*.yaml", "actions/*.yml", "actions/*.json")


def means_of(settings: Settings, env: Mapping[str, str], folder: Path) -> Means:
    """What the actions of a project may use, as its settings say."""
    return Means(
        egress=settings.egress,
        secrets=Credentials(settings.credentials, env, folder),
        allowed_modules=settings.allowed_modules,
        mcp=settings.mcp,
    )


def read_action_files(
    files: Files, settings: Settings, means: Means, others: dict[str, Action[..., Any]]
) -> dict[str, Action[..., Any]]:
    """Read every action file of a project.

    Args:
        files: The project's files; keeps the complaints.
        settings: Tell which secrets there are.
        means: What the actions may use; gets them by name, for pipelines.
        others: Actions of the project that are written in Python.

    Returns:
        All actions by name; those with complaints are left out.
    """
    written = _written(files)
    named: dict[str, tuple[Path, Written]] = {}
    for path, one in written:
        if one.name in others or one.name in named:
            here = f"in {named[one.name][0]}" if one.name in named else "in Python"
            _complain(
                files, path, one, f"another action is named {one.name} too, {here}; rename one"
            )
        named.setdefault(one.name, (path, one))
    specs = {name: made.spec for name, made in others.items()}
    check_together([one for _, one in named.values()], specs)
    found = dict(others)
    means.actions = found
    for path, one in named.values():
        check_known(one, settings.credentials)
        files.problems += [
            each.at(path) for each in sorted(one.complaints.found) if not each.warning
        ]
        files.warnings += [each.at(path) for each in sorted(one.complaints.found) if each.warning]
        if one.action is not None and not one.complaints.wrong:
            _make(files, path, one, means, found)
        if one.name not in found:
            files.broken_actions.add(one.name)
    return found


def _written(files: Files) -> list[tuple[Path, Written]]:
    paths = files.listed(*PATTERNS)
    for path in files.listed(*_STRAYS):
        if path not in paths:
            files.complain(path, f"would be ignored; name it {path.stem}.action{path.suffix}")
    found: list[tuple[Path, Written]] = []
    for path in paths:
        text = files.text(path)
        reading = None if text is None else read_actions(text, path)
        if reading is not None:
            files.problems += reading.unreadable
            found += [(path, one) for one in reading.written]
    return found


def _complain(files: Files, path: Path, written: Written, what: str) -> None:
    at = written.complaints.document.position(("name",))
    files.complain(path, what, at=at, where="name")


def _make(
    files: Files, path: Path, written: Written, means: Means, found: dict[str, Action[..., Any]]
) -> None:
    assert written.action is not None  # the caller looked
    try:
        found.setdefault(written.action.name, make_action(written.action, means, path))
    except ConfigError as error:
        at = written.complaints.document.position(("run",))
        files.complain(path, str(error), at=at, where="run")


def warn_of_deprecated(files: Files, agents: Mapping[str, Agent[Any]]) -> None:
    """Warn of agents that use actions which should not be used any more."""
    for agent in agents.values():
        for action in agent.actions.values():
            if isinstance(action, FileAction) and action.file.deprecated:
                files.warnings.append(
                    f"agent {agent.name}: the action {action.file.name} is deprecated"
                )
