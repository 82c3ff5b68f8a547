"""Taking over a change of the payload: the new value, its public event, and what the model is told about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.core.facts import PayloadChanged
from loopagent.core.shrink import suspicious


if TYPE_CHECKING:
    from loopagent.core.payload import PayloadChange
    from loopagent.core.tx import Tx


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
