"""What all bodies on the wire share: camelCase, and what happens to unknown keys."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel

from loopagent.core.described import Described
from loopagent.core.text import clean_json


class Body(Described, BaseModel):
    """Base of what clients send: unknown keys are refused, so that a typo is not silently ignored.

    Code units that no store can hold are replaced before anything else looks at them, as on every other way in.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
    )

    @model_validator(mode="before")
    @classmethod
    def _clean(cls, value: Any) -> Any:
        return clean_json(value) if isinstance(value, dict) else value


class View(Described, BaseModel):
    """Base of what the server sends."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
        defer_build=True,
    )
