"""API keys and sessions, in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.key_port import KeyRow
from loopagent.stores import records
from loopagent.stores.postgres.more_methods import Finding
from loopagent.stores.session_rows import session_row, session_values


if TYPE_CHECKING:
    from loopagent.key_port import SessionRow
    from loopagent.stores.postgres.connections import Db

_KEY = """
SELECT id, hash, name, tenant, person, scopes, created_at, last_used_at, revoked_at FROM api_key
"""
_PUT_KEY = """
INSERT INTO api_key (id, hash, name, tenant, person, scopes, created_at, last_used_at, revoked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING RETURNING id
"""
_SESSION = "SELECT hash, key_id, created_at, expires_at, tenant, person FROM session"
_PUT_SESSION = """
INSERT INTO session (hash, key_id, created_at, expires_at, tenant, person)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (hash) DO NOTHING RETURNING hash
"""


class PostgresKeys(Finding):
    """Keeps keys in the database of a store; see `KeyStore`."""

    async def put_key(self, row: KeyRow) -> None:
        """Keep a new key; see `KeyStore.put_key`."""
        values = (row.id, row.hash, row.name, row.tenant, row.user, " ".join(row.scopes))
        times = (row.created_at, row.last_used_at, row.revoked_at)
        same = await self._connections.run(lambda db, again: _put(db, (*values, *times), again))
        if same is not None and same != row.hash:
            raise records.key_exists(row.id)

    async def key(self, key_id: str) -> KeyRow | None:
        """One key; see `KeyStore.key`."""

        async def read(db: Db, _: bool) -> KeyRow | None:
            found = await db.fetchrow(f"{_KEY} WHERE id = $1", key_id)
            return None if found is None else _row(found)

        return await self._find(None, read)

    async def keys(self, tenant: str | None = None) -> list[KeyRow]:
        """The keys; see `KeyStore.keys`."""
        query = f"{_KEY} WHERE $1::text IS NULL OR tenant = $1 ORDER BY key"

        async def read(db: Db, _: bool) -> list[KeyRow]:
            return [_row(one) for one in await db.fetch(query, tenant)]

        return await self._find([], read)

    async def has_keys(self) -> bool:
        """Whether there are any; see `KeyStore.has_keys`."""

        async def read(db: Db, _: bool) -> bool:
            return bool(await db.fetchval("SELECT EXISTS (SELECT 1 FROM api_key)"))

        return await self._connections.run(read)

    async def touch_key(self, key_id: str, at: float) -> None:
        """Write down a use; see `KeyStore.touch_key`."""
        await self._tell("UPDATE api_key SET last_used_at = $2 WHERE id = $1", key_id, at)

    async def revoke_key(self, key_id: str, at: float) -> bool:
        """End a key; see `KeyStore.revoke_key`."""
        query = (
            "UPDATE api_key SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING id"
        )

        async def write(db: Db, _: bool) -> bool:
            async with db.transaction():
                if await db.fetchval(query, key_id, at) is None:
                    return False
                await db.execute("DELETE FROM session WHERE key_id = $1", key_id)
                return True

        return await self._find(False, write)

    async def put_session(self, row: SessionRow) -> bool:
        """Keep a new session; see `KeyStore.put_session`.

        Where the answer of a first try was lost, it may say False of a row that it kept itself.
        """
        values = session_values(row)

        async def write(db: Db, _: bool) -> bool:
            async with db.transaction():
                await db.execute("DELETE FROM session WHERE expires_at <= $1", row.created_at)
                return await db.fetchval(_PUT_SESSION, *values) is not None

        return await self._connections.run(write)

    async def session(self, session_hash: str) -> SessionRow | None:
        """One session; see `KeyStore.session`."""

        async def read(db: Db, _: bool) -> SessionRow | None:
            found = await db.fetchrow(f"{_SESSION} WHERE hash = $1", session_hash)
            return None if found is None else session_row(found)

        return await self._find(None, read)

    async def sessions(self, tenant: str | None = None) -> list[SessionRow]:
        """The sessions; see `KeyStore.sessions`."""
        query = f"{_SESSION} WHERE $1::text IS NULL OR tenant = $1 ORDER BY created_at, hash"

        async def read(db: Db, _: bool) -> list[SessionRow]:
            return [session_row(one) for one in await db.fetch(query, tenant)]

        return await self._find([], read)

    async def delete_session(self, session_hash: str) -> None:
        """Forget a session; see `KeyStore.delete_session`."""
        await self._tell("DELETE FROM session WHERE hash = $1", session_hash)

    async def _tell(self, query: str, *values: Any) -> None:
        async def write(db: Db, _: bool) -> None:
            await db.execute(query, *values)

        await self._connections.run(write)


async def _put(db: Db, values: tuple[Any, ...], again: bool) -> str | None:
    """Add a key; the hash of the one that is there already, if any, else None.

    `again`: an earlier try may have added it, before its answer was lost.
    """
    if await db.fetchval(_PUT_KEY, *values) is not None:
        return None
    known: str = await db.fetchval("SELECT hash FROM api_key WHERE id = $1", values[0])
    return known if again else "another"


def _row(found: Any) -> KeyRow:
    key_id, hashed, name, tenant, person, scopes, *times = found
    return KeyRow(key_id, hashed, name, tenant, person, tuple(scopes.split()), *times)
