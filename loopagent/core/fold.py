"""From a JSON value to the canonical reply: how keys and types were spelled is forgiven, what was meant is kept.

Only keys of the protocol are touched; payload, parameters, form values and metadata stay as they came. Everything
that was changed is a warning.
"""

from __future__ import annotations

import json
from typing import Any, cast

from loopagent.core.problems import Problem
from loopagent.core.protocol.loops import ForEachOperation, WhileOperation
from loopagent.core.steps import STEP_TYPES
from loopagent.core.text import WRAPPERS, fold_key


Json = dict[str, Any]
TOP = (
    "taskComplete",
    "message",
    "reasoning",
    "confidence",
    "nextStep",
    "payloadChangeRequest",
    "scratchpad",
    "responseForm",
    "actionableCommands",
    "automaticCommands",
    "artifactToolCalls",
    "conversationToolCalls",
    "memoryWrites",
)
LISTS = (
    "actionableCommands",
    "automaticCommands",
    "artifactToolCalls",
    "conversationToolCalls",
    "memoryWrites",
)
OBJECTS = ("payloadChangeRequest", "scratchpad", "responseForm")
STEP_LISTS = ("actions", "clientTools", "subAgents", "skills")
STEP_OBJECTS = ("subAgent", "forEach", "while", "pipeline")
STEP_KEYS = ("type", "messageIndex", "reason", "plan", "message", *STEP_LISTS, *STEP_OBJECTS)
LATER = ("decisions", "finishIf", "handoff", "artifactDirective", "presetName", "tasks")
"""Fields of later protocol versions: reported, not acted on."""
TYPE_WORDS = {fold_key(name): name for name in STEP_TYPES} | {
    "action": "Actions",
    "subagents": "Sub-Agent",
    "clienttool": "ClientTools",
    "skills": "Skill",
    "foreachloop": "ForEach",
    "whileloop": "While",
    "expand": "Retry",
    "question": "Chat",
}
_ENTRY_KEYS: dict[str, tuple[str, ...]] = {
    "actions": ("name", "params"),
    "subAgents": ("name", "message", "terminateAfter", "templateParameters", "resumeRunId"),
    "subAgent": ("name", "message", "terminateAfter", "templateParameters", "resumeRunId"),
    "skills": ("name", "reason"),
    "forEach": tuple(one.alias or name for name, one in ForEachOperation.model_fields.items()),
    "while": tuple(one.alias or name for name, one in WhileOperation.model_fields.items()),
}
_BOOLEANS = ("terminateAfter", "continueOnError")
_NUMBERS = (
    "timeoutMs",
    "TimeoutMs",
    "maxIterations",
    "maxConcurrency",
    "delayBetweenIterationsMs",
    "messageIndex",
)


