"""What every store makes of a commit in the same way, and the cursors of its lists."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import from_json, to_json

from loopagent.core.conversation import QUEUED
from loopagent.core.events import Started
from loopagent.core.facts import public_event
from loopagent.core.json_values import compact_json
from loopagent.errors import ConflictError, RequestError, StoreError
from loopagent.ports import RequestRow


if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loopagent.core.facts import Fact
    from loopagent.core.notes import Note
    from loopagent.core.state import RunState
    from loopagent.ports import Commit, LogEntry, StoredArtifact

RequestStatus = Literal["open", "resolved", "cancelled", "expired"]
Change = RequestStatus | Literal["held"]
"""What happens to a request: it is opened, closed in one of three ways, or somebody takes care of it or no more."""

TITLE_CHARS = 200
"""How much of the task a list of runs shows."""
MAX_PAGE = 1000
"""Entries on one page of a list, whatever the caller asks for."""
KEEP_ANSWERS_SECONDS = 86_400.0
"""How long answers under idempotency keys are kept, unless a store is told otherwise."""
_REQUEST_STATUS: dict[str, Change] = {
    "request.created": "open",
    "request.resolved": "resolved",
    "request.cancelled": "cancelled",
    "request.expired": "expired",
    "client_tool.requested": "open",
    "request.claimed": "held",
    "request.released": "held",
}
_ABOUT_REQUESTS = frozenset({*_REQUEST_STATUS, "client_tool.completed"})
_WITH_ROWS = _ABOUT_REQUESTS | {"artifact.created"}
_CALL_STATUS: dict[str, RequestStatus] = {
    "answered": "resolved",
    "timed_out": "expired",
    "cancelled": "cancelled",
}
"""How a call of a client tool that was put to the client ended; a rejected one never was."""


@dataclass(frozen=True, slots=True)
class RequestChange:
    """A request to a person, or to a client, was opened or closed by a fact, or has another holder."""

    request_id: str
    status: Change
    data: dict[str, Any]

    @property
    def holder(self) -> str:
        """Who takes care of it from now on; empty for nobody."""
        return str(self.data.get("holder", ""))


def one_after_the_other(commits: tuple[Commit, ...]) -> tuple[Commit, ...]:
    """The commits, if each is what follows from the one before it.

    Raises:
        ConflictError: One is not.
    """
    first = commits[0]
    for count, one in enumerate(commits):
        if one.state.id != first.state.id or one.version != first.version + count:
            raise moved_on(one.state.id, one.version)
    return commits


def only_logged(commit: Commit) -> bool:
    """Whether all that a commit brings, but for spilled results, is in the log and in the state."""
    state = commit.state
    if state.conversation or state.notify or commit.history:
        return False
    for one in commit.facts:  # noqa: SIM110 - runs for each commit, where a generator costs more than the loop
        if one.type in _WITH_ROWS:
            return False
    return True


def request_changes(facts: Sequence[Fact]) -> list[RequestChange]:
    """What the facts of a commit do to requests, in order."""
    changes: list[RequestChange] = []
    for one in facts:
        status = _status(one) if one.type in _ABOUT_REQUESTS else None
        if status is not None:
            changes.append(RequestChange(str(one.data["requestId"]), status, plain(one.data)))
    return changes


def opened(change: RequestChange, state: RunState, at: float) -> RequestRow:
    """The row of a request that a run has made."""
    return RequestRow(
        id=change.request_id,
        run_id=state.id,
        agent=state.spec.name,
        status="open",
        created_at=at,
        body=change.data,
        tenant=state.tenant,
    )


def changed(row: RequestRow, change: RequestChange, at: float) -> RequestRow:
    """The row of a request that was opened before."""
    if change.status == "held":
        return replace(row, holder=change.holder, held_at=at if change.holder else None)
    return replace(row, status=change.status, resolved_at=at, resolution=change.data)


def _status(fact: Fact) -> Change | None:
    if fact.type == "client_tool.completed":
        return _CALL_STATUS.get(str(fact.data["status"]))
    return _REQUEST_STATUS.get(fact.type)


def root_of(state: RunState) -> str:
    """Id of the run at the top of the tree."""
    return state.root_id or state.id


def shown(state: RunState) -> str:
    """The loop state as a list shows it."""
    return state.shown or "running"


def due(state: RunState) -> float | None:
    """When a worker must do something for a run, in seconds since the epoch: 0 is at once, None never.

    A run that waits for people or for other runs is never due; one that waits for the clock alone is when it says.
    """
    return 0.0 if state.unheard else state.due


def title(commit: Commit) -> str:
    """The beginning of the task."""
    entries = (*(one.events for one in commit.history), commit.events)
    task = next((it.message for one in entries for it in one if isinstance(it, Started)), "")
    return task[:TITLE_CHARS]


def public_events(
    entry: LogEntry, *, after: int, run_id: str, root_id: str, parent_id: str | None
) -> Iterator[dict[str, Any]]:
    """The entry's public events with `seq > after`."""
    for seq, fact in enumerate(entry.facts, entry.first_seq):
        if seq > after:
            yield public_event(
                fact, seq=seq, at=entry.at, run_id=run_id, root_id=root_id, parent_id=parent_id
            )


