"""What a commit has to be told to whom. Pure: the same commit gives the same notifications, with the same ids."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from loopagent.notification_port import Notice


if TYPE_CHECKING:
    from loopagent.core.facts import Fact
    from loopagent.ports import Commit

REQUEST: Final = "request.created"
ENDS: Final = ("run.completed", "run.failed", "run.cancelled")
KINDS: Final = (REQUEST, *ENDS)
"""What somebody can be told of."""
MAX_TITLE_CHARS: Final = 200
ONLY: Final = "|"
"""Stands between the name of a receiver and the events that it wants to hear of."""


def notices_of(commit: Commit) -> list[Notice]:
    """The notifications of a commit.

    A request of a sub-agent is told of as any other; only of the run that was started from outside it is told that it
    ended.
    """
    state = commit.state
    if not state.notify:
        return []
    told = [(at, one) for at, one in enumerate(commit.facts) if _counts(one, state.parent_id)]
    return [_notice(commit, at, one, entry) for at, one in told for entry in _hearers(commit, one)]


def _counts(fact: Fact, parent_id: str | None) -> bool:
    return fact.type == REQUEST or (fact.type in ENDS and parent_id is None)


def _hearers(commit: Commit, fact: Fact) -> list[str]:
    parts = [one.partition(ONLY) for one in commit.state.notify]
    return [name for name, _, kinds in parts if not kinds or fact.type in kinds.split(",")]


def _notice(commit: Commit, place: int, fact: Fact, target: str) -> Notice:
    state = commit.state
    named = "\n".join((state.id, str(commit.version + 1), str(place), target))
    return Notice(
        id="msg_" + hashlib.sha256(named.encode()).hexdigest()[:32],
        kind=fact.type,
        run_id=state.id,
        agent=state.spec.name,
        target=target,
        at=commit.at,
        since=commit.at,
        due=commit.at,
        data=_data(commit, fact),
        tenant=state.tenant,
    )


def _data(commit: Commit, fact: Fact) -> dict[str, Any]:
    """Ids and short words; whoever wants more asks with them."""
    state = commit.state
    about = {"runId": state.id, "rootRunId": state.root_id or state.id, "agent": state.spec.name}
    if fact.type != REQUEST:
        reason = (
            {"reason": str(fact.data["reason"])[:MAX_TITLE_CHARS]} if "reason" in fact.data else {}
        )
        return {**about, "status": state.status, **reason}
    title = str(fact.data["title"])[:MAX_TITLE_CHARS]
    names = ("requestId", "kind", "revision")
    return {**about, "status": "open", **{one: fact.data[one] for one in names}, "title": title}
