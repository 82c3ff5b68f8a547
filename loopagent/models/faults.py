"""What went wrong at a provider: from status, headers and body to one `ModelError`.

Needs no HTTP library, so that scripted models can speak of the same faults. Texts of a provider are
data: they are cleaned, freed of keys and cut before anybody sees them.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, cast

from loopagent.errors import ModelError, ModelErrorKind
from loopagent.models.values import is_list


if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


MAX_EXCERPT_CHARS = 300
"""Longest piece of a provider's text inside an error message."""
_SCANNED_CHARS = 4_000
_MULTIPLE_CHOICES = 300

PHRASES: dict[ModelErrorKind, str] = {
    "rate_limit": "rate limited",
    "quota": "out of quota",
    "auth": "the API key was refused",
    "not_found": "no such model or address",
    "bad_request": "the request was refused",
    "context_window": "the prompt is too long for the model",
    "server": "the server failed",
    "connection": "the connection failed",
    "timeout": "no answer in time",
    "truncated_stream": "the stream stopped before the reply was complete",
    "bad_response": "the answer is unusable",
    "refusal": "the model refused to answer",
    "content_filter": "blocked by a content filter",
    "config": "the configuration cannot work",
    "script_ended": "the script has ended",
}
"""One short clause for each kind of error."""

_KIND_OF_CODE: dict[str, ModelErrorKind] = {
    "insufficient_quota": "quota",
    "billing_error": "quota",
    "billing_hard_limit_reached": "quota",
    "insufficient_balance": "quota",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "context_length_exceeded": "context_window",
    "exceed_context_size_error": "context_window",
    "request_too_large": "context_window",
    "string_above_max_length": "context_window",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "authentication_error": "auth",
    "invalid_api_key": "auth",
    "permission_error": "auth",
    "not_found_error": "not_found",
    "model_not_found": "not_found",
    "overloaded_error": "server",
    "api_error": "server",
    "server_error": "server",
    "internal_server_error": "server",
    "timeout_error": "timeout",
}
_KIND_OF_STATUS: dict[int, ModelErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "server",
    413: "context_window",
    425: "server",
    429: "rate_limit",
}
_KIND_OF_TEXT: tuple[tuple[re.Pattern[str], ModelErrorKind], ...] = (
    (
        re.compile(
            r"maximum context length|context[ _](?:length|window|size|limit)|prompt is too long"
            r"|input (?:is|was) too long|too many (?:input )?tokens|maximum number of tokens",
            re.IGNORECASE,
        ),
        "context_window",
    ),
    (
        re.compile(r"credit balance is too low|insufficient (?:balance|credits)", re.IGNORECASE),
        "quota",
    ),
    (
        re.compile(r"content filtering policy|content management policy", re.IGNORECASE),
        "content_filter",
    ),
)
_TOO_MANY_REQUESTS = 429

_SECRET = re.compile(
    r"(?:\b(?:bearer|basic)\s+[\w.~+/=-]{8,200}"
    r"|\b(?:sk|pk|rk|gsk|xai|api|key)[-_][\w*.-]{6,200}"
    r"|\bAIza[\w-]{10,100}"
    r"|[\w-]{0,64}\*{3,}[\w-]{0,64})",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"<(?:style|script)\b[^<]{0,2000}</(?:style|script)>|<[^<>]{0,1000}>", re.IGNORECASE
)
_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class Complaint:
    """An error as a provider's body tells it. `codes`: its machine-readable words, the most specific one first."""

    message: str = ""
    codes: tuple[str, ...] = ()
    status: int | None = None
    """HTTP status that the body itself names; gateways put one inside a 200."""


def complaint_in(body: Any) -> Complaint | None:
    """The error that a JSON body holds under `error`, or None when it holds none.

    Understands `{"error": {…}}`, `{"error": "text"}`, `{"type": "error", …}` and a list of one of
    these.
    """
    if is_list(body) and body:
        body = body[0]
    if not isinstance(body, dict):
        return None
    envelope = cast("dict[str, Any]", body)
    error = envelope.get("error")
    if not error and envelope.get("type") != "error":
        return None
    if isinstance(error, dict):
        return _complaint(cast("dict[str, Any]", error))
    if isinstance(error, str):
        return Complaint(error, _words(envelope))
    return _complaint(envelope)


