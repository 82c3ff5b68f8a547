"""What of the transcript the model is shown: a few numbers that a view is made from, never a second transcript.

Messages are appended and stay as they are. A view leaves out what was summarised, shows old results as stubs that
name their message, and everything else as it was said; the numbers only ever grow, so a prompt begins like the one
before it until they do. Source: decision seats B6, C6, F4.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Protocol

from loopagent.core.values import value_object


SHRINK: frozenset[str] = frozenset({"results", "feedback", "context"})
"""Kinds of messages that may be shown as stubs."""
STUB_BYTES = 90
"""Size of a stub, about."""


class Said(Protocol):
    """What the view has to know of a message."""

    @property
    def number(self) -> int:
        """Stable number."""
        ...

    @property
    def kind(self) -> str:
        """What it is: `results`, `reply`, `person` …."""
        ...

    @property
    def turn(self) -> int:
        """Turn in which it was said."""
        ...


@value_object(frozen=True, slots=True)
class Fresh:
    """Messages of one turn that are shown in full and could be stubs."""

    turn: int
    last: int
    """Number of the last of them."""
    count: int
    size_bytes: int


@value_object(frozen=True, slots=True)
class Latest:
    """A message with results of reading calls; `keys` are those that no later call has replaced."""

    number: int
    size_bytes: int
    keys: tuple[str, ...]


@value_object(frozen=True, slots=False)  # `changed` copies it
class View:
    """Which messages are shown, and how; part of the state of a run."""

    fresh: tuple[Fresh, ...] = ()
    stubbed: int = 0
    """Messages up to this number are shown as stubs, where their kind and size allow it."""
    summarised: int = 0
    """Messages up to this number are left out."""
    kept: tuple[int, ...] = ()
    """Those of them that are shown all the same: task, plan, skills, the person's latest."""
    summary: int = 0
    """Number of the message that stands for what is left out."""
    tried: int = 0
    """Turn after which room was last made."""
    latest: tuple[Latest, ...] = ()
    """Results that later identical calls may replace."""
    outdated: tuple[Latest, ...] = ()
    """Those that were replaced and are still shown in full."""
    superseded: tuple[int, ...] = ()
    """Messages that are shown as stubs because later ones hold what they held."""
    overflows: int = 0
    """Prompts in a row that were too long for the model."""
    ceiling_tokens: int = 0
    """What proved to be too long for the model; 0 when nothing did."""
    note: tuple[int, int] = (0, 0)
    """The latest reply that was not taken, where it was whole, and what was said about it; 0 for none."""
    hidden: tuple[int, ...] = ()
    """Messages of that kind that a later one took the place of."""

    def shows(self, message: Said) -> bool:
        """Whether a message is part of the view."""
        if message.kind == "summary":
            return message.number == self.summary
        if message.number in self.hidden:
            return False
        return message.number > self.summarised or message.number in self.kept

    def outdates(self, message: Said) -> bool:
        """Whether a message is shown as a stub, unless it is short."""
        old = message.number <= self.stubbed or message.number in self.superseded
        return old and message.kind in SHRINK

    def not_taken(self, reply: int, *, again: bool) -> View:
        """The view with a reply that was not taken, which is still to be said something about.

        Args:
            reply: Number of its message; 0 when it has none.
            again: Whether the reply before was not taken either; nobody needs to read about that one any more.
        """
        before = [one for one in self.note if one] if again and self.note[1] else ()
        return replace(self, note=(reply, 0), hidden=(*self.hidden, *before))

    def without(self, reply: int) -> View:
        """The view without a message that was just said."""
        return replace(self, hidden=(*self.hidden, reply))


def size_of(text: str) -> int:
    """Length of a text in UTF-8, in bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def with_fresh(fresh: tuple[Fresh, ...], turn: int, number: int, size: int) -> tuple[Fresh, ...]:
    """The list with one more message that could become a stub; those of a turn are counted together."""
    if fresh and fresh[-1].turn == turn:
        last = fresh[-1]
        return (*fresh[:-1], Fresh(turn, number, last.count + 1, last.size_bytes + size))
    return (*fresh, Fresh(turn, number, 1, size))


def stub(message: Said, chars: int, view: View) -> str:
    """What is shown in place of a long message."""
    replaced = "replaced by a later call of the same; " if message.number in view.superseded else ""
    return (
        f"[#{message.number} {message.kind}, {chars:,} characters, of turn {message.turn}; {replaced}"
        f"ask with Retry messageIndex {message.number}]"
    )


def summary_text(first: int, last: int, text: str) -> str:
    """The message that stands for those left out; without a summary it says at least how to read them."""
    heading = (
        f"Messages #{first} to #{last} are left out here; read one in full with Retry messageIndex."
    )
    return f"{heading} What they come to:\n\n{text.strip()}" if text.strip() else heading


@value_object(frozen=True, slots=True)
class Cut:
    """What to leave out: messages up to `up_to` but those `kept`, which frees `freed_bytes`."""

    up_to: int
    kept: tuple[int, ...]
    freed_bytes: int
    dropped: tuple[int, ...]


def cut(
    shown: Sequence[tuple[Said, int]],
    *,
    free_bytes: int,
    newest: int,
    pinned: Collection[str],
) -> Cut | None:
    """Choose what a summary is to stand for: whole turns, oldest first, until enough is freed.

    Args:
        shown: The messages of the view and their size as shown, in the order in which they are shown.
        free_bytes: How much room is wanted.
        newest: Turn whose messages, and those after it, stay.
        pinned: Kinds of messages that always stay.

    Returns:
        None when nothing can be left out.
    """
    person = max((one.number for one, _ in shown if one.kind == "person"), default=0)
    stay = {one.number for one, _ in shown if one.kind in pinned or one.number == person}
    loose = [(one, size) for one, size in shown if one.number not in stay and one.turn < newest]
    freed, last_turn = 0, -1
    for one, size in loose:
        if freed >= free_bytes and one.turn > last_turn >= 0:
            break
        freed += size
        last_turn = one.turn if one.kind != "summary" else last_turn
    if last_turn < 0:
        return None
    gone = [(one, size) for one, size in loose if one.turn <= last_turn or one.kind == "summary"]
    up_to = max(one.number for one, _ in shown if one.turn <= last_turn and one.kind != "summary")
    kept = tuple(sorted(number for number in stay if number <= up_to))
    return Cut(up_to, kept, sum(size for _, size in gone), tuple(one.number for one, _ in gone))
