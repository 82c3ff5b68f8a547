"""What would come of importing OpenAPI documents, curl commands and tools, and saving it as drafts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from loopagent.actions.importing.changing import Change, What
from loopagent.actions.importing.curl import FromCurl, import_curl
from loopagent.actions.importing.document import read_api
from loopagent.actions.importing.keeping import key_of
from loopagent.actions.importing.openapi import Plan, picked, plan_import, prefix_of
from loopagent.actions.importing.operations import Draft, Options
from loopagent.actions.importing.texts import yaml_text
from loopagent.core.action_spec import EffectClass
from loopagent.errors import ConfigError, RequestError
from loopagent.http.body import Body, View
from loopagent.http.problems import responses
from loopagent.http.routes_runs import host
from loopagent.library.importing import Offer, offer, save_drafts
from loopagent.web.shared import app_of, caller_of, tenant_of


router = APIRouter(tags=["actions"], dependencies=[Depends(host)])
Texts = Annotated[list[Annotated[str, Field(max_length=500)]], Field(max_length=500)]


class OpenApiImport(Body):
    """An OpenAPI document to look at."""

    document: str
    """The document, JSON or YAML."""
    source: str = Field(default="document", max_length=2_000)
    """Where it came from; relative servers belong to it when it is an address. It is not called."""
    name: str = Field(default="", max_length=60)
    """Begins the names of the actions; left out, the title of the document."""
    pick: Texts = Field(default_factory=list)
    """Only these: operation ids, names, patterns like `get_*`, or `GET /pets`; empty for all."""
    tags: Texts = Field(default_factory=list)
    """Only operations with one of these tags; empty for all."""
    base_url: str = Field(default="", max_length=2_000)
    """Address to call instead of the servers that are named."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Values of server variables."""
    save: bool = False
    """Save what is picked as drafts of the library; `pick` has to say what."""


class ImportedOperation(View):
    """One operation, and the action that would come of it."""

    name: str
    """Name of the action."""
    method: str
    """HTTP method."""
    path: str
    """Path, as in the document."""
    operation: str
    """Its `operationId`; empty when it has none."""
    tags: list[str]
    """Its tags."""
    effects: EffectClass
    """What it is taken to do to the world, a guess from the method."""
    server: str
    """Address that it would be called under."""
    auth: str
    """How it shows who it is: `none`, `bearer`, `basic`, `api_key` or `oauth2`."""
    secrets: list[str]
    """Names of the secrets that it needs."""
    notes: list[str]
    """What a person should look at."""
    problems: list[str]
    """What keeps it from being imported; empty when nothing does."""
    yaml: str
    """The action file, disabled; empty when there are problems."""
    change: What
    """What saving it would do to the drafts of the library: `new`, `same`, `changed` or `refused`."""
    difference: list[str]
    """The lines of its draft that would change."""


class OpenApiPreview(View):
    """What an OpenAPI document holds."""

    title: str
    """What it calls itself."""
    name: str
    """Begins the names of the actions."""
    sha256: str
    """Digest of its text."""
    operations: list[ImportedOperation]
    """Its operations, in its order."""
    gone: list[str]
    """Drafts of an earlier import whose operations it has no more."""
    saved: dict[str, str]
    """What was to be saved, by name: empty when it was, or else why not."""


class CurlImport(Body):
    """A curl command to make an action of."""

    command: str = Field(max_length=200_000)
    """The command, as it is typed."""
    name: str = Field(default="", max_length=100)
    """Name of the action; left out, one made of host and path."""


class CurlPreview(View):
    """The action that comes of a curl command."""

    yaml: str
    """The action file, disabled."""
    secrets: list[str]
    """Names of the secrets that it needs; their values are not kept."""
    notes: list[str]
    """What a person should look at."""


@router.post("/actions/import/openapi", responses=responses(400, 401, 403, 413, 422, 503))
async def preview_openapi(request: Request, asked: OpenApiImport) -> OpenApiPreview:
    """Show which actions would come of an OpenAPI document, or save them as drafts.

    Beside operations, effects, servers, secrets and problems it says how they differ from the drafts of an earlier
    import. Nobody is called.
    """
    try:
        plan = await asyncio.to_thread(_planned, asked)
        found, saved = await offered(request, plan, asked.pick, asked.tags, save=asked.save)
    except ConfigError as error:
        raise refused(error) from error
    return OpenApiPreview(
        title=plan.document.title,
        name=plan.prefix,
        sha256=plan.document.sha256,
        operations=await asyncio.to_thread(_operations, found),
        gone=[one.name for one in found.gone],
        saved=saved,
    )


async def offered(
    request: Request, plan: Plan, picks: list[str], tags: list[str], *, save: bool
) -> tuple[Offer, dict[str, str]]:
    """What is picked of an import, and what became of it when it was to be saved.

    Args:
        request: The request.
        plan: The import, with all its drafts.
        picks: What is picked; empty for all, if it is only looked at.
        tags: Only operations with one of these tags; empty for all.
        save: Whether to save what is picked.

    Raises:
        ConfigError: Nothing fits what is picked, or too much.
        RequestError: `nothing_picked` (422): it was to be saved and nothing was picked.
    """
    if save and not picks and not tags:
        text = "Say in `pick` what to save; `*` is all of it."
        raise RequestError("nothing_picked", text, status=422)
    library, tenant, by = app_of(request).library, tenant_of(request), caller_of(request).by
    whole = await offer(library, tenant, plan)
    wanted = picked(plan.drafts, picks, tags) if picks or tags else plan.drafts
    keys = {key_of(one) for one in wanted}
    found = replace(whole, drafts=[one for one in whole.drafts if key_of(one[0]) in keys])
    saved = await save_drafts(library, tenant, found, keys, by=by) if save else {}
    return found, saved


def _planned(asked: OpenApiImport) -> Plan:
    document = read_api(asked.document, asked.source)
    options = Options(asked.name or prefix_of(document), asked.base_url, asked.variables)
    return plan_import(document, options)


def _operations(found: Offer) -> list[ImportedOperation]:
    return [_operation(draft, change) for draft, change in found.drafts]


def _operation(draft: Draft, change: Change) -> ImportedOperation:
    text = "" if draft.problems else yaml_text(draft.action)
    lines = change.lines
    return ImportedOperation(**draft.public(), yaml=text, change=change.what, difference=lines)


@router.post("/actions/import/curl", responses=responses(400, 401, 403, 413, 422, 503))
async def preview_curl(asked: CurlImport) -> CurlPreview:
    """Show the action that comes of a curl command; secrets in it become names."""
    try:
        made: FromCurl = import_curl(asked.command, asked.name)
    except ConfigError as error:
        raise refused(error) from error
    return CurlPreview(yaml=yaml_text(made.action), secrets=made.secrets, notes=made.notes)


def refused(error: ConfigError, status: int = 422) -> RequestError:
    """The error for what cannot be imported."""
    text = "; ".join([str(error), *error.problems[:10]])
    return RequestError("cannot_import", text[:2_000], status=status)
