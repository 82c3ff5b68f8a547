"""YAML 1.2 and JSON texts as plain data that remembers where everything stood.

The core schema of YAML 1.2: plain scalars are null, booleans, numbers or text; `yes`, `on`, dates and `1_000`
are text. Tags other than those of the core schema are refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from ruamel.yaml import YAML
from ruamel.yaml.composer import MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError


MAX_NODES: Final = 100_000
"""Values in a text, those of repeated aliases included."""
MAX_DEPTH: Final = 60
"""Levels of nesting."""
MAX_PROBLEMS: Final = 100
"""Most complaints about one text."""
_T = TypeVar("_T")
Loc = tuple[int | str, ...]
"""Keys and positions from the outside in."""

_TAG: Final = "tag:yaml.org,2002:"
_PLAIN_TAGS: Final = frozenset(
    {"null", "bool", "int", "float", "str", "timestamp", "merge", "value"}
)
_CONSTANTS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class DocumentError(Exception):
    """A text cannot be read.

    Args:
        problems: Every complaint as `file:line:column: what is wrong`.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


@dataclass
class Document:
    """A file's content: an object, and the line and column (from 1) of every place in it."""

    path: Path
    value: dict[str, Any]
    positions: dict[Loc, tuple[int, int]] = field(default_factory=dict[Loc, tuple[int, int]])

    def position(self, loc: Loc) -> tuple[int, int]:
        """Where a place stands; for one that is not there, the nearest place around it."""
        while loc and loc not in self.positions:
            loc = loc[:-1]
        return self.positions.get(loc, (1, 1))


def read_document(text: str, path: Path) -> Document:
    """Read a YAML or JSON text whose root is an object.

    Args:
        text: The text.
        path: Where it comes from, for complaints; a name that ends in `.json` must hold JSON.

    Raises:
        DocumentError: It cannot be read, a key stands twice, or it is too large.
    """
    reader = _Reader(path)
    node = _parse(text, path)
    if not isinstance(node, MappingNode):
        what = "is empty" if node is None else "is no object"
        raise DocumentError(
            f"{path}:1:1: (file): {what}; it must be keys with values, like `name: value`"
        )
    value = reader.read(node)
    return Document(path, cast("dict[str, Any]", value), reader.positions)


def read_documents(text: str, path: Path) -> list[Document]:
    """Read a YAML text with one or more documents, each an object; empty ones are left out.

    Args:
        text: The text.
        path: Where it comes from, for complaints; a name that ends in `.json` must hold one JSON object.

    Raises:
        DocumentError: One cannot be read, a key stands twice, it is too large, or there is none.
    """
    made, problems = read_parts(text, path)
    if problems:
        raise DocumentError(*problems)
    return made


def read_parts(text: str, path: Path) -> tuple[list[Document], list[str]]:
    """Read what can be read of a text with one or more documents, so that all that is wrong can be said at once.

    Args:
        text: The text.
        path: Where it comes from, for complaints; a name that ends in `.json` must hold one JSON object.

    Returns:
        The documents, without what could not be read of them, and every complaint as `file:line:column: what`.
    """
    made: list[Document] = []
    problems: list[str] = []
    try:
        nodes = _parse_all(text, path)
        if path.suffix.lower() == ".json" or not any(isinstance(one, MappingNode) for one in nodes):
            return [read_document(text, path)], []
    except DocumentError as error:
        return [], error.problems
    for node in nodes:
        if isinstance(node, ScalarNode) and not _content(node):
            continue
        if not isinstance(node, MappingNode):
            line, column = _position(node)
            problems.append(f"{path}:{line}:{column}: (file): a document is no object")
            continue
        reader = _Reader(path)
        value = reader.readable(node)
        problems += reader.problems
        if value is not None:
            made.append(Document(path, value, reader.positions))
    return made, problems


def read_list(text: str, path: Path) -> list[tuple[tuple[int, int], Any]]:
    """Read a YAML or JSON text whose root is a list: each item's line and column (from 1), and its data.

    Args:
        text: The text.
        path: Where it comes from, for complaints; a name that ends in `.json` must hold JSON.

    Raises:
        DocumentError: It cannot be read, a key stands twice, or it is no list.
    """
    reader = _Reader(path)
    node = _parse(text, path)
    if not isinstance(node, SequenceNode):
        raise DocumentError(f"{path}:1:1: (file): must be a list")
    items = cast("list[Any]", reader.read(node))
    return [(reader.positions[index,], value) for index, value in enumerate(items)]


def _parse(text: str, path: Path) -> Node | None:
    """The node tree of a text with one document."""
    if path.suffix.lower() == ".json":
        _check_json(text, path)
    return _composed(text, path, lambda reader: cast("Node | None", reader.compose(text)))


def _parse_all(text: str, path: Path) -> list[Node]:
    """The node trees of all documents of a text."""
    return _composed(text, path, lambda reader: list(reader.compose_all(text)))


