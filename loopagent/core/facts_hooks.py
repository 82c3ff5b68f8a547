"""Public events about hooks; the names are in the log, so they never change."""

from __future__ import annotations

from typing import Any, Literal

from loopagent.core.facts import FactData
from loopagent.core.hook_spec import HookPoint


class HookDecided(FactData):
    """A hook said something: a hook that lets everything pass leaves no event."""

    fact = "hook.decided"
    hook: str
    """Its name."""
    point: HookPoint
    """Where in the run it was asked."""
    decision: Literal["context", "stop", "deny", "params", "result", "error"]
    """What it did: added context, stopped the run, refused the call, changed its parameters, replaced its result; or
    it failed."""
    text: str = ""
    """What it added, or why."""
    call_id: str | None = None
    action: str | None = None
    params: dict[str, Any] | None = None
    """The parameters as it wants them."""
    ignored: bool = False
    """An error that changes nothing, because the hook says so."""
