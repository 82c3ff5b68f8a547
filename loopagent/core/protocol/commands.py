"""Commands for the person's client: buttons and links, and things it does at once.

A command of a type that is not known here is passed on whole: the client may know it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, StrictBool, Tag

from loopagent.core.flavours import Mark
from loopagent.core.protocol.base import NonBlank, Number, OpenWire, Params, Wire, one_of


_ACTIONABLE: Final = {"open:resource", "open:url", "client:capture-data-snapshot"}
_AUTOMATIC: Final = {"refresh:data", "notification"}


class OpenResource(Wire):
    """A button that opens a resource of the host application."""

    type: Literal["open:resource"]
    label: str
    """Text of the button."""
    icon: str | None = None
    """Icon class."""
    resource_type: Annotated[str, one_of("Record", "Dashboard", "Report", "Form", "View")]
    """What kind of resource."""
    entity_name: str | None = None
    """Entity of a record."""
    resource_id: str | None = None
    """Id of the resource."""
    keys: Params | None = None
    """Key fields of a record with a composite key."""
    mode: Annotated[str, one_of("view", "edit")] | None = None
    """Open to read or to edit."""
    parameters: Params | None = None
    """Passed to the opened resource."""


class OpenUrl(Wire):
    """A link."""

    type: Literal["open:url"]
    label: str
    """Text of the link."""
    icon: str | None = None
    """Icon class."""
    url: NonBlank
    """Where it leads."""
    new_tab: StrictBool = True
    """Whether it opens a new tab."""


class CaptureDataSnapshot(Wire):
    """A button that keeps a snapshot of the data shown."""

    type: Literal["client:capture-data-snapshot"]
    label: str
    """Text of the button."""
    icon: str | None = None
    """Icon class."""
    artifact_id: str | None = None
    """Artifact to capture."""
    followup_message: str | None = None
    """Sent as the person's message afterwards."""


class RefreshData(Wire):
    """Have the client load data anew."""

    type: Literal["refresh:data"]
    scope: Annotated[str, one_of("entity", "cache")]
    """Entities or a cache."""
    entity_names: list[str] | None = None
    """Which entities."""
    cache_name: Annotated[str, one_of("Core", "AI", "Actions")] | None = None
    """Which cache."""


class Notification(Wire):
    """Show a short notice."""

    type: Literal["notification"]
    message: str
    """What it says."""
    severity: Annotated[str, one_of("success", "info", "warning", "error")] = "info"
    """How grave it is."""
    duration: Number = 3000
    """How long it stays, in milliseconds; 0 until it is closed."""


class OtherCommand(OpenWire):
    """A command that only the client knows; kept as it came, null values included."""

    type: Annotated[NonBlank, Mark(accepted={"not": {"enum": sorted(_ACTIONABLE | _AUTOMATIC)}})]
    """Name of the command."""

    @classmethod
    def without_nulls(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Keep everything: what null means here is the client's business."""
        return fields


def _kind(command: object, known: set[str]) -> str:
    kind = command.get("type") if isinstance(command, dict) else getattr(command, "type", None)
    return f"<{kind}>" if isinstance(kind, str) and kind in known else "<other>"


def _actionable(command: object) -> str:
    return _kind(command, _ACTIONABLE)


def _automatic(command: object) -> str:
    return _kind(command, _AUTOMATIC)


ActionableCommand = Annotated[
    Annotated[OpenResource, Tag("<open:resource>")]
    | Annotated[OpenUrl, Tag("<open:url>")]
    | Annotated[CaptureDataSnapshot, Tag("<client:capture-data-snapshot>")]
    | Annotated[OtherCommand, Tag("<other>"), Mark(generated=False)],
    Discriminator(_actionable),
]
"""A button or link, shown with the message it came with."""
AutomaticCommand = Annotated[
    Annotated[RefreshData, Tag("<refresh:data>")]
    | Annotated[Notification, Tag("<notification>")]
    | Annotated[OtherCommand, Tag("<other>"), Mark(generated=False)],
    Discriminator(_automatic),
]
"""Something the client does on arrival, once."""
