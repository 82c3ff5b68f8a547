"""Bounds of the library: the table `[library]` of `loopagent.toml`."""

from __future__ import annotations

from pydantic import Field

from loopagent.core.spec import Spec


class LibrarySettings(Spec):
    """How much the library of a tenant may hold."""

    max_text_bytes: int = Field(default=200_000, ge=1_000, le=10_000_000)
    """Longest text of one action."""
    max_files_bytes: int = Field(default=5_000_000, ge=1_000, le=50_000_000)
    """Size of the OpenAPI documents of one action, all together."""
    max_actions: int = Field(default=1_000, ge=1)
    """Actions of one tenant."""
    actions: tuple[str, ...] = ()
    """Actions in Python that pipelines of the library may call, beside those of files."""
    models: tuple[str, ...] = ()
    """Models that actions of kind `prompt` may name, beside those that agents use."""
