"""YAML 1.2 and JSON files as plain data that remembers where everything stood."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode


MAX_NODES = 100_000
MAX_DEPTH = 60
Loc = tuple[int | str, ...]


class DocumentError(Exception):
    """A file cannot be read; the message is `file:line:column: what`."""


@dataclass
class Document:
    """A file's content: an object, and the line and column (from 1) of every place in it."""

    path: Path
    value: dict[str, Any]
    positions: dict[Loc, tuple[int, int]]

    def position(self, loc: Loc) -> tuple[int, int]:
        """Where a place stands; for one that is not there, the nearest place around it."""
        while loc and loc not in self.positions:
            loc = loc[:-1]
        return self.positions.get(loc, (1, 1))


def read_document(text: str, path: Path) -> Document:
    """Read a YAML or JSON text whose root is an object.

    Raises:
        DocumentError: It cannot be read, a key stands twice, or it is too large.
    """
    node = parse(text, path)
    if not isinstance(node, MappingNode):
        message = f"{path}:1:1: (file): must be an object with keys"
        raise DocumentError(message)
    reader = _Reader(path)
    value = reader.value(node, (), 0)
    return Document(path, cast("dict[str, Any]", value), reader.positions)


def read_value(text: str, path: Path) -> Any:
    """Read any YAML or JSON text as plain data.

    Raises:
        DocumentError: It cannot be read.
    """
    node = parse(text, path)
    return None if node is None else _Reader(path).value(node, (), 0)


def read_list(text: str, path: Path) -> list[tuple[tuple[int, int], Any]]:
    """Read a YAML or JSON text whose root is a list: each item's line and column (from 1), and its data.

    Raises:
        DocumentError: It cannot be read, or is no list.
    """
    node = parse(text, path)
    if not isinstance(node, SequenceNode):
        message = f"{path}:1:1: (file): must be a list"
        raise DocumentError(message)
    reader = _Reader(path)
    items = cast("list[Node]", node.value)
    values = [reader.value(one, (index,), 1) for index, one in enumerate(items)]
    return [(reader.positions[index,], value) for index, value in enumerate(values)]


def parse(text: str, path: Path) -> Node | None:
    """The node tree of a text."""
    try:
        return cast("Node | None", YAML(typ="rt", pure=True).compose(text))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        message = f"{path}:{line}:{column}: not YAML: {error.problem or error.context}"
        raise DocumentError(message) from error
    except (YAMLError, ValueError, RecursionError) as error:
        message = f"{path}:1:1: not YAML: {error}"
        raise DocumentError(message) from error


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._nodes = 0
        self.positions: dict[Loc, tuple[int, int]] = {}

    def value(self, node: Node, loc: Loc, depth: int) -> Any:
        """The plain data of a node."""
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise self._error(node, "too large or nested too deeply (do aliases multiply?)")
        mark = node.start_mark
        self.positions.setdefault(loc, (mark.line + 1, mark.column + 1) if mark else (1, 1))
        if isinstance(node, MappingNode):
            return self._mapping(node, loc, depth)
        if isinstance(node, SequenceNode):
            items = cast("list[Node]", node.value)
            return [self.value(one, (*loc, index), depth + 1) for index, one in enumerate(items)]
        return self._scalar(cast("ScalarNode", node))

    def _mapping(self, node: MappingNode, loc: Loc, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key_node, value_node in cast("list[tuple[Node, Node]]", node.value):
            key = key_node.value if isinstance(key_node, ScalarNode) else None
            if not isinstance(key, str):
                raise self._error(key_node, "a key must be text")
            if key in made:
                raise self._error(key_node, f"the key {key!r} stands twice")
            mark = key_node.start_mark
            self.positions[*loc, key] = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            made[key] = self.value(value_node, (*loc, key), depth + 1)
        return made

    def _scalar(self, node: ScalarNode) -> Any:
        """A scalar by the YAML 1.2 core schema: quoted ones are text, plain ones may be null, boolean or number."""
        text = str(node.value)
        if node.style in {"'", '"', "|", ">"} or str(node.tag).endswith(":str"):
            return text
        if text.casefold() in {"", "null", "~"}:
            return None
        if text.casefold() in {"true", "false"}:
            return text.casefold() == "true"
        for convert in (_integer, float):
            try:
                number = convert(text)
            except ValueError:
                continue
            if isinstance(number, float) and not math.isfinite(number):
                raise self._error(node, "infinity and NaN are not JSON")
            return number
        return text

    def _error(self, node: Node, what: str) -> DocumentError:
        mark = node.start_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        return DocumentError(f"{self._path}:{line}:{column}: {what}")


def _integer(text: str) -> int:
    if "_" in text:
        raise ValueError
    return int(text, 16) if text[:2] == "0x" else int(text, 8) if text[:2] == "0o" else int(text)
