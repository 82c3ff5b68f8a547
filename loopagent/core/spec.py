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
        return self._hash(defaults=True)

    def said_hash(self) -> str:
        """SHA-256 over what it says beyond the defaults: the same in later versions, which know more settings."""
        return self._hash(defaults=False)

    def _hash(self, *, defaults: bool) -> str:
        text = self.model_dump_json(by_alias=True, exclude_defaults=not defaults)
        return hashlib.sha256(text.encode()).hexdigest()
