"""Making a YAML text say something else while everything that does not change stays as it was typed.

The text is taken apart into the lines of each entry, with the comments above it, and put together again: what stays the
same goes over line by line, what is new is written. Whatever comes out is read back before it counts.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from loopagent.core.json_values import is_array, is_object
from loopagent.documents import DocumentError, read_document
from loopagent.library.editing.writing import after_key, below, entry, item, scalar


if TYPE_CHECKING:
    from collections.abc import Iterable

_COMMENT: Final = re.compile(r"( *)#")
_REMARK: Final = re.compile(r"\s+#.*$")
_PATH: Final = Path("action")


class SpliceError(Exception):
    """The text is written in a way that only its author can change; the message says so."""


@dataclass(frozen=True, slots=True)
class _Part:
    """An entry or item: the lines above it that belong to it, its own, and its nodes."""

    name: str
    now: Any
    lead: tuple[int, int]
    body: tuple[int, int]
    end: int
    key: Any
    value: Any
    alias: bool


def read_text(text: str) -> dict[str, Any]:
    """What a text says; an empty one says nothing.

    Raises:
        DocumentError: It cannot be read, or is no object.
    """
    only_comments = all(
        not line.strip() or line.lstrip().startswith("#") for line in text.split("\n")
    )
    return {} if only_comments else read_document(text, _PATH).value


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are written alike: 1 is not true, and the order of keys counts."""
    return json.dumps(one) == json.dumps(other)


def rewritten(text: str, wanted: dict[str, Any]) -> str:
    """A text that says what is wanted, as close to the given one as can be.

    Args:
        text: YAML, or JSON, whose lines end with a line feed.
        wanted: What it shall say.

    Raises:
        DocumentError: The text cannot be read.
        SpliceError: It is written in a way that cannot be taken over, with anchors for example.
    """
    now = read_text(text)
    if same(now, wanted):
        return text
    whole = text if text.endswith("\n") else text + "\n"
    try:
        made = _made(whole, read_text(whole), wanted)
        if same(read_text(made), wanted):
            return made
    except (DocumentError, IndexError):
        pass  # anchors that are gone, or keys in places where nobody looks for them
    what = "is written in a way that the form cannot take over (with anchors, perhaps)"
    raise SpliceError(f"The text {what}; change the text itself.")


def _made(text: str, now: dict[str, Any], wanted: dict[str, Any]) -> str:
    if text.lstrip().startswith("{"):
        return json.dumps(wanted, indent=2, ensure_ascii=False) + "\n"
    lines = text.split("\n")
    root = (
        cast("Node | None", cast("Any", YAML(typ="rt", pure=True)).compose(text)) if now else None
    )
    if root is None or cast("Any", root).flow_style:
        kept = [one for one in lines if one.startswith("#")]
        return "\n".join([*kept, *below(wanted, 0), ""]) if wanted else "\n".join(kept)
    start = _line(root)
    marks = [at for at in range(start) if lines[at].startswith("---")]
    first = marks[-1] + 1 if marks else 0
    if not wanted:
        return "\n".join(lines[:first])
    body = _Splicer(lines).collection(root, now, (first, len(lines)), wanted)
    return "\n".join(lines[:first] + body)


def _line(node: Any) -> int:
    return int(node.start_mark.line)


def _column(node: Any) -> int:
    return int(node.start_mark.column)


def _is_block(node: Any) -> bool:
    return isinstance(node, MappingNode | SequenceNode) and not cast("Any", node).flow_style


