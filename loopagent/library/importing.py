"""Imported operations and tools as drafts of the library: what saving them would do, and doing it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loopagent.actions.importing.keeping import (
    FILE,
    There,
    changes_of,
    kept_text,
    key_of,
    rename,
    text_of,
)
from loopagent.actions.importing.openapi import MAX_OPERATIONS
from loopagent.errors import RequestError


if TYPE_CHECKING:
    from loopagent.actions.importing.changing import Change
    from loopagent.actions.importing.openapi import Plan
    from loopagent.actions.importing.operations import Draft
    from loopagent.library.service import Library
    from loopagent.library_port import Built


@dataclass(frozen=True, slots=True)
class Offer:
    """What an import offers: each draft with what saving it would do, and drafts whose operations are gone."""

    plan: Plan
    drafts: list[tuple[Draft, Change]]
    gone: list[Change]

    def counted(self, what: str) -> int:
        """How many have this change."""
        return sum(change.what == what for _, change in self.drafts)


async def offer(
    library: Library, tenant: str, plan: Plan, names: Mapping[str, str] | None = None
) -> Offer:
    """What an import offers, beside what is there.

    Args:
        library: Has the drafts that are there.
        tenant: Whose they are.
        plan: The import, with all its drafts; they get their names.
        names: Names that a person wants, by `key_of`.
    """
    there = {one.name: There(one.draft, one.files) for one in await library.list(tenant)}
    rename(plan, there, names or {})
    shadowed = [one.name for one in plan.drafts if library.is_shadowed(one.name)]
    # Large documents take their time.
    changes = await asyncio.to_thread(changes_of, plan, there, shadowed)
    count = len(plan.drafts)
    return Offer(plan, list(zip(plan.drafts, changes[:count], strict=True)), changes[count:])


async def save_drafts(
    library: Library, tenant: str, found: Offer, picked: Collection[str], *, by: str
) -> dict[str, str]:
    """Save what was picked as drafts, each with where it came from.

    Args:
        library: Where to.
        tenant: Whose they are.
        found: What there is to pick.
        picked: Operations or tools, by `key_of`.
        by: Who does.

    Returns:
        What became of each, by its name: empty when it is saved, or else why not.

    Raises:
        RequestError: `nothing_picked` or `too_many` (422).
    """
    chosen = [one for one in found.drafts if key_of(one[0]) in picked]
    if not chosen:
        raise RequestError("nothing_picked", "Pick at least one of them.", status=422)
    if len(chosen) > MAX_OPERATIONS:
        text = f"{len(chosen)} are too many at once; pick at most {MAX_OPERATIONS}."
        raise RequestError("too_many", text, status=422)
    known = {row.name: row for row in await library.list(tenant)}
    said: dict[str, str] = {}
    for draft, change in chosen:
        try:
            await _save(library, tenant, found.plan, (draft, change, known.get(draft.name)), by)
            said[draft.name] = ""
        except RequestError as error:
            said[draft.name] = str(error)
    return said


async def _save(
    library: Library, tenant: str, plan: Plan, one: tuple[Draft, Change, Built | None], by: str
) -> None:
    draft, change, known = one
    if change.what == "same":
        return
    if change.what not in {"new", "changed"}:
        raise RequestError("refused", "; ".join(change.notes), status=422)
    kept = await asyncio.to_thread(kept_text, plan, draft)
    await library.save(
        tenant,
        draft.name,
        text_of(draft, change),
        files={**(known.files if known else {}), FILE: kept},
        expected_hash=known.draft_hash if known else None,
        by=by,
    )
