"""Parameters that satisfy a simple schema as they are: seen at a glance, without the fitter and the validator.

Most actions take a few texts, numbers and choices, and most calls give them right. What this is not sure of is
looked at in full, which finds the same for parameters that are right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from pydantic_core import CoreSchema, SchemaValidator, core_schema

from loopagent.core.per_object import PerObject
from loopagent.core.schema_check import Schema, schema_problem


_SAFE: Final = 2**53
"""Numbers below it are the same to every validator; NaN and the infinities are not."""
_TYPES: Final[dict[str, CoreSchema]] = {
    # Text beyond ASCII might hold what no validator takes.
    "string": core_schema.str_schema(strict=True, pattern=r"\A[\x00-\x7F]*\z"),
    "integer": core_schema.int_schema(strict=True, gt=-_SAFE, lt=_SAFE),
    "number": core_schema.float_schema(strict=True, gt=-_SAFE, lt=_SAFE, allow_inf_nan=False),
    "boolean": core_schema.bool_schema(strict=True),
}
"""Types and their values that every validator takes; others of them (`1.0` as an integer) are for the full look."""
_CHOSEN: Final[dict[str, type[Any]]] = {"string": str, "integer": int, "boolean": bool}
"""Types of choices that are told apart by equality."""
_WORDS: Final = frozenset({"title", "description", "examples"})
"""Keywords that check nothing."""
_OF_OBJECT: Final = _WORDS | {"type", "properties", "required", "additionalProperties"}
_OF_VALUE: Final = _WORDS | {"type", "enum", "default"}


def _fits(schema: Schema) -> Callable[[dict[str, Any]], bool]:
    flat = _flat(schema)
    return _unsure if flat is None else flat.isinstance_python


def _unsure(params: dict[str, Any]) -> bool:
    del params
    return False


def _flat(schema: Schema) -> SchemaValidator | None:
    """What takes objects of simple properties that surely satisfy the schema; None when it says more than that."""
    properties = schema.get("properties", {})
    if not schema.keys() <= _OF_OBJECT or schema.get("type") != "object":
        return None
    if schema_problem(schema) is not None or not isinstance(
        schema.get("additionalProperties", True), bool
    ):
        return None
    # Needed is what must be given, for itself or because leaving it out means its default.
    needed = set(cast("list[str]", schema.get("required", [])))
    needed.update(
        key for key, part in properties.items() if isinstance(part, dict) and "default" in part
    )
    fields = {
        key: core_schema.typed_dict_field(found, required=key in needed)
        for key, part in properties.items()
        if (found := _simple(part)) is not None
    }  # a call that gives another one is looked at in full
    if not needed <= fields.keys():
        return None
    return SchemaValidator(core_schema.typed_dict_schema(fields, extra_behavior="forbid"))


def _simple(part: Any) -> CoreSchema | None:
    """What takes the values of a simple property; None when it is not one."""
    if not isinstance(part, dict):
        return None
    body = cast("Schema", part)
    kind = body.get("type")
    if not body.keys() <= _OF_VALUE or not isinstance(kind, str) or kind not in _TYPES:
        return None
    values = _TYPES[kind]
    if "enum" not in body:
        return values
    choices = [one for one in body["enum"] if type(one) is _CHOSEN.get(kind)]
    if not choices or len(choices) < len(body["enum"]):
        return None
    return core_schema.chain_schema([values, core_schema.literal_schema(choices)])


fits_as_it_is: Final[PerObject[Schema, Callable[[dict[str, Any]], bool]]] = PerObject(
    _fits, most=1_000
)
"""For a schema, as for `check_params`: what says whether an object surely satisfies it and needs nothing filled in."""
