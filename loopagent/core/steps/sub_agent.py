"""Sub-Agent: give work to other agents; each works in a run of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import ConfigDict, StrictBool

from loopagent.core.abilities import possible_children
from loopagent.core.child_merge import Merge
from loopagent.core.child_work import (
    check_work,
    find_agent,
    start_child,
    take_child,
    too_much_work,
)
from loopagent.core.effects import KeepValue, StartRun
from loopagent.core.flavours import ACCEPTED, GENERATED, Mark
from loopagent.core.outcome import Outcome
from loopagent.core.payload import PayloadChange
from loopagent.core.problems import Fault, Problem
from loopagent.core.protocol.base import WORK_NAMES, NonBlank, Params, Wire
from loopagent.core.steps import Done, NextStep, Wait


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.outcomes import Outcomes
    from loopagent.core.state import RunState


SAID: Final = "said."
"""Key of the stored message of a child whose message is too long for the prompt."""


class SubAgentCall(Wire):
    """One piece of work for one agent."""

    other_names: ClassVar = WORK_NAMES
    name: NonBlank
    """Name of the sub-agent."""
    message: NonBlank
    """What to do; not the payload."""
    terminate_after: StrictBool = False
    """End this run when the sub-agent has succeeded."""
    template_parameters: Params | None = None
    """Only parameters that the sub-agent declares."""
    resume_run_id: str | None = None
    """Go on with a run of that agent that asked something or was stopped."""


def _any_work(schema: dict[str, Any]) -> None:
    schema[ACCEPTED] = {
        "anyOf": [
            {
                "required": ["subAgents"],
                "properties": {"subAgents": {"type": "array", "minItems": 1}},
            },
            {"required": ["subAgent"], "properties": {"subAgent": {"type": "object"}}},
        ]
    }
    schema[GENERATED] = {"required": ["type", "subAgents"]}


class SubAgent(NextStep):
    """Give work to other agents; several run side by side."""

    model_config = ConfigDict(json_schema_extra=_any_work)

    type: Literal["Sub-Agent"]
    sub_agents: Annotated[list[SubAgentCall], Mark(generated={"minItems": 1})] = []
    """Pieces of work."""
    sub_agent: Annotated[SubAgentCall | None, Mark(generated=False)] = None
    """One piece of work; ignored when `subAgents` has any."""
    body: ClassVar = ("subAgents", "subAgent")
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "Sub-Agent",
            "subAgents": [
                {"name": "researcher", "message": "Find three sources.", "terminateAfter": False}
            ],
        },
    }

    @classmethod
    def tidy(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Let a filled list win over the single entry; no work at all is a problem."""
        several = fields.get("subAgents", fields.get("sub_agents"))
        if several:
            single = ("subAgent", "sub_agent")
            return {key: one for key, one in fields.items() if key not in single}
        if "subAgent" in fields or "sub_agent" in fields:
            return fields
        got = "nothing" if several is None else "an empty list"
        return {**fields, "subAgents": Fault(f"expected at least one sub-agent, got {got}", got)}

    @property
    def calls(self) -> list[SubAgentCall]:
        """The work to give, in request order."""
        return self.sub_agents or ([self.sub_agent] if self.sub_agent else [])

    @classmethod
    def offered(cls, agent: AgentSpec) -> bool:
        """Only agents that have sub-agents, and only where the tree may grow deeper."""
        return bool(possible_children(agent))

    def resolve(self, run: RunState) -> tuple[Self, list[Problem], list[str]]:
        """Resolve names, check parameters and runs to go on with, and count the whole batch."""
        problems: list[Problem] = []
        warnings: list[str] = []
        calls: list[SubAgentCall] = []
        most = run.spec.limits.max_actions_per_reply
        if len(self.calls) > most:
            text = f"at most {most} pieces of work in one reply"
            problems.append(Problem("nextStep.subAgents", text, f"{len(self.calls)}"))
        for index, call in enumerate(self.calls):
            where = f"nextStep.subAgents[{index}]" if self.sub_agents else "nextStep.subAgent"
            resolved, wrong, notes = _resolved(run, call, where)
            problems += wrong
            warnings += notes
            calls.append(resolved)
        fresh = [one.name for one in calls if one.resume_run_id is None]
        problems += too_much_work(run, fresh, "nextStep.subAgents")
        problems += _twice([one.resume_run_id for one in calls if one.resume_run_id])
        return type(self)(type="Sub-Agent", sub_agents=calls), problems, warnings

    def resume(self, run: RunState, results: Outcomes) -> Wait | Done:
        """Keep up to `maxConcurrency` children under way until all have ended, then merge in request order."""
        waiting: list[StartRun] = []
        outcomes: list[Outcome] = []
        for index, call in enumerate(self.calls):
            known = results.get(f"sub.{index}")
            if known is None and len(waiting) < run.spec.limits.max_concurrency:
                begun = start_child(run, call, f"sub.{index}")
                if isinstance(begun, StartRun):
                    waiting.append(begun)
                else:
                    known = begun
            if known is not None:
                outcomes.append(known)
        if waiting:
            return Wait(tuple(waiting))
        long = [
            KeepValue(f"{run.turn}:{SAID}{index}", said)
            for index, said in enumerate(map(_message, outcomes))
            if len(said) > run.spec.limits.max_result_chars and f"{SAID}{index}" not in results
        ]
        return Wait(tuple(long)) if long else self._done(run, outcomes, results)

    def abandon(self, run: RunState, results: Outcomes) -> Done | None:
        """Keep what the children that have ended brought."""
        known = [(call, results.get(f"sub.{index}")) for index, call in enumerate(self.calls)]
        merge = Merge(run.payload, max_bytes=run.spec.limits.max_payload_bytes)
        for number, (call, outcome) in enumerate(known, 1):
            if outcome is not None:
                take_child(run, merge, number, call.name, outcome)
        return Done(payload=_change(merge))

    def _done(self, run: RunState, outcomes: list[Outcome], results: Outcomes) -> Done:
        merge = Merge(run.payload, max_bytes=run.spec.limits.max_payload_bytes)
        pairs = list(zip(self.calls, outcomes, strict=True))
        entries = [
            take_child(run, merge, number, call.name, outcome)
            for number, (call, outcome) in enumerate(pairs, 1)
        ]
        for index, entry in enumerate(entries):
            kept = results.get(f"{SAID}{index}")
            if kept is not None and kept.ok:
                del entry["message"]
                entry["result"] = kept.value
        last = [
            _message(outcome)
            for call, outcome in pairs
            if call.terminate_after and outcome.ok and outcome.value.get("status") == "completed"
        ]
        return Done(
            results=tuple(entries),
            payload=_change(merge),
            ends=last[0] if last else None,
        )


def _message(outcome: Outcome) -> str:
    """What the sub-agent said at its end, or asked."""
    return str(outcome.value.get("message", "")) if isinstance(outcome.value, dict) else ""


def _change(merge: Merge) -> PayloadChange | None:
    """The change of the payload; the results tell the model already what did not get into it."""
    if not (merge.patch or merge.lost):
        return None
    return PayloadChange(merge.payload, merge.patch, told=merge.lost)


def _resolved(
    run: RunState, call: SubAgentCall, path: str
) -> tuple[SubAgentCall, list[Problem], list[str]]:
    """A call with its name and parameters as they will be used."""
    name, problems, warnings = find_agent(run, call.name, f"{path}.name")
    sub = None if name is None else run.spec.agent(name)
    if name is None or sub is None:
        return call, problems, warnings
    params, wrong, notes = check_work(run, sub, call, path)
    resolved = call.model_copy(update={"name": name, "template_parameters": params})
    return resolved, [*problems, *wrong], [*warnings, *notes]


def _twice(runs: list[str]) -> list[Problem]:
    again = sorted({one for one in runs if runs.count(one) > 1})
    text = "the same run cannot be gone on with twice at once"
    return [Problem("nextStep.subAgents", text, one) for one in again]
