"""What each route asks of its caller: scopes, and whose objects its address names.

A route that is not here is nobody's but the operator's; a test compares this table with the routes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from loopagent.access import SCOPES


Objects = Literal["tenants", "server"]
READ: Final = ("runs", "requests.answer")
"""Who may start runs and who may answer requests may look at both."""
_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Rule:
    """What a route asks for.

    Runs and requests that the address names by `run`, `other` and `request`, notifications by `notice`, triggers by
    `trigger` and keys by `key` must be ones that the caller reaches. `server`: it concerns all tenants, so a key for
    one of them does not do.
    """

    method: str
    template: str
    scopes: tuple[str, ...]
    objects: Objects = "tenants"

    @property
    def pattern(self) -> re.Pattern[str]:
        """What fits the path of a request."""
        parts = _PARAMETER.split(self.template)  # words between names, and the names
        named = (f"(?P<{one}>[^/]+)" if at % 2 else re.escape(one) for at, one in enumerate(parts))
        return re.compile("".join(named))


V1: Final = "/api/v1"
_READING: Final = f"""
{V1}/runs
{V1}/runs/{{run}}
{V1}/runs/{{run}}/state
{V1}/runs/{{run}}/tree
{V1}/runs/{{run}}/events
{V1}/runs/{{run}}/stream
{V1}/runs/{{run}}/turns/{{turn}}
{V1}/runs/{{run}}/messages
{V1}/runs/{{run}}/artifacts
{V1}/runs/{{run}}/artifacts/{{handle}}
{V1}/runs/{{run}}/artifacts/{{handle}}/look
{V1}/runs/{{run}}/artifacts/{{handle}}/changes/{{before}}
{V1}/artifacts
{V1}/artifacts/{{artifact}}
{V1}/runs/{{run}}/client-tools
{V1}/runs/{{run}}/approvals
{V1}/runs/{{run}}/compare/{{other}}
{V1}/requests
{V1}/audit
{V1}/requests/{{request}}
{V1}/inbox
{V1}/inbox/snoozed
{V1}/inbox/views
{V1}/triggers
{V1}/triggers/{{trigger}}
{V1}/triggers/{{trigger}}/deliveries
{V1}/notifications
{V1}/notifications/{{notice}}
{V1}/conversations
{V1}/conversations/{{conversation}}
{V1}/conversations/{{conversation}}/messages
{V1}/memory
{V1}/memory/export
{V1}/memory/{{note}}
/
/requests/{{request}}
/runs
/runs/{{run}}
/runs/{{run}}/turns/{{turn}}
/runs/{{run}}/explain
/runs/{{run}}/log
/runs/{{run}}/messages
/runs/{{run}}/artifacts/{{handle}}
/artifacts
/compare
/memory
/audit
/notifications
"""
_KNOWING: Final = f"""
{V1}/agents
{V1}/agents/{{name}}
{V1}/actions
{V1}/actions/{{name}}
/agents
/agents/{{name}}
/actions
/actions/{{name}}
/actions/{{name}}/look
/openapi.json
"""
_RUNNING: Final = f"""
POST {V1}/runs
POST {V1}/runs/stream
DELETE {V1}/runs/{{run}}
POST {V1}/runs/{{run}}/messages
POST {V1}/runs/{{run}}/mode
POST {V1}/runs/{{run}}/cancel
POST {V1}/runs/{{run}}/pause
POST {V1}/runs/{{run}}/resume
POST {V1}/runs/{{run}}/limits
POST {V1}/runs/{{run}}/fork
POST {V1}/runs/{{run}}/client-tools/{{call}}
POST {V1}/artifacts
POST {V1}/agents/{{name}}/dry-run
POST {V1}/triggers/{{trigger}}/fire
POST {V1}/notifications/{{notice}}/replay
DELETE {V1}/conversations/{{conversation}}
PATCH {V1}/memory/{{note}}
DELETE {V1}/memory/{{note}}
POST /runs/{{run}}
POST /agents/{{name}}
POST /agents/{{name}}/dry-run
POST /memory/{{note}}
POST /notifications/{{notice}}
"""
_ANSWERING: Final = f"""
POST {V1}/requests/{{request}}/answer
DELETE {V1}/runs/{{run}}/approvals/{{approval}}
POST {V1}/requests/{{request}}/claim
POST {V1}/requests/{{request}}/release
POST {V1}/requests/{{request}}/assign
POST {V1}/requests/{{request}}/snooze
DELETE {V1}/requests/{{request}}/snooze
POST {V1}/requests/approve
PUT {V1}/inbox/views/{{name}}
DELETE {V1}/inbox/views/{{name}}
POST /requests/{{request}}
POST /requests/{{request}}/desk
GET /approve
POST /approve
POST /views
POST /preview
"""
_BUILDING: Final = f"""
POST {V1}/actions/import/openapi
POST {V1}/actions/import/curl
GET {V1}/library
GET {V1}/library/changes
POST {V1}/actions/lint
PUT {V1}/actions/{{name}}
DELETE {V1}/actions/{{name}}
GET {V1}/actions/{{name}}/draft
GET {V1}/actions/{{name}}/versions
GET {V1}/actions/{{name}}/versions/{{number}}
GET {V1}/actions/{{name}}/versions/{{number}}/diff
POST {V1}/actions/{{name}}/test
POST {V1}/actions/{{name}}/tests
POST {V1}/actions/{{name}}/publish
POST {V1}/actions/{{name}}/rollback
POST {V1}/actions/{{name}}/grant
POST {V1}/actions/{{name}}/retire
POST {V1}/actions/{{name}}/rename
GET /actions/new
POST /actions/new
GET /actions/{{name}}/edit
POST /actions/{{name}}/edit
GET /actions/{{name}}/publish
POST /actions/{{name}}/publish
GET /actions/{{name}}/versions
POST /actions/{{name}}/versions
POST /actions/{{name}}/manage
"""
_IMPORTING: Final = f"""
GET {V1}/secrets
GET {V1}/mcp-servers
POST {V1}/actions/import/mcp
POST {V1}/actions/select
GET /secrets
GET /actions/new/curl
POST /actions/new/curl
GET /actions/new/openapi
POST /actions/new/openapi
GET /actions/new/mcp
GET /actions/new/mcp/{{name}}
POST /actions/new/mcp/{{name}}
GET /actions/{{name}}/test
POST /actions/{{name}}/test
POST /actions/{{name}}/test/select
"""


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    words = text.split()
    return zip(words[::2], words[1::2], strict=True)


_ADMINISTERING: Final = f"""
GET {V1}/keys
POST {V1}/keys
DELETE {V1}/keys/{{key}}
GET {V1}/sessions
DELETE {V1}/sessions/{{session}}
GET /keys
POST /keys
POST /keys/{{key}}
POST /sessions/{{session}}
"""
_OPERATING: Final = f"""
GET {V1}/notifications/receivers
POST {V1}/notifications/receivers/{{receiver}}/enable
POST /notifications/receivers/{{receiver}}
GET /metrics
"""
RULES: Final = (
    *(Rule(method, path, ("admin",), "server") for method, path in _pairs(_OPERATING)),
    *(Rule("GET", one, READ) for one in _READING.split()),
    *(Rule("GET", one, SCOPES) for one in _KNOWING.split()),
    *(Rule(method, path, ("admin",)) for method, path in _pairs(_ADMINISTERING)),
    *(Rule(method, path, ("runs",)) for method, path in _pairs(_RUNNING)),
    *(Rule(method, path, ("requests.answer",)) for method, path in _pairs(_ANSWERING)),
    *(Rule(method, path, ("actions.write",)) for method, path in _pairs(_BUILDING)),
    *(Rule(method, path, ("actions.write",)) for method, path in _pairs(_IMPORTING)),
)
"""The table; the first rule that fits is taken."""
OPEN: Final = (
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/signin"),
    ("POST", "/signin"),
    ("POST", "/signout"),
    ("GET", "/signin/oidc/{name}"),
    ("GET", "/signin/oidc/{name}/callback"),
    ("GET", "/static/{key:path}"),
    ("POST", f"{V1}/triggers/{{name}}"),  # says itself who may call it
)
"""Routes that anybody may call."""
_PATTERNS: Final = tuple((one, one.pattern) for one in RULES)
_OPEN: Final = tuple(
    (method, re.compile(template.replace("{key:path}", ".*").replace("{name}", "[^/]+")))
    for method, template in OPEN
)


def rule_for(method: str, path: str) -> tuple[Rule, dict[str, str]] | None:
    """The rule for a request and what its path names; None when no route is known."""
    for rule, pattern in _PATTERNS:
        found = pattern.fullmatch(path) if rule.method == method else None
        if found is not None:
            return rule, found.groupdict()
    return None


def is_open(method: str, path: str) -> bool:
    """Whether anybody may make a request."""
    return any(one == method and pattern.fullmatch(path) for one, pattern in _OPEN)
