"""The schema files in `schemas/`: written from the classes, and checked against them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from loopagent.actions.format import ActionFile
from loopagent.core.agent_spec import AgentSpec, SubAgentEntry
from loopagent.core.dialects import DIALECTS, generation_schema
from loopagent.core.envelope import LoopAgentResponse
from loopagent.core.facts import FACT_TYPES
from loopagent.core.flavours import ACCEPTED, flavour
from loopagent.core.loop_view import LoopState
from loopagent.core.protocol.base import Wire
from loopagent.core.steps import STEP_TYPES
from loopagent.scenario_spec import ScenarioSpec
from loopagent.skill import SkillSection
from loopagent.triggers.spec import TriggerSpec


Schema = dict[str, Any]
NULL: Final[Schema] = {"type": "null"}
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def reply_schema() -> Schema:
    """The validation flavour: everything that is accepted as a reply once it was read."""
    schema = _accepted(LoopAgentResponse)
    defs: dict[str, Schema] = schema["$defs"]
    options: list[Schema] = []
    for _, step in sorted(STEP_TYPES.items()):
        own = _accepted(step)
        defs.update(own.pop("$defs", {}))
        defs[step.__name__] = own
        options.append({"$ref": f"#/$defs/{step.__name__}"})
    defs["NextStep"] = {"anyOf": options}
    schema["properties"]["nextStep"] = {
        "description": schema["properties"]["nextStep"]["description"],
        "anyOf": [{"$ref": "#/$defs/NextStep"}, NULL],
    }
    title = {"$schema": DRAFT, "title": LoopAgentResponse.__name__}
    return {**title, **schema, "$defs": dict(sorted(defs.items()))}


def _accepted(model: type[Wire]) -> Schema:
    schema = flavour(model.model_json_schema(by_alias=True), ACCEPTED)
    _allow_null(schema)
    return schema


def _allow_null(schema: object) -> None:
    """Let every optional field be null, in place: on the wire null is the same as absent."""
    if isinstance(schema, list):
        for one in cast("list[object]", schema):
            _allow_null(one)
    if not isinstance(schema, dict):
        return
    node = cast("Schema", schema)
    fields: dict[str, Schema] = (
        node["properties"] if node.get("type") == "object" and "properties" in node else {}
    )
    for key, field in fields.items():
        if key not in node.get("required", ()):
            fields[key] = _or_null(field)
    for one in node.values():
        _allow_null(one)


def _or_null(field: Schema) -> Schema:
    said: Schema = {key: field[key] for key in ("description", "default") if key in field}
    rest = {key: one for key, one in field.items() if key not in said}
    options: list[Schema] = [one for one in rest.get("anyOf", [rest]) if one != NULL]
    if options == [{}]:
        return field
    kind = options[0].get("type")
    if len(options) == 1 and kind is not None and not {"enum", "const"} & options[0].keys():
        kinds: list[str] = kind if isinstance(kind, list) else [kind]
        return {**options[0], "type": [*kinds, "null"], **said}
    return {"anyOf": [*options, NULL], **said}


def event_schema() -> Schema:
    """The envelope of public events, with the `data` of each type."""
    defs: dict[str, Schema] = {}
    branches: list[Schema] = []
    for name, data in sorted(FACT_TYPES.items()):
        if not name:
            continue
        own = data.model_json_schema(by_alias=True)
        defs.update(own.pop("$defs", {}))
        defs[data.__name__] = own
        properties = {"type": {"const": name}, "data": {"$ref": f"#/$defs/{data.__name__}"}}
        needed = ["type", "data"] if data.ephemeral else ["seq", "id", "ts", "type", "data"]
        branches.append({"properties": properties, "required": needed})
    text = {"type": "string"}
    return {
        "$schema": DRAFT,
        "title": "Event",
        "type": "object",
        "properties": {
            "seq": {
                "type": "integer",
                "minimum": 1,
                "description": "1, 2, 3 … per root run; ephemeral events have none.",
            },
            "id": text,
            "runId": text,
            "rootRunId": text,
            "parentRunId": text,
            "forkedFrom": text,
            "turn": {"type": "integer", "minimum": 1},
            "path": {"type": "string", "description": "Where in the tree, stable across a replay."},
            "ts": {"type": "number", "description": "Seconds since the epoch."},
            "type": {"enum": sorted(name for name in FACT_TYPES if name)},
            "decidedBy": {"enum": ["model", "engine", "human", "policy", "client", "trigger"]},
            "data": {"type": "object"},
        },
        "required": ["runId", "type", "decidedBy", "data"],
        "oneOf": branches,
        "$defs": dict(sorted(defs.items())),
    }


def loop_state_schema() -> Schema:
    """What a run is doing, as the server and `loop_state` tell it."""
    return {"$schema": DRAFT, **LoopState.model_json_schema(by_alias=True, mode="serialization")}


def agent_schema() -> Schema:
    """An agent file, for editors."""
    schema = AgentSpec.model_json_schema(by_alias=True)
    if "$ref" in schema:  # its sub-agents hold definitions, in a file only names and terms
        schema = {
            **schema["$defs"].pop(schema["$ref"].rpartition("/")[2]),
            "$defs": schema["$defs"],
        }
    entry = SubAgentEntry.model_json_schema(by_alias=True)
    schema["$defs"] = {**schema["$defs"], "SubAgentEntry": entry}
    schema["$defs"].pop("SubAgentSpec", None)
    named = [{"type": "string"}, {"$ref": "#/$defs/SubAgentEntry"}]
    schema["properties"]["subAgents"] = {"type": "array", "items": {"anyOf": named}}
    for key in ("standing", "hooks"):
        schema["properties"].pop(key, None)
    schema["properties"]["actions"] = {"type": "array", "items": {"type": "string"}}
    tools = schema["properties"]["clientTools"]
    tools["items"] = {"anyOf": [{"type": "string"}, tools["items"]]}
    schema["properties"]["skills"] = SkillSection.model_json_schema(by_alias=True)
    # How skills are pinned is not how they are written.
    for name in ("SkillSet", "SkillSpec", "SkillFile"):
        schema["$defs"].pop(name)
    extra = {
        "apiVersion": {"const": "loopagent/v1"},
        "kind": {"const": "Agent"},
        "instructionsFile": {"type": "string"},
    }
    schema["properties"] = {**extra, **schema["properties"]}
    return {"$schema": DRAFT, **schema}


def action_schema() -> Schema:
    """An action file, for editors."""
    return {"$schema": DRAFT, **ActionFile.model_json_schema(by_alias=True)}


def scenario_schema() -> Schema:
    """A scenario file, for editors."""
    schema = ScenarioSpec.model_json_schema(by_alias=True)
    extra = {"apiVersion": {"const": "loopagent/v1"}, "kind": {"const": "Scenario"}}
    schema["properties"] = {**extra, **schema["properties"]}
    return {"$schema": DRAFT, **schema}


def trigger_schema() -> Schema:
    """A trigger file, for editors."""
    schema = TriggerSpec.model_json_schema(by_alias=True)
    extra = {"apiVersion": {"const": "loopagent/v1"}, "kind": {"const": "Trigger"}}
    schema["properties"] = {**extra, **schema["properties"]}
    schema["required"] = [one for one in schema["required"] if one != "name"]  # as the file's
    return {"$schema": DRAFT, **schema}


def _strict(dialect: Any) -> Callable[[], Schema]:
    return lambda: generation_schema(dialect, step_types=sorted(STEP_TYPES))


def _step(name: str) -> Callable[[], Schema]:
    return lambda: {"$schema": DRAFT, "title": name, **_accepted(STEP_TYPES[name])}


def files() -> dict[str, Callable[[], Schema]]:
    """Every generated file and what makes it."""
    return {
        "loop_agent_response.json": reply_schema,
        "event.json": event_schema,
        "loop_state.json": loop_state_schema,
        "agent.json": agent_schema,
        "action.json": action_schema,
        "scenario.json": scenario_schema,
        "trigger.json": trigger_schema,
        **{f"strict/{one}.json": _strict(one) for one in DIALECTS},
        **{f"steps/{name}.json": _step(name) for name in sorted(STEP_TYPES)},
    }


def write(folder: Path) -> list[Path]:
    """Write all files; returns their paths."""
    written: list[Path] = []
    for name, make in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_text(make()), encoding="utf-8")
        written.append(path)
    return written


def check(folder: Path) -> list[str]:
    """What differs between the files and the classes; empty when they are in step."""
    wrong: list[str] = []
    made = files()
    for name, make in made.items():
        path = folder / name
        if not path.is_file():
            wrong.append(f"{name}: missing")
        elif path.read_text(encoding="utf-8") != _text(make()):
            wrong.append(f"{name}: differs from the classes")
    extra = {one.relative_to(folder).as_posix() for one in folder.rglob("*.json")} - made.keys()
    return wrong + [f"{name}: nothing makes this file" for name in sorted(extra)]


def _text(schema: Schema) -> str:
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"
