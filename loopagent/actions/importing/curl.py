"""A curl command as an action: what is secret becomes the name of a secret, files are refused."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from loopagent.actions.importing.auth import secret_name
from loopagent.actions.importing.curl_words import Command, read_command
from loopagent.actions.importing.operations import EFFECTS, action_name
from loopagent.actions.reading import read_action
from loopagent.actions.values import form_of
from loopagent.core.json_values import is_array, is_object
from loopagent.egress.policy import DEFAULT_PORTS
from loopagent.errors import ConfigError


_SECRET: Final = re.compile(
    r"(?i)^(?:proxy-)?authorization$|cookie|api[-_]?key|token|secret|password|session"
)


@dataclass(frozen=True, slots=True)
class FromCurl:
    """What came of a command: an action, and what a person should look at.

    `secrets` are their names; the values are nowhere any more.
    """

    action: dict[str, Any]
    secrets: list[str]
    notes: list[str]


def import_curl(command: str, name: str = "") -> FromCurl:
    """The action of a curl command.

    Args:
        command: The command, as one would type it into a shell.
        name: Name of the action; empty for one made of host and path.

    Raises:
        ConfigError: It is no curl command, or does what actions cannot.
    """
    made = read_command(command)
    if not made.url:
        raise ConfigError("the command names no address")
    return _Maker(made, name).made()


# --- the action ------------------------------------------------------------------------------------


class _Maker:
    """Makes the action of what a command says."""

    def __init__(self, command: Command, name: str) -> None:
        self._command = command
        url = command.url if "://" in command.url else f"http://{command.url}"
        try:
            self._url = urlsplit(url)
            self._port = self._url.port
        except ValueError:
            raise ConfigError(f"{url[:100]!r} is no address") from None
        if not self._url.hostname or self._url.scheme not in DEFAULT_PORTS:
            raise ConfigError(f"{url[:100]!r} is no address that can be called")
        self._host = self._url.hostname
        self._prefix = re.sub(r"[^a-z0-9]+", "_", self._host.lower()).strip("_")
        self._name = name or action_name(self._prefix, f"{self._method} {self._url.path}")
        self._secrets: list[str] = []
        self._notes = list(command.notes)

    @property
    def _method(self) -> str:
        command = self._command
        sends = bool(command.data) and not command.get
        return (command.method or ("HEAD" if command.head else "POST" if sends else "GET")).upper()

    def made(self) -> FromCurl:
        if self._method not in EFFECTS:
            raise ConfigError(
                f"the method {self._method[:20]} cannot be used; {', '.join(EFFECTS)} can"
            )
        run = self._run()
        effects = EFFECTS[self._method]
        action: dict[str, Any] = {
            "apiVersion": "loopagent/v1",
            "kind": "Action",
            "name": self._name,
        }
        action |= {"enabled": False, "description": f"{self._method} {self._host}{self._url.path}"}
        action |= {"effects": effects, "params": self._params(run)}
        if self._secrets:
            action["secrets"] = list(dict.fromkeys(self._secrets))
        egress: dict[str, Any] = {"hosts": [self._host]}
        if self._port and self._port not in DEFAULT_PORTS.values():
            egress["ports"] = [self._port]
        action |= {"egress": egress, "run": run}
        problems = [one for one in read_action(action).complaints.found if not one.warning]
        if problems:
            raise ConfigError(
                "the command cannot be made an action",
                [f"{one.where}: {one.what}" for one in problems],
            )
        return FromCurl(action, action.get("secrets", []), self._notes)

    def _params(self, run: dict[str, Any]) -> dict[str, Any]:
        """No parameters yet: the command has values only, and a person says which of them may change."""
        if "{" in run["url"]:
            raise ConfigError("the address has a brace in it; write it out, or as %7B")
        self._notes.append(
            "there are no parameters yet; put `{from: params.NAME}` where a value may change"
        )
        return {"type": "object", "additionalProperties": False, "properties": {}}

    def _run(self) -> dict[str, Any]:
        url, command = self._url, self._command
        authority = self._host if ":" not in self._host else f"[{self._host}]"
        authority += f":{self._port}" if self._port else ""
        run: dict[str, Any] = {"kind": "http", "method": self._method}
        run["url"] = f"{url.scheme}://{authority}{url.path or '/'}"
        auth = self._auth(url.username, url.password)
        pairs = parse_qsl(url.query, keep_blank_values=True)
        if command.get:
            pairs += parse_qsl("&".join(command.data), keep_blank_values=True)
        query, by_query = self._query(pairs)
        headers = self._headers(taken=bool(auth))
        if auth and by_query:
            name = by_query["name"]
            self._secrets.remove(by_query["value"]["secret"])
            self._notes.append(
                f"{name} of the query looks like a secret and is left out: there is another"
            )
        auth = auth or by_query
        run |= {"query": query} if query else {}
        run |= {"headers": headers} if headers else {}
        run |= {} if command.get else self._body()
        if command.follow:
            run["redirects"] = "same_origin"
            self._notes.append("redirects are followed within the same origin only")
        return {**run, "auth": auth} if auth else run

    def _secret(self, what: str) -> dict[str, str]:
        name = secret_name(self._prefix, what)
        if name in self._secrets:
            name = f"{name}_{len(self._secrets)}"
        self._secrets.append(name)
        return {"secret": name}

    def _auth(self, user: str | None, password: str | None) -> dict[str, Any]:
        command = self._command
        if command.user or user:
            name, _, word = command.user.partition(":")
            return self._basic(name or unquote(user or ""), word or password or "")
        given = next(
            (text for name, text in command.headers if name.lower() == "authorization"), ""
        )
        if command.bearer or given.lower().startswith("bearer "):
            return {"type": "bearer", "token": self._secret("token")}
        if given.lower().startswith("basic "):
            values = {"username": self._secret("user"), "password": self._secret("password")}
            return {"type": "basic", **values}
        return {}

    def _basic(self, name: str, password: str) -> dict[str, Any]:
        if password or ":" not in self._command.user:
            return {"type": "basic", "username": name, "password": self._secret("password")}
        # A name without a password is a key.
        secret = self._secret("authorization")
        self._notes.append(f"the secret {secret['secret']} is `Basic ` and base64 of NAME:")
        return {"type": "api_key", "in": "header", "name": "Authorization", "value": secret}

    def _headers(self, *, taken: bool) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, text in self._command.headers:
            low = name.lower()
            if low in {"host", "content-length", "accept-encoding", "connection", "user-agent"}:
                continue
            if low == "authorization" and taken:
                continue
            made[name] = self._secret(name) if _SECRET.search(name) else text
        if self._command.json:
            made.setdefault("Accept", "application/json")
        return {name: one for name, one in made.items() if not self._is_json(name, one)}

    @staticmethod
    def _is_json(name: str, value: Any) -> bool:
        """Whether a header says what the kind of the body says anyway."""
        return name.lower() == "content-type" and value in {
            "application/json",
            "application/x-www-form-urlencoded",
        }

    def _query(self, pairs: list[tuple[str, str]]) -> tuple[dict[str, Any], dict[str, Any]]:
        made: dict[str, Any] = {}
        auth: dict[str, Any] = {}
        for name, value in pairs:
            if _SECRET.search(name) and not auth:
                auth = {"type": "api_key", "in": "query", "name": name, "value": self._secret(name)}
                continue
            before = made.get(name)
            made[name] = (
                value
                if before is None
                else [*([before] if isinstance(before, str) else before), value]
            )
        return made, auth

    def _body(self) -> dict[str, Any]:
        command = self._command
        if not command.data:
            return {}
        kinds = [text.lower() for name, text in command.headers if name.lower() == "content-type"]
        kind = kinds[-1] if kinds else "application/json" if command.json else ""
        text = ("" if command.json else "&").join(command.data)
        if "json" in kind or (not kind and text.lstrip()[:1] in {"{", "["}):
            return self._json_body(text, kind)
        if kind in {"", "application/x-www-form-urlencoded"}:
            return self._form_body(text)
        return {"body": text, "bodyType": "text"}

    def _json_body(self, text: str, kind: str) -> dict[str, Any]:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"the body is no JSON: {error}") from None
        if not kind:
            self._notes.append("the body looks like JSON and is sent as such")
        plain = _plain(value)
        if is_object(plain) and form_of(plain) is None:
            self._look_at(plain)
        return {"body": plain}

    def _form_body(self, text: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for part in text.split("&"):
            name, _, value = part.partition("=")
            made[unquote_plus(name)] = unquote_plus(value)
        self._look_at(made)
        return {"body": made, "bodyType": "form"}

    def _look_at(self, value: dict[str, Any]) -> None:
        """Put secrets for values that look like one."""
        for name, one in value.items():
            if _SECRET.search(name) and isinstance(one, str) and one:
                value[name] = self._secret(name)


def _plain(value: Any) -> Any:
    """A value in which nothing is taken for a form by chance."""
    if form_of(value) is not None:
        return {"literal": value}
    if is_object(value):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if is_array(value) else value
