"""Who works on what: processes pass by what another one takes at that moment, and tell each other what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopagent.dispatch_port import News, Work
from loopagent.stores.sql.leases import WORK, LeaseTables


if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from loopagent.ports import Commit
    from loopagent.stores.postgres.signals import Signals

_TAKE = """
UPDATE run SET owner = $1, leased_until = $2 FROM (
  SELECT key FROM run WHERE due <= $3
  AND (owner IS NULL OR leased_until <= $3 OR owner = ANY ($4))
  ORDER BY due, key LIMIT $5 FOR UPDATE SKIP LOCKED) AS free
WHERE run.key = free.key RETURNING run.id, run.due, run.key
"""
_RENEW = """
UPDATE run SET leased_until = $1 FROM (
  SELECT key FROM run WHERE owner = $2 AND id = ANY ($3) ORDER BY key FOR UPDATE) AS held
WHERE run.key = held.key RETURNING run.id, run.version
"""

_WORK = f"{WORK} AND id = ANY ($1)"


class PostgresLeases(LeaseTables):
    """Keeps leases in the database of a store; see `DispatchStore`."""

    _signals: Signals

    async def work(self, run_ids: Sequence[str]) -> list[Work]:
        """What there is to do for some runs; see `DispatchStore.work`."""
        return [Work(*one) for one in await self._fetched(_WORK, list(run_ids))]

    async def take(
        self,
        owner: str,
        *,
        now: float,
        lease_seconds: float,
        limit: int,
        gone: Collection[str] = (),
    ) -> list[str]:
        """Claim what is due; see `DispatchStore.take`."""
        values = (owner, now + lease_seconds, now, list(gone), limit)
        done = await self._change((_TAKE, values))
        return [one for one, _, _ in sorted(done.rows, key=lambda row: (row[1], row[2]))]

    async def renew(
        self, run_ids: Sequence[str], owner: str, *, now: float, lease_seconds: float
    ) -> dict[str, int]:
        """Renew leases; see `DispatchStore.renew`."""
        values = (now + lease_seconds, owner, list(run_ids))
        return {row[0]: row[1] for row in (await self._change((_RENEW, values))).rows}

    def watch(self, heard: Callable[[News], None]) -> None:
        """Have news of other processes brought; see `DispatchStore.watch`."""
        self._signals.watch(heard)

    def offer(self, run_ids: Sequence[str]) -> None:
        """Tell other processes of work; see `DispatchStore.offer`."""
        for one in run_ids:
            self._signals.tell(News(one))

    def _told(self, commit: Commit) -> None:
        """Tell other processes of a commit."""
        state = commit.state
        self._signals.tell(News(state.id, state.root_id or state.id, commit.version + 1))
