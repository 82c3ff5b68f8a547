"""Answers of servers as JSON: parsed where they are data, text where they are text, null where they are empty."""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.strict import json_value, too_deep


if TYPE_CHECKING:
    from loopagent.egress.client import Answer

MAX_LEVELS: Final = 100
"""Nested deeper, a body is taken as text."""
MAX_SAID_CHARS: Final = 1_000
"""How much of an answer that means an error is told."""
_LINES: Final = frozenset({"application/x-ndjson", "application/jsonl", "application/json-lines"})
_TEXTUAL: Final = re.compile(
    r"text/.*|.*[/+](json|xml|yaml|javascript|csv|x-www-form-urlencoded|graphql)"
)
MAX_READ_CHARS: Final = 50_000
"""How much of a page that means an error is looked at for what it says."""
_TAG: Final = re.compile(
    r"<(?:script|style)\b[^<]{0,2000}(?:<(?!/s)[^<]{0,2000}){0,30}</(?:script|style)\s{0,9}>|<[^<>]*>",
    re.IGNORECASE,
)
"""A tag, or what no person reads; bounded, since whoever answers may want it to take for ever."""


def view(answer: Answer) -> dict[str, Any]:
    """An answer as expressions see it: `status`, `headers` with lower-case names, `body`."""
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return {"status": answer.status, "headers": headers, "body": body_of(answer)}


def body_of(answer: Answer) -> Any:
    """The body by its type; a text that is plainly JSON is parsed, whatever it says it is."""
    if not answer.body:
        return None
    kind, charset = media_type(answer)
    if not _is_text(kind, answer.body):
        return {"contentType": kind, "bytes": len(answer.body)}
    text = _decoded(answer.body, charset)
    if kind in _LINES:
        return _lines(text)
    found = _parsed(text) if _may_be_json(kind, text) else _NOT_JSON
    if found is not _NOT_JSON:
        return found
    return text if text.strip() else None


def breaks_off(kind: str, body: Any) -> bool:
    """Whether a body that says it is JSON ends in the middle of it."""
    if not (isinstance(body, str) and _is_json(kind) and body.lstrip()[:1] in {"{", "["}):
        return False
    try:
        json.loads(body)
    except json.JSONDecodeError as error:
        return error.pos >= len(body.rstrip()) or error.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return False
    return False


def media_type(answer: Answer) -> tuple[str, str]:
    """The media type in lower case, and the charset; empty where the answer does not say."""
    kind, _, rest = answer.headers.get("content-type", "").partition(";")
    charset = re.search(r"charset\s*=\s*\"?([\w.:-]+)", rest, re.IGNORECASE)
    return kind.strip().lower(), charset[1] if charset else ""


def said(answer: dict[str, Any], kind: str) -> str:
    """What an answer that means an error says, in short: its type, and the useful part of its body."""
    body = answer["body"]
    if body is None:
        return f"status {answer['status']}, without a body"
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    if isinstance(body, str) and "html" in kind:
        text = _TAG.sub(" ", text[:MAX_READ_CHARS])
    text = " ".join(text.split())
    if len(text) > MAX_SAID_CHARS:
        text = f"{text[:MAX_SAID_CHARS]}…"
    return f"status {answer['status']} ({kind or 'no type'}): {text}"


_NOT_JSON: Final = object()
_CHARSETS: Final = re.compile(
    r"ascii|utf-(8|16|32).*|iso8859.*|latin.*|cp\d+|koi8.*|mac.*|gb.*|big5.*|euc.*|shift.*|iso2022.*|hz|johab"
    r"|tis-620|kz1048|ptcp154|hp-roman8|palmos"
)
"""Names that Python has for charsets in which servers write."""


def _is_text(kind: str, body: bytes) -> bool:
    if kind and not _TEXTUAL.fullmatch(kind):
        return body[:1] in {b"{", b"["} and b"\0" not in body
    return b"\0" not in body or body[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}


def _is_json(kind: str) -> bool:
    return kind.endswith(("/json", "+json"))


def _may_be_json(kind: str, text: str) -> bool:
    return _is_json(kind) or text.lstrip()[:1] in {"{", "["}


def _decoded(body: bytes, charset: str) -> str:
    """Text in the charset that is named, else UTF-8, else Latin-1, in which every byte is something."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if body.startswith(mark):
            return body.decode(name, "replace")
    for name in (charset, "utf-8"):
        try:
            return body.decode(_codec(name))
        except (LookupError, UnicodeError):
            continue
    return body.decode("latin-1")


def _codec(charset: str) -> str:
    """The codec of a charset; UTF-8 for what is none: some codecs of Python take minutes, or are no texts at all."""
    if not charset:
        return "utf-8"
    name = codecs.lookup(charset).name
    return name if _CHARSETS.fullmatch(name) else "utf-8"


def _parsed(text: str) -> Any:
    try:
        value = json_value(text)
    except (ValueError, RecursionError):
        return _NOT_JSON
    return _NOT_JSON if too_deep(value, MAX_LEVELS) else value


def _lines(text: str) -> Any:
    """One value a line; the text itself when a line is none."""
    values = [_parsed(line) for line in text.splitlines() if line.strip()]
    return text if any(one is _NOT_JSON for one in values) else values
