"""From the text of a model to the one JSON value it means, or the reason why there is none.

Order: the whole text as JSON; then, behind any reasoning tags, the one object with reply keys; an object that is
not quite JSON is read tolerantly. A text that was cut off is never completed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, cast

from loopagent.core.lexical import (
    MAX_DEPTH,
    BadJsonError,
    CutOffError,
    DuplicateKeyError,
    Reader,
    unique,
)
from loopagent.core.problems import Problem


ENVELOPE_KEYS = frozenset(
    {
        "taskcomplete",
        "nextstep",
        "message",
        "reasoning",
        "payloadchangerequest",
        "scratchpad",
        "responseform",
        "actionablecommands",
        "automaticcommands",
        "artifacttoolcalls",
        "conversationtoolcalls",
        "memorywrites",
        "confidence",
    }
)
WRAPPERS = frozenset({"response", "reply", "output", "result", "turn", "loopagentresponse", "json"})
STRONG = ENVELOPE_KEYS - {"message", "reasoning", "confidence"}
_THINK = re.compile(r"<(think|thinking|reasoning)>", re.IGNORECASE)
_OBJECT = re.compile(r"""\{\s*(?:["'}\u201c]|//|/\*|[A-Za-z_$][\w$]*\??\s*:|\\")""")
_ONLY_CLOSERS = re.compile(r"[\s}\]`]*\Z")
_UNSTORABLE = re.compile("[\ud800-\udfff\x00]")
MAX_OBJECTS = 1_000
TOO_DEEP = f"the reply is nested deeper than {MAX_DEPTH} levels"
ONE_REPLY = "exactly one JSON object is a reply"


@dataclass(frozen=True, slots=True)
class TextReading:
    """What was found. `truncated`: the text stops in the middle. `repairs`: what was tolerated."""

    value: Any = None
    repairs: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    truncated: bool = False


class _Found(Exception):  # noqa: N818 - carries a result out of the search, it is no error
    def __init__(self, reading: TextReading) -> None:
        super().__init__()
        self.reading = reading


def clean_text(text: str) -> str:
    """Text without code units that no store can hold (lone surrogates, NUL): each becomes U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text


def clean_json(value: Any) -> Any:
    """The same for every text in a JSON value, keys included."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [clean_json(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {
            clean_text(key): clean_json(one) for key, one in cast("dict[str, Any]", value).items()
        }
    return value


def read_text(text: str, *, max_chars: int = 1_000_000) -> TextReading:
    """Find the one value a text means; never raises, in time linear in the text."""
    if len(text) > max_chars:
        return _refused(f"the reply has {len(text)} characters; at most {max_chars} are read")
    text = text.strip().lstrip("\ufeff").strip()
    try:
        return _shallow(TextReading(_strict(text)), text)
    except DuplicateKeyError as error:
        return _refused(f"the key {str(error)!r} stands twice with different values")
    except (ValueError, RecursionError):
        pass
    try:
        return _shallow(_search(_without_thoughts(text)), text)
    except _Found as found:
        return found.reading
    except RecursionError:
        return _refused(TOO_DEEP)


def _shallow(reading: TextReading, text: str) -> TextReading:
    """The reading, unless its value is nested so deeply that working on it could fail."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return reading
    level: list[Any] = [reading.value]
    for _ in range(MAX_DEPTH):
        level = [inner for one in level for inner in _children(one)]
        if not level:
            return reading
    return _refused(TOO_DEEP)


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []


def _refused(message: str) -> TextReading:
    return TextReading(problems=(Problem("", message),))


def _strict(text: str) -> Any:
    value = _DECODER.decode(text)
    return clean_json(value) if "\\u" in text or _UNSTORABLE.search(text) else value


def _no_constant(name: str) -> Any:
    raise ValueError(name)


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=unique, parse_constant=_no_constant)


def _without_thoughts(text: str) -> str:
    """The text behind reasoning tags that come before the object."""
    start = 0
    while True:
        tag = _THINK.search(text, start)
        if tag is None or text.find("{", start, tag.start()) > -1:
            return text[start:]
        end = text.find(f"</{tag.group(1)}>", tag.end())
        if end < 0:
            return ""
        start = end + len(tag.group(1)) + 3


def _search(text: str) -> TextReading:
    found: list[tuple[Any, tuple[str, ...]]] = []
    position = 0
    while len(found) < MAX_OBJECTS and (start := _OBJECT.search(text, position)) is not None:
        value, position, repairs = _object(text, start.start())
        rest = () if not _surplus(text, position) else ("surplus closing braces left out",)
        if value:
            found.append((value, repairs + rest))
    replies = [one for one in found if _is_reply(one[0])] or found
    if not replies:
        return _refused(
            "there is no JSON object in the reply; answer with one object and nothing else"
        )
    first, repairs = replies[0]
    if any(one != first for one, _ in replies[1:]):
        return _refused(f"{ONE_REPLY}; {len(replies)} different ones came")
    notes = ("text around the object left out",) if _is_embedded(text) else ()
    return TextReading(clean_json(first), notes + repairs)


def _is_embedded(text: str) -> bool:
    return not (text.startswith("{") and _ONLY_CLOSERS.search(text[-1:]))


def _surplus(text: str, position: int) -> bool:
    tail = text[position : position + 10].strip()
    return tail.startswith(("}", "]")) and _ONLY_CLOSERS.match(tail) is not None


def _object(text: str, start: int) -> tuple[Any, int, tuple[str, ...]]:
    """The object at a position, where it ends, and what was tolerated in it."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except DuplicateKeyError as error:
        raise _Found(
            _refused(f"the key {str(error)!r} stands twice with different values")
        ) from None
    except (ValueError, RecursionError):
        return _tolerant(text, start)
    return value, end, ()


def _tolerant(text: str, start: int) -> tuple[Any, int, tuple[str, ...]]:
    if re.match(r'\{\s*\\"', text[start : start + 50]):
        return _unescaped(text, start)
    reader = Reader(text.rstrip("` \n\r\t"))
    try:
        value = reader.read(start)
    except CutOffError:
        raise _Found(TextReading(truncated=True)) from None
    except DuplicateKeyError as error:
        raise _Found(
            _refused(f"the key {str(error)!r} stands twice with different values")
        ) from None
    except (BadJsonError, RecursionError) as error:
        raise _Found(_refused(f"the reply is not JSON: {error}")) from None
    return value, reader.end, tuple(reader.notes)


def _unescaped(text: str, start: int) -> tuple[Any, int, tuple[str, ...]]:
    """JSON that was escaped as if it stood in a string."""
    try:
        inner = json.loads(f'"{text[start:]}"', strict=False)
        value, _ = _DECODER.raw_decode(inner)
    except (ValueError, RecursionError, DuplicateKeyError):
        raise _Found(
            _refused("the reply is not JSON: it is escaped as if it stood in a string")
        ) from None
    return value, len(text), ("escaped JSON decoded",)


def _is_reply(value: Any, depth: int = 2) -> bool:
    keys = {fold_key(key): one for key, one in cast("dict[str, Any]", value).items()}
    if ENVELOPE_KEYS & keys.keys():
        return True
    wrapped = [one for key, one in keys.items() if key in WRAPPERS and isinstance(one, dict)]
    return depth > 0 and any(_is_reply(one, depth - 1) for one in wrapped)


def fold_key(key: str) -> str:
    """A key without type syntax (`taskComplete?`, `actions: [1+]`), separators and case."""
    return (
        key.partition(":")[0]
        .strip()
        .rstrip("?*")
        .replace("_", "")
        .replace("-", "")
        .replace(" ", "")
        .casefold()
    )
