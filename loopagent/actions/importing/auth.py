"""How an operation is authorised: its security schemes as `auth` and names of secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from loopagent.core.json_values import is_array, is_object


if TYPE_CHECKING:
    from loopagent.actions.importing.document import ApiDocument

_KEY_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(slots=True)
class Authorised:
    """What an action says of authorisation; `said` is for people."""

    auth: dict[str, Any] | None = None
    headers: dict[str, Any] = field(default_factory=dict[str, Any])
    secrets: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    @property
    def said(self) -> str:
        """The kind, or `none`."""
        return "none" if self.auth is None else str(self.auth["type"])


def authorised(
    document: ApiDocument, operation: dict[str, Any], prefix: str, server: str
) -> Authorised:
    """What an operation asks for.

    Args:
        document: Has the schemes.
        operation: May have its own requirements.
        prefix: Begins the names of secrets.
        server: Address that relative token addresses belong to.

    Raises:
        UnusableError: A reference leads nowhere.
    """
    wanted = operation.get("security", document.value.get("security"))
    choices = [one for one in wanted if is_object(one)] if is_array(wanted) else []
    if not choices:
        return Authorised()
    tried = [_of(document, one, prefix, server) for one in choices]
    best = next((one for one in tried if not one.notes), tried[0])
    if len(choices) > 1:
        best.notes.append(f"of {len(choices)} ways to authorise the first that works is taken")
    return best


def _of(document: ApiDocument, requirement: dict[str, Any], prefix: str, server: str) -> Authorised:
    made = Authorised()
    schemes = document.object(
        document.object(document.value.get("components")).get("securitySchemes")
    )
    for name, scopes in requirement.items():
        scheme = document.object(schemes.get(name))
        secret = secret_name(prefix, name)
        found = _section(scheme, secret, scopes if is_array(scopes) else [], server)
        if found is None:
            kind = " ".join(str(scheme.get(one) or "") for one in ("type", "scheme", "in")).strip()
            made.notes.append(
                f"the scheme {name} ({kind or 'not defined'}) has to be set up by hand"
            )
        elif made.auth is None:
            made.auth = found
        elif found["type"] == "api_key" and found["in"] == "header":
            made.headers[found["name"]] = found["value"]
        else:
            made.notes.append(f"the scheme {name} comes on top and has to be set up by hand")
            continue
        made.secrets += [] if found is None else _names(found)
    return made


def _names(section: dict[str, Any]) -> list[str]:
    return [str(one["secret"]) for one in section.values() if is_object(one) and "secret" in one]


def secret_name(prefix: str, name: str) -> str:
    """A name for a secret, made of those of API and scheme."""
    return re.sub(r"[^a-z0-9]+", "_", f"{prefix}_{name}".lower()).strip("_")[:60]


def _section(
    scheme: dict[str, Any], secret: str, scopes: list[Any], server: str
) -> dict[str, Any] | None:
    """The `auth` of an action, or None for a scheme that has no counterpart."""
    value = {"secret": secret}
    kind = str(scheme.get("type") or "").lower()
    if kind == "http":
        return _http(str(scheme.get("scheme") or "").lower(), secret)
    if kind == "apikey" and scheme.get("in") in {"header", "query"}:
        name = str(scheme.get("name") or "")
        fits = _KEY_NAME.fullmatch(name)
        return (
            {"type": "api_key", "in": scheme["in"], "name": name, "value": value} if fits else None
        )
    if kind == "oauth2":
        return _oauth2(scheme, secret, scopes, server)
    return {"type": "bearer", "token": value} if kind == "openidconnect" else None


def _http(scheme: str, secret: str) -> dict[str, Any] | None:
    if scheme == "basic":
        user, password = {"secret": f"{secret}_user"}, {"secret": f"{secret}_password"}
        return {"type": "basic", "username": user, "password": password}
    return {"type": "bearer", "token": {"secret": secret}} if scheme == "bearer" else None


def _oauth2(scheme: dict[str, Any], secret: str, scopes: list[Any], server: str) -> dict[str, Any]:
    flows = scheme.get("flows")
    flow: Any = flows.get("clientCredentials") if is_object(flows) else None
    url = urljoin(server, str(flow.get("tokenUrl") or "")) if is_object(flow) else ""
    if not url.startswith("https://"):
        # A token that a person got in another way works as well.
        return {"type": "bearer", "token": {"secret": secret}}
    made: dict[str, Any] = {"type": "oauth2", "tokenUrl": url}
    made |= {"clientId": {"secret": f"{secret}_id"}, "clientSecret": {"secret": f"{secret}_secret"}}
    return {**made, "scopes": [str(one) for one in scopes]} if scopes else made
