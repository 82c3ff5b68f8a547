"""API keys of an app, and sessions of people who signed in with one: make, list, revoke, recognise."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from secrets import token_urlsafe
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import quote

from loopagent.access import (
    OPERATOR,
    ROLE,
    SCOPES,
    SECRET_BYTES,
    SESSION_SECONDS,
    Caller,
    hashed,
    id_of,
    new_key,
)
from loopagent.errors import RequestError
from loopagent.key_port import KeyRow, Person, SessionRow
from loopagent.logs import log


if TYPE_CHECKING:
    from loopagent.ports import Store

USED_EVERY_SECONDS = 600.0
"""How often the last use of a key is written down at most."""
MAX_NAME_CHARS = 200
RESERVED = "oidc:"
"""How the log begins the name of a person for whom a provider vouches; no key can be called so."""
PERSONS = "oidc"
"""Stands for the key of a session that began at a provider."""
SPENT = "spent"
"""Stands for the key of what is no session: a text that may be used once, and was."""
SHOWN_CHARS = 16
NO_ISSUERS: Mapping[str, str] = MappingProxyType({})
_ROLE = re.compile(r"[A-Za-z0-9._-]{1,60}")


class Keys:
    """The API keys in a store.

    Args:
        store: Where they are kept, as hashes only.
        clock: Seconds since the epoch.
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    async def create(
        self,
        name: str,
        *,
        tenant: str | None = "",
        user: str = "",
        scopes: Iterable[str] = ("runs", "requests.answer"),
        roles: Iterable[str] = (),
    ) -> tuple[str, KeyRow]:
        """Make a key; its text is given here once, and kept nowhere.

        Args:
            name: What people call it.
            tenant: Whose objects it reaches; None for those of all tenants.
            user: Who acts with it.
            scopes: What it may do, see `access.SCOPES`.
            roles: What whoever has it is; approvals may name roles.

        Raises:
            RequestError: `invalid_key` (422), with what is wrong.
        """
        wanted = tuple(dict.fromkeys(scopes))
        _check(name, user, tenant or "", wanted)
        wanted += tuple(dict.fromkeys(f"{ROLE}{_role(one)}" for one in roles))
        text, key_id = new_key()
        row = KeyRow(key_id, hashed(text), name, tenant, user, wanted, self._clock())
        await self._store.put_key(row)
        return text, row

    async def create_by(
        self,
        who: Caller,
        name: str,
        *,
        tenant: str = "",
        all_tenants: bool = False,
        user: str = "",
        scopes: Iterable[str] = ("runs", "requests.answer"),
    ) -> tuple[str, KeyRow]:
        """Make a key on behalf of an administrator, who makes keys of his tenant for all of its users.

        Raises:
            RequestError: `forbidden` (403), it would reach what he does not; `invalid_key` (422).
        """
        if all_tenants and who.tenant is not None:
            text = "This concerns all tenants: it needs a key for all of them."
            raise RequestError("forbidden", text, status=403)
        if all_tenants and tenant:
            raise RequestError("invalid_key", "Name a tenant, or take all of them.", status=422)
        whose = None if all_tenants else who.whose("", tenant)[1]
        made = await self.create(name, tenant=whose, user=user, scopes=scopes)
        log.info("key.created", key_id=made[1].id, tenant=whose, by=who.by)
        return made

    async def list(self, tenant: str | None = None) -> list[KeyRow]:
        """All keys, or those of a tenant, in the order they were made."""
        return await self._store.keys(tenant)

    async def revoke(self, key_id: str, *, by: str = "human") -> None:
        """End a key for good, with the sessions that began with it.

        Raises:
            RequestError: `unknown_key` (404), there is none or it has been revoked.
        """
        if not await self._store.revoke_key(key_id, self._clock()):
            text = f"There is no key {key_id!r} that is not revoked."
            raise RequestError("unknown_key", text, status=404)
        log.info("key.revoked", key_id=key_id, by=by)

    async def any(self) -> bool:
        """Whether any key was ever made."""
        return await self._store.has_keys()

    async def caller(self, text: str) -> Caller | None:
        """Whose key a text is; None when it is none, or revoked."""
        key_id = id_of(text)
        row = None if key_id is None else await self._store.key(key_id)
        if row is None or not hmac.compare_digest(row.hash, hashed(text)):
            return None
        return await self._used(row)

    async def _used(self, row: KeyRow) -> Caller | None:
        if row.revoked_at is not None:
            return None
        now = self._clock()
        if row.last_used_at is None or now - row.last_used_at >= USED_EVERY_SECONDS:
            await self._store.touch_key(row.id, now)
        scopes = frozenset(row.scopes)
        return Caller(row.tenant, row.user, scopes, row.user or row.name, row.id)

    # ------------------------------------------------------------------ sessions

    async def sign_in(
        self, key_id: str, seconds: float = SESSION_SECONDS, *, tenant: str | None = None
    ) -> str:
        """Begin a session of a key, which is for this tenant; returns its id, which is kept nowhere."""
        return await self._begin(key_id, seconds, tenant, None)

    async def sign_in_person(self, person: Person, tenant: str | None, seconds: float) -> str:
        """Begin a session of somebody for whom a provider vouches; returns its id, which is kept nowhere."""
        return await self._begin(PERSONS, seconds, tenant, person)

    async def _begin(
        self, key_id: str, seconds: float, tenant: str | None, person: Person | None
    ) -> str:
        text, now = token_urlsafe(SECRET_BYTES), self._clock()
        row = SessionRow(hashed(text), key_id, now, now + seconds, tenant, person)
        await self._store.put_session(row)
        return text

    async def signed_in(
        self, session: str, operator_id: str = "", issuers: Mapping[str, str] = NO_ISSUERS
    ) -> Caller | None:
        """Whose session an id is; None when it is none, has expired, or its key was revoked.

        Args:
            session: The id.
            operator_id: Sessions that began with this instead of the id of a key are the operator's.
            issuers: The providers that vouch for people, by name; sessions of others count no more.
        """
        known = await self._store.session(hashed(session))
        if known is None or known.expires_at <= self._clock():
            return None
        if known.key_id == operator_id:
            return OPERATOR
        if known.person is not None:
            vouched = issuers.get(known.person.provider) == known.person.issuer
            return caller_of(known.person, known.tenant) if vouched else None
        row = await self._store.key(known.key_id)
        return None if row is None else await self._used(row)

    async def sign_out(self, session: str) -> None:
        """End a session."""
        await self._store.delete_session(hashed(session))

    async def session(self, session: str) -> SessionRow | None:
        """What is kept of a session, by the id that the browser holds."""
        return await self._store.session(hashed(session))

    async def sessions(self, tenant: str | None = None) -> Sequence[SessionRow]:
        """All sessions that have not ended, or those of a tenant, in the order they began."""
        found, now = await self._store.sessions(tenant), self._clock()
        return [one for one in found if one.expires_at > now and one.key_id != SPENT]

    async def end_session(
        self, session_id: str, tenant: str | None = None, *, by: str = "human"
    ) -> None:
        """End somebody's session, by the id that lists show.

        Raises:
            RequestError: `unknown_session` (404), there is none of this tenant.
        """
        for one in await self.sessions(tenant):
            if shown_id(one) == session_id:
                await self._store.delete_session(one.hash)
                log.info("session.ended", session_id=session_id, by=by)
                return
        raise RequestError("unknown_session", f"There is no session {session_id!r}.", status=404)

    async def spend(self, text: str, seconds: float) -> bool:
        """Note that a text of a browser was used; False when it was used before, in any process."""
        now = self._clock()
        return await self._store.put_session(SessionRow(hashed(text), SPENT, now, now + seconds))


