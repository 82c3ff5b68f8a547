"""Committed transactions as bytes: events, facts and messages as JSON arrays, compressed with a dictionary.

What is stored in one go can be one piece: the compressor then begins but once. A reply is in its event, in its fact
and in its message; the compressor keeps it once. The first byte is the version of the format. Within a version fields
are only ever added, at the end of their array and with a default.
"""

from __future__ import annotations

from collections import deque
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json
from zstandard import (
    DICT_TYPE_RAWCONTENT,
    ZstdCompressionDict,
    ZstdCompressor,
    ZstdDecompressor,
    ZstdError,
    frame_content_size,
)

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


if TYPE_CHECKING:
    from collections.abc import Sequence

Row: TypeAlias = list[Any]

VERSION = 1
_PREFIX = bytes([VERSION])
LEVEL = 3
"""How hard the compressor tries; a higher level takes longer and saves a tenth at most."""
MAX_BYTES = 1 << 30
"""An entry that says it is longer is damaged."""
_DICTIONARY = ZstdCompressionDict(FORMAT_1, dict_type=DICT_TYPE_RAWCONTENT)
_DICTIONARY.precompute_compress(level=LEVEL)
_PACKERS: deque[ZstdCompressor] = deque(maxlen=8)
"""Compressors that nobody uses at this moment: each does one thing at a time, and there are several threads."""
_UNPACKERS: deque[ZstdDecompressor] = deque(maxlen=8)
"""The same for reading; a new one takes six times as long as one that has read the dictionary."""


class Committed(Protocol):
    """What a transaction brought, as `Entry` keeps it; a `ports.Commit` is one."""

    @property
    def at(self) -> float:
        """When, in seconds since the epoch."""
        ...

    @property
    def events(self) -> tuple[Event, ...]:
        """What came in."""
        ...

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What is told of it."""
        ...

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the transcript got."""
        ...


@value_object(frozen=True, slots=True)
class Entry:
    """What one transaction committed. `at` is seconds since the epoch."""

    at: float
    events: tuple[Event, ...] = ()
    facts: tuple[Fact, ...] = ()
    messages: tuple[Message, ...] = ()


def encode(*entries: Committed) -> bytes:
    """An entry as bytes, or several that follow each other.

    Raises:
        ValueError: A value in it is not JSON.
    """
    rows = [_entry_row(one) for one in entries]
    text = to_json(rows[0] if len(rows) == 1 else rows)
    return _PREFIX + _packed(text)


def _packed(text: bytes) -> bytes:
    try:
        packer = _PACKERS.pop()
    except IndexError:
        packer = ZstdCompressor(LEVEL, _DICTIONARY, write_checksum=True, write_dict_id=False)
    body = packer.compress(text)
    _PACKERS.append(packer)
    return body


def decode(body: bytes) -> Entry:
    """The entry again that stands there alone.

    Raises:
        CorruptError: The bytes are damaged or of a newer format, or there are more.
    """
    entries = decode_all(body)
    if len(entries) != 1:
        raise CorruptError(f"a log entry is damaged: {len(entries)} stand where one is expected")
    return entries[0]


def decode_all(body: bytes) -> list[Entry]:
    """The entries again.

    Raises:
        CorruptError: The bytes are damaged or of a newer format.
    """
    if body[:1] != _PREFIX:
        found = body[0] if body else "no"
        message = f"a log entry has format {found}, this version reads format {VERSION}: upgrade loopagent"
        raise CorruptError(message)
    try:
        rows = from_json(_unpacked(body))
        return [_entry_of(one) for one in (rows if isinstance(rows[0], list) else [rows])]
    except (ZstdError, ValueError, TypeError, KeyError, IndexError) as error:
        reason = "its values do not fit" if isinstance(error, ValidationError) else str(error)
        message = f"a log entry is damaged: {reason}"
        raise CorruptError(message) from error


def _entry_of(row: Sequence[Any]) -> Entry:
    at, events, facts, messages = row
    return Entry(
        at,
        _EVENTS.validate_python([_event_fields(row, at) for row in events]),
        _FACTS.validate_python([_named(Fact, row) for row in facts]),
        _MESSAGES.validate_python([_named(Message, row) for row in messages]),
    )


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
    if not 0 <= frame_content_size(body[1:]) <= MAX_BYTES:
        raise ValueError("it does not say how long it is, or is too long")
    try:
        unpacker = _UNPACKERS.pop()
    except IndexError:
        unpacker = ZstdDecompressor(_DICTIONARY)
    text = unpacker.decompress(body[1:], allow_extra_data=False)
    _UNPACKERS.append(unpacker)
    return text


def _entry_row(entry: Committed) -> tuple[Any, ...]:
    at = entry.at
    return (
        at,
        [
            _settled_row(one, at) if isinstance(one, Settled) else _event_row(one, at)
            for one in entry.events
        ],
        [
            (one.type, one.decided_by, one.data, one.turn, one.path)
            if one.copy_of is None
            else (one.type, one.decided_by, one.data, one.turn, one.path, one.copy_of)
            for one in entry.facts
        ],
        [(one.number, one.role, one.kind, one.text, one.turn) for one in entry.messages],
    )


def _event_row(event: Event, at: float) -> Row:
    """Kind, then the fields in their order; `at` is null where it is the entry's."""
    row: Row = [event.kind]
    for name in _NAMES[type(event)]:
        value = getattr(event, name)
        row.append(None if name == "at" and value == at else value)
    return row


def _settled_row(event: Settled, at: float) -> Row:
    outcome = event.outcome
    error = outcome.error
    why = error and [error.code, error.message, error.fatal, error.may_have_run]
    how: Row = [outcome.ok, outcome.value, why, outcome.duration_ms, outcome.attempts]
    if outcome.early_ms or outcome.hooks or outcome.model_calls:
        how += (outcome.early_ms, outcome.hooks, outcome.model_calls)
    return [event.kind, event.effect_id, how, None if event.at == at else event.at]


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