class _Splicer:
    """Puts lines together; `lines` are those of the text, all ranges are of them and end before their second number."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = list(lines)

    def collection(self, node: Any, now: Any, within: tuple[int, int], wanted: Any) -> list[str]:
        """The lines of an object or list in block style, saying what is wanted instead of what it says now."""
        column = _column(node)
        if isinstance(node, MappingNode):
            parts = self._entries(node, now, within)
            made = self._mapping(parts, column, wanted)
        else:
            parts = self._items(node, now, within)
            made = self._sequence(parts, column, wanted)
        return made + self._lines[parts[-1].body[1] : within[1]]

    # ---- taking apart

    def _entries(self, node: Any, now: dict[str, Any], within: tuple[int, int]) -> list[_Part]:
        pairs: list[tuple[Any, Any]] = node.value
        column = _column(node)
        lines = [_line(key) for key, _ in pairs]
        if any(
            _column(key) != column or self._lines[_line(key)][:column].strip() for key, _ in pairs
        ):
            raise IndexError  # a key that does not begin its line
        return self._parts(lines, pairs, now.items(), column, within)

    def _items(self, node: Any, now: list[Any], within: tuple[int, int]) -> list[_Part]:
        column = _column(node)
        dash = re.compile(rf" {{{column}}}-(?:\s|$)")
        lines: list[int] = []
        at = within[0]
        for value in node.value:
            while not dash.match(self._lines[at]):
                at += 1
            lines.append(at)
            at = self._end(value, at, column)
        pairs = [(None, one) for one in node.value]
        return self._parts(lines, pairs, [("", one) for one in now], column, within)

    def _parts(
        self,
        lines: list[int],
        pairs: list[tuple[Any, Any]],
        named: Iterable[tuple[str, Any]],
        column: int,
        within: tuple[int, int],
    ) -> list[_Part]:
        made: list[_Part] = []
        first = within[0]
        ends = [*lines[1:], within[1]]
        for line, until, (key, value), (name, now) in zip(lines, ends, pairs, named, strict=True):
            end = self._end(value, line, column)
            body = (line, self._with_deeper_comments(end, until, column))
            made.append(_Part(name, now, (first, line), body, end, key, value, _line(value) < line))
            first = body[1]
        return made

    def _end(self, value: Any, line: int, column: int) -> int:
        """The line after the last one of a value whose key or dash stands in a line and column."""
        if _line(value) < line:
            return line + 1  # an alias: the value is elsewhere
        if value.start_mark.index == value.end_mark.index:
            return line + 1  # nothing at all: the reader sees it before whatever follows
        if isinstance(value, ScalarNode) and cast("Any", value).style in {"|", ">"}:
            return self._end_of_text(value, column)
        if not _is_block(value) or not value.value:
            return int(value.end_mark.line) + 1
        inner = value.value[-1]
        if isinstance(value, MappingNode):
            key, inner = cast("tuple[Any, Any]", inner)
            return self._end(inner, _line(key), _column(value))
        return self._end(inner, _line(inner), _column(value))

    def _end_of_text(self, value: Any, column: int) -> int:
        end = at = _line(value) + 1
        while at < len(self._lines):
            text = self._lines[at]
            if text.strip():
                if len(text) - len(text.lstrip(" ")) <= column:
                    break
                end = at + 1
            at += 1
        keeps = "+" in self._lines[_line(value)][_column(value) :].partition("#")[0]
        return at if keeps else end

    def _with_deeper_comments(self, end: int, until: int, column: int) -> int:
        """Comments that stand deeper than a key still belong to what is below it."""
        deeper = [at for at in range(end, until) if _comment_column(self._lines[at]) > column]
        return deeper[-1] + 1 if deeper else end

    # ---- putting together

    def _mapping(self, parts: list[_Part], column: int, wanted: dict[str, Any]) -> list[str]:
        known = {one.name: one for one in parts}
        former = _renamed(parts, wanted)
        leads = self._leads(parts, wanted, set(former.values()))
        made: list[str] = []
        for key, value in wanted.items():
            part = known.get(former.get(key, key))
            if part is None:
                made += entry(key, value, column)
                continue
            first, *rest = self._entry(part, column, value)
            if key in former:
                first = f"{first[:column]}{scalar(key)}{first[int(part.key.end_mark.column) :]}"
            made += [*leads[part.name], first, *rest]
        return made

    def _leads(
        self, parts: list[_Part], wanted: dict[str, Any], renamed: set[str]
    ) -> dict[str, list[str]]:
        """The lines above each entry; headings of what goes are taken over by what follows."""
        made: dict[str, list[str]] = {}
        left: list[str] = []
        for part in parts:
            lead = left + self._lines[slice(*part.lead)]
            stays = part.name in wanted or part.name in renamed
            left = [] if stays else _heading(lead)
            made[part.name] = lead
        return made

    def _entry(self, part: _Part, column: int, wanted: Any) -> list[str]:
        own = self._lines[slice(*part.body)]
        if same(part.now, wanted):
            return own
        if _goes_in(part, wanted):
            within = (part.body[0] + 1, part.body[1])
            return [own[0], *self.collection(part.value, part.now, within, wanted)]
        colon = own[0].index(":", int(part.key.end_mark.column)) + 1
        flow = bool(getattr(part.value, "flow_style", False))
        first, *rest = after_key(wanted, column, flow=flow)
        beside = f"{own[0][:colon]} {first}".rstrip() + self._remark(part, colon)
        return [beside, *rest, *self._lines[part.end : part.body[1]]]

    def _remark(self, part: _Part, column: int) -> str:
        """The comment beside a value."""
        value, line = part.value, part.body[0]
        if part.alias or _is_long(value) or _line(value) != line:
            found = _REMARK.search(self._lines[line], column)
        else:
            end = value.end_mark
            found = _REMARK.fullmatch(self._lines[end.line], end.column)
        return found[0] if found else ""

    def _sequence(self, parts: list[_Part], column: int, wanted: list[Any]) -> list[str]:
        made: list[str] = []
        for part, value in _paired(parts, wanted):
            if part is None:
                made += item(value, column)
            else:
                made += self._lines[slice(*part.lead)] + self._item(part, column, value)
        return made

    def _item(self, part: _Part, column: int, wanted: Any) -> list[str]:
        start, end = part.body
        line = self._lines[start]
        if same(part.now, wanted):
            return self._lines[start:end]
        if not _goes_in(part, wanted):
            first, *rest = item(wanted, column)
            below_it = self._lines[part.end : end]
            return [first + self._remark(part, column + 1), *rest, *below_it]
        if _line(part.value) != start:
            return [line, *self.collection(part.value, part.now, (start + 1, end), wanted)]
        self._lines[start] = f"{line[:column]} {line[column + 1 :]}"
        made = self.collection(part.value, part.now, (start, end), wanted)
        self._lines[start] = line
        if made[0][: column + 1].isspace():
            return [f"{line[:column]}-{made[0][column + 1 :]}", *made[1:]]
        return [line[: column + 1], *made]  # a comment came first


def _renamed(parts: list[_Part], wanted: dict[str, Any]) -> dict[str, str]:
    """Former names of entries that say the same under another name, in the same place."""
    names = list(wanted)
    known = {one.name for one in parts}
    return {
        names[at]: one.name
        for at, one in enumerate(parts)
        if one.name not in wanted
        and at < len(names)
        and names[at] not in known
        and same(one.now, wanted[names[at]])
    }


def _comment_column(line: str) -> int:
    found = _COMMENT.match(line)
    return len(found[1]) if found else -1


def _heading(lead: list[str]) -> list[str]:
    """Of the lines above what goes, those that an empty line keeps apart from it."""
    empty = [at for at, one in enumerate(lead) if not one.strip()]
    return lead[: empty[-1] + 1] if empty and any(map(str.strip, lead)) else []


def _is_long(value: Any) -> bool:
    return _is_block(value) or getattr(value, "style", None) in {"|", ">"}


def _goes_in(part: _Part, wanted: Any) -> bool:
    """Whether an entry is changed inside, not as a whole."""
    if not _is_block(part.value) or part.alias or not part.now or not wanted:
        return False
    return is_object(wanted) if isinstance(part.value, MappingNode) else is_array(wanted)


def _paired(parts: list[_Part], wanted: list[Any]) -> list[tuple[_Part | None, Any]]:
    """Each wanted item with the lines it comes from: those that say the same, else the first that are free."""
    free = list(parts)
    made: list[tuple[_Part | None, Any]] = []
    for value in wanted:
        found = next((one for one in free if same(one.now, value)), None)
        made.append((found, value))
        if found is not None:
            free.remove(found)
    return [(part or (free.pop(0) if free else None), value) for part, value in made]
