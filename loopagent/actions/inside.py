"""Calling an action inside of another one's call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.errors import ActionError


if TYPE_CHECKING:
    from loopagent.action import Action, ActionContext


async def call_inside(
    context: ActionContext, action: Action[..., Any], params: dict[str, Any], name: str
) -> Any:
    """The result of another action.

    Args:
        context: Of the call that is under way.
        action: The other action.
        params: Its parameters, checked.
        name: A name for this call of it, part of its idempotency key.

    Raises:
        ActionError: It failed, with the code and the words of that failure.
    """
    if context.call is None:
        text = f"{action.spec.name} can only be called while an engine runs the call."
        raise ActionError(text, code="not_started")
    outcome = await context.call(action, params, name)
    if outcome.error is None:
        return outcome.value
    error = outcome.error
    raise ActionError(
        error.message, code=error.code, fatal=error.fatal, may_have_run=error.may_have_run
    )
