"""The conversation as the model is shown it, made from the view in the state; kept up step by step.

A new message costs its own length. Only when the view itself changes, which is seldom, is the list made anew.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.context import View, size_of, stub
from loopagent.core.values import value_object
from loopagent.ports import ChatMessage


if TYPE_CHECKING:
    from collections.abc import Iterable

    from loopagent.core.state import Message, RunState
    from loopagent.ports import Store


_TOLD: Final = {role: b"%s %%d\n%%s\n" % role.encode() for role in ("system", "user", "assistant")}
"""A message as bytes that no other has, by its role: that, its size and its text."""


@value_object(frozen=True, slots=True)
class Shown:
    """A message that is shown as a stub; its text is not kept."""

    number: int
    kind: str
    turn: int
    size_bytes: int
    """Length of the message itself."""
    chars: int


class ChatView:
    """The messages of a run as they go to the model.

    Args:
        state: The run.
    """

    __slots__ = ("_hash", "_hashed", "_size", "_view", "chat", "shown")

    def __init__(self, state: RunState) -> None:
        self.chat: list[ChatMessage] = []
        self.shown: list[Message | Shown] = []
        """What the messages of `chat` are."""
        self._view = state.view
        self._forget_hash()

    def follow(self, state: RunState, messages: Iterable[Message]) -> None:
        """Take in what was said, and what the state wants shown now.

        Args:
            state: The run after it was said.
            messages: What was said since the last call, oldest first.
        """
        view = state.view
        if view is not self._view:
            if not _same(view, self._view):
                self._remake(view, state.spec.context.stub_bytes)
            self._view = view
        for one in messages:
            if not view.shows(one):
                continue
            shown: Message | Shown = one
            chat = ChatMessage(one.role, one.text)
            if view.stubbed or view.superseded:
                shown, chat = _shown(one, chat, view, state.spec.context.stub_bytes)
            if one.kind == "summary":
                self._insert(shown, chat, view)
            else:
                self.shown.append(shown)
                self.chat.append(chat)

    def _forget_hash(self) -> None:
        """Begin again; not even the system prompt is hashed."""
        self._hash, self._hashed, self._size = hashlib.sha256(), -1, 0

    def fingerprint(self, system: str, last: ChatMessage) -> dict[str, Any]:
        """SHA-256 and size of a prompt, in bytes of its text: system, these messages, and one more.

        The size of a text is what `size_of` says of it. What was hashed before is not hashed again.
        """
        whole, size = self._hash, self._size
        if self._hashed < 0:
            body = system.encode("utf-8", "surrogatepass")
            size, self._hashed = len(body), 0
            whole.update(_TOLD["system"] % (size, body))
        for one in (*self.chat[self._hashed :], last):
            if one is last:  # goes into a copy, as the next prompt has another one in its place
                self._hashed, self._size = len(self.chat), size
                whole = whole.copy()
            body = one.text.encode("utf-8", "surrogatepass")
            length = len(body)
            whole.update(_TOLD[one.role] % (length, body))
            size += length
        return {"sha256": whole.hexdigest(), "bytes": size}

    def _insert(self, summary: Message | Shown, chat: ChatMessage, view: View) -> None:
        """Put a summary where what it stands for was."""
        end = len(self.shown)
        at = next((at for at, one in enumerate(self.shown) if one.number > view.summarised), end)
        self._forget_hash()
        self.shown.insert(at, summary)
        self.chat.insert(at, chat)

    def _remake(self, view: View, least: int) -> None:
        """Leave out and shorten what the view wants left out and shortened."""
        before = list(zip(self.shown, self.chat, strict=True))
        self.shown, self.chat = [], []
        for one, chat in before:
            if view.shows(one):
                shown, told = _shown(one, chat, view, least)
                self.shown.append(shown)
                self.chat.append(told)
        self._forget_hash()


def _shown(
    one: Message | Shown, chat: ChatMessage, view: View, least: int
) -> tuple[Message | Shown, ChatMessage]:
    """A message that may have become a stub, and what is told of it."""
    if not view.outdates(one):
        return one, chat
    short = one if isinstance(one, Shown) else _without_text(one)
    if short.size_bytes < least:
        return one, chat
    return short, ChatMessage(chat.role, stub(short, short.chars, view))


def _without_text(one: Message) -> Shown:
    return Shown(one.number, one.kind, one.turn, size_of(one.text), len(one.text))


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
