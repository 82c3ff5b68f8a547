"""Importing an OpenAPI document: what would come of it, and doing it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loopagent.actions.importing.changing import Change, change_of
from loopagent.actions.importing.document import ApiDocument
from loopagent.actions.importing.operations import Draft, Options, drafts
from loopagent.errors import ConfigError


if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_OPERATIONS: Final = 200
"""Operations in one import: more tools than that help no model."""
FOLDER: Final = "imports"
"""Beside the actions: the documents, and what was made of them."""


@dataclass(slots=True)
class Plan:
    """An import before it is done: its operations, and what would become of files."""

    document: ApiDocument
    prefix: str
    drafts: list[Draft]
    changes: list[Change] = field(default_factory=list[Change])
    kept_as: str = "openapi"
    """Middle of the name of the file that keeps the document."""

    def public(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "title": self.document.title,
            "name": self.prefix,
            "sha256": self.document.sha256,
            "operations": [one.public() for one in self.drafts],
            "changes": [one.public() for one in self.changes],
        }


def prefix_of(document: ApiDocument) -> str:
    """A short name for an API, of its title."""
    return re.sub(r"[^a-z0-9]+", "_", document.title.lower()).strip("_")[:30].strip("_") or "api"


def picked(
    found: Iterable[Draft], picks: Iterable[str] = (), tags: Iterable[str] = ()
) -> list[Draft]:
    """Those of the drafts that are wanted.

    Args:
        found: All of them.
        picks: Patterns like `get_*` for names, or operation ids, or `GET /pets`; empty for all.
        tags: Tags of the document; empty for all.

    Raises:
        ConfigError: A pattern fits nothing, or too many are left.
    """
    wanted, listed, tagged = tuple(picks), list(found), set(tags)
    for one in wanted:
        if not any(_fits(draft, one) for draft in listed):
            raise ConfigError(f"no operation is named {one!r}; `--dry-run` lists them")
    chosen = [
        one
        for one in listed
        if (not wanted or any(_fits(one, pattern) for pattern in wanted))
        and (not tagged or tagged & set(one.tags))
    ]
    if not chosen:
        raise ConfigError("there is no such operation; `--dry-run` lists them")
    if len(chosen) > MAX_OPERATIONS:
        text = f"{len(chosen)} operations are too many for one import, which takes {MAX_OPERATIONS}"
        raise ConfigError(f"{text}; choose with --pick or --tag")
    return chosen


def _fits(draft: Draft, pattern: str) -> bool:
    names = (draft.name, draft.name.partition(".")[2], draft.operation)
    return pattern == f"{draft.method} {draft.path}" or any(
        fnmatchcase(one, pattern) for one in names if one
    )


def plan_import(
    document: ApiDocument,
    options: Options,
    *,
    out: Path | None = None,
    picks: Iterable[str] = (),
    tags: Iterable[str] = (),
) -> Plan:
    """What an import would do; nothing is written.

    Args:
        document: The document.
        options: How to import.
        out: Folder of the action files; None for a look at the operations alone.
        picks: As for `picked`.
        tags: As for `picked`.

    Raises:
        ConfigError: The choice fits nothing or too much, or a file of an earlier import cannot be read.
    """
    plan = Plan(document, options.prefix, drafts(document, options))
    return planned(plan, out=out, picks=picks, tags=tags)


def planned(
    plan: Plan, *, out: Path | None, picks: Iterable[str] = (), tags: Iterable[str] = ()
) -> Plan:
    """The plan with what is wanted of its drafts, and what becomes of files.

    Args:
        plan: Has all drafts; is changed.
        out: As for `plan_import`.
        picks: As for `picked`.
        tags: As for `picked`.

    Raises:
        ConfigError: As for `plan_import`.
    """
    wanted, found = tuple(picks), plan.drafts
    chosen = picked(found, wanted, tags) if wanted or tags or out is not None else found
    plan.drafts = chosen
    if out is None:
        return plan
    before = _before(out, plan.prefix)
    plan.changes = [_change(one, out, before, explicit=bool(wanted)) for one in chosen]
    there = {one.name for one in found}
    plan.changes += [
        Change(name, "gone", notes=["the document has it no more; its file stays as it is"])
        for name in before
        if name not in there
    ]
    return plan


def _before(out: Path, prefix: str) -> dict[str, dict[str, Any]]:
    path = out / FOLDER / f"{prefix}.import.json"
    if not path.exists():
        return {}
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        actions: dict[str, dict[str, Any]] = kept["actions"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); remove it to import anew") from error
    return actions


def file_of(out: Path, name: str) -> Path:
    """Where the file of an action lies."""
    return out / f"{name}.action.yaml"


def _change(
    draft: Draft, out: Path, before: dict[str, dict[str, Any]], *, explicit: bool
) -> Change:
    path = file_of(out, draft.name)
    text = path.read_text(encoding="utf-8") if path.exists() else None
    return change_of(draft, text, before.get(draft.name), where=path, explicit=explicit)


def write_import(plan: Plan, out: Path) -> list[Path]:
    """Write what a plan says; files come first, so that an import that is cut short can be made again.

    Args:
        plan: The plan.
        out: The folder that it was made for.

    Returns:
        The action files that were written.
    """
    kept = out / FOLDER
    kept.mkdir(parents=True, exist_ok=True)
    before = _before(out, plan.prefix)
    written: list[Path] = []
    for change in plan.changes:
        if change.text:
            written.append(file_of(out, change.name))
            written[-1].write_text(change.text, encoding="utf-8")
    taken = {one.name for one in plan.changes if one.what in {"new", "same", "changed"}}
    actions = before | {one.name: one.action for one in plan.drafts if one.name in taken}
    document = plan.document
    about = {"source": document.source, "sha256": document.sha256, "actions": actions}
    for name, value in ((plan.kept_as, document.value), ("import", about)):
        text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
        (kept / f"{plan.prefix}.{name}.json").write_text(text, encoding="utf-8")
    return written
