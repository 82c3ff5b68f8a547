"""From a JSON value to the canonical reply: how it was spelled is forgiven, what was meant is kept.

Only keys of the protocol are touched; payload, parameters, form values and data of commands stay as
they came. Everything that was changed is a warning, everything that cannot be settled a problem.
"""

from __future__ import annotations

from typing import Any, Final

from loopagent.core.envelope import LoopAgentResponse
from loopagent.core.fold_values import Json, TooManyError, ValueFolder, place
from loopagent.core.keys import fold_key, is_wrapped
from loopagent.core.problems import GOT_KEYS, shorten
from loopagent.core.protocol.base import Wire
from loopagent.core.spelling import Free, Listed, Record, Shape, fold_choice, shape_of, shape_of_any
from loopagent.core.steps import STEP_TYPES
from loopagent.core.strict import as_list, as_object, same
from loopagent.core.text import MAX_OBJECTS


SYNONYMS: Final = {
    "action": "Actions",
    "subagents": "Sub-Agent",
    "clienttool": "ClientTools",
    "skills": "Skill",
}
"""Folded names of step types that models use instead of the real ones."""
_HARMLESS: Final = frozenset({"message", "reasoning", "confidence"})
"""Keys of the reply whose copy inside `nextStep` may be dropped."""


class Folder(ValueFolder):
    """Folds one reply."""

    def fold(self, value: Any) -> Json | None:
        """Fold a reply.

        Args:
            value: Any JSON value.

        Returns:
            The reply in the protocol's spelling, nulls dropped; None, with a problem, when the value is
            no reply at all or has too many entries.
        """
        try:
            return self._fold(value)
        except TooManyError:
            return None

    def _fold(self, value: Any) -> Json | None:
        given = self._unwrapped(value)
        if given is None:
            return None
        shape = shape_of(LoopAgentResponse)
        reply, others = self.keys(shape, given, "")
        if not reply and not any(shape.folded.get(fold_key(key)) for key in given):
            self._no_reply(given)
            return None
        step = self._step_object(reply.pop("nextStep", None))
        step = self._strays(others, step)
        self.values(shape, reply, "")
        if step is not None:
            self._step(reply, step)
        self._confidence(reply)
        return reply

    # ------------------------------------------------------------ the whole

    def _unwrapped(self, value: Any) -> Json | None:
        """The object that is the reply, taken out of lists and wrappers."""
        items = as_list(value)
        if items:
            if len(items) > MAX_OBJECTS or any(not same(one, items[0]) for one in items[1:]):
                self.wrong("", "exactly one object is a reply", items)
                return None
            self.warn("", f"a list of {len(items)} unwrapped")
            value = items[0]
        reply = as_object(value)
        while reply is not None and is_wrapped(reply):
            key, inner = next(iter(reply.items()))
            self.wrapped("", f"the reply was unwrapped from {shorten(key)}")
            reply = as_object(inner)
        if reply is None:
            self.wrong("", "a reply is one JSON object", value)
        return reply

    def _no_reply(self, given: Json) -> None:
        message = (
            "no key of a reply is in the object; answer with taskComplete, message and nextStep, "
            "and put data under payloadChangeRequest"
        )
        self.wrong("", message, dict.fromkeys(list(given)[: GOT_KEYS + 1]))

    def _confidence(self, reply: Json) -> None:
        value = reply.get("confidence")
        if isinstance(value, int | float) and not 0 <= value <= 1:
            self.warn("confidence", f"{shorten(value)} is not between 0 and 1")

    def _strays(self, others: Json, step: Json | None) -> Json | None:
        """Move the body of a step that stands beside `nextStep` into it; report the rest."""
        shape = step_shape()
        for key, value in others.items():
            if value is None:
                continue
            name = shape.folded.get(fold_key(key), "")
            body = isinstance(shape.kinds.get(name), Record | Listed | Free)
            fits = body and isinstance(value, dict | list)
            kind = name == "type" and isinstance(value, str) and step_type(value) is not None
            if not (fits or kind) or (step is not None and name in step):
                self.left_out(key, "")
                continue
            self.warn(place("", key), f"moved to nextStep.{name}")
            step = {**(step or {}), name: value}
        return step

    # ------------------------------------------------------------ nextStep

    def _step_object(self, step: Any) -> Json | None:
        step = self.single(self.decoded(step, (dict, list), "nextStep"), "nextStep")
        if step is None:
            return None
        if (fields := as_object(step)) is not None:
            return fields
        if isinstance(step, str) and step.lstrip().startswith(("{", "[")):
            self.wrong(
                "nextStep", "expected an object with a type; the text is not valid JSON", step
            )
            return None
        if isinstance(step, str) and step.strip():
            self.warn("nextStep", "text read as its type")
            return {"type": step}
        if step:
            self.wrong("nextStep", "expected an object with a type", step)
        else:
            self.warn("nextStep", "empty, ignored")
        return None

    def _step(self, reply: Json, given: Json) -> None:
        """Fold the step and put it into the reply, if there is one."""
        step, others = self.keys(step_shape(), given, "nextStep")
        self._lift(reply, others)
        model = self._model(reply, step)
        if model is None:
            return
        shape = shape_of(model)
        for key in [key for key in step if key not in shape.kinds]:
            if filled(step.pop(key)):
                self.warn(f"nextStep.{key}", f"ignored, the type is {step['type']}")
        self._single_or_several(step)
        self.values(shape, step, "nextStep")
        reply["nextStep"] = step

    def _lift(self, reply: Json, others: Json) -> None:
        """Move keys of the reply out of `nextStep`; report the rest."""
        shape = shape_of(LoopAgentResponse)
        for key, value in others.items():
            name = shape.folded.get(fold_key(key), "")
            if value is None:
                continue
            if not name or name == "nextStep":
                self.left_out(key, "nextStep")
            elif name not in reply:
                self.warn(place("nextStep", key), f"moved to {name}")
                kind = shape.kinds[name]
                reply[name] = value if kind is None else self.value(kind, value, name)
            elif name in _HARMLESS:
                self.warn(place("nextStep", key), f"ignored, {name} is there")
            elif not same(reply[name], value):
                self.wrong(place("nextStep", key), f"stands beside another {name}; send one", value)

    def _model(self, reply: Json, step: Json) -> type[Wire] | None:
        """Settle the type of the step; None when there is no step, or a problem."""
        said = step.get("type")
        done = reply.get("taskComplete") is True
        bodies = [
            name
            for name, one in STEP_TYPES.items()
            if any(filled(step.get(key)) for key in one.body)
        ]
        if said is None or said == "" or (isinstance(said, str) and said.isspace()):
            return self._inferred(step, bodies, done=done)
        name = step_type(said) if isinstance(said, str) else None
        if name is None:
            if done and isinstance(said, str) and not bodies:
                self.warn("nextStep", f"unknown type {shorten(said)} ignored beside the completion")
            else:
                self.wrong("nextStep.type", f"expected one of {', '.join(STEP_TYPES)}", said)
            return None
        if done and not bodies and STEP_TYPES[name].body and name != "Retry":
            self.warn("nextStep", f"{name} without a body ignored beside the completion")
            return None
        if name != said:
            self.warn("nextStep.type", f"{shorten(said)} read as {name}")
        step["type"] = name
        return STEP_TYPES[name]

    def _inferred(self, step: Json, bodies: list[str], *, done: bool) -> type[Wire] | None:
        """The type of a step that does not name it, from the one body that is filled."""
        if len(bodies) == 1:
            self.warn("nextStep.type", f"missing, read as {bodies[0]}")
            step["type"] = bodies[0]
            return STEP_TYPES[bodies[0]]
        if bodies:
            names = ", ".join(bodies)
            self.wrong("nextStep.type", f"required when several bodies are filled ({names})")
        elif done or not any(map(filled, step.values())):
            self.warn("nextStep", "empty, ignored")
        else:
            self.wrong("nextStep.type", f"required, one of {', '.join(STEP_TYPES)}")
        return None

    def _single_or_several(self, step: Json) -> None:
        """Sort out `subAgent` and `subAgents`."""
        single, several = step.get("subAgent"), step.get("subAgents")
        if filled(several) and single is not None:
            self.warn("nextStep.subAgent", "ignored beside subAgents")
            del step["subAgent"]
        elif len(as_list(single) or ()) > 1:
            self.warn("nextStep.subAgent", "a list read as subAgents")
            step["subAgents"] = step.pop("subAgent")
        elif single is not None and several is not None:
            del step["subAgents"]


def filled(value: object) -> bool:
    """Whether a body says anything."""
    if isinstance(value, str):
        return bool(value.strip()) and value.strip() not in {"[]", "{}"}
    return value is not None and value not in ([], {})


def step_shape() -> Shape:
    """Say what may stand in `nextStep`, whatever its type."""
    return shape_of_any(tuple(STEP_TYPES.values()))


def step_type(said: str) -> str | None:
    """Tell the step type that a text means; None when it means none."""
    if said in STEP_TYPES:
        return said
    folded = fold_choice(said.strip())
    found = SYNONYMS.get(folded)
    if found is None:
        found = next((name for name in STEP_TYPES if fold_choice(name) == folded), None)
    return found if found in STEP_TYPES else None
