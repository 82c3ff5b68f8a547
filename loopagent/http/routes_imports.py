"""What would come of importing: previews of OpenAPI documents and curl commands. Nothing is written or called."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from loopagent.actions.importing.curl import FromCurl, import_curl
from loopagent.actions.importing.document import read_api
from loopagent.actions.importing.openapi import Plan, plan_import, prefix_of
from loopagent.actions.importing.operations import Draft, Options
from loopagent.actions.importing.texts import yaml_text
from loopagent.core.action_spec import EffectClass
from loopagent.errors import ConfigError, RequestError
from loopagent.http.body import Body, View
from loopagent.http.problems import responses
from loopagent.http.routes_runs import host


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
async def preview_openapi(asked: OpenApiImport) -> OpenApiPreview:
    """Show which actions would come of an OpenAPI document: operations, effects, servers, secrets, problems."""
    plan = await asyncio.to_thread(_planned, asked)
    return OpenApiPreview(
        title=plan.document.title,
        name=plan.prefix,
        sha256=plan.document.sha256,
        operations=[_operation(one) for one in plan.drafts],
    )


def _planned(asked: OpenApiImport) -> Plan:
    try:
        document = read_api(asked.document, asked.source)
        options = Options(asked.name or prefix_of(document), asked.base_url, asked.variables)
        return plan_import(document, options, picks=asked.pick, tags=asked.tags)
    except ConfigError as error:
        raise _refused(error) from error


def _operation(draft: Draft) -> ImportedOperation:
    text = "" if draft.problems else yaml_text(draft.action)
    return ImportedOperation(**draft.public(), yaml=text)


@router.post("/actions/import/curl", responses=responses(400, 401, 403, 413, 422, 503))
async def preview_curl(asked: CurlImport) -> CurlPreview:
    """Show the action that comes of a curl command; secrets in it become names."""
    try:
        made: FromCurl = import_curl(asked.command, asked.name)
    except ConfigError as error:
        raise _refused(error) from error
    return CurlPreview(yaml=yaml_text(made.action), secrets=made.secrets, notes=made.notes)


def _refused(error: ConfigError) -> RequestError:
    text = "; ".join([str(error), *error.problems[:10]])
    return RequestError("cannot_import", text[:2_000], status=422)
