"""Reading a provider's JSON without trusting it: wrong types count as missing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, TypeGuard, cast


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether the value is a list, of whatever."""
    return isinstance(value, list)


def count(value: Any) -> int:
    """The value as a number of tokens; 0 for anything that is none."""
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15  # noqa: PLR2004
    return int(value) if usable else 0


def dollars(value: Any) -> float | None:
    """The value as an amount of money; None for anything that is none."""
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9  # noqa: PLR2004
    return float(value) if usable else None


def joined(pieces: Iterable[str]) -> str:
    """The pieces as one text; halves of a character that came in two pieces are put together again."""
    text = "".join(pieces)
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def split_half(text: str) -> tuple[str, str]:
    """The text, and the first half of a character that it may end with."""
    half = text[-1:]
    return (text[:-1], half) if "\ud800" <= half <= "\udbff" else (text, "")


def text_in(content: Any) -> str:
    """The text of a message's content, which may be a string or a list of typed parts."""
    if isinstance(content, str):
        return content
    if not is_list(content):
        return ""
    parts = [mapping(part) for part in content]
    return "".join(str(part.get("text") or "") for part in parts if part.get("type") == "text")


def merged(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """Messages with neighbours of the same role joined; many chat templates demand strict alternation."""
    return [
        {"role": role, "content": "\n\n".join(one["content"] for one in group)}
        for role, group in groupby(messages, key=lambda one: one["role"])
    ]
