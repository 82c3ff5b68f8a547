"""Operations and tools to choose from as rows of a page, and the chosen ones as drafts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from loopagent.actions.importing.keeping import key_of
from loopagent.actions.importing.openapi import MAX_OPERATIONS
from loopagent.errors import RequestError
from loopagent.library.importing import offer, save_drafts
from loopagent.web.drafts import library_of
from loopagent.web.posts import Fields, one
from loopagent.web.shared import caller_of, pages_of, tenant_of


if TYPE_CHECKING:
    from loopagent.actions.importing.changing import Change
    from loopagent.actions.importing.openapi import Plan
    from loopagent.actions.importing.operations import Draft

NAMED = "name:"
"""Begins the fields that hold the names of drafts."""


@dataclass(frozen=True, slots=True)
class Row:
    """One operation or tool; `change` says what saving it would do, `params` what it takes."""

    key: str
    draft: Draft
    change: Change
    params: list[str]
    picked: bool
    hidden: bool


async def picking(
    request: Request, plan: Plan, sent: Fields, template: str, context: dict[str, Any]
) -> Response:
    """The page to pick from, or what became of what was picked.

    Args:
        request: The request.
        plan: The import.
        sent: The fields: `pick`, `filter`, names, and `do`.
        template: Of the page to pick from.
        context: What else it needs; `again` is where to go for more.
    """
    library, tenant = library_of(request), tenant_of(request)
    found = await offer(library, tenant, plan, _wanted(sent))
    picked, words = set(sent.get("pick", ())), one(sent, "filter").lower().split()
    rows = [_row(draft, change, picked, words) for draft, change in found.drafts]
    context |= {"plan": plan, "offer": found, "rows": rows, "filter": one(sent, "filter")}
    context |= {"most": MAX_OPERATIONS, "named": NAMED}
    status = 200
    if one(sent, "do") == "save":
        try:
            said = await save_drafts(library, tenant, found, picked, by=caller_of(request).by)
        except RequestError as error:
            context["error"], status = str(error), error.status
        else:
            context["saved"] = [name for name, why in said.items() if not why]
            context["refused"] = {name: why for name, why in said.items() if why}
            template = "import_done.html"
    return pages_of(request).page(request, template, context, status=status)


def _row(draft: Draft, change: Change, picked: set[str], words: list[str]) -> Row:
    key = key_of(draft)
    params = list(draft.action.get("params", {}).get("properties", {}))
    return Row(key, draft, change, params, key in picked, not _fits(draft, words))


def _wanted(sent: Fields) -> dict[str, str]:
    return {
        name.removeprefix(NAMED): values[-1].strip()
        for name, values in sent.items()
        if name.startswith(NAMED) and values[-1].strip()
    }


def _fits(draft: Draft, words: list[str]) -> bool:
    about = " ".join((draft.name, draft.method, draft.path, draft.operation, *draft.tags)).lower()
    return all(each in about for each in words)
