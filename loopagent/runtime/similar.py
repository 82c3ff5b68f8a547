"""Notes by meaning: an optional addition to full text, by vectors that a model of the host's choice gives.

A note's vector is kept with the note when it is written; missing ones are made when they are needed. Comparing is plain
arithmetic over the notes that the run may be shown anyway, at most a set number, so it needs nothing of the store.
"""

from __future__ import annotations

import asyncio
import base64
import math
from array import array
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from operator import mul
from typing import TYPE_CHECKING, Any, Final

from loopagent.logs import log


if TYPE_CHECKING:
    from loopagent.core.notes import Note

MAX_NOTES: Final = 500
"""Notes that are compared with a task, the newest of those that may be shown."""
MAX_KEPT: Final = 5_000
"""Vectors of older notes that are kept in memory."""
BATCH: Final = 100
"""Texts that are handed over at once."""
TIMEOUT_SECONDS: Final = 20.0
RANK: Final = 60
"""Evens out two orders of the same things: each place counts 1 / (RANK + place). Source: reciprocal rank fusion."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors in the order of their texts, and what they cost, as `Usage` has it."""

    vectors: Sequence[Sequence[float]]
    usage: dict[str, Any] = field(default_factory=dict[str, Any])


Embedder = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]] | Embedded]]
"""Turns texts into vectors of one length. A `name` attribute says which model it is, so that vectors are not mixed."""


class Similar:
    """Orders notes by their likeness to a task.

    Args:
        embedder: Gives vectors; None turns all of it off.
        max_notes: Notes that are compared.
        timeout_seconds: How long the embedder may take.
    """

    def __init__(
        self,
        embedder: Embedder | None = None,
        *,
        max_notes: int = MAX_NOTES,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._embedder = embedder
        self.max_notes = max_notes
        self._timeout_seconds = timeout_seconds
        self.name = str(getattr(embedder, "name", type(embedder).__name__))
        self._kept: OrderedDict[str, list[float]] = OrderedDict()

    @property
    def on(self) -> bool:
        """Whether there is an embedder."""
        return self._embedder is not None

    async def aclose(self) -> None:
        """Close the embedder's connections, if it has any."""
        close = getattr(self._embedder, "aclose", None)
        if close is not None:
            await close()

    async def packed(self, text: str, calls: list[dict[str, Any]]) -> str:
        """The vector of a note as it is kept with it; empty where there is none.

        Args:
            text: The note.
            calls: Takes what was asked of a model.
        """
        found = await self._vectors([text], calls)
        return pack(self.name, found[0]) if found else ""

    async def ranked(
        self, task: str, notes: Sequence[Note], least: float, calls: list[dict[str, Any]]
    ) -> list[Note]:
        """Notes that are like a task, the most similar first; none when the embedder fails.

        Args:
            task: The task.
            notes: Notes that may be shown.
            least: Cosine from which on they count as similar.
            calls: Takes what was asked of a model.
        """
        vectors = {one.id: self._known(one) for one in notes}
        missing = [one for one in notes if vectors[one.id] is None]
        made = await self._vectors([task, *(one.text for one in missing)], calls)
        if made is None:
            return []
        for one, vector in zip(missing, made[1:], strict=True):
            vectors[one.id] = vector
            self._keep(one.text, vector)
        scored = [(cosine(made[0], vectors[one.id] or []), one) for one in notes]
        similar = [(score, one) for score, one in scored if score >= least]
        return [one for _, one in sorted(similar, key=lambda pair: (-pair[0], pair[1].id))]

    def _known(self, note: Note) -> list[float] | None:
        return unpack(self.name, note.vector) or self._kept.get(note.text)

    def _keep(self, text: str, vector: list[float]) -> None:
        self._kept[text] = vector
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)

    async def _vectors(
        self, texts: Sequence[str], calls: list[dict[str, Any]]
    ) -> list[list[float]] | None:
        """A vector for each text, all of one length; None when they cannot be had, which is logged and told."""
        assert self._embedder is not None  # whoever asks has looked whether it is on
        made: list[list[float]] = []
        try:
            async with asyncio.timeout(self._timeout_seconds):
                for start in range(0, len(texts), BATCH):
                    said = await self._embedder(texts[start : start + BATCH])
                    told = said if isinstance(said, Embedded) else Embedded(said)
                    calls.append({"model": self.name, "usage": told.usage})
                    made += [[float(one) for one in vector] for vector in told.vectors]
            _check(made, len(texts))
        except Exception as error:  # the full text does without it, whatever went wrong
            log.error("notes.not_embedded", error, model=self.name)
            calls.append({"model": self.name, "usage": {}, "error": type(error).__name__})
            return None
        return made


def _check(vectors: list[list[float]], wanted: int) -> None:
    """Refuse what no comparison makes sense with.

    Raises:
        ValueError: There are too few or too many, or they are empty, of different lengths or no numbers.
    """
    lengths = {len(one) for one in vectors}
    finite = all(math.isfinite(number) for one in vectors for number in one)
    if len(vectors) != wanted or len(lengths) != 1 or lengths == {0} or not finite:
        message = f"{len(vectors)} vectors of lengths {sorted(lengths)} for {wanted} texts"
        raise ValueError(message)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Likeness of two vectors, from -1 to 1; 0 for those that cannot be compared."""
    if len(one) != len(other):
        return 0.0
    length = math.hypot(*one) * math.hypot(*other)
    return sum(map(mul, one, other)) / length if length else 0.0


def fused(first: Sequence[Note], second: Sequence[Note]) -> list[Note]:
    """Two orders of notes as one: what both put first comes first."""
    scores: dict[str, float] = {}
    notes = {one.id: one for one in (*first, *second)}
    for order in (first, second):
        for place, one in enumerate(order, 1):
            scores[one.id] = scores.get(one.id, 0.0) + 1 / (RANK + place)
    places = {one.id: place for place, one in enumerate((*first, *second))}
    return [notes[key] for key in sorted(scores, key=lambda key: (-scores[key], places[key]))]


def pack(name: str, vector: Sequence[float]) -> str:
    """A vector as text, with the name of the model it comes from."""
    return f"{name} {base64.b64encode(array('f', vector).tobytes()).decode()}"


def unpack(name: str, text: str) -> list[float] | None:
    """The vector again; None when there is none of this model."""
    model, _, packed = text.rpartition(" ")
    if not packed or model != name:
        return None
    return array("f", base64.b64decode(packed)).tolist()
