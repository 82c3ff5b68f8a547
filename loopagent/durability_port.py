"""What a store promises of a commit at once, and what a moment later."""

from __future__ import annotations

from typing import Literal, Protocol


class Durability(Protocol):
    """How safe a commit is when `Store.commit` returns, and whether it may come late; by default safe and at once."""

    durability: Literal["effect", "turn"] = "effect"
    """Whether every commit is to survive a power cut, or all but those that are `repeatable`."""
    hold_seconds: float = 0.0
    """How long a commit that only leads to calls that read may be kept back, to be stored with the next one of its
    run; 0 for not at all."""
