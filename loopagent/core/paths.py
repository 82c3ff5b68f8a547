"""Paths into a payload, as tuples of keys and positions, and rules about who may do what where.

Written form: `a.b`, `a[0].b`, `a["key with.dots"]`, `a.*` (everything below a), `*` (everything). A rule may end in
operations: `a.b:add,update`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast


Path = tuple[str | int, ...]
Operation = Literal["add", "update", "delete"]
OPERATIONS: frozenset[str] = frozenset({"add", "update", "delete"})
_PART = re.compile(r"""\.?(?:(\*)|\[(\d+)\]|\[\*\]|\["((?:[^"\\]|\\.)*)"\]|([^.\[\]:"*]+))""")
ANY = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern and the operations it allows; a last part `*` covers everything below."""

    path: Path
    operations: frozenset[str] = OPERATIONS


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be read or written."""

    rules: tuple[Rule, ...]

    def allows(self, path: Path, operation: Operation) -> bool:
        """Whether the operation may be done at the path itself."""
        return any(operation in one.operations and _covers(one.path, path) for one in self.rules)

    @property
    def everything(self) -> bool:
        """Whether nothing is kept out."""
        return any(one.path == (ANY,) and one.operations == OPERATIONS for one in self.rules)

    def filter(self, value: Any) -> Any:
        """The part of a value that may be read; containers on the way to it are kept."""
        return value if self.everything else _filter(value, (), self)


def parse_rules(texts: list[str]) -> tuple[Rules, list[str]]:
    """Rules from their written form, and what is wrong with those that cannot be read (they allow nothing)."""
    rules: list[Rule] = []
    problems: list[str] = []
    for text in texts:
        pattern, _, operations = text.partition(":") if '"' not in text else _split_quoted(text)
        path = parse_path(pattern)
        named = frozenset(one.strip() for one in operations.split(",") if one.strip()) or OPERATIONS
        unknown = sorted(named - OPERATIONS)
        if path is None:
            problems.append(f"{text!r} is not a path like a.b, a[0].c or a.*")
        elif unknown:
            problems.append(
                f"{text!r}: unknown operation {', '.join(unknown)}; known: add, update, delete"
            )
        else:
            rules.append(Rule(path, named))
    return Rules(tuple(rules)), problems


@lru_cache(maxsize=256)
def rules_of(texts: tuple[str, ...]) -> Rules:
    """Rules from their written form, read once; those that cannot be read allow nothing."""
    return parse_rules(list(texts))[0]


def parse_path(text: str) -> Path | None:
    """A path from its written form; None when it is not one."""
    parts: list[str | int] = []
    position = 0
    text = text.strip()
    while position < len(text):
        found = _PART.match(text, position)
        if found is None or found.end() == position:
            return None
        star, index, quoted, name = found.groups()
        if index is not None:
            parts.append(int(index))
        elif quoted is not None:
            parts.append(re.sub(r"\\(.)", r"\1", quoted))
        else:
            parts.append(name.strip() if name else star or ANY)
        position = found.end()
    return tuple(parts) if parts else None


def show_path(path: Path) -> str:
    """A path in its written form; `(root)` for the whole."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[^.\[\]:\"*\s]+", part):
            text += f".{part}" if text else part
        else:
            quoted = part.replace("\\", "\\\\").replace('"', '\\"')
            text += f'["{quoted}"]'
    return text or "(root)"


def pointer(path: Path) -> str:
    """The path as a JSON Pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _split_quoted(text: str) -> tuple[str, str, str]:
    end = text.rfind("]")
    head, tail = text[: end + 1], text[end + 1 :]
    rest, colon, operations = tail.partition(":")
    return head + rest, colon, operations


def _covers(pattern: Path, path: Path) -> bool:
    if pattern and pattern[-1] == ANY:
        head = pattern[:-1]
        return len(path) > len(head) and _matches(head, path[: len(head)])
    return len(path) >= len(pattern) and _matches(pattern, path[: len(pattern)])


def _matches(pattern: Path, path: Path) -> bool:
    return len(pattern) == len(path) and all(
        want in (ANY, got) for want, got in zip(pattern, path, strict=True)
    )


def _leads_to(path: Path, rules: Rules) -> bool:
    return any(
        _matches(one.path[: len(path)], path) for one in rules.rules if len(one.path) > len(path)
    )


def _filter(value: Any, path: Path, rules: Rules) -> Any:
    if rules.allows(path, "update") or any(_covers(one.path, path) for one in rules.rules if path):
        return value
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {
            key: _filter(one, (*path, key), rules)
            for key, one in fields.items()
            if _visible((*path, key), rules)
        }
    if isinstance(value, list):
        items: list[Any] = value
        return [
            _filter(one, (*path, index), rules)
            for index, one in enumerate(items)
            if _visible((*path, index), rules)
        ]
    return None if path else value


def _visible(path: Path, rules: Rules) -> bool:
    return any(_covers(one.path, path) for one in rules.rules) or _leads_to(path, rules)
