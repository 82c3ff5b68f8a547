"""Which hooks stand around a run: pinned with its definition, so that a run knows whom to ask wherever it goes on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from loopagent.core.spec import Spec


HookPoint: TypeAlias = Literal[
    "before_run", "before_turn", "before_action", "after_action", "after_run"
]
"""Where in a run a hook is asked."""


class HookSpec(Spec):
    """A hook as a run knows it: its name and place; its code stays with the process."""

    name: str
    """How events name it."""
    point: HookPoint
    """Where it is asked."""
    on_error: Literal["stop", "ignore"] = "stop"
    """What an error or a late answer means: `stop` as if it had refused, `ignore` as if it had said nothing."""
    actions: tuple[str, ...] = ()
    """Around which actions; all of them when empty."""


def at(hooks: Iterable[HookSpec], point: HookPoint, action: str = "") -> tuple[HookSpec, ...]:
    """The hooks of a place, in their order.

    Args:
        hooks: All of them.
        point: The place.
        action: The action that is called there, if one is.
    """
    return tuple(
        one
        for one in hooks
        if one.point == point and (not one.actions or not action or action in one.actions)
    )
