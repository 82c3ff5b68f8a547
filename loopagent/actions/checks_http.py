"""Whether the parts of an `http` action fit each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import httpx2

from loopagent.actions.values import form_of, forms
from loopagent.core.json_values import is_object
from loopagent.egress.client import checked_headers, checked_url
from loopagent.egress.policy import (
    DEFAULT_PORTS,
    EgressDeniedError,
    is_local_host,
    matches,
    plain_host,
)


if TYPE_CHECKING:
    from loopagent.actions.complaints import Complaints
    from loopagent.actions.format import ActionFile
    from loopagent.actions.format_http import HttpRun
    from loopagent.documents import Loc

PLACEHOLDER: Final = re.compile(r"\{([A-Za-z_]\w*)\}")
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})
_SECRET_FIELDS: Final = ("token", "password", "value", "clientSecret")


def check_http(action: ActionFile, run: HttpRun, complaints: Complaints) -> None:
    """Complain about everything that does not fit."""
    _check_url(action, ("run", "url"), run.url, complaints)
    _check_placeholders(action, run, complaints)
    _check_headers(run, complaints)
    _check_secret_places(run, complaints)
    if run.auth is not None and run.auth.type == "oauth2":
        _check_url(action, ("run", "auth", "tokenUrl"), run.auth.token_url, complaints)
    if action.effects == "read" and run.method not in {"GET", "HEAD"}:
        what = f"{run.method} usually changes something, but effects say read"
        complaints.add(("effects",), what, warning=True)
    if run.method in {"GET", "HEAD"} and run.body is not None:
        complaints.add(("run", "body"), f"a {run.method} request has no body; use query")
    _check_pages(run, complaints)


def literal_url(url: str) -> str:
    """The address with a harmless word for each placeholder of its path."""
    return PLACEHOLDER.sub("x", url)


def _check_url(action: ActionFile, loc: Loc, url: str, complaints: Complaints) -> None:
    authority = url.partition("://")[2].partition("/")[0]
    if "{" in authority:
        complaints.add(
            loc, "the host and port must be written out; a parameter may only stand in the path"
        )
        return
    if "?" in url or "#" in url:
        complaints.add(loc, "must have no query or fragment; put the query under `query`")
        return
    try:
        target = checked_url(literal_url(url))
    except (httpx2.InvalidURL, EgressDeniedError) as error:
        complaints.add(loc, f"is no address that can be called: {getattr(error, 'reason', error)}")
        return
    host = plain_host(target.host)
    if target.scheme not in DEFAULT_PORTS or not host:
        complaints.add(loc, "must begin with https://HOST or http://HOST")
        return
    if not matches(plain_host(target.raw_host.decode("ascii")), action.egress.hosts):
        complaints.add(loc, f"the host {host} is not listed under egress.hosts; add it there")
    if target.port is not None and target.port not in {80, 443, *action.egress.ports}:
        complaints.add(
            loc, f"the port {target.port} is not listed under egress.ports; add it there"
        )
    if target.scheme == "http" and action.secrets and not is_local_host(host):
        complaints.add(loc, "secrets are sent over https only")


def _check_placeholders(action: ActionFile, run: HttpRun, complaints: Complaints) -> None:
    schema = action.params or {}
    known: dict[str, Any] = schema.get("properties") or {}
    for name in dict.fromkeys(PLACEHOLDER.findall(run.url)):
        if name not in known:
            complaints.add(("run", "url"), f"there is no parameter {name!r} for {{{name}}}")
        elif name not in (schema.get("required") or ()):
            complaints.add(("run", "url"), f"the parameter {name!r} in the path must be required")
        elif is_object(known[name]) and known[name].get("type", "string") not in _SCALARS:
            complaints.add(
                ("run", "url"), f"the parameter {name!r} in the path must be one text or number"
            )
    if re.search(r"[{}]", PLACEHOLDER.sub("", run.url)):
        complaints.add(("run", "url"), "has a brace that belongs to no {name}")


def _check_headers(run: HttpRun, complaints: Complaints) -> None:
    for name, value in run.headers.items():
        plain = value if isinstance(value, str) else "x"
        try:
            checked_headers([(name, plain)])
        except ValueError as error:
            complaints.add(("run", "headers", name), str(error))
        if run.auth is not None and name.lower() == "authorization" and run.auth.type != "api_key":
            complaints.add(("run", "headers", name), "is set by `auth`; remove one of them")


def _check_secret_places(run: HttpRun, complaints: Complaints) -> None:
    for form in (
        one for key, value in run.query.items() for one in forms(value, ("run", "query", key))
    ):
        if form.kind == "secret":
            what = "a secret in the address ends up in logs; use `auth: {type: api_key, in: query, …}` if it must be"
            complaints.add(form.loc, what)
    if run.auth is None:
        return
    for name, value in run.auth.model_dump(by_alias=True).items():
        if name in _SECRET_FIELDS and form_of(value) != "secret":
            complaints.add(("run", "auth", name), "must be {secret: NAME}, never the value itself")
        elif (
            name in {"username", "clientId"}
            and form_of(value) != "secret"
            and not isinstance(value, str)
        ):
            complaints.add(("run", "auth", name), "must be a text or {secret: NAME}")


def _check_pages(run: HttpRun, complaints: Complaints) -> None:
    pages = run.paginate
    if pages is None:
        return
    if run.method not in {"GET", "POST"}:
        complaints.add(("run", "paginate"), "is for GET and POST")
    if pages.by == "cursor" and pages.next is None:
        complaints.add(("run", "paginate"), "needs `next`, the JMESPath of the next cursor")
