"""Whether what an action file says about approvals fits the action."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loopagent.access import SCOPES
from loopagent.actions.complaints import did_you_mean
from loopagent.core.asking import Asking


if TYPE_CHECKING:
    from loopagent.actions.complaints import Complaints
    from loopagent.actions.format import ActionFile
    from loopagent.actions.format_approval import ApprovalSection
    from loopagent.core.action_spec import ActionSpec


def check_approval(action: ActionFile, approval: ApprovalSection, complaints: Complaints) -> None:
    """Complain about everything that does not fit."""
    if approval.when is not None and approval.policy != "ask":
        what = "says which calls are not asked about, so it needs `policy: ask`"
        complaints.add(("approval", "when"), what)
    if approval.remember != "never" and action.effect_class == "irreversible":
        what = "must be never: what cannot be taken back is asked about every time"
        complaints.add(("approval", "remember"), what)
    if approval.policy in {"auto", "never"} and approval.says_more:
        what = f"nobody is asked while the policy is {approval.policy}, so the rest says nothing"
        complaints.add(("approval", "policy"), what, warning=True)
    if approval.on_expiry != "reject" and approval.expires is None:
        complaints.add(("approval", "onExpiry"), "says nothing without `expires`", warning=True)
    for index, one in enumerate(approval.approvers):
        kind, _, name = one.partition(":")
        if kind == "scope" and name not in SCOPES:
            what = f"there is no scope {name!r}{did_you_mean(name, SCOPES)}"
            complaints.add(("approval", "approvers", index), what)
    _check_shown(action, approval, complaints)


_LASTING: Final = ("never", "run", "session")


def step_problems(own: ActionSpec, step: ActionSpec) -> list[str]:
    """Why a pipeline would let a step through with less approval than the step asks for by itself."""
    if step.approval != "ask":
        return []
    mine, its = own.asking or Asking(), step.asking or Asking()
    found: list[str] = []
    if mine.when is not None:
        found.append(f"{step.name} is asked about, so the pipeline cannot have `approval.when`")
    if its.approvers and (not mine.approvers or set(mine.approvers) - set(its.approvers)):
        listed = ", ".join(its.approvers)
        found.append(
            f"only {listed} may approve {step.name}: the pipeline needs `approvers` of these"
        )
    if _LASTING.index(mine.remember) > _LASTING.index(its.remember):
        found.append(
            f"approvals of {step.name} are remembered: {its.remember}; the pipeline says more"
        )
    return found


def _check_shown(action: ActionFile, approval: ApprovalSection, complaints: Complaints) -> None:
    """Parameters that are shown first must be there; of a file without `params` that is seen when it is made."""
    if action.params is None:
        return
    known = action.params.get("properties")
    names = list(known) if isinstance(known, dict) else []
    for index, one in enumerate(approval.show):
        if one not in names:
            what = f"there is no parameter {one!r}{did_you_mean(one, names)}"
            complaints.add(("approval", "show", index), what)
