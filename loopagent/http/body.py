"""What all bodies on the wire share: camelCase, and what happens to unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from loopagent.core.described import Described


class Body(Described, BaseModel):
    """Base of what clients send: unknown keys are refused, so that a typo is not silently ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
    )


class View(Described, BaseModel):
    """Base of what the server sends."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
        defer_build=True,
    )
