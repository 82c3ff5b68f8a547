"""API keys and sessions, in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loopagent.stores import records


if TYPE_CHECKING:
    from loopagent.key_port import KeyRow, SessionRow


class MemoryKeys:
    """The part of a store in memory that keeps keys; see `KeyStore`."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[str, KeyRow] = {}
        self._sessions: dict[str, SessionRow] = {}

    async def put_key(self, row: KeyRow) -> None:
        """Keep a new key; see `KeyStore.put_key`."""
        if row.id in self._keys:
            raise records.key_exists(row.id)
        self._keys[row.id] = row

    async def key(self, key_id: str) -> KeyRow | None:
        """One key; see `KeyStore.key`."""
        return self._keys.get(key_id)

    async def keys(self, tenant: str | None = None) -> list[KeyRow]:
        """The keys; see `KeyStore.keys`."""
        return [one for one in self._keys.values() if tenant in (None, one.tenant)]

    async def has_keys(self) -> bool:
        """Whether there are any; see `KeyStore.has_keys`."""
        return bool(self._keys)

    async def touch_key(self, key_id: str, at: float) -> None:
        """Write down a use; see `KeyStore.touch_key`."""
        row = self._keys.get(key_id)
        if row is not None:
            self._keys[key_id] = replace(row, last_used_at=at)

    async def revoke_key(self, key_id: str, at: float) -> bool:
        """End a key; see `KeyStore.revoke_key`."""
        row = self._keys.get(key_id)
        if row is None or row.revoked_at is not None:
            return False
        self._keys[key_id] = replace(row, revoked_at=at)
        self._sessions = {name: one for name, one in self._sessions.items() if one.key_id != key_id}
        return True

    async def put_session(self, row: SessionRow) -> bool:
        """Keep a new session; see `KeyStore.put_session`."""
        since = row.created_at
        kept = {name: one for name, one in self._sessions.items() if one.expires_at > since}
        self._sessions = kept
        return kept.setdefault(row.hash, row) is row

    async def session(self, session_hash: str) -> SessionRow | None:
        """One session; see `KeyStore.session`."""
        return self._sessions.get(session_hash)

    async def sessions(self, tenant: str | None = None) -> list[SessionRow]:
        """The sessions; see `KeyStore.sessions`."""
        found = [one for one in self._sessions.values() if tenant in (None, one.tenant)]
        return sorted(found, key=lambda one: (one.created_at, one.hash))

    async def delete_session(self, session_hash: str) -> None:
        """Forget a session; see `KeyStore.delete_session`."""
        self._sessions.pop(session_hash, None)
