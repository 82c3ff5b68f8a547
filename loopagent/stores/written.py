"""What stores of bytes make of a commit, and of the bytes when they are read again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from loopagent.core.conversation import newly_said
from loopagent.core.log import encode
from loopagent.core.outcomes import Outcomes
from loopagent.core.state import SCHEMA_VERSION
from loopagent.core.state_bytes import dump_outcomes, dump_parts
from loopagent.core.values import value_object
from loopagent.errors import CorruptError
from loopagent.notifications.outbox import notices_of
from loopagent.stores import records
from loopagent.stores.artifact_rows import artifact_rows


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loopagent.artifact_port import ArtifactRow
    from loopagent.core.conversation import Role
    from loopagent.core.state import RunState
    from loopagent.notification_port import Notice
    from loopagent.ports import Commit


@value_object(frozen=True, slots=True)
class Row:
    """A commit as it is written."""

    commit: Commit
    state: bytes
    body: bytes
    payload: bytes | None
    """The payload, where it is stored apart and is not what it was."""
    spilled: tuple[int, bytes] | None
    """Results of the open step that are stored apart, as JSON, and how many were before."""
    requests: Sequence[records.RequestChange] = ()
    spec: tuple[str, str] | None = None
    """Hash and body, at creation."""
    metadata: str | None = None
    said: Sequence[tuple[Role, str]] = ()
    """What goes into the run's conversation."""
    notices: Sequence[Notice] = ()
    """Who is to be told of it."""
    artifacts: Sequence[ArtifactRow] = ()
    """What the run gets to know."""
    history: Sequence[tuple[int, int, bytes]] = ()
    """Log entries of another run that a forked one begins with: first event, first message, body."""


def first_message(commit: Commit) -> int:
    """Number of a commit's first message, or of the one that will come next."""
    return commit.state.messages - len(commit.messages) + 1


def prepare(commit: Commit) -> Row:
    """Turn a commit into bytes.

    Raises:
        StoreError: Something in it is not JSON.
    """
    return prepare_all((commit,))[-1]


def prepare_all(commits: Sequence[Commit]) -> list[Row]:
    """Turn commits that are stored together into bytes.

    The last row has the log of all of them and the state that they lead to. There is one for each commit before it
    that brings more than that.

    Raises:
        StoreError: Something in them is not JSON.
    """
    last, same_payload, rows = commits[-1], True, list[Row]()
    try:
        for one in commits:
            same_payload = same_payload and one.same_payload
            if one is not last and not records.only_logged(one):
                rows.append(_row(one, b"", b""))
        state, payload = dump_parts(last.state)
        parts = (None if same_payload else payload, _spilled(commits))
        rows.append(_row(last, state, encode(*commits), *parts))
    except ValueError as error:
        raise records.not_json(f"a value of run {last.state.id!r}", error) from error
    return rows


def _row(
    commit: Commit,
    state: bytes,
    body: bytes,
    payload: bytes | None = None,
    spilled: tuple[int, bytes] | None = None,
) -> Row:
    if records.only_logged(commit):
        return Row(commit, state, body, payload, spilled)
    return Row(
        commit,
        state,
        body,
        payload,
        spilled,
        records.request_changes(commit.facts),
        said=newly_said(commit.state, commit.facts, commit.messages),
        notices=notices_of(commit),
        artifacts=artifact_rows(commit),
    )


def _spilled(commits: Sequence[Commit]) -> tuple[int, bytes] | None:
    """The results that are stored apart from now on, those of all commits in one piece."""
    before, found = 0, None
    for one in commits:
        step, part = one.state.step, one.spilled
        if part is None or step is None:
            continue
        first = step.spilled - len(part)
        if found is None or first == 0:  # those of a new step take the place of an earlier one's
            before, found = first, part.entries()
        else:
            found |= part.entries()
    return None if found is None else (before, dump_outcomes(Outcomes(found)))


def prepare_new(commit: Commit, metadata: dict[str, Any] | None) -> Row:
    """Turn the first commit of a run into bytes, with its pinned definition.

    Raises:
        StoreError: Something in it is not JSON.
    """
    spec = commit.state.spec
    try:
        pinned = (spec.digest(), spec.model_dump_json(by_alias=True))
        about = to_json(metadata).decode() if metadata else None
    except ValueError as error:
        raise records.not_json(f"the definition of run {commit.state.id!r}", error) from error
    return replace(prepare(commit), spec=pinned, metadata=about, history=_taken_over(commit))


def _taken_over(commit: Commit) -> list[tuple[int, int, bytes]]:
    """The history of a forked run as bytes."""
    rows: list[tuple[int, int, bytes]] = []
    message = 1
    for one in commit.history:
        rows.append((one.first_seq, message, encode(one)))
        message += len(one.messages)
    return rows


def read_state(run_id: str, read: Callable[[], RunState]) -> RunState:
    """A stored state; `read` puts its parts together.

    Raises:
        CorruptError: It is damaged, or a newer version wrote it.
    """
    try:
        state = read()
    except (ValueError, TypeError) as error:
        raise CorruptError(
            f"The state of run {run_id!r} cannot be read: it is damaged, or was written by a newer"
            " version of loopagent."
        ) from error
    if state.schema_version > SCHEMA_VERSION:
        raise CorruptError(
            f"The state of run {run_id!r} was written by a newer version of loopagent"
            f" ({state.schema_version}; this one knows {SCHEMA_VERSION}): upgrade loopagent."
        )
    return state
