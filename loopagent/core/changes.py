"""Taking over a change of the payload: the new value, its public event, and what the model is told about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loopagent.core.facts import PayloadChanged
from loopagent.core.hashing import json_hash
from loopagent.core.problems import Problem
from loopagent.core.shrink import suspicious


if TYPE_CHECKING:
    from loopagent.core.payload import PayloadChange
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx

CONFIRM: Final = "if that is meant, send the very same change once more, else one that keeps it"


def unconfirmed(state: RunState, change: PayloadChange) -> tuple[str, list[Problem]]:
    """Where the agent wants losses confirmed: hold a change that looks like one, until the model sends it again.

    Returns:
        What the change leads to, as a hash, and what it would lose; nothing of either when it may be made.
    """
    if state.spec.payload.on_loss == "warn" or not change.patch:
        return "", []
    losses = suspicious(state.payload, change.payload, change.patch, state.spec.limits.shrink)
    held = json_hash(change.payload) if losses else ""
    if held == state.held_change:
        return "", []
    return held, [Problem("payloadChangeRequest", f"{one}; {CONFIRM}") for one in losses]


def commit_payload(tx: Tx, change: PayloadChange) -> None:
    """Make a change of the payload the run's, and tell the model what was refused or looks like a loss."""
    bounds = tx.state.spec.limits.shrink
    losses = suspicious(tx.state.payload, change.payload, change.patch, bounds)
    warnings = [*change.warnings, *losses]
    refused = [*change.refused, *change.told]
    if change.patch:
        tx.state.payload = change.payload
    if change.patch or refused:
        tx.fact(PayloadChanged(patch=change.patch, warnings=warnings, refused=refused), "model")
    for one in change.refused:
        tx.notice(f"Not written to the payload: {one}")
    for warning in warnings:
        tx.notice(f"Payload change: {warning}")