def complaint_of(body: bytes) -> Complaint:
    """The error that the body of a failed request tells, in whatever form it comes."""
    text = body.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return Complaint(text)
    found = complaint_in(value)
    if found is None and isinstance(value, dict):
        found = _complaint(cast("dict[str, Any]", value))
    return (
        found
        if found is not None and found.message
        else Complaint(text, found.codes if found else ())
    )


def _complaint(error: dict[str, Any]) -> Complaint:
    told = next((error[key] for key in ("message", "detail", "msg") if error.get(key)), "")
    message = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False, default=str)
    code = error.get("code")
    numeric = isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600  # noqa: PLR2004 - HTTP errors
    return Complaint(message, _words(error), cast("int", code) if numeric else None)


def _words(error: Mapping[str, Any]) -> tuple[str, ...]:
    found = (error.get(key) for key in ("code", "type", "status"))
    return tuple(one.lower() for one in found if isinstance(one, str))


def kind_of(status: int | None, complaint: Complaint) -> ModelErrorKind:
    """Which kind of error a status and a complaint amount to.

    Args:
        status: HTTP status; None or a success when the error came inside a good answer.
        complaint: What the body says.
    """
    for word in complaint.codes:
        if word in _KIND_OF_CODE:
            return _KIND_OF_CODE[word]
    if status is None or status < _MULTIPLE_CHOICES:
        status = complaint.status
    if status != _TOO_MANY_REQUESTS:
        told = complaint.message[:_SCANNED_CHARS]
        for pattern, kind in _KIND_OF_TEXT:
            if pattern.search(told):
                return kind
    return _kind_of_status(status)


def _kind_of_status(status: int | None) -> ModelErrorKind:
    if status is None or status >= 500:  # noqa: PLR2004 - server errors
        return "server"
    if status < 400:  # noqa: PLR2004 - a redirect: the address is wrong, and the key stays here
        return "config"
    return _KIND_OF_STATUS.get(status, "bad_request")


def retry_after_seconds(headers: Mapping[str, str], *, now: float) -> float | None:
    """How long a server asks to wait: `retry-after-ms`, else `Retry-After` in seconds or as a date.

    Args:
        headers: Response headers, looked up in lower case.
        now: Seconds since the epoch, for dates.

    Returns:
        Seconds, never negative; None when the server did not say or said nonsense.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000.0
    told = headers.get("retry-after")
    seconds = _number(told)
    if seconds is not None or told is None:
        return seconds
    try:
        moment = parsedate_to_datetime(told)
    except (ValueError, TypeError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without the given secrets and without anything that looks like a key."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[redacted]")
    return _SECRET.sub("[redacted]", text[:_SCANNED_CHARS])


def excerpt(text: str, secrets: Iterable[str] = ()) -> str:
    """A provider's text made fit for an error message: one line, no mark-up, no keys, cut."""
    text = redact(text, secrets)
    if text.lstrip()[:1] == "<":
        text = f"(an HTML page) {_TAG.sub(' ', text)}"
    text = _BLANK.sub(" ", text).strip()
    return text if len(text) <= MAX_EXCERPT_CHARS else f"{text[: MAX_EXCERPT_CHARS - 1]}…"


def fault(
    name: str,
    kind: ModelErrorKind,
    detail: str = "",
    *,
    secrets: Iterable[str] = (),
    status: int | None = None,
    retry_after: float | None = None,
) -> ModelError:
    """A `ModelError` with a message that is safe to show.

    Args:
        name: `provider:model`.
        kind: What went wrong.
        detail: What the provider or the library said.
        secrets: Texts that must not appear.
        status: HTTP status, when there was one.
        retry_after: Seconds the server asked to wait.
    """
    where = f" (HTTP {status})" if status is not None else ""
    told = excerpt(detail, secrets)
    message = f"{name}: {PHRASES[kind]}{where}{': ' if told else ''}{told}"
    return ModelError(kind, message, status=status, retry_after_seconds=retry_after)
