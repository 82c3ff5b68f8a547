"""The conversation as the model is shown it, made from the view in the state; kept up step by step.

A new message costs its own length. Only when the view itself changes, which is seldom, is the list made anew.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Protocol

from loopagent.core.context import View, size_of, stub
from loopagent.core.values import value_object
from loopagent.ports import ChatMessage


if TYPE_CHECKING:
    from collections.abc import Iterable

    from loopagent.core.state import Message, RunState
    from loopagent.ports import Store


@value_object(frozen=True, slots=True)
class Shown:
    """A message of the view without its text."""

    number: int
    kind: str
    turn: int
    size_bytes: int
    """Length of the message itself, shown in full or not."""
    chars: int


class ChatView:
    """The messages of a run as they go to the model.

    Args:
        state: The run.
    """

    __slots__ = ("_hash", "_hashed", "_size", "_view", "chat", "shown")

    def __init__(self, state: RunState) -> None:
        self.chat: list[ChatMessage] = []
        self.shown: list[Shown] = []
        self._view = state.view
        self._forget_hash()

    def follow(self, state: RunState, messages: Iterable[Message]) -> None:
        """Take in what was said, and what the state wants shown now.

        Args:
            state: The run after it was said.
            messages: What was said since the last call, oldest first.
        """
        view, least = state.view, state.spec.context.stub_bytes
        if view is not self._view:
            if not _same(view, self._view):
                self._remake(view, least)
            self._view = view
        for one in messages:
            if view.shows(one):
                self._add(one, view, least)

    def fingerprint(self, system: str, last: ChatMessage) -> dict[str, Any]:
        """SHA-256 and size of a prompt, in bytes of its text: system, these messages, and one more."""
        told: list[tuple[str, str]] = [
            (one.role, one.text) for one in self.chat[max(0, self._hashed - 1) :]
        ]
        if not self._hashed:
            told.insert(0, ("system", system))
        self._size += _feed(self._hash, told)
        self._hashed += len(told)
        whole = self._hash.copy()
        size = self._size + _feed(whole, [(last.role, last.text)])
        return {"sha256": whole.hexdigest(), "bytes": size}

    def _forget_hash(self) -> None:
        self._hash, self._hashed, self._size = hashlib.sha256(), 0, 0

    def _add(self, message: Message, view: View, least: int) -> None:
        text, size = message.text, size_of(message.text)
        shown = Shown(message.number, message.kind, message.turn, size, len(text))
        if size >= least and view.stubs(shown, size, least):
            text = stub(shown, shown.chars, view)
        chat = ChatMessage(message.role, text)
        if message.kind != "summary":
            self.shown.append(shown)
            self.chat.append(chat)
            return
        end = len(self.shown)
        at = next((at for at, one in enumerate(self.shown) if one.number > view.summarised), end)
        self._forget_hash()
        self.shown.insert(at, shown)
        self.chat.insert(at, chat)

    def _remake(self, view: View, least: int) -> None:
        """Leave out and shorten what the view wants left out and shortened."""
        before = list(zip(self.shown, self.chat, strict=True))
        self.shown, self.chat = [], []
        for shown, chat in before:
            if not view.shows(shown):
                continue
            short = view.stubs(shown, shown.size_bytes, least)
            self.shown.append(shown)
            text = stub(shown, shown.chars, view)
            self.chat.append(ChatMessage(chat.role, text) if short else chat)
        self._forget_hash()


async def shown_messages(store: Store, state: RunState) -> list[Message]:
    """The messages that a view is made from; what is left out is not even read.

    Args:
        store: Where the run is kept.
        state: The run.
    """
    view = state.view
    found: list[Message] = []
    for number in view.kept:
        found += await store.transcript(state.id, first=number, last=number)
    return found + await store.transcript(
        state.id, first=view.summarised + 1, last=state.messages or None
    )


def _same(one: View, other: View) -> bool:
    return (
        one.stubbed == other.stubbed
        and one.summarised == other.summarised
        and one.kept == other.kept
        and one.superseded == other.superseded
        and one.hidden == other.hidden
    )


class Digest(Protocol):
    """A hash of `hashlib`, whose type has no public name."""

    def update(self, data: bytes, /) -> None:
        """Take more in."""
        ...


def _feed(digest: Digest, told: list[tuple[str, str]]) -> int:
    """Add messages, each as bytes that no other has; gives their size, which is what `size_of` says of their texts."""
    size = 0
    for role, text in told:
        body = text.encode("utf-8", "surrogatepass")
        size += len(body)
        digest.update(b"%s %d\n%s\n" % (role.encode(), len(body), body))
    return size
