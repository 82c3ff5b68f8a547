"""The base of what people write down: definitions, settings, limits, scenarios."""

from __future__ import annotations

import hashlib

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from loopagent.core.described import Described


class Spec(Described, BaseModel):
    """Frozen, camelCase in files, unknown keys refused; docstrings of fields are their help."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        defer_build=True,
    )

    def digest(self) -> str:
        """SHA-256 over all of it, defaults too; two equal definitions have the same one."""
        return hashlib.sha256(self.model_dump_json(by_alias=True).encode()).hexdigest()

    def said_hash(self) -> str:
        """SHA-256 over what it says beyond the defaults: the same in later versions, which know more settings."""
        text = self.model_dump_json(by_alias=True, exclude_defaults=True)
        return hashlib.sha256(text.encode()).hexdigest()
