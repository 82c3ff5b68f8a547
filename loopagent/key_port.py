"""What a store keeps of callers: API keys, and the sessions of people who signed in with one; a part of `ports.Store`.

Neither keys nor session ids are kept, only their SHA-256: who reads the database cannot call with what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class KeyRow:
    """An API key. All times are in seconds since the epoch."""

    id: str
    """The part of the key that is no secret, by which it is found."""
    hash: str
    """SHA-256 of the whole key, in hexadecimal digits."""
    name: str
    """What people call it."""
    tenant: str | None
    """Whose objects it reaches: those of one tenant, the empty one is that of runs without any; None for all."""
    user: str
    """Who acts with it; empty when that is nobody in particular."""
    scopes: tuple[str, ...]
    """What it may do, and as `role:NAME` what whoever has it is."""
    created_at: float
    last_used_at: float | None = None
    """Not exact: written down once in a while."""
    revoked_at: float | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody for whom an OpenID provider vouches, with what its claims came to when he or she signed in."""

    provider: str
    """Name of the provider in the settings."""
    issuer: str
    subject: str
    """What the provider knows this person by, for good."""
    name: str
    """What people call this person."""
    user: str
    """On whose behalf conversations and notes are kept."""
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A browser in which somebody signed in, with a key or through a provider."""

    hash: str
    """SHA-256 of the id that the browser holds, in hexadecimal digits."""
    key_id: str
    """The key that it began with; of a person whom a provider vouches for a word that is no id of a key."""
    created_at: float
    expires_at: float
    tenant: str | None = None
    """Whose objects it reaches, as for a key."""
    person: Person | None = None


class KeyStore(Protocol):
    """Keeps API keys and sessions."""

    async def put_key(self, row: KeyRow) -> None:
        """Keep a new key.

        Raises:
            ConflictError: A key of this id exists.
        """
        ...

    async def key(self, key_id: str) -> KeyRow | None:
        """One key, revoked or not, or None."""
        ...

    async def keys(self, tenant: str | None = None) -> list[KeyRow]:
        """All keys, or those of a tenant, in the order they were made."""
        ...

    async def has_keys(self) -> bool:
        """Whether any key was ever made here; one that was revoked counts."""
        ...

    async def touch_key(self, key_id: str, at: float) -> None:
        """Write down when a key was used."""
        ...

    async def revoke_key(self, key_id: str, at: float) -> bool:
        """End a key and its sessions for good; False when there is none, or it was revoked before."""
        ...

    async def put_session(self, row: SessionRow) -> bool:
        """Keep a new session, and forget those that expired before it was made.

        Returns:
            False when there is one of this hash; that one stays as it is.
        """
        ...

    async def session(self, session_hash: str) -> SessionRow | None:
        """One session, expired or not, or None."""
        ...

    async def sessions(self, tenant: str | None = None) -> list[SessionRow]:
        """All sessions, or those of a tenant, in the order they began; expired ones may be among them."""
        ...

    async def delete_session(self, session_hash: str) -> None:
        """Forget a session, if there is one."""
        ...
