"""Whether action files fit each other: pipelines name actions that exist, go in no circle, and hide nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loopagent.actions.build import DISABLED, spec_of
from loopagent.actions.checks_approval import step_problems
from loopagent.actions.complaints import did_you_mean
from loopagent.actions.format import PipelineRun
from loopagent.actions.values import form_of
from loopagent.core.lineage import EFFECTS


if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from loopagent.actions.reading import Written
    from loopagent.core.action_spec import ActionSpec
    from loopagent.documents import Loc

_STRICTNESS: Final = {"auto": 0, "ask": 1, "never": 2}


def check_together(written: Iterable[Written], others: Mapping[str, ActionSpec]) -> None:
    """Complain about everything that does not fit.

    Args:
        written: The action files of one project; get the complaints.
        others: Further actions that pipelines may call.
    """
    usable = [one for one in written if one.action is not None]
    specs = {**others, **{one.name: spec_of(one.action) for one in usable if one.action}}
    names = {one.name for one in written} | specs.keys()
    graph = {
        one.name: [step.action for step in one.action.run.steps]
        for one in usable
        if one.action is not None and isinstance(one.action.run, PipelineRun)
    }
    disabled = {one.name for one in usable if one.action and not one.action.enabled}
    for one in usable:
        if one.name in graph:
            _check_pipeline(one, specs, names, graph)
            _check_enabled(one, disabled)


def _check_pipeline(
    written: Written,
    specs: Mapping[str, ActionSpec],
    names: set[str],
    graph: Mapping[str, list[str]],
) -> None:
    action = written.action
    assert action is not None  # the caller looked
    assert isinstance(action.run, PipelineRun)
    own = spec_of(action)
    for index, step in enumerate(action.run.steps):
        here: Loc = ("run", "steps", index, "action")
        if step.action not in names:
            what = f"there is no action {step.action!r}{did_you_mean(step.action, names)}"
            written.complaints.add(here, what)
        elif _leads_to(step.action, action.name, graph):
            written.complaints.add(here, f"{step.action} leads back to {action.name}: a circle")
        elif step.action in specs:
            _check_step(written, index, own, specs[step.action], step.with_)


def _check_enabled(written: Written, disabled: set[str]) -> None:
    """A pipeline that can be called calls only what can be."""
    action = written.action
    if action is None or not action.enabled or not isinstance(action.run, PipelineRun):
        return
    for index, step in enumerate(action.run.steps):
        if step.action in disabled:
            here: Loc = ("run", "steps", index, "action")
            written.complaints.add(here, DISABLED.format(name=step.action))


def _check_step(
    written: Written, index: int, own: ActionSpec, step: ActionSpec, given: dict[str, Any]
) -> None:
    """A pipeline is judged once for all it does, so it must say at least as much as each of its steps."""
    here: Loc = ("run", "steps", index, "action")
    if EFFECTS.index(step.effects) > EFFECTS.index(own.effects):
        what = f"{step.name} has {step.effects} effects, but the pipeline says {own.effects}"
        written.complaints.add(here, what)
    wanted = _STRICTNESS[step.approval or "auto"]
    if _STRICTNESS[own.approval or "auto"] < min(wanted, _STRICTNESS["ask"]):
        what = f"{step.name} has approval {step.approval}; the pipeline needs `approval: {{policy: ask}}` or never"
        written.complaints.add(here, what)
    for what in step_problems(own, step):
        written.complaints.add(here, what)
    properties: dict[str, Any] = step.parameters.get("properties") or {}
    for name in step.parameters.get("required") or ():
        if name not in given and "default" not in (properties.get(name) or {}):
            written.complaints.add(
                here[:-1], f"the parameter {name!r} of {step.name} is missing in `with`"
            )
    if step.parameters.get("additionalProperties") is False:
        for name in given:
            if name not in properties:
                what = f"{step.name} has no parameter {name!r}{did_you_mean(name, properties)}"
                written.complaints.add((*here[:-1], "with", name), what)
    _check_types(written, (*here[:-1], "with"), given, properties)


_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
}


def _check_types(
    written: Written, loc: Loc, given: dict[str, Any], properties: dict[str, Any]
) -> None:
    """Values that stand as they are must have the type that the parameter takes."""
    for name, value in given.items():
        declared = properties.get(name)
        kind = declared.get("type") if isinstance(declared, dict) else None
        wanted = _TYPES.get(kind) if isinstance(kind, str) else None
        if wanted is None or form_of(value) is not None or value is None:
            continue
        if not isinstance(value, wanted) or (isinstance(value, bool) and kind != "boolean"):
            written.complaints.add((*loc, name), f"must be of type {kind}")


def _leads_to(start: str, goal: str, graph: Mapping[str, list[str]]) -> bool:
    seen: set[str] = set()
    left = [start]
    while left:
        name = left.pop()
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            left += graph.get(name, [])
    return False
