"""What an imported draft keeps of where it came from, so that importing again can show what is different.

It is a document that belongs to the draft: the action as it was imported, and that part of the OpenAPI document, or the
MCP tool, that it was made of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loopagent.actions.importing.changing import Change, update_of
from loopagent.actions.importing.document import UnusableError
from loopagent.actions.importing.texts import yaml_text
from loopagent.actions.reading import read_action
from loopagent.core.json_values import is_array, is_object


if TYPE_CHECKING:
    from loopagent.actions.importing.document import ApiDocument
    from loopagent.actions.importing.openapi import Plan
    from loopagent.actions.importing.operations import Draft

FILE: Final = "import.json"
"""Its name among the documents of a draft."""
_SHARED: Final = ("openapi", "info", "servers", "security")
"""What every operation of an OpenAPI document may need."""


@dataclass(frozen=True, slots=True)
class There:
    """A draft that is there: its text, and the documents that belong to it by file name."""

    text: str
    files: Mapping[str, str]

    @property
    def kept(self) -> dict[str, Any] | None:
        """What it keeps of its import; None when it was not imported."""
        try:
            found = json.loads(self.files.get(FILE, ""))
        except ValueError:
            return None
        return found if is_object(found) and is_object(found.get("action")) else None


def key_of(draft: Draft) -> str:
    """What an operation is called in its document, whatever its draft is named: `GET /orders`, or `TOOL send`."""
    return f"{draft.method} {draft.path}"


def rename(plan: Plan, there: Mapping[str, There], wanted: Mapping[str, str]) -> None:
    """Give drafts the names that a person wants, or that they were saved under before.

    Args:
        plan: The import; its drafts are changed.
        there: The drafts that are there, by name.
        wanted: Names by `key_of`.
    """
    before = {
        str((one.kept or {}).get("operation")): name
        for name, one in there.items()
        if _of(plan, one)
    }
    taken: set[str] = set()
    for draft in plan.drafts:
        key = key_of(draft)
        name = wanted.get(key) or before.get(key) or draft.name
        if name != draft.name:
            draft.name, draft.action = name, {**draft.action, "name": name}
            found = read_action(draft.action).complaints.found
            draft.problems += [one.what for one in found if one.where == "name"]
        if name in taken:
            draft.problems.append(f"another one is named {name} too")
        taken.add(name)


def plain(action: Mapping[str, Any]) -> dict[str, Any]:
    """An imported action as a draft: publishing it is how somebody says that it may be called."""
    return {key: value for key, value in action.items() if key != "enabled"}


def kept_text(plan: Plan, draft: Draft) -> str:
    """What a draft keeps of its import, as text.

    Args:
        plan: The import.
        draft: One of its drafts.
    """
    document = plan.document
    about: dict[str, Any] = {"kind": plan.kept_as, "name": plan.prefix, "source": document.source}
    about |= {"sha256": document.sha256, "operation": key_of(draft)}
    part = {"action": plain(draft.action), "document": _part(plan, draft)}
    return json.dumps({**about, **part}, indent=1, ensure_ascii=False) + "\n"


def changes_of(
    plan: Plan, there: Mapping[str, There], elsewhere: Iterable[str] = ()
) -> list[Change]:
    """What saving the drafts of an import would do, and which earlier ones the document has no more.

    Args:
        plan: The import, with all its drafts.
        there: The drafts that are there, by name.
        elsewhere: Names of actions that are none of the library.

    Returns:
        The changes in the order of the drafts; the text of a new one is left to `text_of`, since few are picked.
    """
    others = set(elsewhere)
    changes = [_change(one, there.get(one.name), taken=one.name in others) for one in plan.drafts]
    known = {one.name for one in plan.drafts}
    note = "the document has it no more; the draft stays as it is"
    return changes + [
        Change(name, "gone", notes=[note])
        for name, one in sorted(there.items())
        if name not in known and _of(plan, one)
    ]


def text_of(draft: Draft, change: Change) -> str:
    """What to save of a draft that is new or changed."""
    return change.text or yaml_text(plain(draft.action))


def _of(plan: Plan, there: There) -> bool:
    kept = there.kept or {}
    return kept.get("kind") == plan.kept_as and kept.get("name") == plan.prefix


def _change(draft: Draft, there: There | None, *, taken: bool) -> Change:
    if draft.problems:
        return Change(draft.name, "refused", notes=draft.problems)
    if taken:
        what = "a file or program of the project has an action of this name; choose another name"
        return Change(draft.name, "refused", notes=[what])
    action = plain(draft.action)
    if there is None:
        return Change(draft.name, "new", notes=draft.notes)
    kept = there.kept
    if kept is None:
        what = "there is an action of this name that was not imported; choose another name"
        return Change(draft.name, "refused", notes=[what])
    plainly = replace(draft, action=action)
    where = Path(draft.name)
    return update_of(plainly, there.text, kept["action"], where=where, disables=False)


def _part(plan: Plan, draft: Draft) -> Any:
    value = plan.document.value
    if plan.kept_as != "openapi":
        return next((one for one in value["tools"] if one["name"] == draft.operation), None)
    return part_of(plan.document, draft.method, draft.path)


def part_of(document: ApiDocument, method: str, path: str) -> dict[str, Any]:
    """An OpenAPI document with one operation, and what that leads to.

    Args:
        document: The whole of it.
        method: Method of the operation.
        path: Path of the operation.
    """
    value = document.value
    item = document.object(value["paths"][path])
    shared: dict[str, Any] = {key: item[key] for key in ("parameters", "servers") if key in item}
    operation: dict[str, Any] = {**shared, method.lower(): item[method.lower()]}
    made: dict[str, Any] = {key: value[key] for key in _SHARED if key in value}
    made["paths"] = {path: operation}
    schemes = document.object(value.get("components")).get("securitySchemes")
    if schemes:
        made["components"] = {"securitySchemes": dict(schemes)}
    _add_references(document, made)
    return made


def _add_references(document: ApiDocument, made: dict[str, Any]) -> None:
    """Add what references lead to, and what those lead to, where it stood."""
    left, seen = list(_references(made)), set[str]()
    while left:
        # A reference may lead into a component; the whole of it is kept.
        component = "/".join(left.pop().split("/")[:4])
        if component in seen or not re.fullmatch("#/components/[^/]+/[^/]+", component):
            continue
        seen.add(component)
        try:
            source = document.at(component)
        except UnusableError:
            continue
        kind, name = component.split("/")[2:]
        made.setdefault("components", {}).setdefault(kind, {}).setdefault(name, source)
        left += _references(source)


def _references(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        one = stack.pop()
        if is_object(one):
            found = one.get("$ref")
            if isinstance(found, str):
                yield found
            stack += one.values()
        elif is_array(one):
            stack += one
