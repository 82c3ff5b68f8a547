"""The part of the store in memory that keeps answers given under idempotency keys."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from loopagent.stores import records


if TYPE_CHECKING:
    from loopagent.ports import RememberedAnswer


class MemoryAnswers:
    """Keeps each first answer for a time."""

    def __init__(self) -> None:
        super().__init__()
        self._keep_answers_seconds = records.KEEP_ANSWERS_SECONDS
        self._answers: dict[str, tuple[float, RememberedAnswer]] = {}

    async def remember(self, key: str, answer: RememberedAnswer, *, at: float) -> RememberedAnswer:
        """Keep an answer, forget expired ones; see `Store.remember`."""
        oldest = at - self._keep_answers_seconds
        for name in [name for name, kept in islice(self._answers.items(), 20) if kept[0] < oldest]:
            del self._answers[name]
        kept_at, kept = self._answers.get(key, (at, answer))
        if kept_at < oldest:
            del self._answers[key]
            kept_at, kept = at, answer
        self._answers[key] = (kept_at, kept)
        return kept

    async def recall(self, key: str) -> RememberedAnswer | None:
        """The answer kept under a key; see `Store.recall`."""
        found = self._answers.get(key)
        return None if found is None else found[1]
