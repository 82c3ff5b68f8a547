"""Public events about client tools; the names are in the log, so they never change."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from loopagent.core.facts import FactData


CallEnd = Literal["answered", "timed_out", "cancelled", "rejected"]


class ClientToolRequested(FactData):
    """The client is asked to carry out a call and to answer it by its id."""

    fact = "client_tool.requested"
    call_id: str
    """Id of the call in its run, for `POST /runs/{runId}/client-tools/{callId}`."""
    request_id: str
    """Id of the same among all requests."""
    kind: Literal["client_tool"] = "client_tool"
    title: str
    tool: str
    params: dict[str, Any]
    """Checked against the tool's schema, with defaults filled in."""
    text: str = ""
    """What the call does, in the model's words or the tool's."""
    result_schema: dict[str, Any] | None = None
    """What a result must satisfy; null takes any JSON."""
    timeout_ms: int
    expires_at: float
    """When the wait is over, seconds since the epoch; a later answer is refused."""
    agents: list[str] = Field(default_factory=list[str])
    """Who asks: the agents from the root run to the one that asks."""
    primary: dict[str, str] = Field(default_factory=dict[str, str])
    """The button that comes first, `{decision, label}`."""
    secondary: dict[str, str] = Field(default_factory=dict[str, str])


class ClientToolCompleted(FactData):
    """A call of a client tool is over: answered, timed out, taken back, or never put."""

    fact = "client_tool.completed"
    call_id: str
    request_id: str
    tool: str
    status: CallEnd
    ok: bool
    """Whether the client carried it out and brought a result."""
    result: Any = None
    error: dict[str, Any] | None = None
    media: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """Images and files of the result, each by its artifact id."""
