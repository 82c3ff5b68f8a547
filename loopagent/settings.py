"""Settings of a project: `loopagent.toml`, with the environment on top."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from loopagent.access import AccessSettings
from loopagent.actions.mcp_servers import McpServer
from loopagent.actions.secrets import Credential
from loopagent.core.agent_spec import OneByOne
from loopagent.core.spec import Spec
from loopagent.egress.policy import EgressSettings
from loopagent.library.settings import LibrarySettings
from loopagent.notifications.spec import NotificationSettings
from loopagent.oidc.spec import OidcSettings
from loopagent.runtime.leases import LEASE_SECONDS
from loopagent.runtime.retention import Retention
from loopagent.skill import SkillLimits


class Settings(Spec):
    """What `loopagent.toml` may say; the environment's `LOOPAGENT_DB`, `LOOPAGENT_MODEL` … win over it."""

    model: str | None = None
    """`provider:model` for agents that name none."""
    db: str | None = None
    """Where runs are kept, a file or a store URL."""
    embeddings: str | None = None
    """`openai:NAME` or `http://HOST:PORT/v1#NAME`: a model by which notes are found by meaning too."""
    structured: Literal["auto", "on", "off"] = "auto"
    """Whether models are held to the JSON Schema of a reply.

    `auto`: where the server is known to take one; `on`: wherever it could; `off`: nowhere.
    """
    secrets: tuple[str, ...] = ()
    """Environment variables whose values are masked in results, events and logs, beside those of API keys."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least level of what `serve` logs."""
    log_format: Literal["auto", "json", "plain"] = "auto"
    """How `serve` logs, `plain` or `json`; `auto` is plain in a terminal and JSON elsewhere."""

    metrics: bool = True
    """Whether `serve` counts, and shows that at `/metrics`."""
    otel: bool = False
    """Whether `serve` sends traces and metrics; where to is said by `OTEL_EXPORTER_OTLP_ENDPOINT` and the like."""
    egress: EgressSettings = EgressSettings()
    """Where low-code actions may call."""
    credentials: dict[str, Credential] = Field(default_factory=dict[str, Credential])
    """Secrets of low-code actions, by the name that they use."""
    mcp: dict[str, McpServer] = Field(default_factory=dict[str, McpServer])
    """MCP servers that low-code actions may use, by the name that they use."""
    allowed_modules: tuple[str, ...] = ()
    """Modules, with all below them, whose functions may be low-code actions."""
    lease_seconds: float = Field(default=LEASE_SECONDS, ge=1, le=3600)
    """How long after the death of a process others wait before they take up its runs."""
    library: LibrarySettings = LibrarySettings()
    """How many actions may be built in the page, and how large they may be."""
    notifications: NotificationSettings = NotificationSettings()
    """Who is told when a request opens or a run ends."""
    approval: dict[str, OneByOne] = Field(default_factory=dict[str, OneByOne])
    """Actions that a person is asked about every time (`ask`), or that nobody may call (`never`), whatever they and the
    agents say."""
    access: AccessSettings = AccessSettings()
    """How callers of `serve` are let in: sessions, and how often a key may call."""
    oidc: OidcSettings = OidcSettings()
    """Providers at which people sign in to the pages."""
    retention: Retention = Retention()
    """How long ended runs are kept."""
    skills: SkillLimits = SkillLimits()
    """How large skills may be."""
