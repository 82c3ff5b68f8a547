"""The schema that an agent's replies can be held to: what its prompt offers, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.core.abilities import possible_actions
from loopagent.core.dialects import SIDE_CHANNELS, generation_schema
from loopagent.core.prompt import reply_fields, usable_client_tools
from loopagent.core.steps import offered


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.dialect_writer import Dialect, Schema


def reply_schema(spec: AgentSpec, dialect: Dialect) -> Schema:
    """The schema for replies of an agent.

    It depends on the pinned definition only, so it is the same bytes in every turn; providers cache
    the prompt by it.

    Args:
        spec: The pinned definition.
        dialect: Whose subset of JSON Schema to write.
    """
    fields = reply_fields(spec)
    return generation_schema(
        dialect,
        step_types=sorted(offered(spec)),
        features=[name for name in SIDE_CHANNELS if name in fields],
        actions=[(one.name, one.parameters) for one in possible_actions(spec)],
        client_tools=[(one.name, one.parameters) for one in usable_client_tools(spec)],
    )
