"""Reading one JSON object as it arrives, in pieces of any size.

Plain JSON only, raw line breaks in texts included, as nearly all replies are. At the first character that is none the
scanner is `lost` and says nothing more: what was meant needs the whole text, and `core.lexical`.

That a text ended at a quote is certain only once JSON goes on behind it as it should: models forget to escape quotes.
So an end counts from `confirmed` on, which is where the tolerant reader is certain as well.

The work for a piece is proportional to the piece: nothing is looked at twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, TypeAlias

from loopagent.core.keys import WRAPPERS, fold_key
from loopagent.core.lexical import MAX_DEPTH
from loopagent.core.presenting.parts import REPLY, Place, Want
from loopagent.core.presenting.strings import TextReader


_BLANK: Final = re.compile(r"[ \t\n\r]*+")
_SCALAR: Final = re.compile(r"[-+.\w]*+", re.ASCII)
_JSON_SCALAR: Final = re.compile(
    r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null"
)
_CERTAIN: Final = frozenset('{["')
"""An entry of a list that begins like this is one, whatever quotes came before."""


class Hears(Protocol):
    """Who is told what the scanner reads."""

    def key(self, folded: str) -> None:
        """A key of the reply came, folded."""

    def begins(self, path: str) -> bool:
        """A value that is wanted begins; False when it is not wanted after all."""
        ...

    def grows(self, path: str, piece: str) -> None:
        """A piece of a text came."""

    def text_ends(self, path: str) -> None:
        """A text seems to end."""

    def captured(self, place: Place, raw: str) -> None:
        """A value seems to be complete; as JSON."""

    def confirmed(self) -> None:
        """Whatever seemed to end or to be complete is so."""


@dataclass(slots=True)
class _Frame:
    """An object or list that is open."""

    closer: str
    fields: Mapping[str, Want] | None = None
    entries: str = ""
    """Path of the list whose entries are wanted."""
    count: int = 0


Step: TypeAlias = Callable[["Scanner", str, int], int]
"""What to do at a character of a piece; gives where to go on."""


class Scanner:
    """Reads one object; the text begins behind its brace.

    Args:
        hears: Is told what is read.
    """

    def __init__(self, hears: Hears) -> None:
        self._hears = hears
        self.ended = False
        """The object is complete."""
        self.lost = False
        """It is no plain JSON."""
        self.capturing: Place | None = None
        """The value that is being kept as a whole."""
        self._level = 0
        """How many frames are open around it."""
        self._raw: list[str] = []
        self._from = 0
        """Where in the present piece the part of it begins that is not in `_raw` yet."""
        self._open = [_Frame("}", REPLY)]
        self._mode: Callable[[str, int], int] = self._structure
        self._expects = "member"
        self._want: Want | None = None
        self._text = TextReader()
        self._ends: Callable[[str, int], None] = self._end_key
        """What the end of the present text means."""
        self._growing = ""
        """Path of the text that is shown as it grows."""
        self._key: list[str] = []
        self._token: list[str] = []

    def feed(self, text: str) -> int:
        """Read a piece.

        Returns:
            How much of it belongs to the object.
        """
        at, size, self._from = 0, len(text), 0
        while at < size and not (self.ended or self.lost):
            at = self._mode(text, at)
        if self.capturing is not None:
            self._raw.append(text[self._from : at])
        return at

    # ------------------------------------------------------------ structure

    def _structure(self, text: str, at: int) -> int:
        blank = _BLANK.match(text, at)
        at = blank.end() if blank else at
        if at == len(text):
            return at
        step = self._steps[self._expects].get(text[at])
        if step is None:
            self.lost = True
            return at
        return step(self, text, at)

    def _begin(self, text: str, at: int) -> Want | None:
        """A value begins: what of it is wanted."""
        frame = self._open[-1]
        want, self._want, index = self._want, None, None
        if frame.closer == "]":
            if self._expects == "value" and text[at] in _CERTAIN:
                self._hears.confirmed()
            if frame.entries:
                want, index = Want("whole", frame.entries), frame.count
        frame.count += 1
        if want is None or want.kind != "whole":
            return want
        if index is not None or self._hears.begins(want.path):
            self.capturing, self._level, self._from = (want.path, index), len(self._open), at
        return None

    def _open_text(self, text: str, at: int) -> int:
        want = self._begin(text, at)
        shown = want is not None and want.kind == "text" and self._hears.begins(want.path)
        self._growing = want.path if want is not None and shown else ""
        return self._read_text(self._end_text, at, decodes=shown)

    def _open_key(self, _text: str, at: int) -> int:
        self._key.clear()
        self._growing = ""
        return self._read_text(self._end_key, at, decodes=self._open[-1].fields is not None)

    def _read_text(self, ends: Callable[[str, int], None], at: int, *, decodes: bool) -> int:
        self._ends, self._mode = ends, self._string
        self._text.begin(decodes=decodes)
        return at + 1

    def _open_object(self, text: str, at: int) -> int:
        want = self._begin(text, at)
        fields = want.fields if want is not None and want.kind == "fields" else None
        return self._enter(_Frame("}", fields), "member", at)

    def _open_list(self, text: str, at: int) -> int:
        want = self._begin(text, at)
        wanted = want is not None and want.kind == "list" and self._hears.begins(want.path)
        path = want.path if want is not None and wanted else ""
        return self._enter(_Frame("]", entries=path), "item", at)

    def _enter(self, frame: _Frame, expects: str, at: int) -> int:
        self._open.append(frame)
        self._expects = expects
        self.lost = len(self._open) > MAX_DEPTH
        return at + 1

    def _close(self, text: str, at: int) -> int:
        if self._open[-1].closer != text[at]:
            self.lost = True
            return at
        self._open.pop()
        self._value_ended(text, at + 1)
        return at + 1

    def _comma(self, _text: str, at: int) -> int:
        self._expects = "key" if self._open[-1].closer == "}" else "value"
        return at + 1

    def _colon(self, _text: str, at: int) -> int:
        self._hears.confirmed()
        self._expects = "value"
        frame = self._open[-1]
        if frame.fields is not None:
            folded = fold_key("".join(self._key))
            self._want = frame.fields.get(folded)
            if frame.fields is REPLY:
                self._hears.key(folded)
                if folded in WRAPPERS and not frame.count:
                    self._want = Want("fields", fields=REPLY)
        return at + 1

    def _value_ended(self, text: str, end: int) -> None:
        """A value ends before a position of the present piece."""
        self._mode, self._expects = self._structure, "after"
        if self.capturing is not None and len(self._open) == self._level:
            self._raw.append(text[self._from : end])
            place, self.capturing = self.capturing, None
            self._hears.captured(place, "".join(self._raw))
            self._raw.clear()
        if not self._open:
            self._hears.confirmed()
            self.ended = True

    # ------------------------------------------------------------ texts and other values

    def _string(self, text: str, at: int) -> int:
        at = self._text.read(text, at)
        self.lost = self._text.lost
        if self._growing:
            if self._text.piece:
                self._hears.grows(self._growing, self._text.piece)
        elif self._text.piece:
            self._key.append(self._text.piece)
        if self._text.ended:
            self._ends(text, at)
        return at

    def _end_key(self, _text: str, _at: int) -> None:
        self._mode, self._expects = self._structure, "colon"

    def _end_text(self, text: str, at: int) -> None:
        if self._growing:
            self._hears.text_ends(self._growing)
        self._value_ended(text, at)

    def _open_scalar(self, text: str, at: int) -> int:
        self._begin(text, at)
        self._token.clear()
        self._mode = self._scalar
        return at

    def _scalar(self, text: str, at: int) -> int:
        found = _SCALAR.match(text, at)
        end = found.end() if found else at
        self._token.append(text[at:end])
        if end == len(text):
            return end
        if _JSON_SCALAR.fullmatch("".join(self._token)):
            self._value_ended(text, end)
        else:
            self.lost = True
        return end

    _values: ClassVar[dict[str, Step]] = {
        '"': _open_text,
        "{": _open_object,
        "[": _open_list,
        **dict.fromkeys("-0123456789tfn", _open_scalar),
    }
    _steps: ClassVar[dict[str, dict[str, Step]]] = {
        "value": _values,
        "item": {**_values, "]": _close},
        "member": {'"': _open_key, "}": _close},
        "key": {'"': _open_key},
        "colon": {":": _colon},
        "after": {",": _comma, "}": _close, "]": _close},
    }
    """What may come, and at which character: what to do there."""
