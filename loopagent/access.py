"""Who calls: API keys as text, scopes, and what a caller may reach."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field, field_validator

from loopagent.core.spec import Spec
from loopagent.errors import RequestError


if TYPE_CHECKING:
    from collections.abc import Iterable

Scope = Literal["runs", "requests.answer", "actions.write", "admin"]
SCOPES: Final[tuple[Scope, ...]] = ("runs", "requests.answer", "actions.write", "admin")
PREFIX: Final = "la_"
ID_BYTES: Final = 6
SECRET_BYTES: Final = 32
ROLE: Final = "role:"
"""Begins the name of a role among the scopes of a key."""
_KEY: Final = re.compile(r"la_([0-9a-f]{12})_[0-9a-f]{64}")
HIDDEN: Final = "la_[redacted]"


SESSION_SECONDS: Final = 43_200.0
"""How long somebody stays signed in, unless the settings say otherwise: 12 hours."""


class AccessSettings(Spec):
    """How callers are let in: the table `[access]` of `loopagent.toml`."""

    session_hours: float = Field(default=SESSION_SECONDS / 3_600, gt=0, le=24 * 365)
    """How long somebody stays signed in."""
    requests_per_second: float = Field(default=50.0, gt=0)
    """How many requests a key may make in the long run."""
    burst: int = Field(default=200, ge=1)
    """How many it may make at once."""
    stream_check_seconds: float = Field(default=10.0, gt=0, le=300)
    """How long after a key or session ends the streams that it opened end, at the latest."""
    hosts: tuple[str, ...] = ()
    """Names of this server with a dot in them, like `agents.example.com`, under which it lets everybody in while there
    is no key; others are refused then, because pages of other sites could stand behind them."""
    exclusive_claims: bool = False
    """Whether a request that somebody has claimed may be answered by that person alone; else others are only warned."""

    @field_validator("hosts")
    @classmethod
    def _are_names(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(one.strip().lower().rstrip(".") for one in hosts)


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever makes a request.

    `tenant` is whose objects are reached: one tenant's, the empty one is that of runs without any; None for all.
    `user` is on whose behalf conversations and notes are looked at; empty for whomever the request names. `name` says
    in the log who decided; empty for whoever has the server to himself. `scopes` has roles too, as `role:NAME`.
    `key_id` is that of the API key, or a word for the person whom a provider vouches for; empty without.
    """

    tenant: str | None
    user: str = ""
    scopes: frozenset[str] = frozenset()
    name: str = ""
    key_id: str = ""

    @property
    def by(self) -> str:
        """How the log names this caller."""
        return f"human:{self.name}" if self.name else "human"

    def may(self, *scopes: str) -> bool:
        """Whether one of these scopes is given; `admin` includes all."""
        return "admin" in self.scopes or not self.scopes.isdisjoint(scopes)

    def approves(self, approvers: Iterable[str]) -> bool:
        """Whether this is one of those that a request names; where it names nobody, anybody is.

        `admin` is no approver by itself: only `scope:` is about what a key may do.
        """
        named = tuple(approvers)
        return not named or any(self._is(one) for one in named)

    def _is(self, approver: str) -> bool:
        kind, _, scope = approver.partition(":")
        if kind == "scope":
            return self.may(scope)
        if kind == "role":
            return approver in self.scopes
        return approver in {self.name, self.user} - {""}

    @property
    def person(self) -> str:
        """Under which name a store keeps what this caller wants for himself: a user's, a key's, or the operator's."""
        if self.user:
            return json.dumps(["user", self.tenant, self.user])
        return json.dumps(["key", self.key_id] if self.key_id else ["operator"])

    @property
    def is_operator(self) -> bool:
        """Whether this is whoever runs the server."""
        return self.tenant is None and "admin" in self.scopes

    def reaches(self, tenant: str | None) -> bool:
        """Whether an object of a tenant is there for this caller; None is the tenant of what does not exist."""
        return tenant is not None and self.tenant in (None, tenant)

    def whose(self, user: str, tenant: str) -> tuple[str, str]:
        """The user and tenant that a request is for, where it names some or none.

        Raises:
            RequestError: `forbidden` (403), they are not this caller's.
        """
        return _own(user, self.user or None, "user"), _own(tenant, self.tenant, "tenant")


def _own(asked: str, own: str | None, what: str) -> str:
    if own is None or asked == own:
        return asked
    if asked:
        text = f"This key is of another {what} than {asked!r}: leave it out, or use a key of that {what}."
        raise RequestError("forbidden", text, status=403)
    return own


OPERATOR: Final = Caller(None, scopes=frozenset({"admin"}))
"""Whoever has the server to himself, or calls with its token."""


def new_key() -> tuple[str, str]:
    """A new API key, and the part of it by which it is found."""
    key_id = token_hex(ID_BYTES)
    return f"{PREFIX}{key_id}_{token_hex(SECRET_BYTES)}", key_id


def id_of(key: str) -> str | None:
    """The id in a text that looks like an API key."""
    found = _KEY.fullmatch(key)
    return found[1] if found else None


def hashed(secret: str) -> str:
    """SHA-256 in hexadecimal digits; enough for secrets of 256 random bits, which nobody guesses."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def without_keys(text: str) -> str:
    """A text for the log, with every API key in it replaced."""
    return _KEY.sub(HIDDEN, text) if PREFIX in text else text
