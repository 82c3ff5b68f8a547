"""One committed transaction as bytes: events, facts and messages as JSON arrays, compressed with a dictionary.

A reply is in its event, in its fact and in its message; the compressor keeps it once. The first byte is the
version of the format. Within a version fields are only ever added, at the end of their array and with a default.
"""

from __future__ import annotations

import zlib
from dataclasses import fields
from typing import Annotated, Any, Protocol, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from loopagent.core.events import (
    ApprovalRevoked,
    CancelRequested,
    Event,
    FilesGiven,
    Forked,
    LimitsRaised,
    MessagePosted,
    ModeChanged,
    PauseRequested,
    Reported,
    RequestHeld,
    ResumeRequested,
    Settled,
    Started,
)
from loopagent.core.facts import Fact
from loopagent.core.log_dictionary import FORMAT_1
from loopagent.core.outcome import ErrorInfo, Outcome
from loopagent.core.state import Message
from loopagent.core.values import value_object
from loopagent.errors import CorruptError


Row: TypeAlias = list[Any]

VERSION = 1
_PREFIX = bytes([VERSION])
_RAW = -15
"""No zlib header and checksum; 32 KiB window."""
THOROUGH_BYTES = 65_536
"""Longer entries are compressed fast instead of well."""
SMALL_BYTES = 2_560
"""Entries up to this size are compressed in a window of 4 KiB, which leaves room for the end of the dictionary."""


class Packer(Protocol):
    """A compressor of `zlib`, whose type has no public name."""

    def compress(self, data: bytes, /) -> bytes:
        """Take more in."""
        ...

    def flush(self) -> bytes:
        """Give out the rest."""
        ...


_SMALL = zlib.compressobj(3, zlib.DEFLATED, -12, 5, zlib.Z_DEFAULT_STRATEGY, FORMAT_1)
"""Copied for each small entry: that is cheaper than reading the dictionary again."""


@value_object(frozen=True, slots=True)
class Entry:
    """What one transaction committed. `at` is seconds since the epoch."""

    at: float
    events: tuple[Event, ...] = ()
    facts: tuple[Fact, ...] = ()
    messages: tuple[Message, ...] = ()


def encode(entry: Entry) -> bytes:
    """The entry as bytes.

    Raises:
        ValueError: A value in it is not JSON.
    """
    at = entry.at
    text = to_json(
        (
            at,
            [_event_row(one, at) for one in entry.events],
            [_fact_row(one) for one in entry.facts],
            [(one.number, one.role, one.kind, one.text, one.turn) for one in entry.messages],
        )
    )
    packer = _packer(len(text))
    return _PREFIX + packer.compress(text) + packer.flush()


def _packer(size_bytes: int) -> Packer:
    """A compressor that has read the dictionary. An ordinary entry needs little room, and making room takes time."""
    if size_bytes <= SMALL_BYTES:
        return _SMALL.copy()
    level = 6 if size_bytes <= THOROUGH_BYTES else 1
    return zlib.compressobj(level, zlib.DEFLATED, _RAW, 8, zlib.Z_DEFAULT_STRATEGY, FORMAT_1)


def decode(body: bytes) -> Entry:
    """The entry again.

    Raises:
        CorruptError: The bytes are damaged or of a newer format.
    """
    if body[:1] != _PREFIX:
        found = body[0] if body else "no"
        message = f"a log entry has format {found}, this version reads format {VERSION}: upgrade loopagent"
        raise CorruptError(message)
    try:
        at, events, facts, messages = from_json(_unpacked(body))
        return Entry(
            at,
            _EVENTS.validate_python([_event_fields(row, at) for row in events]),
            _FACTS.validate_python([_named(Fact, row) for row in facts]),
            _MESSAGES.validate_python([_named(Message, row) for row in messages]),
        )
    except (zlib.error, ValueError, TypeError, KeyError, IndexError) as error:
        reason = "its values do not fit" if isinstance(error, ValidationError) else str(error)
        message = f"a log entry is damaged: {reason}"
        raise CorruptError(message) from error


_EVENTS: TypeAdapter[tuple[Event, ...]] = TypeAdapter(
    tuple[Annotated[Event, Field(discriminator="kind")], ...]
)
_FACTS: TypeAdapter[tuple[Fact, ...]] = TypeAdapter(tuple[Fact, ...])
_MESSAGES: TypeAdapter[tuple[Message, ...]] = TypeAdapter(tuple[Message, ...])

_EVENT_TYPES: dict[str, type[Any]] = {
    "started": Started,
    "settled": Settled,
    "reported": Reported,
    "message_posted": MessagePosted,
    "cancel_requested": CancelRequested,
    "mode_changed": ModeChanged,
    "files_given": FilesGiven,
    "pause_requested": PauseRequested,
    "resume_requested": ResumeRequested,
    "limits_raised": LimitsRaised,
    "forked": Forked,
    "approval_revoked": ApprovalRevoked,
    "request_held": RequestHeld,
}

_NAMES: dict[type[Any], tuple[str, ...]] = {
    kind: tuple(one.name for one in fields(kind) if one.name != "kind")
    for kind in _EVENT_TYPES.values()
} | {kind: tuple(one.name for one in fields(kind)) for kind in (Fact, Message, Outcome, ErrorInfo)}
"""Names by position; an event's `kind` is written first."""


def _unpacked(body: bytes) -> bytes:
    unpacker = zlib.decompressobj(_RAW, FORMAT_1)
    text = unpacker.decompress(body[1:]) + unpacker.flush()
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("its end is missing or is not its own")
    return text


def _event_row(event: Event, at: float) -> Row:
    """Kind, then the fields in their order; `at` is null where it is the entry's."""
    row: Row = [event.kind]
    for name in _NAMES[type(event)]:
        value = getattr(event, name)
        if name == "at" and value == at:
            value = None
        elif name == "outcome":
            value = _outcome_row(value)
        row.append(value)
    return row


def _fact_row(fact: Fact) -> tuple[Any, ...]:
    row = (fact.type, fact.decided_by, fact.data, fact.turn, fact.path)
    return row if fact.copy_of is None else (*row, fact.copy_of)


def _outcome_row(outcome: Outcome) -> Row:
    error = outcome.error
    why = error and [error.code, error.message, error.fatal, error.may_have_run]
    row: Row = [outcome.ok, outcome.value, why, outcome.duration_ms, outcome.attempts]
    late = [outcome.early_ms, outcome.hooks]
    return [*row, *late] if any(late) else row


def _event_fields(row: Row, at: float) -> dict[str, Any]:
    event = _named(_EVENT_TYPES[row[0]], row[1:])
    event["kind"] = row[0]
    if event["at"] is None:
        event["at"] = at
    if "outcome" in event:
        event["outcome"] = _outcome_fields(event["outcome"])
    return event


def _outcome_fields(row: Row) -> dict[str, Any]:
    outcome = _named(Outcome, row)
    if outcome["error"] is not None:
        outcome["error"] = _named(ErrorInfo, outcome["error"])
    return outcome


def _named(kind: type[Any], row: Row) -> dict[str, Any]:
    """Values by field name; a shorter row leaves the newest fields to their defaults."""
    return dict(zip(_NAMES[kind], row, strict=False))
