"""What all wire types share: camelCase names, null as absent, a few field types."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from loopagent.core.described import Described
from loopagent.core.flavours import FREE_OBJECT, Mark
from loopagent.core.problems import Fault
from loopagent.core.strict import DuplicateKeyError
from loopagent.core.text import decode_json


_NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})
PARAMETERS: Final = ("params", "parameters", "arguments", "args", "input", "inputs", "with")
"""What models call the parameters of a call, as they know it from other protocols."""
VISIBLE: Final = r"\S"
"""Pattern of texts with at least one visible character."""


def wire_name(field: str) -> str:
    """Give the wire name of a Python field.

    Args:
        field: A snake_case name; a trailing underscore, as in `while_`, is dropped.
    """
    return to_camel(field.rstrip("_"))


class Wire(Described, BaseModel):
    """A piece of the reply protocol. Attribute docstrings are help, schema text and prompt text at once."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=wire_name,
        populate_by_name=True,
        extra="ignore",
        defer_build=True,
        serialize_by_alias=True,
    )
    null_means_null: ClassVar[frozenset[str]] = frozenset()
    """Keys whose null is a value; elsewhere null is the same as a missing key."""
    other_names: ClassVar[Mapping[str, str]] = _NO_NAMES
    """Folded names that other protocols have for one of its keys; read so where that key itself is missing."""
    belongs_in: ClassVar[Mapping[str, str]] = _NO_NAMES
    """Folded keys of one of its members that models put beside that member, with that member's name."""

    @model_validator(mode="before")
    @classmethod
    def _before(cls, data: Any) -> Any:
        if type(data) is not dict:
            return data
        fields = cast("dict[str, Any]", data)
        return cls.tidy(cls.without_nulls(fields) if None in fields.values() else fields)

    @classmethod
    def without_nulls(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Drop keys that hold null, where null means nothing."""
        kept = cls.null_means_null
        return {key: one for key, one in fields.items() if one is not None or key in kept}

    @classmethod
    def tidy(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Fold other accepted spellings and check across fields, before each field is validated.

        Args:
            fields: The object as it came, without nulls; must not be changed.

        Returns:
            The object or a changed copy; a `Fault` in it becomes a problem.
        """
        return fields


class OpenWire(Wire):
    """A wire type that keeps keys it does not know, null values included."""

    model_config = ConfigDict(extra="allow")

    @model_serializer(mode="wrap")
    def _whole(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave null values in unknown keys alone, also when null fields are left out."""
        known: dict[str, Any] = handler(self)
        return {**known, **(self.model_extra or {})}


def decoded(text: str) -> Any:
    """Read JSON text; anything else is given back as it came."""
    try:
        return decode_json(text)
    except (ValueError, DuplicateKeyError):
        return text


def _free_object(value: Any) -> Any:
    if type(value) is dict or isinstance(value, Fault):
        return cast("Any", value)
    if value is None or value == "":
        return {}
    if type(value) is str:
        found = decoded(value) if value.strip() else {}
        if type(found) is dict:
            return cast("Any", found)
    kind = "json_object"
    raise PydanticCustomError(kind, "an object, or text that holds a JSON object")


def _free_list(value: Any) -> Any:
    if type(value) is str:
        found = decoded(value)
        return cast("Any", found) if type(found) is list else value
    return value


def _no_boolean(value: Any) -> Any:
    if type(value) is bool:
        kind = "number"
        raise PydanticCustomError(kind, "a number")
    return value


def one_of(*values: str) -> Mark:
    """Mark a text that has usual values without refusing others.

    Args:
        values: What a constrained model may write.
    """
    return Mark({"examples": list(values)}, generated={"enum": list(values), "examples": None})


def named(key: str, *others: str) -> dict[str, str]:
    """Other names of a key, for `Wire.other_names`.

    Args:
        key: The protocol's key.
        others: What else it is called, folded; the key itself may be among them.
    """
    return {one: key for one in others if one != key}


WORK_NAMES: Final = {
    **named("templateParameters", "parameters", "params", "arguments"),
    **named("name", "agent"),
    **named("message", "task"),
}
"""Other names of the keys of a piece of work for a sub-agent."""
NonBlank = Annotated[str, Field(pattern=VISIBLE)]
"""Text with at least one visible character."""
Params = Annotated[dict[str, Any], BeforeValidator(_free_object), FREE_OBJECT]
"""A free object. Text that holds one is decoded; null and blank text are the empty object."""
Whole = Annotated[int, BeforeValidator(_no_boolean)]
"""A whole number."""
Count = Annotated[int, Field(ge=0), BeforeValidator(_no_boolean)]
"""A whole number, 0 or more."""
Positive = Annotated[int, Field(ge=1), BeforeValidator(_no_boolean)]
"""A whole number, 1 or more."""
Number = Annotated[
    int | float, BeforeValidator(_no_boolean), Mark({"type": "number", "anyOf": None})
]
"""A number; whole ones stay whole."""
LIST_TEXT: Final = BeforeValidator(_free_list)
"""Lets a list also come as text that holds one; goes with `flavours.FREE_LIST`."""
