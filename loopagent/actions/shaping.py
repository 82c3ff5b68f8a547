"""What of an answer becomes the result."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from loopagent.action import Keeping
from loopagent.core.reshape import Expression, ReshapeError, Template
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


def keeping_of(action: ActionFile) -> Keeping | None:
    """How the results of an action are kept and shown; None when its file says nothing about that."""
    section = action.result
    if section.summary is None and section.artifact is None:
        return None
    artifact = section.artifact
    return Keeping(
        summary=None if section.summary is None else partial(_summary, Template(section.summary)),
        always=artifact is not None,
        name=artifact.name if artifact else "",
        media_type=artifact.type if artifact else "",
    )


def _summary(template: Template, result: Any, params: dict[str, Any]) -> str:
    """The text for a result; empty where it cannot be made, so that its beginning is shown."""
    try:
        return template.fill({"result": result, "params": params})
    except ReshapeError:
        return ""
