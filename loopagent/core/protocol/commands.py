"""Commands to the client: buttons a person may press, and things the client does by itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, StrictBool, Tag

from loopagent.core.protocol.base import Wire


class OtherCommand(Wire):
    """A command of a type this version does not know; passed on to the client as it came."""

    model_config = ConfigDict(extra="allow")
    type: str


class OpenResource(Wire):
    """Open something of the host application."""

    type: Literal["open:resource"]
    label: str
    """Text of the button."""
    icon: str | None = None
    resource_type: Literal["Record", "Dashboard", "Report", "Form", "View"]
    entity_name: str | None = None
    """Kind of record, for `Record`."""
    resource_id: str | None = None
    keys: dict[str, str | int | float] | None = None
    """Composite primary key."""
    mode: Literal["view", "edit"] | None = None
    parameters: dict[str, Any] | None = None


class OpenUrl(Wire):
    """Open a link."""

    type: Literal["open:url"]
    label: str
    icon: str | None = None
    url: str
    new_tab: StrictBool = True


class CaptureSnapshot(Wire):
    """Take a snapshot of the data the client shows."""

    type: Literal["client:capture-data-snapshot"]
    label: str
    icon: str | None = None
    artifact_id: str | None = None
    followup_message: str | None = None


class RefreshData(Wire):
    """Load data again."""

    type: Literal["refresh:data"]
    scope: Literal["entity", "cache"]
    entity_names: list[str] | None = None
    cache_name: Literal["Core", "AI", "Actions"] | None = None


class Notification(Wire):
    """Show a short note."""

    type: Literal["notification"]
    message: str
    severity: Literal["success", "info", "warning", "error"] = "info"
    duration: int = 3000
    """Milliseconds; 0 stays until closed."""


_ACTIONABLE = {"open:resource", "open:url", "client:capture-data-snapshot"}
_AUTOMATIC = {"refresh:data", "notification"}


def _tag(known: set[str]) -> Any:
    def tag(value: Any) -> str:
        kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
        return kind if isinstance(kind, str) and kind in known else "other"

    return Discriminator(tag)


ActionableCommand = Annotated[
    Annotated[OpenResource, Tag("open:resource")]
    | Annotated[OpenUrl, Tag("open:url")]
    | Annotated[CaptureSnapshot, Tag("client:capture-data-snapshot")]
    | Annotated[OtherCommand, Tag("other")],
    _tag(_ACTIONABLE),
]
AutomaticCommand = Annotated[
    Annotated[RefreshData, Tag("refresh:data")]
    | Annotated[Notification, Tag("notification")]
    | Annotated[OtherCommand, Tag("other")],
    _tag(_AUTOMATIC),
]
