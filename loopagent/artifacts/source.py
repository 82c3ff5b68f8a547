"""An artifact as its tools see it: bytes, how large a result may be, and until when there is time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from loopagent.artifacts.encodings import Encoding, decoded, encoding_of
from loopagent.core.json_values import compact_json


RESERVED_CHARS = 120
"""Room in a result for what stands around its entries."""


class ToolError(Exception):
    """What was asked for cannot be had; the message is for the model."""


class OutOfTimeError(ToolError):
    """The time for one look is over."""


class Params(BaseModel):
    """Base of the parameters of tools: camelCase, unknown ones refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


@dataclass(frozen=True, slots=True)
class Source:
    """What a tool reads.

    Args:
        content: The bytes as they were stored.
        kind: Which kind of artifact it is.
        name: File name, if it has one.
        max_chars: Length of a result as JSON text.
        max_bytes: How much a packed file may unpack to.
        ends_at: When the time is over, by `clock`.
        clock: Seconds that only grow.
    """

    content: bytes
    kind: str = "text"
    name: str = ""
    max_chars: int = 100_000
    max_bytes: int = 100_000_000
    ends_at: float = float("inf")
    clock: Callable[[], float] = field(default=monotonic)

    def check_time(self) -> None:
        """Stop when the time is over.

        Raises:
            OutOfTimeError: It is.
        """
        if self.clock() > self.ends_at:
            raise OutOfTimeError("this took too long; ask for less of it")

    def text(self) -> str:
        """The content as text; what is no text in its encoding becomes U+FFFD.

        A result has no file name: it was kept as UTF-8, whatever its bytes look like.
        """
        return decoded(self.content) if self.name else self.content.decode("utf-8", "replace")

    @property
    def encoding(self) -> Encoding:
        """In which encoding the content is read as text."""
        return encoding_of(self.content) if self.name else Encoding("utf-8")


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of entries. `next` is the position of the first one that is not in it, None at the end."""

    entries: list[Any]
    start: int
    next: int | None

    def told(self, name: str, **more: Any) -> dict[str, Any]:
        """As a result; `next` only where there is more."""
        body = {**more, "start": self.start, name: self.entries}
        return body if self.next is None else {**body, "next": self.next}


def page(source: Source, entries: Sequence[Any], start: int, count: int, *, room: int = 0) -> Page:
    """As many entries from `start` on as were asked for and as fit.

    Args:
        source: Bounds the result.
        entries: All of them; made to JSON one by one.
        start: Position of the first one, from 0.
        count: Most of them.
        room: Characters that the result needs for other things.
    """
    return _fill(source, entries, range(start, min(len(entries), start + count)), start, room)


def _fill(source: Source, entries: Sequence[Any], wanted: range, start: int, room: int) -> Page:
    left = source.max_chars - RESERVED_CHARS - room
    taken: list[Any] = []
    for position in wanted:
        one = entries[position]
        size = len(compact_json(one)) + 1
        if size > left:
            if taken:
                return Page(taken, start, position)
            after = position + 1
            cut = shortened(one, left)
            return Page([cut], start, after if after < len(entries) else None)
        left -= size
        taken.append(one)
        if not len(taken) % 1_000:
            source.check_time()
    end = max(wanted.stop, start)
    return Page(taken, start, end if end < len(entries) else None)


def shortened(value: Any, chars: int) -> dict[str, Any]:
    """An entry that is too long by itself: its beginning, and how long it is."""
    text = value if isinstance(value, str) else compact_json(value)
    shown = text[: max(0, chars - 60)]
    while shown and len(compact_json(shown)) > chars - 60:  # escapes make it longer than it looks
        shown = shown[: len(shown) * 3 // 4]
    return {"cut": shown, "chars": len(text)}


class NoParams(Params):
    """A tool without parameters."""
