"""A run as callers see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loopagent.core import policy
from loopagent.core.client_calls import requested
from loopagent.core.control_state import RAISABLE
from loopagent.core.lineage import children_of
from loopagent.core.loop_view import UNATTENDED, LoopState
from loopagent.core.state import RunState


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as callers see it."""

    state: RunState
    seq: int
    loop: LoopState
    """What it is doing, with the runs below it that it waits for."""
    asks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Open requests of the run and of the runs below it that it waits for."""

    @property
    def waiting(self) -> bool:
        """Whether nothing goes on until somebody outside does something; a worker may come at any time."""
        left = self.loop.reason == UNATTENDED
        return not left and self.loop.state not in {"running", "streaming", "idle"}

    @property
    def id(self) -> str:
        """The run's id."""
        return self.state.id

    @property
    def client_calls(self) -> list[dict[str, Any]]:
        """Open calls of client tools, as their events told of them."""
        state = self.state
        return [
            requested(state, one).model_dump(by_alias=True, exclude_none=True)
            for one in state.client_calls
        ]

    def public(self) -> dict[str, Any]:
        """The run as camelCase JSON; its loop state is in every answer."""
        state = self.state
        result, limits = state.result, state.spec.limits
        return {
            "id": state.id,
            "rootRunId": state.root_id,
            "parentRunId": state.parent_id,
            "children": children_of(state),
            "agent": state.spec.name,
            "user": state.user or None,
            "tenant": state.tenant or None,
            "conversationId": state.conversation or None,
            "model": state.model,
            "status": state.status,
            "state": self.loop.public(),
            "turn": state.turn,
            "payload": state.payload,
            "message": result.message if result else None,
            "reason": result.reason if result else None,
            "paused": state.paused.public() if state.paused else None,
            "forkedFrom": state.forked_from.public() if state.forked_from else None,
            "limits": {name: getattr(limits, field) for name, field in RAISABLE.items()},
            "commands": list(result.commands) if result else [],
            "form": result.form if result else None,
            "requests": self.asks,
            "clientCalls": self.client_calls,
            "mode": policy.mode(state),
            "plan": None if state.plan.status == "none" else state.plan.public(),
            "skills": [
                {"name": one.name, "turn": one.turn, "activatedBy": one.by} for one in state.skills
            ],
            "usage": state.usage.public(),
            "activeSeconds": round(state.active_ms / 1000.0, 3),
            "seq": self.seq,
        }
