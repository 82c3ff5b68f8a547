"""What people see of a request beside its own content: whether they may answer, and what exactly would be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from loopagent.access import Caller
from loopagent.actions.build import FileAction
from loopagent.actions.format import HTTP_KINDS
from loopagent.actions.preview import preview
from loopagent.errors import ActionError


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopagent.app import App
    from loopagent.ports import RequestRow


def subject_of(row: RequestRow) -> Mapping[str, Any]:
    """What a request is about."""
    found = row.body.get("subject")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def approvers_of(row: RequestRow) -> tuple[str, ...]:
    """Who may answer a request; empty for whoever may answer requests at all."""
    return tuple(str(one) for one in subject_of(row).get("approvers") or ())


def may_answer(row: RequestRow, who: Caller) -> bool:
    """Whether a request is open and somebody is among those who may answer it."""
    return row.status == "open" and who.approves(approvers_of(row))


def one_of_them(row: RequestRow) -> Caller:
    """Somebody who may answer a request, for those who play people in tests."""
    approvers = approvers_of(row)
    name = next((one for one in approvers if ":" not in one), "")
    return Caller(None, scopes=frozenset({"admin", *approvers}), name=name)


def shown_params(subject: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a call, those first that its action wants to be shown first."""
    params = subject.get("params")
    given = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
    first = [one for one in subject.get("show") or () if one in given]
    return {name: given[name] for name in (*first, *(one for one in given if one not in first))}


async def preview_of(app: App, row: RequestRow) -> dict[str, Any] | None:
    """The HTTP request that a call which waits for approval would send now, with names in place of secrets.

    It is made of the action file as it is carried out here and of the parameters that are approved.

    Returns:
        `{method, url, headers, body?}`; `{error}` when it cannot be made; None where nothing of that kind is asked.
    """
    subject = subject_of(row)
    params = subject.get("params")
    alone = row.body.get("kind") == "approval" and "passes" not in subject
    if not alone or row.status != "open" or not isinstance(params, dict):
        return None
    state = (await app.get(row.run_id)).state
    action = await app.code_of(state, str(subject.get("action")))
    if not isinstance(action, FileAction) or action.file.run.kind not in HTTP_KINDS:
        return None
    call_id = row.id.partition(":")[2].removesuffix(".ask")
    try:
        return preview(action.sent, cast("dict[str, Any]", params), place=(row.run_id, call_id))
    except ActionError as error:
        return {"error": str(error)}
