"""Exceptions of actions in words that may be shown: no stack trace, no input."""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from pydantic import ValidationError

MAX_LISTED = 3
"""Exceptions of a group that are described."""


def said(error: BaseException) -> str:
    """The text of an exception; nothing when it has none."""
    try:
        return str(error)
    except Exception:  # its own text fails
        return ""


def described(error: BaseException) -> str:
    """Type and message; of a group also those of its first members."""
    text = said(error)
    members: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    if members:
        text += ": " + "; ".join(described(one) for one in members[:MAX_LISTED])
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def complaints(error: ValidationError) -> str:
    """What does not fit its type, and where it stands in the parameters."""
    listed = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(
        f"{_place(one['loc'])}: {one['msg'].removeprefix('Value error, ')}" for one in listed
    )


def _place(loc: tuple[int | str, ...]) -> str:
    return "params" + "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in loc)
