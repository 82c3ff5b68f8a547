"""Changes to the payload, the working data of a run."""

from __future__ import annotations

from typing import Any, Final

from loopagent.core.protocol.base import OpenWire, Params


_KNOWN: Final = frozenset(
    {"newElements", "updateElements", "replaceElements", "removeElements", "reasoning"}
)


class AgentPayloadChangeRequest(OpenWire):
    """A delta: each part mirrors the shape of the payload."""

    new_elements: Params | None = None
    """What did not exist; arrays append."""
    update_elements: Params | None = None
    """What changes."""
    replace_elements: Params | None = None
    """What is swapped out whole."""
    remove_elements: Params | None = None
    """What goes, marked with "__DELETE__"."""
    reasoning: str | None = None
    """Why."""

    @classmethod
    def without_nulls(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Drop null parts; a loose key is meant for the payload, and there null is a value."""
        return {key: one for key, one in fields.items() if one is not None or key not in _KNOWN}
