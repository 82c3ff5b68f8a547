"""Whether expressions in an action file name what there is: what they can see at their place, and parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from loopagent.actions.complaints import Complaints, did_you_mean
from loopagent.actions.format import HTTP_KINDS, OPEN_KINDS, ActionFile, PipelineRun
from loopagent.core.reshape import Expression, ReshapeError, Template


if TYPE_CHECKING:
    from loopagent.documents import Loc

NO_PARAMS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {},
    "additionalProperties": False,
}
"""The schema of an action without parameters."""
_NAMED_PARAM: Final = re.compile(r"(?<![\w.\]])params\.([A-Za-z_]\w*)")
_ELSEWHERE: Final = (
    "$ref",
    "allOf",
    "anyOf",
    "oneOf",
    "patternProperties",
    "dependentSchemas",
    "if",
)
"""Keys of a schema under which it may declare further parameters."""
_ANSWER: Final = ("status", "headers", "body")
_PAGED: Final = ("items", "more")
_CALL: Final = ("params", "run", "step", "call")
_RESULT: Final = ("result", "params")
_TOOL: Final = ("result", "structured", "text", "content", "params")
_EACH: Final = ("item", "index")


def check_names(
    action: ActionFile, texts: Iterable[tuple[Loc, str, bool]], complaints: Complaints
) -> None:
    """Complain about names that expressions look up and can never find.

    Args:
        action: The file.
        texts: Where an expression or template stands, its text, and whether it is a template.
        complaints: Takes the complaints.
    """
    known = _declared(action)
    for loc, text, filled in texts:
        seen = _seen_at(action, loc)
        for name in sorted(_roots(text, filled=filled) - set(seen)):
            hint = did_you_mean(name, seen)
            complaints.add(loc, f"there is no {name!r} here, but {', '.join(seen)}{hint}")
        if known is not None:
            _check_params_of(loc, text, known, complaints)


def _check_params_of(loc: Loc, text: str, known: list[str], complaints: Complaints) -> None:
    for name in dict.fromkeys(_NAMED_PARAM.findall(text)):
        if name not in known:
            complaints.add(loc, f"there is no parameter {name!r}{did_you_mean(name, known)}")


def _roots(text: str, *, filled: bool) -> frozenset[str]:
    try:
        return Template(text).roots if filled else Expression(text).roots
    except ReshapeError:
        return frozenset()  # complained about already


def _declared(action: ActionFile) -> list[str] | None:
    """The names of all parameters that there can be; None when others may be given as well."""
    schema = action.params or NO_PARAMS
    if action.params is None and action.run.kind in OPEN_KINDS:
        return None
    closed = schema.get("additionalProperties", "properties" not in schema) is False
    if not closed or any(key in schema for key in _ELSEWHERE):
        return None
    return list(schema.get("properties") or {})


def _seen_at(action: ActionFile, loc: Loc) -> tuple[str, ...]:
    """What expressions can see at a place."""
    run, place = action.run, loc[:2]
    if isinstance(run, PipelineRun) and place in {("run", "steps"), ("run", "output")}:
        return _seen_in_pipeline(run, loc)
    if place == ("result", "select"):
        if run.kind in HTTP_KINDS:
            return (*_ANSWER, *_PAGED, "params")
        return _TOOL if run.kind == "mcp" else _RESULT
    if loc[0] == "errors":
        return (*_ANSWER, "params")
    return _SEEN.get(place, _CALL)


def _seen_in_pipeline(run: PipelineRun, loc: Loc) -> tuple[str, ...]:
    _, part, *rest = loc
    each = part == "steps" and rest[1] != "forEach" and run.steps[int(rest[0])].for_each is not None
    return ("params", "steps", *(_EACH if each else ()))


_SEEN: Final[dict[Loc, tuple[str, ...]]] = {
    ("approval", "when"): ("params",),
    ("result", "summary"): _RESULT,
    ("run", "template"): ("params",),
    ("run", "success"): (*_ANSWER, "params"),
    ("run", "paginate"): _ANSWER,
}
"""By the first two parts of a place."""
