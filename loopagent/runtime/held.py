"""Questions of a call that goes on meanwhile: put to a person, and waited for as long as the call may take."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final


if TYPE_CHECKING:
    from loopagent.core.effects import RunAction
    from loopagent.runtime.live import Live
    from loopagent.runtime.performs import Report

LOOK_SECONDS: Final = 0.2
"""How often an answer is looked for."""


async def put(
    live: Live, effect: RunAction, report: Report, asks: dict[str, Any]
) -> dict[str, Any]:
    """Put a question of a call to a person, and wait for the answer.

    Args:
        live: The run.
        effect: The call.
        report: Records what happens in it.
        asks: `{server, questions, seconds, most}` with one question, as `core.call_questions` takes it.

    Returns:
        What the server is told: `{action, content?}`; `cancel` when nobody is asked or answers in time.
    """
    digest = str(asks["questions"][0]["hash"])
    await report("asks", {"effect": effect.id, "asks": asks})
    while (opened := live.state.asking.get(effect.id)) is not None:
        known = opened.known.get(digest)
        if known is not None:
            return dict(known)
        await asyncio.sleep(LOOK_SECONDS)
    return {"action": "cancel"}