class Folder:
    """Folds one value; collects warnings and problems on the way."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.problems: list[Problem] = []

    def fold(self, value: Any) -> Json | None:
        """The canonical envelope, or None with a problem."""
        value = self._unwrapped(value)
        if not isinstance(value, dict):
            self.problems.append(Problem("", "a reply is one JSON object", _kind(value)))
            return None
        reply = self._keys(cast("Json", value), TOP, "")
        if not any(key in reply for key in TOP):
            known = "taskComplete, message, nextStep, …"
            message = f"no key of a reply is in it ({known}); put data under payloadChangeRequest"
            self.problems.append(Problem("", message, ", ".join(map(str, reply))[:80]))
            return None
        for key in LATER:
            if reply.pop(key, None) is not None:
                self.warnings.append(f"{key}: not supported, left out")
        self._boolean(reply, "taskComplete", "taskComplete")
        self._number(reply, "confidence", "confidence")
        for key in (*OBJECTS, *LISTS):
            self._decode(reply, key, key)
        for key in LISTS:
            self._as_list(reply, key, key)
        self._form(reply.get("responseForm"))
        self._confidence(reply)
        self._next_step(reply)
        return reply

    # ---------------------------------------------------------------- the whole

    def _unwrapped(self, value: Any) -> Any:
        if isinstance(value, str):
            decoded = _decoded(value)
            if isinstance(decoded, dict | list):
                self.warnings.append("the reply was JSON text in JSON; decoded once")
                value = decoded
        if isinstance(value, list) and len(cast("list[Any]", value)) == 1:
            self.warnings.append("a list of one reply was unwrapped")
            value = cast("list[Any]", value)[0]
        if isinstance(value, dict):
            fields = cast("Json", value)
            only = next(iter(fields.items())) if len(fields) == 1 else ("", None)
            if fold_key(only[0]) in WRAPPERS and isinstance(only[1], dict):
                self.warnings.append(f"the reply was unwrapped from {only[0]!r}")
                return cast("Any", only[1])
        return cast("Any", value)

    def _keys(self, fields: Json, known: tuple[str, ...], path: str) -> Json:
        """The same object with keys of the protocol spelled as the protocol does; null is the same as absent."""
        if all(key in known for key in fields):
            return {key: one for key, one in fields.items() if one is not None}
        by_fold = {fold_key(key): key for key in known}
        made: Json = {}
        for key, one in fields.items():
            name = key if key in known else by_fold.get(fold_key(key), key)
            if name != key:
                self.warnings.append(f"{_join(path, key)}: read as {name}")
            if one is None:
                continue
            if name in made and made[name] != one:
                self.problems.append(
                    Problem(_join(path, name), "stands twice with different values", key)
                )
            made[name] = one
        return made

    # ---------------------------------------------------------------- single values

    def _boolean(self, fields: Json, key: str, path: str) -> None:
        value = fields.get(key)
        if isinstance(value, str) and value.strip().casefold() in {"true", "false"}:
            fields[key] = value.strip().casefold() == "true"
            self.warnings.append(f"{path}: text {value!r} read as a boolean")

    def _number(self, fields: Json, key: str, path: str) -> None:
        value = fields.get(key)
        decoded = _decoded(value) if isinstance(value, str) else None
        if isinstance(decoded, int | float) and not isinstance(decoded, bool):
            fields[key] = decoded
            self.warnings.append(f"{path}: text {value!r} read as a number")

    def _decode(self, fields: Json, key: str, path: str) -> None:
        value = fields.get(key)
        decoded = _decoded(value) if isinstance(value, str) else None
        if isinstance(decoded, dict | list):
            fields[key] = decoded
            self.warnings.append(f"{path}: JSON text decoded")

    def _as_list(self, fields: Json, key: str, path: str) -> None:
        value = fields.get(key)
        if isinstance(value, dict):
            fields[key] = [value]
            self.warnings.append(f"{path}: a single object taken as a list of one")

    def _confidence(self, reply: Json) -> None:
        value = reply.get("confidence")
        if isinstance(value, int | float) and not 0 <= value <= 1:
            self.warnings.append(f"confidence: {value} is not between 0 and 1")

    def _form(self, form: Any) -> None:
        questions = cast("Json", form).get("questions") if isinstance(form, dict) else None
        for index, question in enumerate(
            cast("list[Any]", questions) if isinstance(questions, list) else ()
        ):
            if not isinstance(question, dict):
                continue
            fields = cast("Json", question)
            path = f"responseForm.questions[{index}]"
            self._boolean(fields, "required", f"{path}.required")
            if isinstance(fields.get("type"), str):
                inner = {
                    key: fields[key]
                    for key in ("options", "min", "max", "step", "multiple")
                    if key in fields
                }
                fields["type"] = {"type": fields["type"], **inner}
                self.warnings.append(f"{path}.type: text taken as the type's name")
            if isinstance(fields.get("type"), dict):
                self._boolean(cast("Json", fields["type"]), "multiple", f"{path}.type.multiple")

    # ---------------------------------------------------------------- nextStep

    def _next_step(self, reply: Json) -> None:
        step = reply.get("nextStep")
        if step is None:
            return
        step = self._step_object(step)
        if step is None:
            reply.pop("nextStep")
            self.problems.append(
                Problem("nextStep", "must be an object with a type", _kind(reply.get("nextStep")))
            )
            return
        step = self._keys(step, STEP_KEYS, "nextStep")
        self._step_bodies(step)
        inner = step.pop("message", None)
        if inner is not None:
            self.warnings.append("nextStep.message: moved to message")
            reply.setdefault("message", inner)
        for key in LATER:
            if key != "tasks" and step.pop(key, None) is not None:
                self.warnings.append(f"nextStep.{key}: not supported, left out")
        self._type(reply, step)

    def _step_object(self, step: Any) -> Json | None:
        decoded = _decoded(step) if isinstance(step, str) else None
        if isinstance(decoded, dict | list):
            self.warnings.append("nextStep: JSON text decoded")
            step = decoded
        if isinstance(step, list) and len(cast("list[Any]", step)) == 1:
            self.warnings.append("nextStep: a list of one was unwrapped")
            step = cast("list[Any]", step)[0]
        if isinstance(step, str):
            self.warnings.append("nextStep: text read as its type")
            return {"type": step}
        return cast("Json", dict(cast("Json", step))) if isinstance(step, dict) else None

    def _step_bodies(self, step: Json) -> None:
        for key in (*STEP_LISTS, *STEP_OBJECTS):
            self._decode(step, key, f"nextStep.{key}")
        for key in STEP_LISTS:
            self._as_list(step, key, f"nextStep.{key}")
        self._number(step, "messageIndex", "nextStep.messageIndex")
        for key, known in _ENTRY_KEYS.items():
            body = step.get(key)
            if isinstance(body, dict):
                step[key] = self._entry(cast("Json", body), known, f"nextStep.{key}")
            elif isinstance(body, list):
                step[key] = [
                    self._entry(cast("Json", one), known, f"nextStep.{key}[{index}]")
                    if isinstance(one, dict)
                    else one
                    for index, one in enumerate(cast("list[Any]", body))
                ]
        if step.get("subAgents") and step.pop("subAgent", None) is not None:
            self.warnings.append("nextStep.subAgent: ignored beside subAgents")

    def _entry(self, entry: Json, known: tuple[str, ...], path: str) -> Json:
        made = self._keys(entry, known, path)
        for key in _BOOLEANS:
            self._boolean(made, key, f"{path}.{key}")
        for key in _NUMBERS:
            self._number(made, key, f"{path}.{key}")
        return made

    def _type(self, reply: Json, step: Json) -> None:
        """Settle the type: as spelled, or inferred from the one filled body."""
        said = step.get("type")
        if said is not None and not isinstance(said, str):
            self.problems.append(
                Problem("nextStep.type", f"must be one of {', '.join(STEP_TYPES)}", repr(said)[:80])
            )
            return
        filled = [
            name
            for name, one in STEP_TYPES.items()
            if any(_filled(step.get(key)) for key in one.body)
        ]
        complete = reply.get("taskComplete") is True
        if said is None or not said.strip():
            self._inferred(reply, step, filled, complete=complete)
            return
        name = said if said in STEP_TYPES else TYPE_WORDS.get(fold_key(said))
        if name is not None:
            if name != said:
                self.warnings.append(f"nextStep.type: {said!r} read as {name}")
            reply["nextStep"] = {**step, "type": name}
        elif complete and not filled and not step.keys() - {"type", "reason"}:
            self.warnings.append(f"nextStep: unknown type {said!r} ignored beside the completion")
            reply.pop("nextStep")
        else:
            message = f"unknown or unsupported type; must be one of {', '.join(STEP_TYPES)}"
            self.problems.append(Problem("nextStep.type", message, said[:80]))

    def _inferred(self, reply: Json, step: Json, filled: list[str], *, complete: bool) -> None:
        if len(filled) == 1:
            self.warnings.append(f"nextStep.type: missing, read as {filled[0]}")
            reply["nextStep"] = {**step, "type": filled[0]}
        elif filled:
            message = (
                f"missing, and bodies of several types are filled ({', '.join(filled)}); send one"
            )
            self.problems.append(Problem("nextStep.type", message))
        elif complete or not step:
            self.warnings.append("nextStep: empty, ignored")
            reply.pop("nextStep")
        else:
            self.problems.append(
                Problem("nextStep.type", f"missing; must be one of {', '.join(STEP_TYPES)}")
            )


def _filled(value: Any) -> bool:
    return value is not None and value not in ("", [], {})


def _decoded(text: str) -> Any:
    """The JSON that a text holds, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _kind(value: Any) -> str:
    names = {
        type(None): "null",
        bool: "a boolean",
        str: "text",
        list: "a list",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), type(value).__name__)
