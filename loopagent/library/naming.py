"""Names of actions and of the documents that belong to them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from loopagent.actions.format import MAX_NAME_CHARS, NAME
from loopagent.core.text import clean_text
from loopagent.errors import RequestError
from loopagent.library.texts import read_text


if TYPE_CHECKING:
    from collections.abc import Mapping

_FILE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def checked_name(name: str) -> None:
    """Refuse a name that no action can have.

    Raises:
        RequestError: `invalid_name`.
    """
    if len(name) > MAX_NAME_CHARS or not re.fullmatch(NAME, name):
        rule = "lower case letters and digits, with `.`, `-` or `_` between them"
        text = f"{name[:MAX_NAME_CHARS]!r} is no name of an action: use {rule}, {MAX_NAME_CHARS} at most."
        raise RequestError("invalid_name", text)


def checked_files(files: Mapping[str, str]) -> dict[str, str]:
    """Documents with names that are plain file names.

    Raises:
        RequestError: `invalid_files`.
    """
    for name in files:
        if not _FILE.fullmatch(name):
            text = f"{name[:100]!r} is no name of a document: use one like shop.json."
            raise RequestError("invalid_files", text)
    return {name: clean_text(text) for name, text in files.items()}


def named(text: str) -> str:
    """The name that a text says; empty when it says none that can be read."""
    written = read_text(text).written
    return written[0].name if written else ""


def renamed(text: str, name: str, new_name: str) -> str:
    """A text that says another name, everything else as it was; one that says something else stays."""
    line = re.compile(
        rf"""^(name:[ \t]*)(["']?){re.escape(name)}\2(?=[ \t]*(?:\#|$))""", re.MULTILINE
    )
    return line.sub(lambda found: f"{found[1]}{found[2]}{new_name}{found[2]}", text, count=1)


def size_of(text: str) -> int:
    """Bytes of a text."""
    return len(text.encode("utf-8", "replace"))
