"""What the operator wants to be asked about: the table `[approval]` of the settings, on top of what agents say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.actions.complaints import did_you_mean
from loopagent.core.lineage import either


if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from loopagent.core.agent_spec import AgentSpec, OneByOne


def tightened(spec: AgentSpec, wanted: Mapping[str, OneByOne]) -> AgentSpec:
    """A definition that asks about, or forbids, what the operator names as well; never less than it says itself."""
    if not wanted:
        return spec
    policy = spec.approval
    both = policy.model_copy(update={"actions": either(policy.actions, dict(wanted))})
    return spec.model_copy(update={"approval": both})


def unknown_names(spec: AgentSpec) -> list[str]:
    """What is wrong with the names in the `approval.actions` of an agent."""
    known = callable_names([spec])
    return [
        f"the agent has no action {one!r}{did_you_mean(one, known)}"
        for one in spec.approval.actions
        if one not in known
    ]


def callable_names(specs: Iterable[AgentSpec]) -> set[str]:
    """Names of everything that agents may call, now or once a skill is active."""
    return {
        one.name
        for spec in specs
        for group in (
            spec.actions,
            spec.client_tools,
            *(it.actions for it in spec.skills.available),
        )
        for one in group
    }
