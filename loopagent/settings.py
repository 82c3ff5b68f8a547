"""Settings of a project: `loopagent.toml`, with the environment on top."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Settings(BaseModel):
    """What `loopagent.toml` may say; `LOOPAGENT_DB`, `LOOPAGENT_MODEL` and `LOOPAGENT_API_TOKEN` win over it."""

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
