"""Operations of an OpenAPI document as drafts of actions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urljoin, urlsplit

from loopagent.actions.format import MAX_NAME_CHARS
from loopagent.actions.importing.auth import Authorised, authorised
from loopagent.actions.importing.document import ApiDocument, UnusableError
from loopagent.actions.importing.parameters import Inputs, read_inputs
from loopagent.actions.importing.schemas import Schemas
from loopagent.actions.importing.texts import tidy
from loopagent.actions.reading import read_action
from loopagent.core.json_values import compact_json, is_array, is_object
from loopagent.core.names import closest
from loopagent.egress.policy import DEFAULT_PORTS
from loopagent.errors import ConfigError


EFFECTS: Final = {
    "GET": "read",
    "HEAD": "read",
    "POST": "external",
    "PUT": "external",
    "PATCH": "external",
    "DELETE": "irreversible",
}
"""What an operation is taken to do to the world; a person corrects it."""
MAX_SCHEMA_CHARS: Final = 60_000
_MAX_TEXT: Final = 2_000
_PLACE: Final = re.compile(r"\{([^{}]+)\}")


@dataclass(slots=True)
class Draft:
    """One operation, and the action that comes of it.

    `problems` keep it from being imported; `notes` are what a person should look at.
    """

    name: str
    method: str
    path: str
    operation: str = ""
    tags: list[str] = field(default_factory=list[str])
    action: dict[str, Any] = field(default_factory=dict[str, Any])
    server: str = ""
    auth: str = "none"
    notes: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])

    def public(self) -> dict[str, Any]:
        """As JSON, for previews."""
        return {
            "name": self.name,
            "method": self.method,
            "path": self.path,
            "operation": self.operation,
            "tags": self.tags,
            "effects": self.action.get("effects") or EFFECTS.get(self.method, "external"),
            "server": self.server,
            "auth": self.auth,
            "secrets": self.action.get("secrets", []),
            "notes": self.notes,
            "problems": self.problems,
        }


@dataclass(frozen=True, slots=True)
class Options:
    """How to import.

    Args:
        prefix: Begins the name of every action.
        base_url: Address that counts instead of the servers of the document; relative ones are joined to it.
        variables: Values of server variables, by name.
    """

    prefix: str
    base_url: str = ""
    variables: dict[str, str] = field(default_factory=dict[str, str])


def drafts(document: ApiDocument, options: Options) -> list[Draft]:
    """Every operation of a document, in its order; each has a name of its own.

    Args:
        document: The document.
        options: How to import.
    """
    made: list[Draft] = []
    taken: set[str] = set()
    for path, path_item, method, operation in _operations(document):
        named = str(operation.get("operationId") or "")
        name = action_name(options.prefix, named or f"{method} {path}")
        unique = _unique(name, taken)
        one = Draft(unique, method, path, named, _texts(operation.get("tags")))
        if not named:
            one.notes.append("has no operationId; the name is made of method and path")
        if unique != name:
            one.notes.append(f"another operation is named {name} too")
        try:
            _fill(one, document, path_item, operation, options)
        except UnusableError as error:
            one.problems.append(str(error))
        made.append(one)
    return made


def draft_of(document: ApiDocument, operation: str, options: Options) -> Draft:
    """One operation by its id; one without is `GET /orders/{id}`.

    Args:
        document: The document.
        operation: Which one.
        options: How to import.

    Raises:
        ConfigError: There is no such operation.
    """
    known: list[str] = []
    for path, path_item, method, found in _operations(document):
        named = str(found.get("operationId") or f"{method} {path}")
        known.append(named)
        if operation in {named, f"{method} {path}"}:
            made = Draft(action_name(options.prefix, named), method, path, named)
            try:
                _fill(made, document, path_item, found, options)
            except UnusableError as error:
                made.problems.append(str(error))
            return made
    near = closest(operation, known)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise ConfigError(f"the document has no operation {operation!r}{hint}")


def _operations(
    document: ApiDocument,
) -> Iterator[tuple[str, dict[str, Any], str, dict[str, Any]]]:
    paths = document.value.get("paths")
    for path, given in paths.items() if is_object(paths) else ():
        try:
            item = document.object(given)
        except UnusableError:
            continue
        for method in EFFECTS:
            operation = item.get(method.lower())
            if is_object(operation) and not path.startswith("x-"):
                yield path, item, method, operation


def action_name(prefix: str, text: str) -> str:
    """A name for an action: words in lower case, with `_` between them, behind a prefix."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    plain = re.sub(r"[^a-z0-9]+", "_", split.lower()).strip("_") or "operation"
    return f"{prefix}.{plain}"[: MAX_NAME_CHARS - 4].rstrip("_.-")


def _unique(name: str, taken: set[str]) -> str:
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    taken.add(found)
    return found


def _texts(value: Any) -> list[str]:
    return [str(one)[:60] for one in value][:50] if is_array(value) else []


