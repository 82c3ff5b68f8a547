"""The ASGI app: routes over the app's verbs, complete OpenAPI, problem details for every error."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI

from loopagent.access import AccessSettings
from loopagent.app import App
from loopagent.callers import Access
from loopagent.egress import EgressSettings
from loopagent.http import (
    problems,
    routes_actions,
    routes_agents,
    routes_approvals,
    routes_artifacts,
    routes_audit,
    routes_building,
    routes_client_tools,
    routes_control,
    routes_conversations,
    routes_imports,
    routes_inbox,
    routes_keys,
    routes_library,
    routes_memory,
    routes_metrics,
    routes_notifications,
    routes_requests,
    routes_runs,
    routes_triggers,
    routes_turns,
)
from loopagent.http.middleware import Guard, Idempotency
from loopagent.http.models import Problem
from loopagent.oidc.opening import signing_in
from loopagent.oidc.spec import OidcSettings
from loopagent.version import VERSION
from loopagent.web.site import add_pages


if TYPE_CHECKING:
    from loopagent.oidc.signing_in import SigningIn

MAX_BODY_BYTES = 10_000_000
MAX_UPLOAD_BYTES = 25_000_000
"""Largest form with files: those that a run may be given, and some room around them."""


ROUTES = (
    routes_runs,
    routes_approvals,
    routes_control,
    routes_artifacts,
    routes_requests,
    routes_audit,
    routes_keys,
    routes_inbox,
    routes_turns,
    routes_client_tools,
    routes_conversations,
    routes_memory,
    routes_triggers,
    routes_notifications,
    routes_actions,
    routes_building,
    routes_imports,
    routes_library,
    routes_agents,
)
"""What lies below `/api/v1`."""


def create_api(
    app: App,
    *,
    token: str | None = None,
    access: AccessSettings | None = None,
    anybody: bool = False,
    oidc: OidcSettings | None = None,
    egress: EgressSettings | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
    max_upload_bytes: int = MAX_UPLOAD_BYTES,
    manage: bool = True,
    pages: bool = True,
) -> FastAPI:
    """The HTTP API of an app.

    Args:
        app: What to serve.
        token: Bearer token that opens everything; without one, and as long as nobody made an API key, everybody is let
            in who can connect.
        access: How long sessions last, and how often a key may call.
        anybody: Let everybody in, whatever keys there are.
        oidc: Providers at which people may sign in; then nobody is let in who has not.
        egress: The proxy by which providers are called.
        max_body_bytes: Largest request body.
        max_upload_bytes: Largest body that is a form with files.
        manage: Open and close the app with the server, unless somebody else has opened it; False when somebody will.
        pages: Serve the pages for people as well, beside the API.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if app.opened or not manage:
            yield
            return
        async with app:
            yield

    api = FastAPI(
        title="loopagent",
        version=VERSION,
        summary="Start loop agents, watch them, answer what they ask.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    api.state.app = app
    api.state.access = Access(
        app,
        token=token,
        settings=access or AccessSettings(),
        anybody=anybody,
        issuers={} if oidc is None else oidc.issuers,
    )
    api.state.signing_in = _signing_in(app, api.state.access, oidc, egress)
    problems.install(api)
    _add_routes(api)
    if pages:
        add_pages(api, app)
    _describe(api)
    _put_before(api, app, (max_body_bytes, max_upload_bytes))
    return api


def _signing_in(
    app: App, access: Access, oidc: OidcSettings | None, egress: EgressSettings | None
) -> SigningIn | None:
    """What signs people in; None where no provider is named."""
    return signing_in(
        oidc,
        keys=app.keys,
        env=app.env,
        clock=app.now,
        session_seconds=access.settings.session_hours * 3_600,
        egress=egress,
    )


def _add_routes(api: FastAPI) -> None:
    for routes in ROUTES:
        api.include_router(routes.router, prefix="/api/v1")
    for routes_with_files in (routes_runs.starting, routes_artifacts.giving):
        api.include_router(routes_with_files, prefix="/api/v1")
    api.include_router(routes_agents.health)
    api.include_router(routes_metrics.router)


def _put_before(api: FastAPI, app: App, most_bytes: tuple[int, int]) -> None:
    """What a request passes before it comes to a route; the last one is the first."""
    api.add_middleware(Idempotency, host=app)
    if app.telemetry.tracing is not None:
        from loopagent.http.tracing import Traced  # noqa: PLC0415 - only who traces needs it

        api.add_middleware(Traced)
    api.add_middleware(Guard, access=api.state.access, most_bytes=most_bytes)


def _describe(api: FastAPI) -> None:
    """Put the problem's schema where the routes refer to, and leave out FastAPI's own error shape."""
    plain = api.openapi

    def openapi() -> dict[str, object]:
        schema = plain()
        schemas = schema["components"]["schemas"]
        if "Problem" not in schemas:
            own = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(own.pop("$defs", {}))
            schemas["Problem"] = own
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        return schema

    api.openapi = openapi  # type: ignore[method-assign]
