"""What is known of the effects of one step: a mapping that only grows, and is cheap to grow.

A loop of a thousand items settles a thousand times. Copying what is known each time would cost the square of that,
so grown versions share their entries: each version sees the first `size` of them. Growing the newest version adds
one entry; growing an older one copies first, so every version stays what it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema

from loopagent.core.outcome import Outcome


if TYPE_CHECKING:
    from collections.abc import Sequence


class Outcomes(Mapping[str, Outcome]):
    """Key of an effect → how it ended, in the order they became known. Never changed, only grown."""

    __slots__ = ("_entries", "_size")

    def __init__(self, entries: Mapping[str, Outcome] | None = None) -> None:
        self._entries: dict[str, Outcome] = dict(entries) if entries else {}
        self._size = len(self._entries)

    def plus(self, key: str, outcome: Outcome) -> Outcomes:
        """This and one more; a key that is there already gets the new outcome."""
        entries, size = self._entries, self._size
        if size != len(entries) or key in entries:
            return Outcomes(self.entries() | {key: outcome})
        entries[key] = outcome
        grown = object.__new__(Outcomes)
        grown._entries, grown._size = entries, size + 1
        return grown

    def since(self, size: int) -> list[tuple[str, Outcome]]:
        """What became known after the first `size` entries; it costs no more than there is of that."""
        count = len(self._entries)
        backwards = reversed(self._entries.items())
        found = list(islice(backwards, count - self._size, count - size))
        found.reverse()
        return found

    def entries(self) -> dict[str, Outcome]:
        """All that is known, as a dict of one's own; much cheaper than by looking each one up."""
        return dict(islice(self._entries.items(), self._size))

    def continues(self, other: Outcomes) -> bool:
        """Whether this grew out of the other, so that a view made of the other can be brought up to date."""
        return self._entries is other._entries and self._size >= other._size

    def __getitem__(self, key: str) -> Outcome:
        """How the effect of this key ended.

        Raises:
            KeyError: It is not known.
        """
        if self._size != len(self._entries):
            self._own()
        return self._entries[key]

    def __contains__(self, key: object) -> bool:
        """Whether the end of this effect is known."""
        if self._size != len(self._entries):
            self._own()
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        """Keys in the order they became known."""
        return iter(list(islice(self._entries, self._size)))  # it may grow meanwhile

    def __len__(self) -> int:
        """How many are known."""
        return self._size

    def __repr__(self) -> str:
        """For people who debug."""
        return f"Outcomes({dict(self)!r})"

    def _own(self) -> None:
        """An old version that is still looked at gets entries of its own."""
        self._entries = self.entries()

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Stored as a JSON object."""
        del source
        entries = handler.generate_schema(dict[str, Outcome])
        return core_schema.no_info_after_validator_function(
            cls,
            entries,
            serialization=core_schema.plain_serializer_function_ser_schema(
                cls.entries, return_schema=entries
            ),
        )


def together(parts: Sequence[Mapping[str, Outcome]]) -> Outcomes:
    """Parts that were stored one after another, in one."""
    return Outcomes({key: outcome for part in parts for key, outcome in part.items()})