def plain(value: Any) -> Any:
    """A copy of a JSON value that shares nothing with it.

    Raises:
        StoreError: It is no JSON value.
    """
    try:
        return from_json(to_json(value))
    except ValueError as error:
        raise not_json("a value", error) from error


def json_text(what: str, value: Any) -> str:
    """A value as JSON.

    Raises:
        StoreError: It is none; `what` says what it is of.
    """
    try:
        return compact_json(value)
    except (ValueError, TypeError) as error:
        raise not_json(what, error) from error


def page_size(limit: int) -> int:
    """A limit as it is applied."""
    return max(1, min(limit, MAX_PAGE))


def encode_cursor(name: str, key: int) -> str:
    """A cursor of the list `name` behind its entry `key`."""
    return wrapped(f"{name}:{key}")


def wrapped(text: str) -> str:
    """A text as a cursor."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def next_cursor(
    name: str, found: Sequence[Any], size: int, key: Callable[[Any], int] = itemgetter(0)
) -> str | None:
    """The cursor behind a page, when one more row was found than fits; `key` finds the key in a row."""
    return encode_cursor(name, key(found[size - 1])) if len(found) > size else None


def decode_cursor(name: str, cursor: str | None) -> int | None:
    """The key in a cursor that this list gave out.

    Raises:
        RequestError: `bad_cursor`, it is none.
    """
    if cursor is None:
        return None
    found = re.fullmatch(rf"{name}:([0-9]{{1,18}})", unwrapped(cursor))
    if found is None:
        raise bad_cursor()
    return int(found[1])


def bad_cursor() -> RequestError:
    """The error for a cursor that is none."""
    text = "The cursor is none that this list gave out: take `nextCursor` of an answer as it is."
    return RequestError("bad_cursor", text, status=400)


def unwrapped(cursor: str) -> str:
    """The text in a cursor; empty for what is none."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return text.decode("ascii")
    except ValueError:
        return ""


def not_json(what: str, error: Exception) -> StoreError:
    """The error for something that cannot be stored."""
    return StoreError(f"Nothing was stored: {what} is not JSON ({error}).")


def gone(run_id: str) -> StoreError:
    """The error for work on a run that does not exist."""
    return StoreError(f"There is no run {run_id!r}; it may have been deleted.")


def moved_on(run_id: str, version: int) -> ConflictError:
    """The error for a commit that comes too late."""
    return ConflictError(f"Run {run_id!r} is not at version {version} any more: load it again.")


def exists(run_id: str) -> ConflictError:
    """The error for a second run of the same id."""
    return ConflictError(f"A run {run_id!r} exists already.")


def not_deletable(run_id: str, reason: Literal["run_active", "child_run"]) -> RequestError:
    """The error for a run that must stay."""
    message = {
        "run_active": f"Run {run_id!r} has not ended: cancel it first.",
        "child_run": f"Run {run_id!r} belongs to another run: delete that one.",
    }
    return RequestError(reason, message[reason], status=409)


def in_line(state: RunState) -> bool:
    """Whether a run waits for the runs of its conversation before it."""
    return QUEUED in state.pending


def conversation_busy(run_id: str) -> RequestError:
    """The error for a run that would be the second active one of its conversation."""
    return RequestError(
        "conversation_busy",
        f"Run {run_id!r} of this conversation has not ended: wait for it, answer it or cancel it, or say with"
        " `onBusy` that the new run is to wait (`enqueue`) or to take its place (`interrupt`).",
        status=409,
        retryable=True,
    )


def conversation_open(run_id: str) -> RequestError:
    """The error for a conversation that must stay."""
    text = f"Run {run_id!r} of this conversation has not ended: cancel it first."
    return RequestError("conversation_busy", text, status=409)


def check_artifact(artifact: StoredArtifact, digest: str) -> None:
    """Refuse content under a wrong id: it would be handed out as somebody else's.

    Raises:
        StoreError: The id is not the SHA-256 of the content.
    """
    if artifact.artifact_id != digest:
        raise StoreError(
            f"Artifact {artifact.artifact_id!r} was not stored: its id must be the SHA-256 of its"
            f" content, {digest}."
        )


def counted(note: Note, run_id: str) -> bool:
    """Whether a note counts towards what a run may keep; taking the place of another one is free."""
    return (
        bool(run_id) and note.run_id == run_id and (not note.supersedes or note.status == "pending")
    )


def note_moved_on(note_id: str) -> ConflictError:
    """The error for a change of a note that somebody else changed or removed meanwhile."""
    return ConflictError(f"Note {note_id!r} has been changed or removed: look at it again.")


def trigger_moved_on(name: str) -> ConflictError:
    """The error for a change of a trigger's state that comes too late."""
    return ConflictError(f"Trigger {name!r} was changed by somebody else: look at it again.")


def key_exists(key_id: str) -> ConflictError:
    """The error for a second API key of one id."""
    return ConflictError(f"There is a key {key_id!r} already.")


def built_moved_on(name: str) -> ConflictError:
    """The error for a change of an action of the library that comes too late, or to a name that is taken."""
    return ConflictError(f"The action {name!r} was changed by somebody else: look at it again.")
