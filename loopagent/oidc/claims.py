"""What the claims of somebody come to: tenant, user, scopes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loopagent.access import SCOPES
from loopagent.key_port import Person


if TYPE_CHECKING:
    from loopagent.oidc.spec import OidcProvider

MAX_CHARS = 200
MAX_SUBJECT_CHARS = 255
MAX_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Admitted:
    """Somebody who may come in, and whose objects this person reaches; None for those of all tenants."""

    person: Person
    tenant: str | None


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """Somebody who is known, but may do nothing here. `missing` says what the claims lack, in words for people."""

    name: str
    subject: str
    missing: tuple[str, ...]


def judged(claims: Mapping[str, Any], spec: OidcProvider) -> Admitted | TurnedAway:
    """Whether somebody may come in.

    Args:
        claims: Those of a checked ID token.
        spec: Says what they mean.
    """
    subject = str(claims["sub"])
    name = next(filter(None, (_text(claims, one) for one in spec.name_claims)), "")
    values = words(claims, spec.scopes_claim)
    operator = not set(values).isdisjoint(spec.operator_roles)
    granted = _granted(values, spec)
    scopes = ("admin",) if operator else tuple(one for one in SCOPES if one in granted)
    roles = sorted(granted.difference(SCOPES))
    tenant = None if operator else _tenant(claims, spec)
    user = f"{spec.name}/{subject}" if spec.user_claim is None else _text(claims, spec.user_claim)
    lacking = {
        _lacks_scopes(values, spec): not scopes,
        f"the claim {spec.tenant_claim!r} that says which tenant you belong to": tenant == ""
        and spec.tenant_claim is not None,
        f"the claim {spec.user_claim!r} by which your conversations are kept": not user,
    }
    missing = tuple(text for text, lacks in lacking.items() if lacks)
    if missing:
        return TurnedAway(name, subject, missing)
    return Admitted(Person(spec.name, spec.issuer, subject, name, user, (*scopes, *roles)), tenant)


def _granted(values: tuple[str, ...], spec: OidcProvider) -> set[str]:
    """The scopes and roles that the values of the claim stand for."""
    meant = spec.roles or {one: (one,) for one in SCOPES}
    return {granted for one in values for granted in meant.get(one, ())} | set(spec.default_scopes)


def _tenant(claims: Mapping[str, Any], spec: OidcProvider) -> str:
    return spec.tenant if spec.tenant_claim is None else _text(claims, spec.tenant_claim)


def _lacks_scopes(values: tuple[str, ...], spec: OidcProvider) -> str:
    known = ", ".join(sorted(spec.roles) or SCOPES)
    held = ", ".join(one[:MAX_CHARS] for one in values[:MAX_SHOWN])
    what = f"it holds {held}" if values else "it is not there or empty"
    return f"a value of the claim {spec.scopes_claim!r} that allows something: {known} ({what})"


def words(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The values of a claim: those of a list, or the words of a text."""
    found = claim(claims, name)
    if isinstance(found, str):
        return tuple(found.split())
    listed: list[Any] = found if isinstance(found, list) else []
    return tuple(one for one in listed if isinstance(one, str))


def _text(claims: Mapping[str, Any], name: str) -> str:
    """A claim as one short printable line; empty when it is none."""
    found = claim(claims, name)
    if not isinstance(found, str) or len(found) > MAX_CHARS or not found.isprintable():
        return ""
    return found.strip()


def claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by a path like `realm_access.roles`; None when it is not there."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found
