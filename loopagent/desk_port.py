"""What a store keeps for single people about how they work: what they put off, what they like to look at.

A part of `ports.Store`. Nothing here has to do with any run: who loses it loses comfort.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol


DeskKind = Literal["snooze", "view"]


@dataclass(frozen=True, slots=True)
class DeskRow:
    """One thing on somebody's desk, found by its owner, kind and name."""

    owner: str
    """Whose it is, as `Caller.person` names people."""
    kind: DeskKind
    name: str
    """Id of the request that is put off, or what somebody calls a view."""
    until: float | None = None
    """When it is over, in seconds since the epoch; None for never."""
    body: str = ""
    """Of a view its filters, as in an address."""


class DeskStore(Protocol):
    """Keeps what people have on their desks."""

    async def put_desk(self, row: DeskRow, *, at: float) -> None:
        """Keep a thing in place of the one of its name, and forget those of its owner that are over by `at`."""
        ...

    async def desk(self, owner: str, kind: DeskKind) -> list[DeskRow]:
        """What somebody has of a kind, by name; also what is over and was not forgotten yet."""
        ...

    async def delete_desk(self, owner: str, kind: DeskKind, name: str) -> bool:
        """Take a thing away; False when there is none."""
        ...
