"""The public events around approvals: deadlines, and calls that need no person any more."""

from __future__ import annotations

from typing import Any, Literal

from loopagent.core.facts import FactData


class RequestExpired(FactData):
    """Nobody answered a request in time."""

    fact = "request.expired"
    request_id: str
    then: str = "reject"
    """What follows: `reject`, `fail`, or for a question of a server `cancel`."""


class ApprovalWaived(FactData):
    """A call of an action whose calls a person approves is made without asking."""

    fact = "approval.waived"
    call_id: str
    action: str
    rule: Literal["when", "remembered"]
    """Its condition does not hold for this call, or a person does not want to be asked about it."""
    text: str
    approval_id: str | None = None
    """What was remembered."""


class ApprovalRemembered(FactData):
    """The very same call needs no approval from now on, or under a plan no call of an action that reads."""

    fact = "approval.remembered"
    approval_id: str
    action: str
    params: dict[str, Any]
    scope: Literal["run", "session"]
    """For the run, or for its conversation as well."""
    by: str
    plan: int | None = None
    """For all calls of the action, whatever their parameters, while this revision of the plan is the approved one."""


class ApprovalForgotten(FactData):
    """What was remembered does not hold any more."""

    fact = "approval.forgotten"
    approval_id: str
    action: str
    by: str
