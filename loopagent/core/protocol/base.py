"""Base of every wire type: frozen, camelCase, unknown keys ignored, null the same as absent."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic.alias_generators import to_camel


class Wire(BaseModel):
    """A piece of the reply protocol. Attribute docstrings are help, schema text and prompt text at once."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        use_attribute_docstrings=True,
        serialize_by_alias=True,
    )
    null_means_null: ClassVar[frozenset[str]] = frozenset()
    """Keys whose null is a value; elsewhere null is the same as a missing key."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, data: Any) -> Any:
        if isinstance(data, dict) and None in (fields := cast("dict[str, Any]", data)).values():
            return {
                key: one
                for key, one in fields.items()
                if one is not None or key in cls.null_means_null
            }
        return data


def _read_params(value: Any) -> Any:
    """Parameters as an object; JSON text of an object, an empty text and null count as one."""
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


Params = Annotated[dict[str, Any], BeforeValidator(_read_params)]
"""A free object. Text that holds one is decoded; null and empty text mean no parameters."""
