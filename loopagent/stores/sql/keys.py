"""API keys and sessions, in a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from loopagent.key_port import KeyRow, Person, SessionRow
from loopagent.stores import records
from loopagent.stores.sql.tables import Script, Tables


if TYPE_CHECKING:
    from collections.abc import Sequence

_PERSON: TypeAdapter[Person] = TypeAdapter(Person)
_COLUMNS: Final = "id, hash, name, tenant, {person}, scopes, created_at, last_used_at, revoked_at"
_KEY: Final = f"SELECT {_COLUMNS} FROM api_key"
_PUT_KEY: Final = f"""
INSERT INTO api_key ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (id) DO NOTHING RETURNING id
"""
_ANY: Final = "SELECT 1 FROM api_key LIMIT 1"
_TOUCH: Final = "UPDATE api_key SET last_used_at = $2 WHERE id = $1"
_REVOKE: Final = """
UPDATE api_key SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING id
"""
_SESSION: Final = "SELECT hash, key_id, created_at, expires_at, tenant, person FROM session"
_PUT_SESSION: Final = """
INSERT INTO session (hash, key_id, created_at, expires_at, tenant, person)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (hash) DO NOTHING RETURNING hash
"""
_FORGET_SESSIONS: Final = "DELETE FROM session WHERE expires_at <= $1"
_OF_TENANT: Final = "WHERE CAST($1 AS text) IS NULL OR tenant = $1"


class KeyTables(Tables):
    """Keeps keys in the database of a store; see `KeyStore`."""

    async def put_key(self, row: KeyRow) -> None:
        """Keep a new key; see `KeyStore.put_key`."""
        values = (row.id, row.hash, row.name, row.tenant, row.user, " ".join(row.scopes))
        times = (row.created_at, row.last_used_at, row.revoked_at)
        done = await self._put((self._named(_PUT_KEY), (*values, *times)))
        if done.rows:
            return
        known = await self.key(row.id) if done.again else None
        if known is None or known.hash != row.hash:
            raise records.key_exists(row.id)

    async def key(self, key_id: str) -> KeyRow | None:
        """One key; see `KeyStore.key`."""
        found = await self._fetched(f"{self._named(_KEY)} WHERE id = $1", key_id)
        return _key(found[0]) if found else None

    async def keys(self, tenant: str | None = None) -> list[KeyRow]:
        """The keys; see `KeyStore.keys`."""
        query = f"{self._named(_KEY)} {_OF_TENANT} ORDER BY key"
        return [_key(one) for one in await self._fetched(query, tenant)]

    async def has_keys(self) -> bool:
        """Whether there are any; see `KeyStore.has_keys`."""
        return bool(await self._fetched(_ANY))

    async def touch_key(self, key_id: str, at: float) -> None:
        """Write down a use; see `KeyStore.touch_key`."""
        await self._change((_TOUCH, (key_id, at)))

    async def revoke_key(self, key_id: str, at: float) -> bool:
        """End a key; see `KeyStore.revoke_key`."""
        sessions = ("DELETE FROM session WHERE key_id = $1", (key_id,))
        return bool((await self._change((_REVOKE, (key_id, at)), sessions)).rows)

    async def put_session(self, row: SessionRow) -> bool:
        """Keep a new session; see `KeyStore.put_session`.

        Where the answer of a first try was lost, it may say False of a row that it kept itself.
        """

        def script(_: bool) -> Script[bool]:
            yield (_FORGET_SESSIONS, (row.created_at,))
            return bool((yield (_PUT_SESSION, _session_values(row))))

        return await self._transact(script)

    async def session(self, session_hash: str) -> SessionRow | None:
        """One session; see `KeyStore.session`."""
        found = await self._fetched(f"{_SESSION} WHERE hash = $1", session_hash)
        return _session(found[0]) if found else None

    async def sessions(self, tenant: str | None = None) -> list[SessionRow]:
        """The sessions; see `KeyStore.sessions`."""
        found = await self._fetched(f"{_SESSION} {_OF_TENANT}", tenant)
        return sorted(map(_session, found), key=lambda one: (one.created_at, one.hash))

    async def delete_session(self, session_hash: str) -> None:
        """Forget a session; see `KeyStore.delete_session`."""
        await self._change(("DELETE FROM session WHERE hash = $1", (session_hash,)))

    def _named(self, query: str) -> str:
        return query.format(person=self._dialect.person)


def _key(row: Sequence[Any]) -> KeyRow:
    key_id, hashed, name, tenant, person, scopes, *times = row
    return KeyRow(key_id, hashed, name, tenant, person, tuple(scopes.split()), *times)


def _session_values(row: SessionRow) -> tuple[Any, ...]:
    """The columns of a session; who signed in at a provider is kept as JSON in one of them."""
    person = None if row.person is None else _PERSON.dump_json(row.person).decode()
    return row.hash, row.key_id, row.created_at, row.expires_at, row.tenant, person


def _session(row: Sequence[Any]) -> SessionRow:
    session_hash, key_id, created_at, expires_at, tenant, text = row
    person = None if text is None else _PERSON.validate_json(text)
    return SessionRow(session_hash, key_id, created_at, expires_at, tenant, person)
