"""Publishing an action: what changes, who gets it; and the versions there were."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from loopagent.actions.importing.texts import difference
from loopagent.errors import RequestError
from loopagent.library_port import Built, Version
from loopagent.web.editor_view import remarks_of
from loopagent.web.posts import Fields, fields_of, one
from loopagent.web.routes_actions import editor_of
from loopagent.web.shared import app_of, caller_of, pages_of, tenant_of, whole


DRAFT = "draft"
router = APIRouter(include_in_schema=False)


@router.get("/actions/{name}/publish")
async def show_publishing(request: Request, name: str) -> Response:
    """What publishing the draft would change, and for which agents."""
    return await _publish_page(request, name, {})


async def _publish_page(
    request: Request, name: str, sent: Fields, error: RequestError | None = None
) -> Response:
    library, tenant = app_of(request).library, tenant_of(request)
    row = await library.get(tenant, name)
    live = await library.version(tenant, name, row.published) if row.published else None
    complaints = await library.lint(tenant, row.draft, name)
    known = dict.fromkeys([*library.agents(), *row.agents])
    context = {
        "row": row,
        "live": live,
        "difference": difference(live.text if live else "", row.draft),
        "remarks": remarks_of(row.draft, complaints),
        "wrong": sum(not each.warning for each in complaints),
        "agents": {agent: agent in sent.get("agent", row.agents) for agent in known},
        "note": one(sent, "note"),
        "error": error,
    }
    status = 200 if error is None else error.status
    return pages_of(request).page(request, "action_publish.html", context, status=status)


@router.post("/actions/{name}/publish")
async def publish_action(request: Request, name: str) -> Response:
    """Publish the draft that was shown, or only say who gets what is published."""
    sent = await fields_of(request)
    library, tenant, by = app_of(request).library, tenant_of(request), caller_of(request).by
    agents, done = sent.get("agent", []), one(sent, "do")
    try:
        if done == "granted":
            await library.grant(tenant, name, agents, by=by)
        else:
            done = "published"
            await library.publish(
                tenant,
                name,
                draft_hash=one(sent, "hash"),
                agents=agents,
                note=one(sent, "note"),
                by=by,
            )
    except RequestError as error:
        return await _publish_page(request, name, {"agent": [], **sent}, error)
    return RedirectResponse(f"{editor_of(name)}?done={done}", 303)


@router.get("/actions/{name}/versions")
async def list_versions(request: Request, name: str) -> Response:
    """The versions of an action, and how two of them differ."""
    return await _versions_page(request, name)


async def _versions_page(
    request: Request, name: str, error: RequestError | None = None
) -> Response:
    library, tenant, asked = app_of(request).library, tenant_of(request), request.query_params
    row = await library.get(tenant, name)
    versions = await library.versions(tenant, name)
    texts = _texts(row, list(versions))
    first, second = asked.get("a", ""), asked.get("b", "")
    compared = difference(texts[first], texts[second]) if {first, second} <= set(texts) else None
    changes, _ = await library.changes(tenant, name)
    context: dict[str, Any] = {
        "row": row,
        "versions": versions,
        "names": list(texts),
        "first": first or (list(texts)[1] if len(texts) > 1 else ""),
        "second": second or DRAFT,
        "difference": compared,
        "changes": changes,
        "error": error,
    }
    status = 200 if error is None else error.status
    return pages_of(request).page(request, "action_versions.html", context, status=status)


def _texts(row: Built, versions: list[Version]) -> dict[str, str]:
    """The texts that can be compared, by what the page calls them."""
    return {DRAFT: row.draft, **{str(one.number): one.text for one in versions}}


@router.post("/actions/{name}/versions")
async def publish_again(request: Request, name: str) -> Response:
    """Make an older version the one that new runs get."""
    sent = await fields_of(request)
    number = whole(one(sent, "number"))
    try:
        if number is None:
            raise RequestError("bad_form", "Choose one of the versions.", status=400)  # noqa: TRY301
        await app_of(request).library.rollback(
            tenant_of(request), name, number, by=caller_of(request).by
        )
    except RequestError as error:
        return await _versions_page(request, name, error)
    return RedirectResponse(f"{editor_of(name)}?done=again", 303)