def shown_id(row: SessionRow) -> str:
    """By what lists name a session: nothing to sign in with."""
    return row.hash[:SHOWN_CHARS]


def caller_of(person: Person, tenant: str | None) -> Caller:
    """Somebody for whom a provider vouches, as a caller.

    The log names both what the provider knows the person by and what people call him or her.
    """
    identity = f"{RESERVED}{person.provider}/{quote(person.subject, safe='@._-|:')}"
    scopes = frozenset(person.scopes)
    return Caller(tenant, person.user, scopes, f"{identity} {person.name}".rstrip(), identity)


def _role(name: str) -> str:
    if not _ROLE.fullmatch(name):
        text = f"{name[:40]!r} is no role: letters, digits and . _ - make one, 60 at most."
        raise RequestError("invalid_key", text, status=422)
    return name


def _check(name: str, user: str, tenant: str, scopes: tuple[str, ...]) -> None:
    for what, value in (("name", name), ("user", user), ("tenant", tenant)):
        if len(value) > MAX_NAME_CHARS or not value.isprintable():
            text = f"The {what} must be printable, of at most {MAX_NAME_CHARS} characters."
            raise RequestError("invalid_key", text, status=422)
    if name.startswith(RESERVED) or user.startswith(RESERVED):
        text = f"Names that begin with {RESERVED} are those of people who sign in at a provider."
        raise RequestError("invalid_key", text, status=422)
    if not name.strip():
        raise RequestError("invalid_key", "A key needs a name.", status=422)
    unknown = [one for one in scopes if one not in SCOPES]
    if unknown or not scopes:
        text = f"Scopes are {', '.join(SCOPES)}; not {', '.join(unknown) or 'none'}."
        raise RequestError("invalid_key", text, status=422)
