"""Parameters that satisfy a simple schema as they are: seen at a glance, without the fitter and the validator.

Most actions take a few texts, numbers and choices, and most calls give them right. What this is not sure of is
looked at in full, which finds the same for parameters that are right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from loopagent.core.per_object import PerObject
from loopagent.core.schema_check import Schema, schema_problem
from loopagent.core.values import value_object


_TYPES: Final[dict[str, tuple[type[Any], ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
"""Types that are told by the Python type alone; other values of them (`1.0` as an integer) are for the full look."""
_SAFE: Final = 2**53
"""Numbers below it are the same to every validator; NaN and the infinities are not."""
_WORDS: Final = frozenset({"title", "description", "examples"})
"""Keywords that check nothing."""
_OF_OBJECT: Final = _WORDS | {"type", "properties", "required", "additionalProperties"}
_OF_VALUE: Final = _WORDS | {"type", "enum", "default"}


@value_object(frozen=True, slots=True)
class _Flat:
    """A schema of an object with simple properties.

    `choices`: what a property with an `enum` may be. `needed`: what must be given, for itself or because leaving it
    out means its default.
    """

    types: dict[str, tuple[type[Any], ...]]
    choices: dict[str, tuple[Any, ...]]
    needed: frozenset[str]

    def fits(self, params: dict[str, Any]) -> bool:
        """Whether an object surely satisfies the schema and has nothing to be filled in or read another way."""
        types, choices = self.types, self.choices
        for key, one in params.items():
            kind = type(one)
            if key not in types or kind not in types[key]:
                return False
            # Text beyond ASCII might hold what no validator takes.
            if not (one.isascii() if kind is str else -_SAFE < one < _SAFE):
                return False
            if choices and key in choices and one not in choices[key]:
                return False
        return self.needed <= params.keys()


def _fits(schema: Schema) -> Callable[[dict[str, Any]], bool]:
    flat = _flat(schema)
    return _unsure if flat is None else flat.fits


def _unsure(params: dict[str, Any]) -> bool:
    del params
    return False


def _flat(schema: Schema) -> _Flat | None:
    """The schema as a table; None when it says more than a table can hold."""
    properties = schema.get("properties", {})
    if not schema.keys() <= _OF_OBJECT or schema.get("type") != "object":
        return None
    if schema_problem(schema) is not None or not isinstance(
        schema.get("additionalProperties", True), bool
    ):
        return None
    types: dict[str, tuple[type[Any], ...]] = {}
    choices: dict[str, tuple[Any, ...]] = {}
    needed = set(cast("list[str]", schema.get("required", [])))
    for key, part in properties.items():
        if isinstance(part, dict) and "default" in part:
            needed.add(key)
        found = _simple(part)
        if found is None:
            continue  # a call that gives it is looked at in full
        types[key] = found
        if "enum" in part:
            choices[key] = tuple(part["enum"])
    return _Flat(types, choices, frozenset(needed))


def _simple(part: Any) -> tuple[type[Any], ...] | None:
    """The Python types of a simple property; None when it is not one."""
    if not isinstance(part, dict):
        return None
    body = cast("Schema", part)
    kind = body.get("type")
    if not body.keys() <= _OF_VALUE or not isinstance(kind, str) or kind not in _TYPES:
        return None
    types = _TYPES[kind]
    if "enum" in body and (len(types) > 1 or any(type(one) not in types for one in body["enum"])):
        return None
    return types


fits_as_it_is: Final[PerObject[Schema, Callable[[dict[str, Any]], bool]]] = PerObject(
    _fits, most=1_000
)
"""For a schema, as for `check_params`: what says whether an object surely satisfies it as it is."""
