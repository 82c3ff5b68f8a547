"""Checking ID tokens with PyJWT. Which algorithm is allowed is said by the settings, never by the token."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import jwt

from loopagent.oidc.claims import MAX_SUBJECT_CHARS


if TYPE_CHECKING:
    from loopagent.oidc.spec import OidcProvider

MAX_TOKEN_CHARS: Final = 50_000
MAX_KEYS: Final = 100
NEEDED: Final = ["iss", "sub", "aud", "exp", "iat", "nonce"]
_KEY_TYPES: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
"""Which kind of key an algorithm needs, by how its name begins."""
Keys = Sequence[Mapping[str, Any]]


class BadTokenError(Exception):
    """An ID token proves nothing; the message says why, and holds nothing of it."""


class UnknownKeyError(BadTokenError):
    """None of the known keys can have signed it; newer ones may have."""


def checked(
    token: str, keys: Keys, spec: OidcProvider, *, nonce: str, leeway_seconds: float
) -> dict[str, Any]:
    """The claims of an ID token.

    Args:
        token: As the token endpoint gave it.
        keys: The provider's keys, as JWKs.
        spec: Who must have made it, for whom, and how it may be signed.
        nonce: What was sent along with the question.
        leeway_seconds: How far clocks may be off.

    Raises:
        BadTokenError: It proves nothing.
        UnknownKeyError: There is no key for it.
    """
    if len(token) > MAX_TOKEN_CHARS:
        raise BadTokenError("it is too long")
    try:
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in spec.algorithms:
            raise BadTokenError("it is signed in a way that is not allowed here")
        claims: dict[str, Any] = jwt.decode(
            token,
            jwt.PyJWK(dict(_key(keys, header.get("kid"), algorithm)), algorithm=algorithm),
            algorithms=[algorithm],
            audience=spec.client_id,
            issuer=spec.issuer,
            leeway=leeway_seconds,
            options={"require": NEEDED, "enforce_minimum_key_length": True},
        )
    except jwt.PyJWTError as error:
        raise BadTokenError(f"it is refused: {type(error).__name__}") from error
    _check_rest(claims, spec.client_id, nonce)
    return claims


def _check_rest(claims: Mapping[str, Any], client_id: str, nonce: str) -> None:
    """What the library leaves to its user."""
    audience, party = claims["aud"], claims.get("azp")
    if isinstance(audience, list) and len(audience) > 1 and party is None:
        raise BadTokenError("it is for several parties and does not say for which")
    if party is not None and party != client_id:
        raise BadTokenError("it was given to another party")
    given = claims["nonce"]
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(), nonce.encode()):
        raise BadTokenError("it answers another question: the nonce differs")
    subject = claims["sub"]
    if not subject or len(subject) > MAX_SUBJECT_CHARS or not subject.isprintable():
        raise BadTokenError("its subject is none")


def _key(keys: Keys, key_id: Any, algorithm: str) -> Mapping[str, Any]:
    """The key that signed it: the one it names; where it names none, the only one of its kind."""
    kind = _KEY_TYPES[algorithm[:2]]
    fitting = [
        one
        for one in keys[:MAX_KEYS]
        if one.get("kty") == kind
        and one.get("use", "sig") == "sig"
        and one.get("alg", algorithm) == algorithm
        and key_id in (None, one.get("kid"))
    ]
    if len(fitting) != 1:
        raise UnknownKeyError("no key of the provider's is the one that signed it")
    return fitting[0]
