"""What the editor of an action shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loopagent.actions.complaints import Complaint
from loopagent.core.json_values import is_array, is_object
from loopagent.library.editing.changing import Changed, form_of
from loopagent.library.editing.designer import Parameter
from loopagent.library.editing.fields import Field
from loopagent.library.editing.form import Part, Rows, Section


if TYPE_CHECKING:
    from loopagent.web.posts import Fields


@dataclass(frozen=True, slots=True)
class Remark:
    """A complaint with the line it is about."""

    line: int
    column: int
    where: str
    what: str
    warning: bool
    text: str


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret by name: whether it is set, and where it may go; `state` is `set`, `missing` or `unknown`."""

    name: str
    state: str
    hosts: tuple[str, ...]
    used: bool


def remarks_of(text: str, complaints: Sequence[Complaint]) -> list[Remark]:
    """Complaints in the order of the text, each with its line."""
    lines = text.split("\n")
    return [
        Remark(
            one.line,
            one.column,
            one.where,
            one.what,
            one.warning,
            lines[one.line - 1].strip()[:120] if one.line <= len(lines) else "",
        )
        for one in sorted(complaints)
    ]


def form_context(made: Changed, sent: Fields) -> dict[str, Any]:
    """The form of a text; where something that was typed could not be taken over, it stands there still."""
    form = form_of(made.text)
    errors = made.errors
    return {
        "sections": [_section(one, sent, errors) for one in form.sections],
        "parameters": [_parameter(one, sent, errors) for one in form.designer.parameters],
        "whole": form.designer.whole and _field(form.designer.whole, sent, errors),
        "unreadable": form.problem,
        "problem": made.problem if not form.problem else "",
        "kind": _kind(form.data),
        "data": form.data,
    }


def _kind(data: dict[str, Any]) -> str:
    run = data.get("run")
    kind = run.get("kind") if is_object(run) else ""
    return kind if isinstance(kind, str) else ""


def _field(one: Field, sent: Fields, errors: Mapping[str, str]) -> Field:
    if one.name not in errors:
        return one
    return replace(one, error=errors[one.name], shown=list(sent.get(one.name, [""]))[-1])


def _part(one: Part, sent: Fields, errors: Mapping[str, str]) -> Part:
    if isinstance(one, Rows):
        rows = [[_field(inner, sent, errors) for inner in row] for row in one.items]
        return replace(one, items=rows)
    return _field(one, sent, errors)


def _section(one: Section, sent: Fields, errors: Mapping[str, str]) -> Section:
    return replace(
        one,
        parts=[_part(part, sent, errors) for part in one.parts],
        more=[_part(part, sent, errors) for part in one.more],
    )


def _parameter(one: Parameter, sent: Fields, errors: Mapping[str, str]) -> Parameter:
    return replace(
        one,
        name=_field(one.name, sent, errors),
        required=_field(one.required, sent, errors),
        fields=[_field(inner, sent, errors) for inner in one.fields],
        more=[_field(inner, sent, errors) for inner in one.more],
    )


def secrets_of(data: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> list[Secret]:
    """The secrets that a document names, then the others that it could.

    Args:
        data: What the document says.
        known: Secrets that the operator set up: `set`, `hosts`; never a value.
    """
    named = data.get("secrets")
    used = [one for one in named if isinstance(one, str)] if is_array(named) else []
    return [
        Secret(
            name, _state(known.get(name)), tuple(known.get(name, {}).get("hosts", ())), name in used
        )
        for name in dict.fromkeys([*used, *known])
    ]


def _state(known: Mapping[str, Any] | None) -> str:
    if known is None:
        return "unknown"
    return "set" if known.get("set") else "missing"
