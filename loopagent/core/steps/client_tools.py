"""ClientTools: calls that the client carries out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from pydantic import ConfigDict, Field

from loopagent.core import policy
from loopagent.core.abilities import find_named
from loopagent.core.effects import CallClientTool
from loopagent.core.facts_client import ClientToolCompleted, ClientToolRequested
from loopagent.core.flavours import ACCEPTED
from loopagent.core.params import check_params
from loopagent.core.problems import Fault, Problem, shorten
from loopagent.core.protocol.base import PARAMETERS, Count, NonBlank, Params, Wire, named
from loopagent.core.results import client_result
from loopagent.core.steps import Done, NextStep, Wait


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.client_tool_spec import ClientToolSpec
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import RunState


CASINGS: Final = {
    "Name": "name",
    "Params": "params",
    "TimeoutMs": "timeoutMs",
    "Description": "description",
}


def _both_casings(schema: dict[str, Any]) -> None:
    """Document PascalCase, which is accepted and never asked for."""
    fields: dict[str, Any] = schema["properties"]
    schema[ACCEPTED] = {
        "properties": {pascal: fields[camel] for pascal, camel in CASINGS.items()},
        "required": None,
        "anyOf": [
            {"required": [key], "properties": {key: {"type": "string"}}} for key in ("name", "Name")
        ],
    }


class ClientToolCall(Wire):
    """One call; keys may come in camelCase or PascalCase."""

    model_config = ConfigDict(json_schema_extra=_both_casings)
    other_names: ClassVar = {**named("params", *PARAMETERS), **named("name", "tool")}

    name: NonBlank
    """Name of the client tool."""
    params: Params = {}
    """Its parameters."""
    timeout_ms: Count | None = None
    """Milliseconds to wait for the client."""
    description: str | None = None
    """What the call does, in a few words for the person."""

    @classmethod
    def tidy(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Take `Name` as `name` and so on; two different values are a problem."""
        if not any(pascal in fields for pascal in CASINGS):
            return fields
        made = {key: one for key, one in fields.items() if key not in CASINGS}
        for pascal, camel in CASINGS.items():
            if pascal in fields:
                made[camel] = _agreed(pascal, camel, fields)
        return made


def _agreed(pascal: str, camel: str, fields: dict[str, Any]) -> Any:
    value, other = fields[pascal], fields.get(camel)
    if other is None or other == value:
        return value
    got = f"{shorten(other)} and {shorten(value)}"
    return Fault(f"expected {camel} and {pascal} to agree, got {got}", got)


class ClientTools(NextStep):
    """Have the client carry out calls; all calls of one reply run side by side and their results come back together."""

    type: Literal["ClientTools"]
    client_tools: list[ClientToolCall] = Field(min_length=1)
    """Calls to make."""
    body: ClassVar = ("clientTools",)
    events: ClassVar = (ClientToolRequested, ClientToolCompleted)
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "ClientTools",
            "clientTools": [{"name": "open-map", "params": {"city": "Porto"}}],
        },
    }

    @classmethod
    def offered(cls, agent: AgentSpec) -> bool:
        """Only agents that have client tools; a run that no client takes part in is pinned without any."""
        return any(agent.approval_of(one) != "never" for one in agent.client_tools)

    def resolve(self, run: RunState) -> tuple[Self, list[Problem], list[str]]:
        """Resolve names, check parameters against their schemas, and settle how long each call may take."""
        spec = run.spec
        allowed = {one.name: one for one in spec.client_tools if spec.approval_of(one) != "never"}
        problems: list[Problem] = []
        warnings: list[str] = []
        most = spec.limits.max_actions_per_reply
        if len(self.client_tools) > most:
            asked = str(len(self.client_tools))
            problems.append(
                Problem("nextStep.clientTools", f"at most {most} calls in one reply", asked)
            )
        calls: list[ClientToolCall] = []
        for index, call in enumerate(self.client_tools):
            path = f"nextStep.clientTools[{index}]"
            match = find_named(run, call.name, allowed, f"{path}.name", "client tool")
            warnings.extend(match.warnings)
            if match.name is None:
                problems.extend(match.problems)
                continue
            tool = allowed[match.name]
            problems.extend(policy.held(run, tool, f"{path}.name"))
            params, wrong, notes = check_params(tool.parameters, call.params, f"{path}.params")
            problems.extend(wrong)
            warnings.extend(notes)
            timeout_ms = _timeout(run, tool, call, path, warnings)
            changed = {"name": tool.name, "params": params, "timeout_ms": timeout_ms}
            calls.append(call.model_copy(update=changed))
        return self.model_copy(update={"client_tools": calls}), problems, warnings

    def resume(self, run: RunState, results: Mapping[str, Outcome]) -> Wait | Done:
        """Keep up to `maxConcurrency` calls open until all are answered or timed out."""
        missing = [one for one in range(len(self.client_tools)) if f"tool.{one}" not in results]
        if missing:
            window = missing[: run.spec.limits.max_concurrency]
            return Wait(tuple(self._call(run, index) for index in window))
        return Done(
            results=tuple(
                client_result(index + 1, call.name, results[f"tool.{index}"])
                for index, call in enumerate(self.client_tools)
            )
        )

    def _call(self, run: RunState, index: int) -> CallClientTool:
        call = self.client_tools[index]
        return CallClientTool(
            id=f"{run.turn}:tool.{index}",
            tool=call.name,
            params=call.params,
            timeout_ms=call.timeout_ms or 0,
            description=call.description or "",
        )


def _timeout(
    run: RunState, tool: ClientToolSpec, call: ClientToolCall, path: str, warnings: list[str]
) -> int:
    """How long a call may take: what it says, else its tool, else the run; never longer than the run allows."""
    bounds = run.spec.limits
    if call.timeout_ms is None:
        return tool.timeout_ms or bounds.client_tool_timeout_ms
    longest = bounds.max_client_tool_timeout_ms
    if call.timeout_ms > longest:
        warnings.append(f"{path}.timeoutMs: cut to {longest}, the most this run allows")
    return min(call.timeout_ms, longest)
