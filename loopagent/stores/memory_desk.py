"""What people have on their desks, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from loopagent.desk_port import DeskKind, DeskRow


class MemoryDesk:
    """The part of a store in memory that keeps desks; see `DeskStore`."""

    def __init__(self) -> None:
        super().__init__()
        self._desk: dict[tuple[str, str, str], DeskRow] = {}

    async def put_desk(self, row: DeskRow, *, at: float) -> None:
        """Keep a thing; see `DeskStore.put_desk`."""
        over = [
            key
            for key, one in self._desk.items()
            if one.owner == row.owner and one.until is not None and one.until <= at
        ]
        for key in over:
            del self._desk[key]
        self._desk[row.owner, row.kind, row.name] = row

    async def desk(self, owner: str, kind: DeskKind) -> list[DeskRow]:
        """What somebody has; see `DeskStore.desk`."""
        found = [one for key, one in self._desk.items() if key[:2] == (owner, kind)]
        return sorted(found, key=lambda one: one.name)

    async def delete_desk(self, owner: str, kind: DeskKind, name: str) -> bool:
        """Take a thing away; see `DeskStore.delete_desk`."""
        return self._desk.pop((owner, kind, name), None) is not None
