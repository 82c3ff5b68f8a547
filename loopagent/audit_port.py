"""Looking back at who decided what: what a store is asked for, see `ports.Store.decided`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which decisions are looked for; None for all."""

    by: str | None = None
    """A part of who decided, as the log names it."""
    kind: str | None = None
    """Kind of the request: `approval`, `plan`, `question` …"""
    decision: str | None = None
    agent: str | None = None
    run_id: str | None = None
    tenant: str | None = None
