# ruff: noqa: FAST003 - `spot` takes the name of the action
"""Actions that are built while the server runs: drafts, test calls, versions, and who is given them."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query

from loopagent.core.text import clean_text
from loopagent.errors import RequestError
from loopagent.http.access import Who
from loopagent.http.models import listed
from loopagent.http.models_library import (
    BuiltView,
    ChangePage,
    ChangeView,
    ComplaintView,
    DiffView,
    ExchangeView,
    GrantAction,
    LibraryView,
    LintAction,
    LintView,
    PublishAction,
    RenameAction,
    RollBackAction,
    SaveAction,
    SecretView,
    TestAction,
    TestResults,
    TestResultView,
    TestView,
    TextOfAction,
    VersionDetail,
    VersionList,
    VersionView,
)
from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host, Key
from loopagent.library.service import Library
from loopagent.library_port import Built


def whose(
    who: Who,
    tenant: Annotated[
        str, Query(max_length=200, description="Whose library; empty: that of runs without any.")
    ] = "",
) -> str:
    """The tenant whose library a request is about.

    Raises:
        RequestError: `forbidden` (403), the caller's key is of another tenant; `invalid_tenant`.
    """
    if clean_text(tenant) != tenant:
        raise RequestError("invalid_tenant", "The tenant has a character that no store can hold.")
    return who.whose(who.user, tenant)[1]


def library_of(app: Host) -> Library:
    """The library of the app that is served."""
    return app.library


Tenant = Annotated[str, Depends(whose)]
Shelf = Annotated[Library, Depends(library_of)]
Name = Annotated[str, Path(max_length=200, description="Name of an action.")]
Number = Annotated[int, Path(ge=1, le=2_000_000_000, description="Number of a version.")]


@dataclass(frozen=True, slots=True)
class Spot:
    """An action of the library as a request names it, and who makes the request."""

    library: Library
    tenant: str
    name: str
    by: str


def spot(library: Shelf, tenant: Tenant, who: Who, name: Name) -> Spot:
    """What a request is about."""
    return Spot(library, tenant, name, who.by)


At = Annotated[Spot, Depends(spot)]
_CHANGES = responses(400, 401, 404, 409, 413, 422, 503)
router = APIRouter(tags=["actions"])


# ---------------------------------------------------------------------- looking


@router.get("/library", responses=responses(401, 422, 503))
async def show_library(library: Shelf) -> LibraryView:
    """Tell what actions that are built here may name: secrets, MCP servers, agents, models."""
    secrets = [SecretView(name=name, **about) for name, about in library.secrets().items()]
    return LibraryView(
        secrets=secrets, servers=library.servers(), agents=library.agents(), models=library.models()
    )


@router.get("/library/changes", responses=responses(400, 401, 422, 503))
async def list_changes(
    library: Shelf,
    tenant: Tenant,
    *,
    name: Annotated[str | None, Query(max_length=200, description="Only of this action.")] = None,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> ChangePage:
    """List who did what to actions of the library, newest first; also of those that were deleted."""
    rows, following = await library.changes(tenant, name, cursor=cursor, limit=limit)
    views = [ChangeView.model_validate(listed(one)) for one in rows]
    return ChangePage(changes=views, next_cursor=following)


@router.get("/actions/{name}/draft", responses=responses(401, 404, 422, 503))
async def show_draft(at: At) -> BuiltView:
    """Look at an action of the library as it is edited."""
    return _view(at.library, await at.library.get(at.tenant, at.name))


@router.get("/actions/{name}/versions", responses=responses(401, 404, 422, 503))
async def list_versions(at: At) -> VersionList:
    """List the versions of an action of the library, newest first."""
    found = await at.library.versions(at.tenant, at.name)
    return VersionList(versions=[VersionView.model_validate(listed(one)) for one in found])


@router.get("/actions/{name}/versions/{number}", responses=responses(401, 404, 422, 503))
async def show_version(at: At, number: Number) -> VersionDetail:
    """Look at a version of an action of the library."""
    return VersionDetail.model_validate(
        listed(await at.library.version(at.tenant, at.name, number))
    )


@router.get("/actions/{name}/versions/{number}/diff", responses=responses(401, 404, 422, 503))
async def diff_versions(
    at: At,
    number: Number,
    against: Annotated[
        int | None,
        Query(ge=1, le=2_000_000_000, description="A version; left out, the one before."),
    ] = None,
) -> DiffView:
    """Compare a version of an action with another one."""
    after = await at.library.version(at.tenant, at.name, number)
    other = number - 1 if against is None else against
    before = (await at.library.version(at.tenant, at.name, other)).text if other else ""
    names = (f"version {other}", f"version {number}")
    lines = unified_diff(before.splitlines(), after.text.splitlines(), *names, lineterm="")
    return DiffView(number=number, against=other, diff="\n".join(lines))


# ---------------------------------------------------------------------- checking and trying


@router.post("/actions/lint", responses=responses(400, 401, 413, 422, 503))
async def lint_action(
    library: Shelf, tenant: Tenant, asked: LintAction, key: Key = None
) -> LintView:
    """Check a text: every complaint with line and column. Nothing is kept."""
    del key  # honoured before the route, for every POST
    found = await library.lint(tenant, asked.text, asked.name, files=asked.files)
    views = [ComplaintView.model_validate(listed(one)) for one in found]
    return LintView(fine=all(one.warning for one in found), complaints=views)


@router.post("/actions/{name}/test", responses=_CHANGES)
async def try_action(at: At, asked: TestAction, key: Key = None) -> TestView:
    """Show what a call would send, or send it for real; a call that is sent is written down."""
    del key
    text = (
        asked.text if asked.text is not None else (await at.library.get(at.tenant, at.name)).draft
    )
    given: dict[str, Any] = {"files": asked.files}
    if not asked.send:
        shown = await at.library.preview(at.tenant, text, asked.params, **given)
        return _tested(sent=False, preview=shown)
    tried = await at.library.try_out(at.tenant, text, asked.params, by=at.by, **given)
    outcome = tried.outcome
    return _tested(
        sent=True,
        ok=outcome.ok,
        result=outcome.value,
        error=None if outcome.error is None else outcome.error.public(),
        duration_ms=outcome.duration_ms,
        exchanges=[ExchangeView.model_validate(one) for one in tried.exchanges],
        scope=tried.scope,
    )


def _tested(**about: Any) -> TestView:
    nothing = dict.fromkeys(("preview", "ok", "result", "error", "duration_ms", "scope"))
    return TestView.model_validate({**nothing, "exchanges": [], **about})


@router.post("/actions/{name}/tests", responses=_CHANGES)
async def run_action_tests(at: At, asked: TextOfAction, key: Key = None) -> TestResults:
    """Run the tests inside of an action against a stand-in; nothing is called."""
    del key
    text = (
        asked.text if asked.text is not None else (await at.library.get(at.tenant, at.name)).draft
    )
    found = await at.library.run_tests(at.tenant, text, files=asked.files)
    views = [TestResultView.model_validate(one.public()) for one in found]
    passed = sum(one.passed for one in views)
    return TestResults(passed=passed, failed=len(views) - passed, tests=views)


# ---------------------------------------------------------------------- changing


@router.put("/actions/{name}", responses=responses(400, 401, 409, 413, 422, 503))
async def save_action(at: At, asked: SaveAction) -> BuiltView:
    """Keep a draft, whether or not it can be read. 409 has the current one, if somebody else saved meanwhile."""
    row = await at.library.save(
        at.tenant,
        at.name,
        asked.text,
        expected_hash=asked.expected_hash,
        by=at.by,
        files=asked.files,
    )
    return _view(at.library, row)


@router.post("/actions/{name}/publish", responses=_CHANGES)
async def publish_action(at: At, asked: PublishAction, key: Key = None) -> BuiltView:
    """Give the draft to new runs, as it was shown; runs that go on keep what they were given."""
    del key
    row = await at.library.publish(
        at.tenant,
        at.name,
        draft_hash=asked.draft_hash,
        by=at.by,
        agents=asked.agents,
        note=asked.note,
    )
    return _view(at.library, row)


@router.post("/actions/{name}/rollback", responses=_CHANGES)
async def roll_action_back(at: At, asked: RollBackAction, key: Key = None) -> BuiltView:
    """Make an older version live again, as a new version."""
    del key
    return _view(at.library, await at.library.rollback(at.tenant, at.name, asked.version, by=at.by))


@router.post("/actions/{name}/grant", responses=_CHANGES)
async def grant_action(at: At, asked: GrantAction, key: Key = None) -> BuiltView:
    """Say which agents get an action; runs that go on keep what they were given."""
    del key
    return _view(at.library, await at.library.grant(at.tenant, at.name, asked.agents, by=at.by))


@router.post("/actions/{name}/retire", responses=_CHANGES)
async def retire_action(at: At, key: Key = None) -> BuiltView:
    """Give an action to no new runs any more; its versions stay."""
    del key
    return _view(at.library, await at.library.retire(at.tenant, at.name, by=at.by))


@router.post("/actions/{name}/rename", responses=_CHANGES)
async def rename_action(at: At, asked: RenameAction, key: Key = None) -> BuiltView:
    """Give a draft that was never published another name."""
    del key
    return _view(at.library, await at.library.rename(at.tenant, at.name, asked.name, by=at.by))


@router.delete("/actions/{name}", status_code=204, responses=responses(401, 404, 409, 422, 503))
async def delete_action(at: At) -> None:
    """Remove an action that is not published, with its versions; what runs were started with stays with them."""
    await at.library.delete(at.tenant, at.name, by=at.by)


def _view(library: Library, row: Built) -> BuiltView:
    about = {**listed(row), "state": row.state, "shadowed": library.is_shadowed(row.name)}
    return BuiltView.model_validate({name: about[name] for name in BuiltView.model_fields})
