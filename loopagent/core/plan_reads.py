"""Reading that a person does not want to be asked about any more when approving a plan.

The plan stays what is approved: reading needs no plan, so nothing is allowed that the gate would hold back. What is
waived is only the card of each call, for actions that let that be, and for as long as that revision of the plan is
the approved one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.core import plans
from loopagent.core.abilities import usable_action
from loopagent.core.approval_state import Remembered
from loopagent.core.approvals import definition_of
from loopagent.core.effects import key_of
from loopagent.core.facts_approval import ApprovalRemembered
from loopagent.core.people import request_id
from loopagent.core.plan_card import approved_revision, quiet


if TYPE_CHECKING:
    from loopagent.core.effects import AskHuman
    from loopagent.core.events import ModeChanged
    from loopagent.core.facts import DecidedBy
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx


def answered(tx: Tx, request: AskHuman, answer: dict[str, Any]) -> None:
    """Take a person's decision about the open revision of a plan, with what is not to be asked about under it."""
    plans.answered(tx, request, answer)
    if answer.get("remember") and approved_revision(tx.state) == request.revision:
        for number, shown in enumerate(request.subject["reads"], 1):
            _remember(tx, request, number, str(shown["action"]), str(answer["by"]))


def switched(tx: Tx, event: ModeChanged, by: DecidedBy) -> bool:
    """Switch between planning and acting, see `plans.switched`; what was waived under a plan ends with it."""
    changed = plans.switched(tx, event, by)
    if changed:
        tx.state.remembered = holding(tx.state)
    return changed


def holding(run: RunState) -> tuple[Remembered, ...]:
    """The approvals given in advance that hold now; those of a plan only while that is the approved one."""
    plan = approved_revision(run)
    return tuple(one for one in run.remembered if one.plan in (None, plan))


def _remember(tx: Tx, request: AskHuman, number: int, action: str, by: str) -> None:
    state = tx.state
    spec = usable_action(state, action)
    if spec is None or not quiet(state, spec):
        return
    kept = Remembered(
        id=f"{request_id(state, request)}.{number}",
        agent=state.spec.name,
        action=action,
        params={},
        definition=definition_of(spec),
        scope="run",
        by=by,
        at=tx.at,
        plan=request.revision,
    )
    most = state.spec.limits.max_remembered_approvals
    state.remembered = (*state.remembered, kept)[-most:] if most else ()
    fact = ApprovalRemembered(
        approval_id=kept.id, action=action, params={}, scope="run", by=by, plan=request.revision
    )
    tx.fact(fact, "human", key=key_of(request.id))
