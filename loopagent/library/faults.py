"""What the library refuses, as errors that say what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.errors import RequestError


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.actions.complaints import Complaint
    from loopagent.library_port import Built

_SHOWN = 20


class StaleError(RequestError):
    """Somebody else changed the action meanwhile; nothing was changed.

    Args:
        message: What is wrong and what to do about it.
        current: The action as it is now; None when it was deleted.
    """

    def __init__(self, message: str, current: Built | None) -> None:
        shown = None if current is None else _shown(current)
        super().__init__("stale", message, status=409, kept=shown)
        self.current = current


def _shown(row: Built) -> dict[str, Any]:
    return {
        "text": row.draft,
        "hash": row.draft_hash,
        "files": dict(row.files),
        "by": row.updated_by,
        "at": row.updated_at,
    }


def stale(name: str, current: Built | None) -> StaleError:
    """The error for a change of something that is not as it was seen."""
    if current is None:
        return StaleError(f"There is no action {name!r} any more; save it as a new one.", None)
    said = f"{name!r} was changed by {current.updated_by or 'somebody else'} meanwhile"
    return StaleError(f"{said}: look at what it says now, then try again.", current)


def unknown(name: str) -> RequestError:
    """The error for an action that is not there."""
    return RequestError("unknown_action", f"There is no action {name!r}.", status=404)


def wrong(complaints: Sequence[Complaint]) -> RequestError:
    """The error for a text that cannot be used, with every complaint and its line."""
    errors = [
        {
            "pointer": "/text",
            "detail": f"line {one.line}, column {one.column}: {one.where}: {one.what}",
        }
        for one in complaints[:_SHOWN]
    ]
    first = errors[0]["detail"] if errors else "it says nothing"
    return RequestError("invalid_action", f"The action is not right yet: {first}.", errors=errors)
