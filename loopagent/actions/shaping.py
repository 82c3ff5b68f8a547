"""What of an answer becomes the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.core.reshape import Expression, ReshapeError
from loopagent.core.schema_check import schema_problems
from loopagent.errors import ActionError


if TYPE_CHECKING:
    from loopagent.actions.format import ActionFile


def shape(action: ActionFile, seen: dict[str, Any], whole: Any) -> Any:
    """The result of a call.

    Args:
        action: The action.
        seen: What `result.select` sees.
        whole: The result when nothing is selected.

    Raises:
        ActionError: Nothing can be selected, or it does not satisfy `result.schema`.
    """
    section = action.result
    try:
        value = whole if section.select is None else Expression(section.select).of(seen)
    except ReshapeError as error:
        raise ActionError(f"The result cannot be selected: {error}.", code="bad_answer") from error
    if section.schema_ is not None:
        found = schema_problems(section.schema_, value, "result")
        if found:
            text = f"The result is not as promised: {found[0]}."
            raise ActionError(text, code="bad_answer")
    return value
