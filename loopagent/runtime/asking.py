"""Models that actions ask: the answer goes to the action, what it cost to the run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopagent.errors import ModelError
from loopagent.runtime.compact import usage_json


if TYPE_CHECKING:
    from loopagent.ports import ModelReply, ModelRequest
    from loopagent.runtime.attempts import Attempt

Put = Callable[["ModelRequest"], Awaitable[tuple["ModelReply", tuple["Attempt", ...]]]]
"""Asks a model until it answers."""


class Asking:
    """The model calls of one action's call.

    Args:
        put_to: Asks the model of a name, the run's when there is none.
        cache_key: That of the run.
    """

    def __init__(self, put_to: Callable[[str | None], Put], cache_key: str) -> None:
        self._put_to = put_to
        self._cache_key = cache_key
        self.calls: list[dict[str, Any]] = []

    async def ask(self, request: ModelRequest, model: str | None) -> ModelReply:
        """Ask, and remember what it cost.

        Raises:
            ModelError: There is no answer.
            ConfigError: There is no such model.
        """
        try:
            asked = replace(request, cache_key=self._cache_key)
            reply, attempts = await self._put_to(model)(asked)
        except ModelError as error:
            self.calls.append({"model": model, "usage": error.usage, "error": error.kind})
            raise
        for one in attempts:
            self.calls.append({"model": one.model, "usage": dict(one.usage), "error": one.kind})
        self.calls.append({"model": reply.model or model, "usage": usage_json(reply.usage)})
        return reply
