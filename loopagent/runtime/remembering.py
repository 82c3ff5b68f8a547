"""Keeping the notes that replies ask for, and finding those that a new run is shown."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from loopagent.core.memory_spec import MemorySpec
from loopagent.core.memory_writes import DISABLED
from loopagent.core.note_scan import without_credentials
from loopagent.core.notes import Circle, Note, NoteType, scope_of, within
from loopagent.core.outcome import Outcome
from loopagent.core.text import clean_text


if TYPE_CHECKING:
    from collections.abc import Callable

    from loopagent.core.effects import ReadMemory, WriteMemory
    from loopagent.core.state import RunState
    from loopagent.ports import NoteStore
    from loopagent.runtime.live import Live


def circle_of(run: RunState) -> Circle:
    """Whose notes a run reads and writes: those of its agent for its owner."""
    return Circle(run.spec.name, run.user, run.tenant)


class Remembering:
    """Notes of the runs that this process works on.

    Args:
        store: Where notes are kept.
        mask: Takes known secrets out of a text.
        clock: Seconds since the epoch.
    """

    def __init__(
        self, store: NoteStore, mask: Callable[[str], str], clock: Callable[[], float]
    ) -> None:
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
        verdict = await self._store.put_note(self._note(run, effect, spec), spec.rules)
        return Outcome.done(verdict.told)

    async def read(self, live: Live, effect: ReadMemory, report: object) -> Outcome:
        """Find the notes that a run is shown, best first, within its budget."""
        del report
        run = live.state
        spec = run.spec.memory or MemorySpec(max_shown=0)
        found = await self._store.notes_for(
            circle_of(run), effect.query, now=self._clock(), limit=spec.max_shown
        )
        masked = [replace(one, text=clean(one.text, self._mask)) for one in found]
        shown = [
            {"id": one.id, "type": one.type, "note": one.text}
            for one in within(masked, spec.max_tokens)
        ]
        return Outcome.done({"notes": shown})

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
