"""API keys and sessions, in the database."""

from __future__ import annotations

import sqlite3
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from loopagent.key_port import KeyRow
from loopagent.stores import records
from loopagent.stores.session_rows import session_row, session_values
from loopagent.stores.sqlite.file import statements


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.key_port import SessionRow
    from loopagent.stores.sqlite.readers import Readers
    from loopagent.stores.sqlite.writer import Writer

_KEY = """
SELECT id, hash, name, tenant, user, scopes, created_at, last_used_at, revoked_at FROM api_key
"""
_PUT_KEY = """
INSERT OR IGNORE INTO api_key
  (id, hash, name, tenant, user, scopes, created_at, last_used_at, revoked_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SESSION = "SELECT hash, key_id, created_at, expires_at, tenant, person FROM session"
_REVOKE = "UPDATE api_key SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"


class SqliteKeys:
    """Keeps keys in the database of a store; see `KeyStore`."""

    _writer: Writer
    _readers: Readers

    async def put_key(self, row: KeyRow) -> None:
        """Keep a new key; see `KeyStore.put_key`."""
        await self._writer.submit(lambda: lambda db: _put_key(db, row))

    async def key(self, key_id: str) -> KeyRow | None:
        """One key; see `KeyStore.key`."""
        query = f"{_KEY} WHERE id = ?"
        found = await self._readers.run(lambda db: _rows(db, query, (key_id,)))
        return _key(found[0]) if found else None

    async def keys(self, tenant: str | None = None) -> list[KeyRow]:
        """The keys; see `KeyStore.keys`."""
        query = f"{_KEY} WHERE ?1 IS NULL OR tenant = ?1 ORDER BY key"
        found = await self._readers.run(lambda db: _rows(db, query, (tenant,)))
        return [_key(one) for one in found]

    async def has_keys(self) -> bool:
        """Whether there are any; see `KeyStore.has_keys`."""
        return bool(await self._readers.run(lambda db: _rows(db, f"{_KEY} LIMIT 1")))

    async def touch_key(self, key_id: str, at: float) -> None:
        """Write down a use; see `KeyStore.touch_key`."""
        query = "UPDATE api_key SET last_used_at = ? WHERE id = ?"
        await self._change(query, (at, key_id))

    async def revoke_key(self, key_id: str, at: float) -> bool:
        """End a key; see `KeyStore.revoke_key`."""

        def write(db: sqlite3.Connection) -> bool:
            if not _is_ready(db) or not db.execute(_REVOKE, (at, key_id)).rowcount:
                return False
            db.execute("DELETE FROM session WHERE key_id = ?", (key_id,))
            return True

        return await self._writer.submit(lambda: write)

    async def put_session(self, row: SessionRow) -> bool:
        """Keep a new session; see `KeyStore.put_session`."""
        values = session_values(row)

        def write(db: sqlite3.Connection) -> bool:
            _make_ready(db)
            db.execute("DELETE FROM session WHERE expires_at <= ?", (row.created_at,))
            query = "INSERT OR IGNORE INTO session VALUES (?, ?, ?, ?, ?, ?)"
            return db.execute(query, values).rowcount == 1

        return await self._writer.submit(lambda: write)

    async def session(self, session_hash: str) -> SessionRow | None:
        """One session; see `KeyStore.session`."""
        query = f"{_SESSION} WHERE hash = ?"
        found = await self._readers.run(lambda db: _rows(db, query, (session_hash,)))
        return session_row(found[0]) if found else None

    async def sessions(self, tenant: str | None = None) -> list[SessionRow]:
        """The sessions; see `KeyStore.sessions`."""
        query = f"{_SESSION} WHERE ?1 IS NULL OR tenant = ?1 ORDER BY created_at, hash"
        found = await self._readers.run(lambda db: _rows(db, query, (tenant,)))
        return [session_row(one) for one in found]

    async def delete_session(self, session_hash: str) -> None:
        """Forget a session; see `KeyStore.delete_session`."""
        await self._change("DELETE FROM session WHERE hash = ?", (session_hash,))

    async def _change(self, query: str, values: Sequence[Any]) -> None:
        def write(db: sqlite3.Connection) -> None:
            if _is_ready(db):
                db.execute(query, values)

        await self._writer.submit(lambda: write)


def _put_key(db: sqlite3.Connection, row: KeyRow) -> None:
    _make_ready(db)
    values = (row.id, row.hash, row.name, row.tenant, row.user, " ".join(row.scopes))
    times = (row.created_at, row.last_used_at, row.revoked_at)
    if not db.execute(_PUT_KEY, (*values, *times)).rowcount:
        raise records.key_exists(row.id)


def _key(row: tuple[Any, ...]) -> KeyRow:
    key_id, hashed, name, tenant, user, scopes, *times = row
    return KeyRow(key_id, hashed, name, tenant, user, tuple(scopes.split()), *times)


def _rows(db: sqlite3.Connection, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    return db.execute(query, values).fetchall() if _is_ready(db) else []


def _is_ready(db: sqlite3.Connection) -> bool:
    found = db.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'session'")
    return found.fetchone() is not None


def _make_ready(db: sqlite3.Connection) -> None:
    if not _is_ready(db):
        script = files("loopagent.stores.sqlite").joinpath("keys.sql").read_text("utf-8")
        for one in statements(script):
            db.execute(one)
