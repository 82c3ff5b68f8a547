"""What reaches a trigger, as an event: plain JSON that templates and conditions can look at."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import parse_qsl

from loopagent.core.expression import Failure, parse
from loopagent.core.strict import DuplicateKeyError
from loopagent.core.text import clean_json, clean_text, decode_json
from loopagent.errors import RequestError
from loopagent.triggers.moments import iso


if TYPE_CHECKING:
    from loopagent.triggers.spec import TriggerSpec

Source = Literal["schedule", "webhook", "manual"]
MAX_ID_CHARS: Final = 200
"""Longer ids of events are replaced by their hashes."""
MAX_FIELDS: Final = 1_000
"""Fields of a form or query."""
MAX_HEADER_CHARS: Final = 2_000
"""Length up to which templates see a header."""
NAMES: Final = {"schedule": ("event",), "webhook": ("event", "body", "headers", "query")}
"""What templates and conditions of a trigger may name."""
ID_HEADERS: Final = ("webhook-id", "idempotency-key")
"""Headers that hold an event's id unless the trigger says otherwise."""
_HIDDEN: Final = ("authorization", "cookie", "proxy-authorization", "webhook-signature")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a webhook as it came; names of headers are in lower case."""

    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that may start a run.

    Args:
        id: The same id never starts two runs.
        source: Where it comes from.
        at: When it came, in seconds since the epoch.
        scope: What templates and conditions see.
        bytes: Size of what was sent.
    """

    id: str
    source: Source
    at: float
    scope: dict[str, Any] = field(repr=False)
    bytes: int = 0


def called(spec: TriggerSpec, call: Call, *, at: float, token: str) -> Event:
    """The event of a call.

    Args:
        spec: The trigger.
        call: What came.
        at: When, in seconds since the epoch.
        token: The event's id if the call has none.

    Raises:
        RequestError: `bad_body` (400), `no_event_id` (422).
    """
    signed = spec.webhook.auth.header.lower() if spec.webhook is not None else ""
    headers = {
        name: clean_text(value[:MAX_HEADER_CHARS])
        for name, value in call.headers.items()
        if name not in _HIDDEN and name != signed
    }
    scope = {
        "body": _body(call),
        "headers": headers,
        "query": clean_json(dict(list(call.query.items())[:MAX_FIELDS])),
    }
    event_id = short_id(_id(spec, call, scope) or token)
    return _event(spec, Event(event_id, "webhook", at, scope, len(call.body)))


def by_hand(
    spec: TriggerSpec, body: Any, *, at: float, event_id: str, headers: Mapping[str, str]
) -> Event:
    """The event that a person makes: of a webhook with this body, of a schedule as if it were due now."""
    scope: dict[str, Any] = {"body": body, "headers": dict(headers), "query": {}}
    due = {"dueAt": iso(at), "missed": 0} if spec.kind == "schedule" else {}
    kept = clean_json(scope) if spec.kind == "webhook" else {}
    return _event(spec, Event(short_id(event_id), "manual", at, kept), due)


def came_due(spec: TriggerSpec, moment: float, missed: int, *, at: float) -> Event:
    """The event of a moment of a schedule; its id is the moment, so that it fires once whoever sees it first."""
    due = {"dueAt": iso(moment), "missed": missed}
    return _event(spec, Event(iso(moment), "schedule", at, {}), due)


def _event(spec: TriggerSpec, event: Event, more: Mapping[str, Any] | None = None) -> Event:
    """The event, with what templates may see of itself."""
    about = {"id": event.id, "trigger": spec.name, "source": event.source, "at": iso(event.at)}
    return replace(event, scope={"event": {**about, **(more or {})}, **event.scope})


def short_id(text: str) -> str:
    """An id as it is kept."""
    text = clean_text(text).strip()
    if len(text) <= MAX_ID_CHARS and text.isprintable():
        return text
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _id(spec: TriggerSpec, call: Call, scope: Mapping[str, Any]) -> str:
    wanted = None if spec.webhook is None else spec.webhook.event_id
    if wanted is None:
        return next((call.headers[one] for one in ID_HEADERS if call.headers.get(one)), "")
    if wanted.header is not None:
        found: Any = call.headers.get(wanted.header.lower())
        where = f"the header {wanted.header}"
    else:
        found, where = at_path(wanted.field or "", scope), f"the field {wanted.field}"
    if isinstance(found, bool) or not isinstance(found, str | int | float) or found == "":
        text = f"The event has no id: {where} must hold a text or number."
        raise RequestError("no_event_id", text)
    return str(found)


def at_path(path: str, scope: Mapping[str, Any]) -> Any:
    """What stands at a path, None where nothing does."""
    read = parse(path)
    found = read if isinstance(read, Failure) else read.evaluate(scope)
    return None if isinstance(found, Failure) else found.value


def _body(call: Call) -> Any:
    """The body by its media type: JSON, the fields of a form, else text.

    Raises:
        RequestError: `bad_body` (400).
    """
    kind = call.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    try:
        text = call.body.decode("utf-8")
        if kind == "application/x-www-form-urlencoded":
            return clean_json(
                dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS))
            )
        if kind != "application/json" and not kind.endswith("+json"):
            return clean_text(text)
        return decode_json(text) if text.strip() else None
    except (ValueError, DuplicateKeyError) as error:
        text = f"The body cannot be read as {clean_text(kind)[:100]}: {error}."
        raise RequestError("bad_body", text[:MAX_HEADER_CHARS], status=400) from error
