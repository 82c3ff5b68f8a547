"""The conversations of the store in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loopagent.conversation_port import ConversationRow
from loopagent.core.conversation import Said, newly_said
from loopagent.stores import records


if TYPE_CHECKING:
    from collections.abc import Collection

    from loopagent.core.state import RunState
    from loopagent.ports import Commit


Place = tuple[str, str, str]
"""Tenant, user and id of a conversation."""


@dataclass(slots=True)
class Talk:
    """A conversation. `active` holds its runs that have not ended, and whether each still waits its turn."""

    key: int
    title: str
    created_at: float
    updated_at: float
    last: int = 0
    messages: list[Said] = field(default_factory=list[Said])
    runs: list[str] = field(default_factory=list[str])
    active: dict[str, bool] = field(default_factory=dict[str, bool])


class MemoryConversations:
    """Keeps conversations by tenant, user and id."""

    def __init__(self) -> None:
        self._talks: dict[Place, Talk] = {}
        self._made = 0

    def enter(self, commit: Commit) -> None:
        """Let a new run into its conversation, which is made where it is missing.

        Raises:
            RequestError: `conversation_busy`.
        """
        state = commit.state
        if not state.conversation:
            return
        talk = self._talks.get(_place(state))
        if talk is None:
            self._made += 1
            talk = Talk(self._made, records.title(commit), commit.at, commit.at)
            self._talks[_place(state)] = talk
        if talk.active and not records.in_line(state):
            raise records.conversation_busy(next(iter(talk.active)))
        talk.runs.append(state.id)

    def add(self, commit: Commit) -> None:
        """Note what a commit means to the conversation of its run."""
        state = commit.state
        talk = self._talks[_place(state)]
        for role, text in newly_said(state, commit.facts, commit.messages):
            talk.last += 1
            talk.messages.append(Said(talk.last, role, text, state.id, commit.at))
            talk.updated_at = commit.at
        if state.ended:
            talk.active.pop(state.id, None)
        else:
            talk.active[state.id] = records.in_line(state)

    def heads(self) -> set[str]:
        """Runs that wait in a conversation in which no earlier one goes on any more."""
        first = (next(iter(one.active.items()), ("", False)) for one in self._talks.values())
        return {run_id for run_id, waits in first if waits}

    def forget_runs(self, run_ids: Collection[str]) -> None:
        """Remove what was said in runs that are deleted."""
        for talk in self._talks.values():
            talk.messages = [one for one in talk.messages if one.run_id not in run_ids]
            talk.runs = [one for one in talk.runs if one not in run_ids]

    def runs_of(self, place: Place) -> list[str] | None:
        """The root runs of a conversation; None when there is none.

        Raises:
            RequestError: `conversation_busy`, one of them has not ended.
        """
        talk = self._talks.get(place)
        if talk is None:
            return None
        if talk.active:
            raise records.conversation_open(next(iter(talk.active)))
        return list(talk.runs)

    def forget(self, place: Place) -> None:
        """Remove a conversation."""
        del self._talks[place]

    def page(
        self, whose: tuple[str, str], cursor: str | None, limit: int
    ) -> tuple[list[ConversationRow], str | None]:
        """A page of a user's conversations, the newest first."""
        before = records.decode_cursor("conversations", cursor)
        size = records.page_size(limit)
        found = [
            (talk.key, self._row(place, talk))
            for place, talk in reversed(self._talks.items())
            if place[:2] == whose and (before is None or talk.key < before)
        ]
        rows = [row for _, row in found[:size]]
        return rows, records.next_cursor("conversations", found, size)

    def row(self, place: Place) -> ConversationRow | None:
        """One conversation of a user, or None."""
        talk = self._talks.get(place)
        return None if talk is None else self._row(place, talk)

    def said(self, place: Place, first: int, last: int | None) -> list[Said]:
        """Messages by their numbers."""
        talk = self._talks.get(place)
        return [
            one
            for one in (talk.messages if talk else ())
            if first <= one.sequence and (last is None or one.sequence <= last)
        ]

    def _row(self, place: Place, talk: Talk) -> ConversationRow:
        tenant, user, name = place
        return ConversationRow(
            id=name,
            user=user,
            tenant=tenant,
            title=talk.title,
            created_at=talk.created_at,
            updated_at=talk.updated_at,
            messages=len(talk.messages),
            last=talk.last,
            active=tuple(talk.active),
        )


def _place(state: RunState) -> Place:
    return state.tenant, state.user, state.conversation
