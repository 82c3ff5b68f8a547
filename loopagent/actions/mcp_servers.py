"""MCP servers that the operator configured: files and models name them, and can define none."""

from __future__ import annotations

import re
from typing import Final, Self

from pydantic import Field, field_validator, model_validator

from loopagent.core.spec import Spec


NAME: Final = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")


class McpServer(Spec):
    """How to reach a server: a command that talks over its standard input and output, or an address."""

    command: str | None = Field(default=None, min_length=1)
    """Program to start for each call, looked up like in a shell; no shell is involved."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: dict[str, str] = Field(default_factory=dict[str, str])
    """Variables for it, beside a few like `PATH` and `HOME`."""
    pass_env: tuple[str, ...] = ()
    """Names of further variables that it gets from the environment; their values are secret."""
    url: str | None = Field(default=None, min_length=1)
    """Address of a server that speaks Streamable HTTP."""
    token: str | None = None
    """Name of a secret under `credentials`, sent as bearer token to `url`."""
    max_questions: int = Field(default=5, ge=0, le=100)
    """How often it may ask a person in one call; 0 for never."""
    answer_seconds: float = Field(default=86_400.0, gt=0, le=366 * 86_400)
    """How long a person has for an answer; then it is told that nobody answered."""
    max_bytes: int = Field(default=10_000_000, ge=1_000, le=1_000_000_000)
    """Longest answer of `url`."""

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("https://", "http://")):
            raise ValueError("is no address; write https://HOST/PATH")
        return url

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("give either command or url")
        if self.url is None and self.token is not None:
            raise ValueError("token is for url; give a command its secrets with passEnv")
        if self.command is None and (self.args or self.env or self.pass_env):
            raise ValueError("args, env and passEnv are for command")
        return self
