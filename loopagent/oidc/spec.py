"""Settings of providers: the table `[oidc]` of `loopagent.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from loopagent.access import Scope
from loopagent.core.spec import Spec


Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,29}$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
Claim = Annotated[str, Field(min_length=1, max_length=200)]
Role = Annotated[str, Field(pattern=r"^role:[A-Za-z0-9._-]{1,60}$")]
"""What somebody is, for the approvers that actions name; it opens nothing by itself."""
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
"""Ways to sign that need a private key; `none` and those with a shared secret are none of them."""
SECRET_ENV: Final = "LOOPAGENT_OIDC_SECRET"  # noqa: S105 - a name


class OidcProvider(Spec):
    """A provider at which people sign in."""

    name: Word
    """Stands in addresses and in the log: `/signin/oidc/NAME/callback` is where the provider sends people back to."""
    label: str = Field(default="", max_length=60)
    """What the button says; empty for the name."""
    issuer: str = Field(max_length=500)
    """Its address, exactly as its discovery document says: `https://…`; `http://` on this machine only."""
    client_id: str = Field(min_length=1, max_length=500)
    """What it knows this server by."""
    client_secret_env: Variable = SECRET_ENV
    """Environment variable with the secret of this client; while it is not set, PKCE alone has to do."""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    """What is asked for."""
    algorithms: tuple[Algorithm, ...] = Field(default=("RS256", "ES256"), min_length=1)
    """How ID tokens may be signed."""
    tenant: str = Field(default="", max_length=200)
    """Whose objects its people reach, where `tenant_claim` is not set."""
    tenant_claim: Claim | None = None
    """The claim that names the tenant; whoever has none is not let in."""
    user_claim: Claim | None = None
    """The claim by which conversations and notes are kept; without, `NAME/SUB`, which belongs to nobody else."""
    name_claims: tuple[Claim, ...] = ("name", "preferred_username", "email")
    """Where the name that people read is looked for."""
    scopes_claim: Claim = "roles"
    """The claim that says what somebody may do: a list, or words with blanks between them."""
    roles: dict[str, tuple[Scope | Role, ...]] = Field(
        default_factory=dict[str, tuple[Scope | Role, ...]]
    )
    """What each value of that claim allows, and what it makes somebody, as `role:NAME`; without any they are scopes."""
    default_scopes: tuple[Scope, ...] = ()
    """What everybody may do who can sign in there."""
    operator_roles: tuple[str, ...] = ()
    """Values of that claim that make somebody the operator: `admin` for all tenants."""
    end_session: bool = True
    """Whether signing out here also signs out there, where the provider offers that."""

    @field_validator("issuer")
    @classmethod
    def _is_issuer(cls, issuer: str) -> str:
        if not is_safe(issuer) or urlsplit(issuer).query or urlsplit(issuer).fragment:
            raise ValueError(
                "is no issuer; write https://HOST/PATH, as its discovery document does"
            )
        return issuer

    @field_validator("scopes")
    @classmethod
    def _asks_for_an_id(cls, scopes: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in scopes:
            raise ValueError("must hold openid: without it there is no ID token")
        return scopes

    @property
    def title(self) -> str:
        """What the button says."""
        return self.label or self.name


class OidcSettings(Spec):
    """Where people may sign in with an account that they have already."""

    base_url: str | None = Field(default=None, pattern=r"^https?://[^\s/?#]+(/[^\s?#]*)?$")
    """Where people find this server; providers send them back to `BASE/signin/oidc/NAME/callback`."""
    providers: tuple[OidcProvider, ...] = Field(default=(), max_length=20)
    """The providers; none: people sign in with keys."""
    clock_skew_seconds: float = Field(default=60.0, ge=0, le=600)
    """How far the clocks of providers may be off."""
    sign_in_seconds: float = Field(default=600.0, ge=30, le=3_600)
    """How long somebody may take at the provider."""
    keys_seconds: float = Field(default=3_600.0, ge=1, le=86_400)
    """How long discovery documents and keys are used before they are read again."""
    new_keys_seconds: float = Field(default=30.0, ge=0, le=3_600)
    """How long after that, at least, keys are read again for a token that none of the known ones signed."""
    retry_seconds: float = Field(default=5.0, ge=0, le=600)
    """How long a provider is left alone whose discovery document could not be read."""
    timeout_seconds: float = Field(default=10.0, gt=0, le=60)
    """How long a provider may take to answer."""

    @model_validator(mode="after")
    def _are_complete(self) -> OidcSettings:
        names = [one.name for one in self.providers]
        twice = sorted({one for one in names if names.count(one) > 1})
        if twice:
            raise ValueError(f"two providers are named {twice[0]!r}; rename one")
        if names and self.base_url is None:
            raise ValueError("base_url is missing: https://HOST, where people find this server")
        return self

    @property
    def issuers(self) -> dict[str, str]:
        """The issuer of each provider."""
        return {one.name: one.issuer for one in self.providers}

    def secret_values(self, env: Mapping[str, str]) -> list[str]:
        """What must not be seen."""
        names = sorted({one.client_secret_env for one in self.providers})
        return [env[name] for name in names if env.get(name)]


def is_safe(url: str) -> bool:
    """Whether an address is one of HTTPS, or one of this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or "@" in parts.netloc or not url.isascii() or any(one <= " " for one in url):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_here(host))


def is_here(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
