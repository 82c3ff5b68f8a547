"""JSON Schemas that providers can decode by: one shape of a reply, in the dialect each of them accepts.

A reply either completes or goes on, so the schema is two branches; a flat one lets a constrained model write
replies that are grammatical and mean nothing. Only what an agent may use is in it, in a fixed order, so that the
same agent always sends the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final

from loopagent.core.dialect_writer import (
    Dialect,
    Schema,
    Writer,
    references,
    typed,
    without_null,
)
from loopagent.core.envelope import LoopAgentResponse
from loopagent.core.flavours import GENERATED, flavour
from loopagent.core.steps import STEP_TYPES, NextStep
from loopagent.errors import ConfigError


DIALECTS: Final[tuple[Dialect, ...]] = ("openai", "anthropic", "grammar")
READ_TOOLS: Final = ("artifactToolCalls", "conversationToolCalls")
"""Side channels that only make sense while the run goes on."""
SIDE_CHANNELS: Final = (
    "payloadChangeRequest",
    "scratchpad",
    *READ_TOOLS,
    "memoryWrites",
    "responseForm",
    "actionableCommands",
    "automaticCommands",
    "confidence",
)
"""Top-level fields beyond `reasoning`, `taskComplete`, `message` and `nextStep`."""
CACHED_SCHEMAS: Final = 256
"""How many schemas are kept; one for each agent version and dialect."""


def generation_schema(
    dialect: Dialect,
    *,
    step_types: Sequence[str],
    features: Collection[str] = SIDE_CHANNELS,
    actions: Sequence[tuple[str, Schema]] = (),
    client_tools: Sequence[tuple[str, Schema]] = (),
) -> Schema:
    """The schema to constrain an agent's replies with.

    In the `openai` dialect the reply is wrapped as `{"turn": …}`, because its root must be an object.
    Build it once for each version of an agent: providers cache prompts by it.

    Args:
        dialect: Whose subset of JSON Schema to write.
        step_types: Next step types the agent may use.
        features: Side channels the agent may use, from `SIDE_CHANNELS`.
        actions: Name and parameter schema of each action: calls are then typed one by one, and no name can be made
            up. Parameters that the dialect cannot express stay a free object.
        client_tools: The same of each client tool.

    Returns:
        A schema of its own, deterministic to the byte.

    Raises:
        ConfigError: A step type or feature does not exist.
    """
    _known("step type", step_types, STEP_TYPES)
    _known("feature", features, SIDE_CHANNELS)
    types = tuple(STEP_TYPES[name] for name in step_types)
    side = tuple(name for name in SIDE_CHANNELS if name in features)
    calls = json.dumps({"actions": list(actions), "clientTools": list(client_tools)})
    made: Schema = json.loads(_built(dialect, types, side, calls))
    return made


def _known(what: str, names: Collection[str], known: Collection[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigError(f"unknown {what} {', '.join(unknown)}; there are {', '.join(known)}")


@lru_cache(CACHED_SCHEMAS)
def _built(
    dialect: Dialect, types: tuple[type[NextStep], ...], side: tuple[str, ...], calls: str
) -> str:
    envelope = flavour(LoopAgentResponse.model_json_schema(by_alias=True), GENERATED)
    defs: dict[str, Schema] = envelope["$defs"]
    for step in types:
        _add_step(step, defs, json.loads(calls))
    root = _turn(
        envelope["properties"], side, [{"$ref": f"#/$defs/{one.__name__}"} for one in types]
    )
    if dialect == "openai":
        root = _object({"turn": root}, ["turn"])
    writer = Writer(dialect, defs, root)
    made = writer.write(root)
    written = {name: writer.definition(name) for name in _reached(made, writer)}
    return json.dumps({**made, "$defs": {name: written[name] for name in sorted(written)}})


def _add_step(
    step: type[NextStep], defs: dict[str, Schema], calls: dict[str, list[tuple[str, Schema]]]
) -> None:
    schema = flavour(step.model_json_schema(by_alias=True), GENERATED)
    defs.update(schema.pop("$defs", {}))
    for field, typed_calls in calls.items():
        if typed_calls and step.body == (field,):
            items = {"anyOf": [_call(*one) for one in typed_calls]}
            schema["properties"][field]["items"] = items
    defs[step.__name__] = schema


def _call(name: str, parameters: Schema) -> Schema:
    params = typed(parameters)
    if params is None:
        return _object({"name": {"const": name}}, ["name"])
    return _object({"name": {"const": name}, "params": params}, ["name", "params"])


def _turn(fields: dict[str, Schema], side: tuple[str, ...], steps: list[Schema]) -> Schema:
    always: dict[str, Schema] = {
        "reasoning": without_null(fields["reasoning"]),
        "taskComplete": {"const": True},
        "message": without_null(fields["message"]),
    }
    last = {name: fields[name] for name in side if name not in READ_TOOLS}
    done = _object({**always, **last}, ["reasoning", "taskComplete", "message"])
    if not steps:
        return done
    beside = {name: fields[name] for name in side}
    step = {"anyOf": steps} if len(steps) > 1 else steps[0]
    more = {**always, "taskComplete": {"const": False}, **beside, "nextStep": step}
    return {"anyOf": [done, _object(more, ["reasoning", "taskComplete", "nextStep"])]}


def _object(properties: Schema, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


def _reached(root: Schema, writer: Writer) -> set[str]:
    """Names of the definitions that are reached from the root once everything is written."""
    reached: set[str] = set()
    todo = references(root)
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo |= references(writer.definition(name))
    return reached
