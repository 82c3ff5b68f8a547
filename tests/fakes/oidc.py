"""An OpenID provider: discovery, keys, real signed tokens, PKCE; it signs in whoever comes, as `claims` say."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.fakes.web import Got, Reply, Web, as_json


CLIENT, SECRET = "loopagent", "s3cret & more"
Signed = Callable[["OidcServer", dict[str, Any]], str]


@dataclass
class Key:
    """A signing key; `rsa` or elliptic."""

    id: str
    private: Any
    algorithm: str

    @property
    def jwk(self) -> dict[str, Any]:
        algorithm = jwt.get_algorithm_by_name(self.algorithm)
        made = algorithm.to_jwk(self.private.public_key(), as_dict=True)
        return {**made, "kid": self.id, "use": "sig"}

    @property
    def pem(self) -> bytes:
        """The public key as text, which everybody knows."""
        public = self.private.public_key()
        return bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


@cache
def rsa_key() -> Key:
    return Key("rsa", generate_rsa(65537, 2048), "RS256")


@cache
def short_key() -> Key:
    """One that is too short to be trusted."""
    return Key("short", generate_rsa(65537, 1024), "RS256")  # noqa: S505 - that is the point


def ec_key(name: str) -> Key:
    return Key(name, generate_private_key(SECP256R1()), "ES256")


def signed(server: OidcServer, claims: dict[str, Any]) -> str:
    """An ID token as it should be."""
    key = server.key
    with warnings.catch_warnings(action="ignore", category=jwt.InsecureKeyLengthWarning):
        return jwt.encode(claims, key.private, key.algorithm, {"kid": key.id})


@dataclass
class OidcServer:
    """The provider; `change` edits the claims of a token, `sign` makes it, `document` is added to the discovery."""

    claims: dict[str, Any]
    key: Key = field(default_factory=lambda: ec_key("first"))
    published: list[Key] | None = None
    secret: str = SECRET
    change: dict[str, Any] = field(default_factory=dict[str, Any])
    sign: Signed = signed
    document: dict[str, Any] = field(default_factory=dict[str, Any])
    answer: dict[str, str] = field(default_factory=dict[str, str])
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    left: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    def __post_init__(self) -> None:
        self.web = Web(self._respond)
        self.issuer = self.web.url

    def asked_for(self, path: str) -> int:
        """How often an address was called."""
        return sum(one.target.partition("?")[0] == path for one in self.web.seen)

    def _respond(self, got: Got) -> Reply:
        path = urlsplit(got.target).path
        query = {name: one[0] for name, one in parse_qs(urlsplit(got.target).query).items()}
        if path == "/token":
            return self._token(got)
        if path == "/authorize":
            return self._authorize(query)
        if path == "/logout":
            self.left.append(query)
            return Reply(
                200, b"<!doctype html><title>Bye</title>Bye", {"content-type": "text/html"}
            )
        pages = {
            "/.well-known/openid-configuration": self._document(),
            "/jwks": {"keys": [one.jwk for one in self.published or [self.key]]},
        }
        return as_json(pages[path]) if path in pages else as_json({}, 404)

    def _document(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize?tenant=1",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "end_session_endpoint": f"{self.issuer}/logout",
            **self.document,
        }

    def _authorize(self, query: dict[str, str]) -> Reply:
        wanted = {"response_type": "code", "code_challenge_method": "S256", "client_id": CLIENT}
        if not wanted.items() <= query.items() or "openid" not in query["scope"].split():
            return as_json({"error": "invalid_request"}, 400)
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        back = {"code": code, "state": query["state"], **self.answer}
        return Reply(302, b"", {"location": f"{query['redirect_uri']}?{urlencode(back)}"})

    def _token(self, got: Got) -> Reply:
        sent = {name: one[0] for name, one in parse_qs(got.body.decode()).items()}
        asked = self.codes.pop(sent.get("code", ""), None)
        if asked is None or not self._is_client(got, sent) or not _fits(asked, sent):
            return as_json({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims: dict[str, Any] = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300}
        claims |= {"nonce": asked["nonce"], **self.claims, **self.change}
        token = self.sign(self, {name: one for name, one in claims.items() if one is not None})
        return as_json({"access_token": "a", "token_type": "Bearer", "id_token": token})

    def _is_client(self, got: Got, sent: dict[str, str]) -> bool:
        if not self.secret:
            return sent.get("client_id") == CLIENT and "authorization" not in got.headers
        pair = b64decode(got.headers.get("authorization", "").removeprefix("Basic ")).decode()
        basic = {"u": pair.partition(":")[0], "p": pair.partition(":")[2]}
        plain = parse_qs(urlencode({"x": ""}) + "&p=" + basic["p"]).get("p", [""])[0]
        given = (basic["u"], plain) if pair else (sent.get("client_id"), sent.get("client_secret"))
        return given == (CLIENT, self.secret)


def _fits(asked: dict[str, str], sent: dict[str, str]) -> bool:
    digest = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
    challenge = urlsafe_b64encode(digest).rstrip(b"=").decode()
    same = sent.get("redirect_uri") == asked["redirect_uri"]
    grant = sent.get("grant_type") == "authorization_code"
    return challenge == asked["code_challenge"] and same and grant


def no_token(server: OidcServer, claims: dict[str, Any]) -> str:
    """A text that is no token at all."""
    return "no token"


def unsigned(server: OidcServer, claims: dict[str, Any]) -> str:
    """A token that nobody signed."""
    return f"{_part({'alg': 'none', 'typ': 'JWT'})}.{_part(claims)}."


def signed_with_the_public_key(server: OidcServer, claims: dict[str, Any]) -> str:
    """A token whose maker takes the public key for a shared secret."""
    import hmac  # noqa: PLC0415 - for this attack only

    head = f"{_part({'alg': 'HS256', 'kid': server.key.id})}.{_part(claims)}"
    mark = hmac.new(server.key.pem, head.encode(), hashlib.sha256).digest()
    return f"{head}.{urlsafe_b64encode(mark).rstrip(b'=').decode()}"


def signed_by_another(server: OidcServer, claims: dict[str, Any]) -> str:
    """A token of a key that only says that it is the provider's."""
    return jwt.encode(claims, ec_key("x").private, "ES256", {"kid": server.key.id})


def _part(value: dict[str, Any]) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
