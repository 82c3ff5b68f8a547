"""Values in action files: as they stand, taken from the parameters, filled into a text, or secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from loopagent.core.json_values import is_array, is_object
from loopagent.core.reshape import Expression, ReshapeError, Template


FORMS: Final = ("from", "template", "secret", "literal")
"""Keys that alone in an object make it a form: `{from: params.id}`."""
Loc: TypeAlias = tuple[int | str, ...]
Reveal: TypeAlias = Callable[[str], str]
"""Gives the value of a secret by its name."""
_PARAMETER: Final = re.compile(r'params\.(?:([A-Za-z_]\w*)|"([^"\\]+)")')
ABSENT: Final = object()
"""What a `from` that finds nothing leaves behind: nothing at all."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form in a value: which one, what stands in it, and where."""

    kind: str
    content: Any
    loc: Loc


def form_of(value: Any) -> str | None:
    """Which form a value is; None when it is none."""
    if not is_object(value) or len(value) != 1:
        return None
    key = next(iter(value))
    return key if key in FORMS else None


def forms(value: Any, loc: Loc = ()) -> Iterator[Form]:
    """Every form in a value, from the outside in."""
    kind = form_of(value)
    if kind is not None:
        yield Form(kind, value[kind], (*loc, kind))
    elif is_object(value):
        for key, one in value.items():
            yield from forms(one, (*loc, key))
    elif is_array(value):
        for index, one in enumerate(value):
            yield from forms(one, (*loc, index))


def form_problem(form: Form) -> str | None:
    """What is wrong with a form by itself."""
    if form.kind == "literal":
        return None
    if not isinstance(form.content, str) or not form.content.strip():
        return f"expected {_WANTED[form.kind]}"
    try:
        if form.kind == "from":
            Expression(form.content)
        if form.kind == "template":
            Template(form.content)
    except ReshapeError as error:
        return str(error)
    return None


_WANTED: Final = {
    "from": "a JMESPath expression, like params.id",
    "template": "a text, like 'Order {{ params.id }}'",
    "secret": "the name of a secret",
}


def render(value: Any, scope: dict[str, Any], reveal: Reveal) -> Any:
    """A value with its forms filled in; `ABSENT` when it is a `from` that finds nothing.

    Args:
        value: The value; its forms were checked.
        scope: What expressions see.
        reveal: Gives secrets.

    Raises:
        ReshapeError: An expression cannot be applied.
    """
    kind = form_of(value)
    if kind is not None:
        return _FILL[kind](value[kind], scope, reveal)
    if is_object(value):
        return render_each(value, scope, reveal)
    if is_array(value):
        items = [render(one, scope, reveal) for one in value]
        return [one for one in items if one is not ABSENT]
    return value


def render_each(values: dict[str, Any], scope: dict[str, Any], reveal: Reveal) -> dict[str, Any]:
    """An object whose values are filled in; it is no form itself, whatever its keys are. Absent ones are left out.

    Raises:
        ReshapeError: As for `render`.
    """
    made = {key: render(one, scope, reveal) for key, one in values.items()}
    return {key: one for key, one in made.items() if one is not ABSENT}


def _from(content: str, scope: dict[str, Any], reveal: Reveal) -> Any:
    del reveal
    found = Expression(content).of(scope)
    return ABSENT if found is None and not _is_null(content, scope) else found


def _is_null(content: str, scope: dict[str, Any]) -> bool:
    """Whether an expression is the name of a parameter that was given as null, which its schema lets through."""
    name = _PARAMETER.fullmatch(content.strip())
    return name is not None and (name[1] or name[2]) in (scope.get("params") or {})


_FILL: Final[dict[str, Callable[[Any, dict[str, Any], Reveal], Any]]] = {
    "from": _from,
    "template": lambda content, scope, _: Template(cast("str", content)).fill(scope),
    "secret": lambda content, _, reveal: reveal(cast("str", content)),
    "literal": lambda content, _, __: content,
}
