"""From the text of a model to the one JSON value it means, or the reasons why there is none.

The whole text as JSON comes first. Then, outside of reasoning tags, prose and fences, the one object
with keys of a reply; an object that is not quite JSON is read tolerantly. What is decided here:

- An object that cannot be read is never searched for smaller ones, and a text that was cut off is
  never completed; only the brace of the whole object may be missing (see `lexical`).
- Objects without keys of a reply, and empty ones, are left out as examples. Of several replies all
  must be the same.
- Text inside reasoning tags is left out, and so is what comes before a closing tag without an opening
  one. Behind an opening tag that is never closed, an object counts only if nothing follows it.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any, Final

from loopagent.core.keys import maybe_reply, surely_reply
from loopagent.core.lexical import MAX_DEPTH, BadJsonError, CutOffError, Reader
from loopagent.core.problems import GOT_CHARS, Problem
from loopagent.core.strict import (
    AGREEING,
    LENIENT,
    STRICT,
    DuplicateKeyError,
    as_list,
    as_object,
    decoder,
    same,
    too_deep,
    unique,
)
from loopagent.core.values import value_object


MAX_CHARS: Final = 1_000_000
"""Longest reply that is read, in characters."""
MAX_OBJECTS: Final = 100
"""Most objects that a text may hold."""
_MARK: Final = re.compile(
    r"""<(?P<close>/?)(?P<tag>think|thinking|reasoning)\s*>
    |\{\s*+(?:\Z|["'}\u201c\u201d]|//|/\*|\\"|[a-z_$][\w$-]*+\??\s*+:)""",
    re.IGNORECASE | re.VERBOSE,
)
_CLOSING: Final = {
    tag: re.compile(rf"</{tag}\s*>", re.IGNORECASE) for tag in ("think", "thinking", "reasoning")
}
_ESCAPED: Final = re.compile(r'\{\s*+\\"')
_OPENING: Final = re.compile(r'\s*+(?:```\w*+)?\s*+"?\s*+')
_FLAT: Final = re.compile(r"""\{[^{}"'\u201c\u201d\n]*+\}""")
_TAIL: Final = re.compile(r"\s*+[}\]\s`]*+\Z")
_SURPLUS: Final = re.compile(r"\s*+[}\]]")
_GOES_ON: Final = re.compile(r"""[\s}\]]*+,\s*+(?:["'\u201c]|[A-Za-z_$][\w$-]*+\s*+:)""")
_JSON_BEFORE: Final = re.compile(r"""(?:\A\s*,|["'\u201d]\s*:\s*\[?)\s*\Z""")
_JSON_BEHIND: Final = re.compile(r"""["'\u201d]\s*+(?::|,\s*+["'\u201c]|[}\]])""")
_AROUND: Final = re.compile(r"(?:```\w*+|[\s\[\]}`])*+")
_UNSTORABLE: Final = re.compile("[\ud800-\udfff\x00]")
_UNITS: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff\x00]")
"""What is unstorable, halves side by side together; looking only whether there is any takes a third of the time."""
_PAIR_LENGTH: Final = 2

_RAW: Final = "raw line breaks or tabs in a text kept"
_NO_OBJECT: Final = "there is no JSON object in the reply; answer with one object and nothing else"
_ONLY_ONE: Final = "exactly one JSON object is a reply"


@value_object(frozen=True, slots=True)
class TextReading:
    """What was found in a text.

    Args:
        value: The JSON value; None beside problems or when cut off.
        repairs: What was tolerated.
        problems: Why there is no value.
        truncated: Whether the text stops in the middle.
        closed: Whether the brace of the whole object was missing and is added.
    """

    value: Any = None
    repairs: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    truncated: bool = False
    closed: bool = False


def clean_text(text: str) -> str:
    """Replace code units that no store can hold (lone surrogates, NUL) by U+FFFD; halves side by side are joined."""
    if text.isascii() and "\0" not in text:
        return text
    return _UNITS.sub(_storable, text) if _UNSTORABLE.search(text) else text


def _storable(found: re.Match[str]) -> str:
    """What stands for code units that cannot be stored."""
    units = found[0]
    if len(units) < _PAIR_LENGTH:
        return "\ufffd"
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def clean_json(value: Any) -> Any:
    """Do the same to every text in a JSON value, keys included; safe for any depth.

    Args:
        value: A JSON value; it is not changed.

    Returns:
        A copy.
    """
    root: list[Any] = [None]
    rest: list[tuple[Any, Any, Any]] = [(root, 0, value)]
    while rest:
        target, place, one = rest.pop()
        if isinstance(one, str):
            target[place] = clean_text(one)
        elif (fields := as_object(one)) is not None:
            made: dict[str, Any] = dict.fromkeys(map(clean_text, fields))
            target[place] = made
            rest.extend((made, clean_text(key), inner) for key, inner in fields.items())
        elif (items := as_list(one)) is not None:
            target[place] = filled = [None] * len(items)
            rest.extend((filled, index, inner) for index, inner in enumerate(items))
        else:
            target[place] = one
    return root[0]


def decode_json(text: str, *, max_depth: int = MAX_DEPTH) -> Any:
    """Read a text that holds nothing but JSON, as values inside of texts do.

    Args:
        text: The text.
        max_depth: Levels of nesting.

    Raises:
        ValueError: It is no JSON, or nested too deeply.
        DuplicateKeyError: A key is repeated with another value.
    """
    try:
        value = AGREEING.decode(text)
    except RecursionError:
        raise ValueError(_too_deep(max_depth)) from None
    if too_deep(value, max_depth):
        raise ValueError(_too_deep(max_depth))
    return clean_json(value) if "\\u" in text else value


def read_text(text: str, *, max_chars: int = MAX_CHARS, max_depth: int = MAX_DEPTH) -> TextReading:
    """Find the one JSON value that a text means. Never raises; takes time linear in the text.

    Args:
        text: What the model wrote.
        max_chars: Longest text that is read, in characters.
        max_depth: Levels of nesting.
    """
    if len(text) > max_chars:
        return _refused(f"the reply has {len(text)} characters; at most {max_chars} are read")
    try:
        reading = _read(text, max_depth)
        if text.count("{") + text.count("[") > max_depth:
            _check_depth(reading.value, max_depth)
        plain = "\\u" not in text and (text.isascii() or not _UNSTORABLE.search(text))
        return reading if plain and "\0" not in text else _cleaned(reading)
    except DuplicateKeyError as error:
        key = json.dumps(str(error)[:GOT_CHARS], ensure_ascii=False)
        return _refused(f"the key {clean_text(key)} stands twice with different values")
    except CutOffError:
        return TextReading(truncated=True)
    except BadJsonError as error:
        return _refused(clean_text(str(error)))
    except RecursionError:
        return _refused(_too_deep(max_depth))


def _read(text: str, max_depth: int, *, inner: bool = False) -> TextReading:
    """The whole text as JSON, or else the one object in it."""
    text = text.strip().lstrip("\ufeff").strip()
    repairs: tuple[str, ...] | None
    try:  # quicker than `decode`, which skips blanks at both ends
        value, end = STRICT.raw_decode(text)
        repairs = () if end == len(text) else None
    except ValueError as error:
        value, repairs = _leniently(text) if _is_raw(error) else (None, None)
    if repairs is None:
        return _Search(text, max_depth).run()
    if inner or not isinstance(value, str):
        return TextReading(value, repairs)
    found = _read(value, max_depth, inner=True)
    decoded = ("JSON text inside of JSON decoded once", *found.repairs)
    return TextReading(found.value, decoded, closed=found.closed)


def _leniently(text: str) -> tuple[Any, tuple[str, ...] | None]:
    """The whole text as JSON with raw line breaks or tabs in it, and that as a repair; None when it is none."""
    try:
        return LENIENT.decode(text), (_RAW,)
    except ValueError:
        return None, None


def _is_raw(error: Exception) -> bool:
    """Whether only a raw line break or tab in a text is wrong, as far as was read."""
    return isinstance(error, json.JSONDecodeError) and error.msg.startswith("Invalid control")


def _cleaned(reading: TextReading) -> TextReading:
    """The reading with texts that can be stored."""
    value = clean_json(reading.value)
    if value == reading.value:
        return reading
    repairs = (*reading.repairs, "characters that cannot be stored replaced by U+FFFD")
    return TextReading(value, repairs, closed=reading.closed)


def _check_depth(value: Any, max_depth: int) -> None:
    if too_deep(value, max_depth):
        raise BadJsonError(_too_deep(max_depth))


def _too_deep(max_depth: int) -> str:
    return f"the reply is nested deeper than {max_depth} levels"


def _refused(message: str) -> TextReading:
    return TextReading(problems=(Problem("", message),))


@value_object(frozen=True, slots=True)
class _Found:
    """An object and where it stands; the text from `after` up to it belongs to none."""

    value: dict[str, Any]
    after: int
    start: int
    end: int
    closed: bool = False


class _Search:
    """Looks for the one object of a text; problems come as exceptions."""

    def __init__(self, text: str, max_depth: int) -> None:
        self._text = text
        self._max_depth = max_depth
        self._at = 0
        self._tries = 0
        self._found: list[_Found] = []
        self._notes: dict[str, None] = {}
        self._endless: set[str] = set()
        self._thought: int | None = None
        self._repeated: list[str] = []
        members = partial(unique, repeated=self._repeated)
        self._strict = decoder(members, strict=True)
        self._lenient = decoder(members, strict=False)

    def run(self) -> TextReading:
        """Find it."""
        while mark := _MARK.search(self._text, self._at):
            if mark["tag"]:
                self._tag(mark)
            else:
                self._take(mark.start())
        found = self._chosen()
        self._check_around(found)
        if self._repeated:
            self._notes["keys that stand twice with the same value taken once"] = None
        return TextReading(found.value, tuple(self._notes), closed=found.closed)

    def _tag(self, mark: re.Match[str]) -> None:
        """Step over a thought; forget what came before the end of one."""
        self._at = mark.end()
        self._notes["reasoning tags left out"] = None
        if mark["close"]:
            self._found.clear()
            self._thought = None
            return
        tag = mark["tag"].casefold()
        end = None
        if tag not in self._endless:
            end = _CLOSING[tag].search(self._text, self._at)
        if end is None:
            self._endless.add(tag)
            self._thought = self._at if self._thought is None else self._thought
        else:
            self._at = end.end()

    def _take(self, start: int) -> None:
        """Read the object at a position; braces around prose are stepped over."""
        self._tries += 1
        if self._tries > MAX_OBJECTS:
            raise BadJsonError(f"there are more than {MAX_OBJECTS} objects; {_ONLY_ONE}")
        flat = _FLAT.match(self._text, start)
        try:
            found = self._object(start)
        except BadJsonError:
            if flat is None:
                raise
            self._at = flat.end()
            return
        self._at = found.end
        if found.value:
            self._found.append(found)

    def _object(self, start: int) -> _Found:
        for reader in (self._strict, self._lenient):
            try:
                value, end = reader.raw_decode(self._text, start)
            except (ValueError, RecursionError) as error:
                if not _is_raw(error):
                    break
                continue
            if reader is self._lenient:
                self._notes[_RAW] = None
            return _Found(value, self._at, start, end)
        if _ESCAPED.match(self._text, start):
            return self._unescaped(start)
        tolerant = Reader(self._text, max_depth=self._max_depth)
        value = tolerant.read(start)
        self._notes.update(tolerant.notes)
        return _Found(value, self._at, start, tolerant.end, tolerant.closed)

    def _unescaped(self, start: int) -> _Found:
        """JSON that was escaped as if it stood inside a text, a backslash before each quote."""
        rest = self._text[start:].rstrip("` \t\r\n")
        if self._found or not _OPENING.fullmatch(self._text, 0, start):
            raise BadJsonError("the object is escaped as if it stood inside a text")
        try:
            inner = json.loads(f'"{rest}"', strict=False)
        except ValueError:
            if rest.endswith("\\"):
                raise CutOffError from None
            raise BadJsonError("the object is escaped as if it stood inside a text") from None
        search = _Search(inner, self._max_depth)
        found = search._object(0)
        if not _TAIL.match(inner, found.end):
            raise BadJsonError("there is more behind the escaped object")
        self._notes.update(search._notes)
        self._repeated += search._repeated
        self._notes["escaped JSON decoded"] = None
        return _Found(found.value, self._at, start, len(self._text), found.closed)

    def _chosen(self) -> _Found:
        """The only reply among the objects that were found."""
        found = self._found
        for is_reply in (surely_reply, maybe_reply):
            if replies := [one for one in found if is_reply(one.value)]:
                break
        else:
            replies = found
        if not replies:
            raise BadJsonError(_NO_OBJECT)
        first = replies[0]
        if _JSON_BEFORE.search(self._text[first.after : first.start]):
            raise BadJsonError(
                "the object is only a part of something; begin with { and send one object"
            )
        if any(not same(one.value, first.value) for one in replies[1:]):
            raise BadJsonError(f"{_ONLY_ONE}; {len(replies)} different ones came")
        if len(replies) > 1:
            self._notes["the same object came more than once; taken once"] = None
        last = replies[-1]
        thought = self._thought is not None and self._thought <= last.start
        if thought and not _TAIL.match(self._text, last.end):
            raise BadJsonError("a reasoning tag is not closed before the reply")
        return last

    def _check_around(self, found: _Found) -> None:
        """Note what is left out around the object; refuse if it seems to go on."""
        before, text = self._text[: found.start], self._text
        later = [one.start for one in self._found if one.start >= found.end]
        gap = text[found.end : min(later, default=len(text))]
        if _GOES_ON.match(text, found.end) or _JSON_BEHIND.search(gap) or gap.count('"') % 2:
            raise BadJsonError("the object ends before its last keys; check its braces")
        listed = before.rstrip().endswith("[")
        if listed and text[found.end :].strip() in {"", ","}:
            raise CutOffError
        if not listed and _SURPLUS.match(text, found.end):
            self._notes["surplus closing braces left out"] = None
        if "```" in before and before.rstrip().endswith(("```", "```json", "```JSON")):
            self._notes["a code fence left out"] = None
        if not (_AROUND.fullmatch(before) and _AROUND.fullmatch(text, found.end)):
            self._notes["text around the object left out"] = None
