"""Keeping the notes that replies ask for, and finding those that a new run is shown."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from loopagent.core.memory_spec import MemorySpec
from loopagent.core.memory_writes import DISABLED
from loopagent.core.note_scan import without_credentials
from loopagent.core.notes import Circle, Note, NoteFilter, NoteType, scope_of, within
from loopagent.core.outcome import Outcome
from loopagent.core.text import clean_text
from loopagent.runtime.similar import Similar, fused


if TYPE_CHECKING:
    from collections.abc import Callable

    from loopagent.core.effects import ReadMemory, WriteMemory
    from loopagent.core.state import RunState
    from loopagent.note_port import NoteStore
    from loopagent.runtime.live import Live


_PAGE: Final = 200


def circle_of(run: RunState) -> Circle:
    """Whose notes a run reads and writes: those of its agent for its owner."""
    return Circle(run.spec.name, run.user, run.tenant)


class Remembering:
    """Notes of the runs that this process works on.

    Args:
        store: Where notes are kept.
        mask: Takes known secrets out of a text.
        clock: Seconds since the epoch.
        similar: Orders notes by meaning, where there is an embedding model.
    """

    def __init__(
        self,
        store: NoteStore,
        mask: Callable[[str], str],
        clock: Callable[[], float],
        similar: Similar | None = None,
    ) -> None:
        self._similar = similar or Similar()
        self._store = store
        self._mask = mask
        self._clock = clock

    async def write(self, live: Live, effect: WriteMemory, report: object) -> Outcome:
        """Keep a note, if the rules of the run's agent let it; doing it twice is doing it once."""
        del report
        run = live.state
        spec = run.spec.memory
        if spec is None or not spec.write:
            return Outcome.done({"disposition": "disabled", "reason": DISABLED})
        note, calls = self._note(run, effect, spec), list[dict[str, Any]]()
        if self._similar.on and note.type in spec.types:
            note = replace(note, vector=await self._similar.packed(note.text, calls))
        verdict = await self._store.put_note(note, spec.rules)
        return Outcome.done({**verdict.told, **({"calls": calls} if calls else {})})

    async def read(self, live: Live, effect: ReadMemory, report: object) -> Outcome:
        """Find the notes that a run is shown, best first, within its budget."""
        del report
        run = live.state
        spec = run.spec.memory or MemorySpec(max_shown=0)
        calls: list[dict[str, Any]] = []
        found = await self._store.notes_for(
            circle_of(run), effect.query, now=self._clock(), limit=spec.max_shown
        )
        if self._similar.on and spec.max_shown:
            meant = await self._by_meaning(run, effect.query, spec, calls)
            found = fused(found, meant)[: spec.max_shown]
        masked = [replace(one, text=clean(one.text, self._mask)) for one in found]
        shown = [
            {"id": one.id, "type": one.type, "note": one.text}
            for one in within(masked, spec.max_tokens)
        ]
        return Outcome.done({"notes": shown, **({"calls": calls} if calls else {})})

    async def _by_meaning(
        self, run: RunState, task: str, spec: MemorySpec, calls: list[dict[str, Any]]
    ) -> list[Note]:
        """The notes whose meaning is like the task's, among those that the run may be shown."""
        circle, now = circle_of(run), self._clock()
        wanted = NoteFilter(circle.agent, circle.user, circle.tenant, None, None, now)
        found: list[Note] = []
        cursor = None
        while len(found) < self._similar.max_notes:
            rows, cursor = await self._store.notes(wanted, cursor=cursor, limit=_PAGE)
            found += [one for one in rows if one.seen_from(circle) and one.usable(now)]
            if cursor is None:
                break
        masked = [replace(one, text=clean(one.text, self._mask)) for one in found]
        notes = masked[: self._similar.max_notes]
        if not notes:
            return []
        return await self._similar.ranked(self._mask(task), notes, spec.least_relevance, calls)

    def _note(self, run: RunState, effect: WriteMemory, spec: MemorySpec) -> Note:
        now, rules = self._clock(), spec.rules
        lifetime_seconds = rules.lifetime_seconds
        return Note(
            id=f"note_{sha256(f'{run.id}/{effect.id}'.encode()).hexdigest()[:20]}",
            text=clean(effect.note, self._mask),
            type=cast("NoteType", effect.type),  # another one is never kept
            circle=circle_of(run),
            scope=scope_of(effect.scope_hint, rules),
            status="provisional",
            created_at=now,
            updated_at=now,
            expires_at=None if lifetime_seconds is None else now + lifetime_seconds,
            run_id=run.id,
            turn=run.turn,
            model=run.model,
        )


def clean(text: str, mask: Callable[[str], str]) -> str:
    """A note's text as it may be kept: fit to be stored, without secrets."""
    return without_credentials(mask(clean_text(text.strip())))
