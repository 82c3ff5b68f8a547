"""The request of an `http` action: made of the file and the parameters, every part in its own coding."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from loopagent.actions.checks_http import PLACEHOLDER, literal_url
from loopagent.actions.values import ABSENT, render, render_each
from loopagent.core.json_values import compact_json, is_array, is_object
from loopagent.core.reshape import ReshapeError, Template, shown
from loopagent.egress.client import checked_headers, checked_url
from loopagent.errors import ActionError


if TYPE_CHECKING:
    from collections.abc import Callable

    from loopagent.actions.format import ActionFile
    from loopagent.actions.format_http import ApiKeyAuth, BasicAuth, BearerAuth, HttpRun
    from loopagent.actions.secrets import Revealed

MAX_BODY_BYTES: Final = 10_000_000
"""Largest body that is sent."""
_TYPES: Final = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "text": "text/plain; charset=utf-8",
}
Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Request:
    """A request that is ready but for an access token; not shown, since it may hold secrets."""

    method: str
    address: str = field(repr=False)
    query: Pairs = field(default_factory=list[tuple[str, str]], repr=False)
    headers: Pairs = field(default_factory=list[tuple[str, str]], repr=False)
    content: bytes | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The whole address."""
        coded = urlencode(self.query, quote_via=quote)
        separator = "&" if "?" in self.address else "?"
        return f"{self.address}{separator}{coded}" if coded else self.address

    def with_query(self, name: str, value: str) -> Request:
        """The same with another value of a query parameter."""
        kept = [one for one in self.query if one[0] != name]
        return replace(self, query=[*kept, (name, value)])

    def with_header(self, name: str, value: str) -> Request:
        """The same with another value of a header."""
        kept = [one for one in self.headers if one[0].lower() != name.lower()]
        return replace(self, headers=[*kept, (name, value)])

    def public(self) -> dict[str, Any]:
        """For people; whoever shows it masks its secrets."""
        made: dict[str, Any] = {
            "method": self.method,
            "url": self.url,
            "headers": dict(self.headers),
        }
        if self.content is not None:
            made["body"] = self.content.decode("utf-8", "replace")
        return made


def make_request(
    action: ActionFile, run: HttpRun, scope: dict[str, Any], secrets: Revealed
) -> Request:
    """The request of a call.

    Args:
        action: The action.
        run: Its `run`.
        scope: What expressions see: `params`, `run`, `step`, `call`.
        secrets: Gives secrets, to the host of the request only.

    Raises:
        ActionError: A part cannot be made, or a secret is not for this host.
    """
    target = checked_url(literal_url(run.url))
    reveal = secrets.to(target.scheme, target.host)
    try:
        query = query_pairs(render_each(run.query, scope, reveal), run.arrays)
        headers = _header_pairs(render_each(run.headers, scope, reveal))
        body = render(run.body, scope, reveal)
        if action.idempotency is not None:
            headers.append(
                (action.idempotency.header, Template(action.idempotency.key).fill(scope))
            )
        request = Request(run.method, _address(run.url, scope["params"]), query, headers)
        request = _with_body(request, run, body)
        if run.auth is not None and run.auth.type != "oauth2":
            request = _with_auth(request, run.auth, lambda one: shown(render(one, scope, reveal)))
        checked_headers(request.headers)
    except (ReshapeError, ValueError) as error:
        raise ActionError(
            f"The request cannot be made: {error}.", code="invalid_request"
        ) from error
    return request


def _address(url: str, params: dict[str, Any]) -> str:
    """The address, with each parameter as one segment of the path."""
    made = PLACEHOLDER.sub(lambda found: segment(params.get(found[1])), url)
    path = made.partition("://")[2].partition("/")[2]
    if {".", ".."} & set(path.split("/")):
        raise ValueError("a parameter makes the path lead elsewhere")
    return made


def segment(value: Any) -> str:
    """A parameter as one segment of a path.

    Raises:
        ValueError: It is nothing, or would lead elsewhere.
    """
    text = shown(value)
    if text in {"", ".", ".."}:
        raise ValueError("a parameter in the path is empty or leads elsewhere")
    return quote(text, safe="")


def query_pairs(values: dict[str, Any], arrays: str) -> Pairs:
    """Query parameters as they are sent; those that are null are left out."""
    pairs: Pairs = []
    for name, value in values.items():
        if value is None:
            continue
        if not is_array(value):
            pairs.append((name, shown(value)))
        elif arrays == "comma":
            pairs.append((name, ",".join(map(shown, value))))
        else:
            key = f"{name}[]" if arrays == "brackets" else name
            pairs += [(key, shown(one)) for one in value]
    return pairs


def _header_pairs(values: dict[str, Any]) -> Pairs:
    return [(name, shown(one)) for name, one in values.items() if one is not None]


def _with_body(request: Request, run: HttpRun, body: Any) -> Request:
    if run.body is None or body is ABSENT:
        return request
    content = _CODED[run.body_type](body)
    if len(content) > MAX_BODY_BYTES:
        raise ValueError(f"the body has more than {MAX_BODY_BYTES} bytes")
    named = any(name.lower() == "content-type" for name, _ in request.headers)
    made = replace(request, content=content)
    return made if named else made.with_header("content-type", _TYPES[run.body_type])


def _form(body: Any) -> bytes:
    if not is_object(body):
        raise ValueError("a form is made of an object")
    return urlencode(query_pairs(body, "repeat")).encode()


_CODED: Final[dict[str, Callable[[Any], bytes]]] = {
    "json": lambda body: compact_json(body).encode("utf-8", "replace"),
    "form": _form,
    "text": lambda body: shown(body).encode("utf-8", "replace"),
}


def _with_auth(
    request: Request, auth: BearerAuth | BasicAuth | ApiKeyAuth, given: Callable[[Any], str]
) -> Request:
    if auth.type == "bearer":
        return request.with_header("authorization", f"Bearer {given(auth.token)}")
    if auth.type == "basic":
        return request.with_header(
            "authorization", basic(given(auth.username), given(auth.password))
        )
    if auth.in_ == "query":
        return request.with_query(auth.name, given(auth.value))
    return request.with_header(auth.name, given(auth.value))


def basic(user: str, password: str) -> str:
    """The header value of a basic authorisation.

    Raises:
        ValueError: The user name holds a colon.
    """
    if ":" in user:
        raise ValueError("a user name holds no colon")
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
