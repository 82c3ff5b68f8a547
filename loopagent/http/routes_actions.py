"""Actions: what there is, what it does, who uses it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query

from loopagent.actions.listing import action_row, action_rows
from loopagent.core.action_spec import EffectClass
from loopagent.errors import RequestError
from loopagent.http.body import View
from loopagent.http.problems import responses
from loopagent.http.routes_library import Tenant
from loopagent.http.routes_runs import Host
from loopagent.library.listing import library_row, library_rows
from loopagent.library_port import BuiltState


router = APIRouter(tags=["actions"])


class ActionView(View):
    """An action."""

    name: str
    """Name that agents use."""
    kind: str
    """`code` for one in Python, else the kind of its file: `http`, `prompt` and so on."""
    title: str
    """Name for people."""
    description: str
    """What it does, as models are told."""
    version: str
    """Version, for people."""
    tags: list[str]
    """Words to find it by."""
    deprecated: bool
    """Whether something else should be used."""
    enabled: bool
    """Whether it can be called; what was imported cannot, until a person enables it in its file."""
    effects: EffectClass
    """What a call does to the world."""
    approval: Literal["auto", "ask", "never"] | None
    """Its own policy; null for that of the agent."""
    idempotent: bool
    """Whether the same call made twice has its effect once."""
    parameters: dict[str, Any]
    """JSON Schema of its parameters."""
    ui: dict[str, Any]
    """How forms show the parameters, a uiSchema by parameter."""
    hosts: list[str]
    """Hosts that it may call."""
    secrets: list[str]
    """Names of the secrets that it uses."""
    examples: list[dict[str, Any]]
    """Calls as they may look."""
    tests: int
    """How many tests its file has."""
    used_by: list[str]
    """Agents that use it."""
    source: Literal["file", "library"]
    """`library` for what was built while the server runs, else `file`."""
    state: BuiltState
    """For the library: `draft`, `published`, `changed` (a draft says something else) or `retired`."""
    published: int | None
    """For the library: number of the version that new runs are given."""
    shadowed: bool
    """For the library: whether an action of the project's files has its name, and is used instead."""
    updated_at: float | None
    """For the library: seconds since the epoch."""
    updated_by: str
    """For the library: who changed it last."""


class ActionList(View):
    """All actions."""

    actions: list[ActionView]
    """Sorted by name."""


@router.get("/actions", responses=responses(401, 422, 503))
async def list_actions(app: Host, tenant: Tenant) -> ActionList:
    """List the actions that are known here, whether an agent uses them or not, and those of the library."""
    rows = [*action_rows(app.actions, app.agents), *await library_rows(app.library, tenant)]
    ordered = sorted(rows, key=lambda one: (one["name"], one["source"]))
    return ActionList(actions=[ActionView.model_validate(one) for one in ordered])


@router.get("/actions/{name}", responses=responses(401, 404, 422, 503))
async def show_action(
    app: Host,
    tenant: Tenant,
    name: Annotated[str, Path(max_length=200, description="Name of an action.")],
    source: Annotated[
        Literal["file", "library"] | None,
        Query(
            description="Where to look; left out, what runs are given: a file, else the library."
        ),
    ] = None,
) -> ActionView:
    """Look at an action: parameters, effects, where it calls, who uses it."""
    action = app.actions.get(name) if source != "library" else None
    if action is not None:
        agents = sorted(agent for agent, one in app.agents.items() if name in one.actions)
        return ActionView.model_validate(action_row(action, agents))
    if source == "file":
        raise RequestError("unknown_action", f"There is no action {name!r}.", status=404)
    row = await app.library.get(tenant, name)
    live = (await app.library.definitions.all(tenant)).get(name)
    return ActionView.model_validate(library_row(app.library, row, live))