def _composed(text: str, path: Path, compose: Callable[[Any], _T]) -> _T:
    reader = cast("Any", YAML(typ="rt", pure=True))
    reader.max_depth = (
        5 * MAX_DEPTH
    )  # found before it takes long; a few levels too many are told with their place
    reader.composer.warn_double_anchors = False  # the later one counts, as YAML says
    try:
        return compose(reader)
    except MaxDepthExceededError:
        line, column, what = 1, 1, "nested too deeply"
    except MarkedYAMLError as error:
        raw = cast("Any", error)
        line, column = _place(raw.problem_mark or raw.context_mark)
        what = f"not YAML: {raw.problem or raw.context}"
    except ReaderError as error:
        offset: int = cast("Any", error).position
        line, column = _line_column(text, offset)
        what = f"not YAML: the character U+{ord(text[offset]):04X} is not allowed"
    except RecursionError:
        line, column, what = 1, 1, "nested too deeply"
    except Exception as error:  # noqa: BLE001 - odd escapes and directives make the YAML reader stumble
        line, column, what = 1, 1, f"not YAML: {type(error).__name__}: {error}"
    raise DocumentError(f"{path}:{line}:{column}: {what}")


def _check_json(text: str, path: Path) -> None:
    """Refuse what is no JSON with the words of a JSON reader; JSON is YAML, so the rest is the same."""
    try:
        json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise DocumentError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except ValueError as error:
        raise DocumentError(f"{path}:1:1: not JSON: {error}") from None
    except RecursionError:
        raise DocumentError(f"{path}:1:1: nested too deeply") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON can hold")


def _line_column(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _place(mark: Any) -> tuple[int, int]:
    """Line and column of a mark of the YAML reader, which counts from 0."""
    return (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)


def _position(node: Node) -> tuple[int, int]:
    return _place(cast("Any", node).start_mark)


def _content(node: Node) -> Any:
    """The text of a scalar, the nodes of a sequence, the pairs of nodes of a mapping."""
    return cast("Any", node).value


def _tag(node: Node) -> str:
    return str(cast("Any", node).tag).removeprefix(_TAG)


def _plain(text: str) -> Any:
    """The value of a scalar that is not quoted.

    Raises:
        ValueError: It is a number that JSON has not.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text, {"0x": 16, "0o": 8}.get(text[:2], 10))
    if not _FLOAT.fullmatch(text) and not _NO_NUMBER.fullmatch(text):
        return text
    number = float(text) if _FLOAT.fullmatch(text) else math.nan
    if not math.isfinite(number):
        raise ValueError(text)
    return number


class _Reader:
    """Makes plain data of nodes; keeps positions, and complaints until the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._nodes = 0
        self.problems: list[str] = []
        self.positions: dict[Loc, tuple[int, int]] = {}

    def read(self, root: Node) -> Any:
        """The data of a whole text."""
        value = self._value(root, ())
        if self.problems:
            raise DocumentError(*self.problems)
        return value

    def readable(self, root: MappingNode) -> dict[str, Any] | None:
        """What can be read of an object, with `problems` for the rest; None when it is too large."""
        try:
            return cast("dict[str, Any]", self._value(root, ()))
        except DocumentError:
            return None

    def _value(self, node: Node, loc: Loc) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES or len(loc) > MAX_DEPTH:
            self._complain(node, loc[:1], "too large or nested too deeply (do aliases multiply?)")
            raise DocumentError(*self.problems)
        self.positions.setdefault(loc, _position(node))
        if isinstance(node, MappingNode):
            self._check_tag(node, loc, {"map"})
            return self._mapping(node, loc)
        if isinstance(node, SequenceNode):
            self._check_tag(node, loc, {"seq"})
            items: list[Node] = _content(node)
            return [self._value(one, (*loc, index)) for index, one in enumerate(items)]
        return self._scalar(node, loc)

    def _mapping(self, node: Node, loc: Loc) -> dict[str, Any]:
        made: dict[str, Any] = {}
        pairs: list[tuple[Node, Node]] = _content(node)
        for key_node, value_node in pairs:
            if not isinstance(key_node, ScalarNode):
                self._complain(key_node, loc, "a key must be text")
                continue
            key = _joined(_content(key_node))
            if key in made:
                line = self.positions[*loc, key][0]
                self._complain(
                    key_node, (*loc, key), f"this key stands twice, first in line {line}"
                )
                continue
            self.positions[*loc, key] = _position(key_node)
            made[key] = self._value(value_node, (*loc, key))
        return made

    def _scalar(self, node: Node, loc: Loc) -> Any:
        text = _joined(_content(node))
        if cast("Any", node).style is not None:
            self._check_tag(node, loc, {"str"})
            return text
        self._check_tag(node, loc, _PLAIN_TAGS)
        if _tag(node) == "str":
            return text
        try:
            return _plain(text)
        except ValueError:
            self._complain(node, loc, f"{text[:40]} is not a number that JSON can hold")
            return None

    def _check_tag(self, node: Node, loc: Loc, known: frozenset[str] | set[str]) -> None:
        tag = _tag(node)
        if tag not in known:
            shown = tag if tag.startswith("!") else f"!!{tag}"
            self._complain(node, loc, f"the tag {shown} is not supported; write the plain value")

    def _complain(self, node: Node, loc: Loc, what: str) -> None:
        line, column = _position(node)
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(f"{self._path}:{line}:{column}: {show_loc(loc)}: {what}")


def show_loc(loc: Loc) -> str:
    """A place in a document as people write it; `(file)` for the whole."""
    parts = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in loc)
    return "".join(parts).removeprefix(".") or "(file)"


def _joined(text: str) -> str:
    """Text whose characters beyond U+FFFF were written as two escapes, as JSON does, made one again."""
    if not any("\ud800" <= one <= "\udfff" for one in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
