"""Runs in memory: for tests, demos and one-off runs. Everything ends with the process."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from loopagent.core.state import Message
from loopagent.durability_port import Durability
from loopagent.ports import LogEntry, RunRow, Snapshot
from loopagent.stores import records
from loopagent.stores.memory_answers import MemoryAnswers
from loopagent.stores.memory_artifacts import MemoryArtifacts, check_contents
from loopagent.stores.memory_conversations import MemoryConversations
from loopagent.stores.memory_desk import MemoryDesk
from loopagent.stores.memory_dispatch import MemoryDispatch
from loopagent.stores.memory_keys import MemoryKeys
from loopagent.stores.memory_library import MemoryLibrary
from loopagent.stores.memory_notes import MemoryNotes
from loopagent.stores.memory_notices import MemoryNotices
from loopagent.stores.memory_requests import MemoryRequests
from loopagent.stores.memory_triggers import MemoryTriggers


if TYPE_CHECKING:
    from collections.abc import Iterator

    from loopagent.conversation_port import ConversationRow
    from loopagent.core.conversation import Said
    from loopagent.core.state import RunState
    from loopagent.ports import Commit


@dataclass(slots=True, eq=False)
class _Run:
    """A run and what belongs to it; `seq` and `timeline` count for the whole tree and live at its root."""

    key: int
    state: RunState
    title: str
    created_at: float
    metadata: dict[str, Any]
    root: _Run = field(init=False, repr=False)
    updated_at: float = 0.0
    version: int = 0
    seq: int = 0
    entries: list[LogEntry] = field(default_factory=list[LogEntry])
    messages: list[Message] = field(default_factory=list[Message])
    timeline: list[tuple[LogEntry, _Run]] = field(
        default_factory=list["tuple[LogEntry, _Run]"], repr=False
    )
    owner: str | None = None
    leased_until: float = 0.0

    @property
    def due(self) -> float | None:
        """When a worker must do something for it; see `records.due`."""
        return records.due(self.state)


class MemoryStore(
    MemoryArtifacts,
    MemoryDispatch,
    MemoryKeys,
    MemoryLibrary,
    MemoryNotes,
    MemoryDesk,
    MemoryRequests,
    MemoryNotices,
    MemoryTriggers,
    MemoryAnswers,
    Durability,
):
    """Keeps runs as the objects they are; states are values, so none is copied.

    Args:
        keep_answers_seconds: How long answers under idempotency keys are kept.
    """

    def __init__(self, *, keep_answers_seconds: float = records.KEEP_ANSWERS_SECONDS) -> None:
        super().__init__()
        self._keep_answers_seconds = keep_answers_seconds
        self._runs: dict[str, _Run] = {}
        self._last_key = 0
        self._talks = MemoryConversations()

    async def open(self) -> None:
        """Nothing to make ready."""

    async def aclose(self) -> None:
        """Nothing to let go of; the runs stay for as long as this object."""

    # ------------------------------------------------------------------ runs

    async def create(self, commit: Commit, *, metadata: dict[str, Any] | None = None) -> int:
        """Add a run; see `Store.create`."""
        state = commit.state
        if state.id in self._runs:
            raise records.exists(state.id)
        root_id = records.root_of(state)
        root = None if root_id == state.id else self._get(root_id)
        about = records.plain(metadata or {})
        check_contents(commit.artifacts)
        self._talks.enter(commit)
        run = _Run(self._next_key(), state, records.title(commit), commit.at, about)
        run.root = root or run
        self._take_over(run, commit.history)
        changes = records.request_changes(commit.facts)
        first_seq = self._append(run, commit)
        self._keep_rows(run, commit, changes)
        self._keep_artifacts(commit)
        self._runs[state.id] = run
        return first_seq

    async def commit(self, commit: Commit, *later: Commit) -> int:
        """Append transitions; see `Store.commit`."""
        run = self._runs.get(commit.state.id)
        if run is None or run.version != commit.version:
            raise records.moved_on(commit.state.id, commit.version)
        if not later and records.only_logged(commit):
            return self._append(run, commit)
        commits = records.one_after_the_other((commit, *later))
        first_seq = run.root.seq + 1
        for one, changes in [(one, records.request_changes(one.facts)) for one in commits]:
            self._append(run, one)
            self._keep_rows(run, one, changes)
        return first_seq

    def _take_over(self, run: _Run, history: tuple[LogEntry, ...]) -> None:
        run.version = len(history)
        run.seq = sum(len(one.facts) for one in history)
        run.entries.extend(history)
        run.timeline.extend((one, run) for one in history)
        run.messages.extend(message for one in history for message in one.messages)

    def _append(self, run: _Run, commit: Commit) -> int:
        """Move a run on; returns the `seq` of the first fact."""
        root, facts, state = run.root, commit.facts, commit.state
        first_seq = root.seq + 1
        root.seq += len(facts)
        run.version += 1
        run.state, run.updated_at = state, commit.at
        entry = LogEntry(run.version, first_seq, commit.at, commit.events, facts, commit.messages)
        run.entries.append(entry)
        root.timeline.append((entry, run))
        run.messages += commit.messages
        return first_seq

    def _keep_rows(self, run: _Run, commit: Commit, changes: list[records.RequestChange]) -> None:
        """Keep what a commit brings beside the log and the state."""
        if run.state.conversation:
            self._talks.add(commit)
        if run.state.notify:
            self._announce(commit)
        self._know_artifacts(commit)
        for change in changes:
            self._change_request(change, run.state, commit.at)

    async def load(self, run_id: str) -> Snapshot | None:
        """The run as last committed; see `Store.load`."""
        run = self._runs.get(run_id)
        return None if run is None else Snapshot(run.state, run.version, run.root.seq)

    async def transcript(
        self, run_id: str, *, first: int = 1, last: int | None = None
    ) -> list[Message]:
        """Messages by their numbers; see `Store.transcript`."""
        run = self._runs.get(run_id)
        return [] if run is None else run.messages[max(first, 1) - 1 : last]

    async def log(self, run_id: str) -> list[LogEntry]:
        """Everything committed; see `Store.log`."""
        run = self._runs.get(run_id)
        return [] if run is None else list(run.entries)

    async def events(
        self, run_id: str, *, after: int = 0, limit: int = 1000
    ) -> list[dict[str, Any]]:
        """Public events; see `Store.events`. A root run's are those of its whole tree."""
        run = self._runs.get(run_id)
        if run is None:
            return []
        found = islice(self._public_events(run, after), max(limit, 0))
        return [{**event, "data": records.plain(event["data"])} for event in found]

    def _public_events(self, run: _Run, after: int) -> Iterator[dict[str, Any]]:
        timeline = run.timeline if run.root is run else [(one, run) for one in run.entries]
        start = bisect_right(timeline, after + 1, key=lambda one: one[0].first_seq)
        for entry, source in islice(timeline, max(start - 1, 0), None):
            yield from records.public_events(
                entry,
                after=after,
                run_id=source.state.id,
                root_id=run.root.state.id,
                parent_id=source.state.parent_id,
            )

    async def delete(self, run_id: str) -> bool:
        """Remove an ended run and its children; see `Store.delete`."""
        ids = {one.state.id for one in self._ended_tree(run_id)}
        self._runs = {key: one for key, one in self._runs.items() if key not in ids}
        self._forget_requests(ids)
        self._talks.forget_runs(ids)
        self._unannounce(ids)
        self._forget_artifacts(ids)
        return bool(ids)

    def _ended_tree(self, run_id: str) -> list[_Run]:
        """An ended root run and those below it; none if there is no such run."""
        run = self._runs.get(run_id)
        if run is None:
            return []
        if run.root is not run:
            raise records.not_deletable(run_id, "child_run")
        tree = [one for one in self._runs.values() if one.root is run]
        if any(not one.state.ended for one in tree):
            raise records.not_deletable(run_id, "run_active")
        return tree

    # ------------------------------------------------------------------ retention

    async def ended(self, *, before: float, logged: bool = False, limit: int = 100) -> list[str]:
        """Root runs whose whole tree has ended; see `Store.ended`."""
        going_on = {one.root.key for one in self._runs.values() if not one.state.ended}
        found = [
            one
            for one in self._runs.values()
            if one.root is one
            and one.key not in going_on
            and one.updated_at < before
            and (one.entries or not logged)
        ]
        found.sort(key=lambda one: one.updated_at)
        return [one.state.id for one in found[:limit]]

    async def forget_log(self, run_id: str) -> bool:
        """Remove the log of an ended run; see `Store.forget_log`."""
        tree = [one for one in self._ended_tree(run_id) if one.entries]
        for one in tree:
            one.entries, one.messages, one.timeline = [], [], []
        return bool(tree)

    async def oldest_event(self, run_id: str) -> int:
        """Number of the first event that is kept; see `Store.oldest_event`."""
        run = self._runs.get(run_id)
        return 1 if run is None or run.entries else run.root.seq + 1

    # ------------------------------------------------------------------ conversations

    async def conversations(
        self, *, user: str, tenant: str, cursor: str | None = None, limit: int = 50
    ) -> tuple[list[ConversationRow], str | None]:
        """A page of a user's conversations; see `Store.conversations`."""
        return self._talks.page((tenant, user), cursor, limit)

    async def conversation(
        self, user: str, conversation: str, *, tenant: str
    ) -> ConversationRow | None:
        """One conversation of a user; see `Store.conversation`."""
        return self._talks.row((tenant, user, conversation))

    async def said(
        self, user: str, conversation: str, *, tenant: str, first: int = 1, last: int | None = None
    ) -> list[Said]:
        """Messages of a conversation; see `Store.said`."""
        return self._talks.said((tenant, user, conversation), first, last)

    async def delete_conversation(self, user: str, conversation: str, *, tenant: str) -> bool:
        """Remove a conversation with its runs; see `Store.delete_conversation`."""
        runs = self._talks.runs_of((tenant, user, conversation))
        if runs is None:
            return False
        for run_id in runs:
            await self.delete(run_id)
        self._talks.forget((tenant, user, conversation))
        return True

    # ------------------------------------------------------------------ lists

    async def runs(
        self,
        *,
        agent: str | None = None,
        status: str | None = None,
        roots: bool = False,
        tenant: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[RunRow], str | None]:
        """A page of runs, newest first; see `Store.runs`."""
        before = records.decode_cursor("runs", cursor)
        fitting = (
            one
            for one in reversed(self._runs.values())
            if (before is None or one.key < before)
            and agent in (None, one.state.spec.name)
            and status in (None, one.state.status)
            and (one.root is one or not roots)
            and tenant in (None, one.state.tenant)
        )
        size = records.page_size(limit)
        found = list(islice(fitting, size + 1))
        rows = [_row(one) for one in found[:size]]
        return rows, records.next_cursor("runs", found, size, attrgetter("key"))

    async def tree(self, run_id: str) -> list[RunRow]:
        """A root run and every run below it; see `Store.tree`."""
        run = self._runs.get(run_id)
        return [_row(one) for one in self._runs.values() if run in (one, one.root)]

    async def tenant_of(self, run_id: str) -> str | None:
        """Whose a run is; see `Store.tenant_of`."""
        run = self._runs.get(run_id)
        return None if run is None else run.state.tenant

    def _leases(self) -> dict[str, _Run]:
        return self._runs

    def _heads(self) -> set[str]:
        return self._talks.heads()

    # ------------------------------------------------------------------ inside

    def _get(self, run_id: str) -> _Run:
        run = self._runs.get(run_id)
        if run is None:
            raise records.gone(run_id)
        return run

    def _next_key(self) -> int:
        self._last_key += 1
        return self._last_key


def _row(run: _Run) -> RunRow:
    state = run.state
    return RunRow(
        id=state.id,
        agent=state.spec.name,
        status=state.status,
        state=records.shown(state),
        turn=state.turn,
        title=run.title,
        created_at=run.created_at,
        updated_at=run.updated_at,
        metadata=records.plain(run.metadata),
        parent_id=state.parent_id,
        tenant=state.tenant,
    )
