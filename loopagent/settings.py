"""Settings of a project: `loopagent.toml`, with the environment on top."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Settings(BaseModel):
    """What `loopagent.toml` may say; the environment's `LOOPAGENT_DB`, `LOOPAGENT_MODEL` … win over it."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )
    model: str | None = None
    """`provider:model` for agents that name none."""
    db: str | None = None
    """Where runs are kept: a file or a store URL."""
    structured: Literal["auto", "on", "off"] = "auto"
    """Whether models are held to the JSON Schema of a reply.

    `auto`: where the server is known to take one; `on`: wherever it could; `off`: nowhere.
    """
