"""Whether anybody still waits for a sub-agent's run: asked before work, or an answer, goes into it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from loopagent.core.state import RunState
    from loopagent.ports import Snapshot


async def needed(state: RunState, load: Callable[[str], Awaitable[Snapshot | None]]) -> bool:
    """Whether every run above one is under way and waits for what is below it.

    Those above may have ended a moment ago, or in a process that died before it could tell.

    Args:
        state: A run; one that was started from outside is needed.
        load: Gets a run from the store.
    """
    while state.parent_id is not None:
        above = await load(state.parent_id)
        if above is None or above.state.ended or not _waits(above.state, state):
            return False
        state = above.state
    return True


def _waits(parent: RunState, child: RunState) -> bool:
    return child.serves in parent.pending or child.id in parent.asked