def _fill(
    draft: Draft,
    document: ApiDocument,
    path_item: dict[str, Any],
    operation: dict[str, Any],
    options: Options,
) -> None:
    """Make the action of an operation.

    Raises:
        UnusableError: It cannot be made.
    """
    schemas = Schemas(document)
    draft.server = server_of(document, path_item, operation, options)
    inputs = read_inputs(document, path_item, operation, schemas)
    auth = authorised(document, operation, options.prefix, draft.server)
    draft.auth = auth.said
    draft.notes += [*inputs.notes, *dict.fromkeys(schemas.notes), *auth.notes]
    draft.problems += inputs.problems
    run = _run(draft, inputs, auth)
    params = inputs.schema(schemas)
    if len(compact_json(params)) > MAX_SCHEMA_CHARS:
        raise UnusableError(
            f"the schema of its parameters has more than {MAX_SCHEMA_CHARS} characters"
        )
    draft.action = _action(draft, operation, params, run, auth)
    complaints = read_action(draft.action).complaints.found
    draft.problems += [f"{one.where}: {one.what}" for one in complaints if not one.warning]


def _run(draft: Draft, inputs: Inputs, auth: Authorised) -> dict[str, Any]:
    path, _, query = draft.path.partition("?")
    for name in _PLACE.findall(path):
        if name not in inputs.path:
            inputs.path[name] = inputs.add(name, "path", {"type": "string"}, required=True)
            draft.notes.append(f"{name} stands in the path, but not among the parameters")
    path = _PLACE.sub(lambda found: f"{{{inputs.path[found[1]]}}}", path)
    run: dict[str, Any] = {"kind": "http", "method": draft.method}
    run["url"] = draft.server.rstrip("/") + path
    fixed = dict(parse_qsl(query, keep_blank_values=True))
    parts = {"query": {**fixed, **inputs.query}, "headers": {**inputs.headers, **auth.headers}}
    run |= {key: value for key, value in parts.items() if value}
    if inputs.arrays != "repeat":
        run["arrays"] = inputs.arrays
    if inputs.body is not None:
        run["body"] = inputs.body
    if inputs.body is not None and inputs.body_type != "json":
        run["bodyType"] = inputs.body_type
    return {**run, "auth": auth.auth} if auth.auth is not None else run


def _action(
    draft: Draft,
    operation: dict[str, Any],
    params: dict[str, Any],
    run: dict[str, Any],
    auth: Authorised,
) -> dict[str, Any]:
    summary = " ".join(str(operation.get("summary") or "").split())
    text = tidy(str(operation.get("description") or "")[:_MAX_TEXT]) or summary
    made: dict[str, Any] = {"apiVersion": "loopagent/v1", "kind": "Action", "name": draft.name}
    made["enabled"] = False
    if summary:
        made["title"] = summary[:200]
    made["description"] = (text or f"{draft.method} {draft.path}")[:_MAX_TEXT]
    if draft.tags:
        made["tags"] = draft.tags
    if operation.get("deprecated") is True:
        made["deprecated"] = True
    made["effects"] = EFFECTS[draft.method]
    if operation.get("x-openai-isConsequential") is True:
        made["approval"] = {"policy": "ask"}
    made["params"] = params
    if auth.secrets:
        made["secrets"] = list(dict.fromkeys(auth.secrets))
    made["egress"] = _egress(run)
    return {**made, "run": run}


def _egress(run: dict[str, Any]) -> dict[str, Any]:
    auth: dict[str, Any] = run.get("auth") or {}
    found = [urlsplit(one) for one in (run["url"], auth.get("tokenUrl")) if one]
    ports = sorted({one.port for one in found if one.port} - set(DEFAULT_PORTS.values()))
    hosts = list(dict.fromkeys(one.hostname for one in found if one.hostname))
    return {"hosts": hosts, "ports": ports} if ports else {"hosts": hosts}


# --- servers ---------------------------------------------------------------------------------------


def server_of(
    document: ApiDocument,
    path_item: dict[str, Any],
    operation: dict[str, Any],
    options: Options,
) -> str:
    """The address that an operation is called under: the first server of it, of its path, or of the document.

    Raises:
        UnusableError: There is none, or a variable of it has no value.
    """
    lists = (one.get("servers") for one in (operation, path_item, document.value))
    servers = next((one for one in lists if is_array(one) and one), [{"url": "/"}])
    server = document.object(servers[0])
    url = _with_variables(document, server, options.variables)
    whole = bool(urlsplit(url).scheme)
    joined = (
        options.base_url
        if options.base_url and whole
        else urljoin(options.base_url or document.source, url)
    )
    try:
        parts = urlsplit(joined)
        fits = parts.scheme in DEFAULT_PORTS and parts.hostname
        _ = parts.port
    except ValueError:
        fits = False
    if not fits:
        raise UnusableError(
            f"its server {url[:100]!r} is no whole address; give one with --base-url"
        )
    return joined


def _with_variables(document: ApiDocument, server: dict[str, Any], given: dict[str, str]) -> str:
    variables = document.object(server.get("variables"))

    def value(found: re.Match[str]) -> str:
        name = found[1]
        variable = document.object(variables.get(name))
        chosen = given.get(name, variable.get("default"))
        choices = variable.get("enum")
        if chosen is None:
            raise UnusableError(
                f"the variable {name} of its server has no value; give one with --server-var"
            )
        if is_array(choices) and choices and chosen not in choices:
            listed = ", ".join(map(str, choices))[:200]
            raise UnusableError(f"the variable {name} of its server must be one of {listed}")
        return str(chosen)

    return _PLACE.sub(value, str(server.get("url") or "/"))
