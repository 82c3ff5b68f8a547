"""API keys and sessions as they go over the wire: without hashes, and the text of a key once."""

from __future__ import annotations

from pydantic import Field

from loopagent.access import Scope
from loopagent.http.body import Body, View


class NewKey(Body):
    """A key to make."""

    name: str = Field(min_length=1, max_length=200)
    """What people call it."""
    tenant: str = Field(default="", max_length=200)
    """Whose objects it reaches; a key of a tenant makes keys of this one only."""
    all_tenants: bool = False
    """It reaches those of every tenant."""
    user: str = Field(default="", max_length=200)
    """Who acts with it."""
    scopes: list[Scope] = Field(default=["runs", "requests.answer"], min_length=1, max_length=10)
    """What it may do."""


class KeyDetail(View):
    """An API key. Times are in seconds since the epoch."""

    id: str
    name: str
    tenant: str | None
    """Null: it reaches all of them."""
    user: str
    scopes: list[str]
    created_at: float
    last_used_at: float | None = None
    """Not exact: written down once in a while."""
    revoked_at: float | None = None


class CreatedKey(KeyDetail):
    """A key that was just made."""

    key: str
    """Its text, which is shown this once."""


class KeyList(View):
    """API keys, in the order they were made."""

    keys: list[KeyDetail]


class SessionDetail(View):
    """A browser in which somebody is signed in. Times are in seconds since the epoch."""

    id: str
    """Names the session; nothing to sign in with."""
    key_id: str | None = None
    """The key that it began with."""
    provider: str | None = None
    """The provider at which it began."""
    subject: str | None = None
    """What the provider knows the person by."""
    name: str
    """What people call whoever signed in; empty for the server's token."""
    tenant: str | None
    created_at: float
    expires_at: float


class SessionList(View):
    """Sessions that have not ended, in the order they began."""

    sessions: list[SessionDetail]
