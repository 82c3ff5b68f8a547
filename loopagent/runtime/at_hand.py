"""Which code carries out an action of a run: that of the process, or what the library keeps for the run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from loopagent.core.abilities import usable_action
from loopagent.errors import ConfigError
from loopagent.logs import log


if TYPE_CHECKING:
    from loopagent.action import Action
    from loopagent.core.state import RunState

ActionOf: TypeAlias = "Callable[[str, str], Action[..., Any] | None]"
"""The code of an action, from the names of agent and action."""
BuiltOf: TypeAlias = "Callable[[str, str], Awaitable[Action[..., Any] | None]]"
"""The action of a definition, from a tenant and the hash."""


class AtHand:
    """Finds the code of actions.

    Args:
        action_of: Finds those of the process.
        built_of: Finds those of the library; None where there is none.
    """

    def __init__(self, action_of: ActionOf, built_of: BuiltOf | None) -> None:
        self._action_of = action_of
        self._built_of = built_of

    async def action(self, state: RunState, name: str) -> Action[..., Any] | None:
        """The code of an action of a run; None when it is not to be had here any more."""
        return self.of_process(state, name) or await self.of_library(state, name)

    def of_process(self, state: RunState, name: str) -> Action[..., Any] | None:
        """The same, if it is code of the process, as most is: there is nothing to wait for."""
        spec = usable_action(state, name)
        if spec is None or not spec.definition:
            return self._action_of(state.spec.name, name)
        return None

    async def of_library(self, state: RunState, name: str) -> Action[..., Any] | None:
        """The same, if the library keeps its definition."""
        spec = usable_action(state, name)
        if spec is None or not spec.definition or self._built_of is None:
            return None
        try:
            return await self._built_of(state.tenant, spec.definition)
        except ConfigError as error:
            log.warning("library.unusable", action=name, reason=str(error))
            return None
