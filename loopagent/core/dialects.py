"""JSON Schemas that providers can decode by: one shape of a reply, in the dialect each of them accepts.

A reply either completes or goes on, so the schema is two branches; a flat one lets a constrained model write
replies that are grammatical and mean nothing. Only what an agent may use is in it, in a fixed order, so that the
same agent always sends the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from typing import Any, Literal, cast

from loopagent.core.envelope import LoopAgentResponse
from loopagent.core.steps import STEP_TYPES


Schema = dict[str, Any]
Dialect = Literal["openai", "anthropic", "grammar"]
DIALECTS: tuple[Dialect, ...] = ("openai", "anthropic", "grammar")
DROPPED = ("title", "default", "examples", "discriminator", "$schema")
NOT_FOR_ANTHROPIC = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "maxItems",
    "minItems",
)
SIDE_CHANNELS = (
    "payloadChangeRequest",
    "scratchpad",
    "responseForm",
    "actionableCommands",
    "automaticCommands",
)
JSON_TEXT = "A JSON object, written as text."
JSON_VALUE = "A JSON value, written as text."


def generation_schema(
    dialect: Dialect,
    *,
    step_types: Sequence[str],
    features: Collection[str] = SIDE_CHANNELS,
    actions: Sequence[tuple[str, Schema]] = (),
) -> Schema:
    """The schema to constrain an agent's replies with.

    Args:
        dialect: Whose subset of JSON Schema to write.
        step_types: Next step types the agent may use.
        features: Top-level fields beyond `reasoning`, `message`, `taskComplete` and `nextStep`.
        actions: Name and parameter schema of each action: calls are then typed one by one, and no name can be made
            up. Parameters whose schema is open stay a free object.
    """
    whole = LoopAgentResponse.model_json_schema(by_alias=True)
    defs: dict[str, Schema] = deepcopy(whole.get("$defs", {}))
    defs.pop("NextStep", None)
    steps = _steps(step_types, defs, actions)
    side = {name: whole["properties"][name] for name in SIDE_CHANNELS if name in features}
    text = {"type": "string"}
    done: Schema = {"reasoning": text, "taskComplete": {"const": True}, "message": text, **side}
    going: Schema = {
        "reasoning": text,
        "taskComplete": {"const": False},
        "message": text,
        **side,
        "nextStep": {"anyOf": steps} if len(steps) > 1 else steps[0],
    }
    turn: Schema = {
        "anyOf": [
            _object(done, ["taskComplete", "message"]),
            _object(going, ["taskComplete", "nextStep"]),
        ]
    }
    write = _Writer(dialect)
    root = _object({"turn": turn}, ["turn"]) if dialect == "openai" else turn
    made = write.schema(root)
    used = _used(made, {name: write.schema(one) for name, one in defs.items()})
    return {**made, "$defs": used} if used else made


def _steps(
    step_types: Sequence[str], defs: dict[str, Schema], actions: Sequence[tuple[str, Schema]]
) -> list[Schema]:
    steps: list[Schema] = []
    for name in step_types:
        schema = STEP_TYPES[name].model_json_schema(by_alias=True)
        defs.update(schema.pop("$defs", {}))
        if name == "Actions" and actions:
            schema["properties"]["actions"]["items"] = {"anyOf": [_call(*one) for one in actions]}
        schema["required"] = ["type", *(one for one in schema.get("required", ()) if one != "type")]
        steps.append(schema)
    return steps


def _call(name: str, parameters: Schema) -> Schema:
    open_ended = (
        not parameters.get("properties") or "$ref" in str(parameters) or "$defs" in parameters
    )
    params: Schema = (
        {"type": "object"} if open_ended else {**parameters, "additionalProperties": False}
    )
    return _object({"name": {"const": name}, "params": params}, ["name", "params"])


def _object(properties: Schema, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


class _Writer:
    """Rewrites a schema for one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def schema(self, schema: Schema) -> Schema:
        """The schema in the dialect, without what the dialect does not know."""
        made = {key: one for key, one in schema.items() if key not in DROPPED}
        if "$ref" in made:
            return {"$ref": made["$ref"]}
        if "oneOf" in made:
            made["anyOf"] = made.pop("oneOf")
        if "const" in made:
            return {
                "type": "boolean" if isinstance(made["const"], bool) else "string",
                "enum": [made["const"]],
            }
        if "anyOf" in made:
            return self._union(made)
        if self._dialect == "anthropic":
            made = {key: one for key, one in made.items() if key not in NOT_FOR_ANTHROPIC}
        return _WRITERS.get(str(made.get("type")), _Writer.free)(self, made)

    def _union(self, made: Schema) -> Schema:
        options = [one for one in cast("list[Schema]", made["anyOf"]) if one.get("type") != "null"]
        written = [self.schema(one) for one in options]
        if len(written) == 1:
            return written[0]
        text = {"description": made["description"]} if "description" in made else {}
        return {**text, "anyOf": written}

    def free(self, made: Schema) -> Schema:
        """Anything at all."""
        if made.get("type") in {"string", "integer", "number", "boolean"} or "enum" in made:
            return made
        return self._free_text(made, JSON_VALUE)

    def object(self, made: Schema) -> Schema:
        """An object: closed, or a free one as the dialect can say it."""
        properties: dict[str, Schema] = made.get("properties") or {}
        if not properties:
            return self._free_text(made, JSON_TEXT)
        required = list(made.get("required", ()))
        written = {key: self._member(key, one, required) for key, one in properties.items()}
        closed = {**made, "properties": written, "additionalProperties": False}
        closed["required"] = list(written) if self._dialect == "openai" else required
        return closed

    def array(self, made: Schema) -> Schema:
        """A list."""
        return {**made, "items": self.schema(cast("Schema", made.get("items") or {}))}

    def _member(self, key: str, schema: Schema, required: list[str]) -> Schema:
        written = self.schema(schema)
        if self._dialect != "openai" or key in required:
            return written
        if (
            isinstance(written.get("type"), str)
            and "enum" not in written
            and "properties" not in written
        ):
            return {**written, "type": [written["type"], "null"]}
        return {"anyOf": [written, {"type": "null"}]}

    def _free_text(self, made: Schema, text: str) -> Schema:
        kind = "object" if text == JSON_TEXT else None
        if self._dialect == "grammar":
            described = {"description": made["description"]} if "description" in made else {}
            return (
                {**described, "type": "object", "additionalProperties": True} if kind else described
            )
        said = f"{made['description']} {text}" if "description" in made else text
        return {"type": "string", "description": said}


_WRITERS: dict[str, Callable[[_Writer, Schema], Schema]] = {
    "object": _Writer.object,
    "array": _Writer.array,
}


def _used(root: Schema, defs: dict[str, Schema]) -> dict[str, Schema]:
    """The definitions that are reached from the root, in their order."""
    reached: set[str] = set()
    todo: list[Any] = [root]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            fields = cast("Schema", one)
            name = str(fields.get("$ref", "")).rpartition("/")[2]
            if name and name not in reached:
                reached.add(name)
                todo.append(defs[name])
            todo.extend(fields.values())
        elif isinstance(one, list):
            todo.extend(cast("list[Any]", one))
    return {name: one for name, one in defs.items() if name in reached}
