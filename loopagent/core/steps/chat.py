"""Chat: say something to the person and wait for the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from loopagent.core.people import question
from loopagent.core.steps import Done, NextStep, Wait


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import RunState


class Chat(NextStep):
    """Say or ask something: `message` is shown, with any `responseForm`, and the run waits for the answer."""

    type: Literal["Chat"]
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "message": "Which quarter?",
        "nextStep": {"type": "Chat"},
    }

    @classmethod
    def offered(cls, agent: AgentSpec) -> bool:
        """Only agents that a person may answer."""
        return agent.interactive

    def sameness(self, request: dict[str, Any], reply: Mapping[str, Any]) -> dict[str, Any]:
        """A conversation may go on as long as it says something new."""
        return {**request, "message": reply.get("message"), "form": reply.get("responseForm")}

    def resume(self, run: RunState, results: Mapping[str, Outcome]) -> Wait | Done:
        """Ask; the answer becomes the person's next message."""
        answer = results.get("chat")
        if answer is None:
            step = run.step
            text, form, commands = (
                (step.message, step.form, step.commands) if step else ("", None, ())
            )
            return Wait((question(f"{run.turn}:chat", text, form, commands),))
        return Done(said=(("person", str(answer.value["text"])),))
