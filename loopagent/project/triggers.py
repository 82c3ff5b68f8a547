"""Trigger files: `triggers/NAME.trigger.yaml` or `.json`, each one schedule or webhook."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from loopagent.project.files import explain
from loopagent.triggers.checking import problems
from loopagent.triggers.spec import TriggerSpec


if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from loopagent.documents import Document
    from loopagent.project.files import Files

FOLDER: Final = "triggers"
SUFFIXES: Final = (".trigger.yaml", ".trigger.yml", ".trigger.json")
_ENVELOPE: Final = {"apiVersion": "loopagent/v1", "kind": "Trigger"}


def read_triggers(files: Files, agents: Collection[str]) -> dict[str, TriggerSpec]:
    """Read every trigger file of a project.

    Args:
        files: The project's files; keeps the complaints.
        agents: Names of the agents that triggers may start.

    Returns:
        The triggers by name; files with complaints are left out.
    """
    found: dict[str, TriggerSpec] = {}
    origin: dict[str, Path] = {}
    paths = files.listed(*(f"{FOLDER}/*{suffix}" for suffix in SUFFIXES))
    for path in files.listed(f"{FOLDER}/*.yaml", f"{FOLDER}/*.yml", f"{FOLDER}/*.json"):
        if path not in paths:
            files.complain(path, f"would be ignored; name it {path.stem}.trigger{path.suffix}")
    for path in paths:
        document = files.document(path)
        spec = None if document is None else _spec(files, document, agents)
        if spec is None or document is None:
            continue
        if spec.name in origin:
            what = f"another trigger is named {spec.name} too, in {origin[spec.name]}; rename one"
            files.complain_in(document, ("name",), what)
            continue
        origin[spec.name], found[spec.name] = path, spec
    return found


def _spec(files: Files, document: Document, agents: Collection[str]) -> TriggerSpec | None:
    before = len(files.problems)
    body: dict[str, Any] = {"name": _name(document.path), **document.value}
    for key, wanted in _ENVELOPE.items():
        if body.pop(key, wanted) != wanted:
            files.complain_in(document, (key,), f"must be {wanted}")
    try:
        spec = TriggerSpec.model_validate_json(json.dumps(body), strict=True)
    except ValidationError as error:
        found = explain(error, body, TriggerSpec, _ENVELOPE, document.position)
        for at, where, what in found:
            files.complain(document.path, what, at=at, where=where)
        return None
    for loc, what in problems(spec, agents):
        files.complain_in(document, loc, what)
    return spec if len(files.problems) == before else None


def _name(path: Path) -> str:
    """The name that a file gives to its trigger."""
    suffix = next((one for one in SUFFIXES if path.name.endswith(one)), path.suffix)
    return path.name.removesuffix(suffix)
