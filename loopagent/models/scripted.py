"""A model that plays replies written beforehand: for tests, demonstrations and dry runs.

Which entry answers a call:

- Each entry is played once per run, and "per run" means the whole tree of a run and its sub-agents.
- A call gets the first entry in file order that was not played yet and fits: its `agent` is the
  asking agent or missing, and its `when` text, if any, is in the prompt. Entries without conditions
  are therefore played in order; an entry with a condition belongs before those that it should win
  over.
- A conversation met for the first time may already hold replies (a run resumed by a new process, or
  a fork). Each of these replies uses up the entry with the same text, else the next one that fits
  and can answer, together with the entries without a condition before it (failed tries leave no
  reply). The next call goes on from there.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from loopagent.errors import ConfigError, ModelError
from loopagent.models.faults import Complaint, fault, kind_of
from loopagent.models.script import BadEntryError, ScriptEntry, ScriptError, entry_of, read_script
from loopagent.ports import ChatMessage, ModelReply, ModelRequest


if TYPE_CHECKING:
    from loopagent.ports import DeltaSink


Playable: TypeAlias = ScriptEntry | ModelReply | ModelError | dict[str, Any] | str
"""What can be played: see `entry_of`; a `ModelError` is raised."""
Script: TypeAlias = (
    Iterable[Playable] | Callable[[ModelRequest], Playable | Awaitable[Playable | None] | None]
)


class ScriptedModel:
    """Answers from a list, in order, or from a function.

    Args:
        script: What to play, in order; or a function from request to reply, None from it ends the
            script.
        name: As in `Model.name`.
        per_run: Every run plays the script from its start (runs are told apart by
            `ModelRequest.cache_key`); False shares one position among all runs.
        keep_runs: How many runs' positions are kept; of older ones, the conversation tells the place.
        keep_requests: How many of the latest requests are kept in `requests`.
        sleep: Waits, in seconds.

    Raises:
        ConfigError: An entry cannot be played.
    """

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted:python",
        per_run: bool = True,
        keep_runs: int = 10_000,
        keep_requests: int = 1_000,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self.requests: list[ModelRequest] = []
        """The latest requests, oldest first."""
        self._per_run = per_run
        self._keep_runs = keep_runs
        self._keep_requests = keep_requests
        self._sleep = sleep
        self._function = script if callable(script) else None
        self._entries = () if callable(script) else _playables(name, script)
        self._places = _places(self._entries)
        self._positions: OrderedDict[str, _Position] = OrderedDict()

    @classmethod
    def from_file(cls, path: Path, *, name: str | None = None) -> ScriptedModel:
        """A model that plays a file; see `read_script` for the forms.

        Raises:
            ConfigError: The file is missing or wrong, with `file:line:column`.
        """
        return cls(read_script(path), name=name or f"scripted:{path}")

    async def generate(
        self, request: ModelRequest, *, on_delta: DeltaSink | None = None
    ) -> ModelReply:
        """Play the next entry that fits; see `Model.generate`.

        Raises:
            ModelError: The entry's error, or `script_ended` when nothing is left.
        """
        self.requests.append(request)
        if len(self.requests) > 2 * self._keep_requests:
            del self.requests[: -self._keep_requests]
        playable = await self._next(request)
        if isinstance(playable, ModelError):
            raise playable
        return await self._play(_entry(self.name, playable), on_delta)

    async def aclose(self) -> None:
        """Nothing to give back."""

    async def _next(self, request: ModelRequest) -> Playable:
        if self._function is None:
            return self._take(request)
        result = self._function(request)
        playable = await result if isawaitable(result) else result
        if playable is None:
            raise fault(self.name, "script_ended", "the function returned None")
        return playable

    def _take(self, request: ModelRequest) -> Playable:
        position = self._position(request)
        index = position.find(request.agent, request.system, request.messages)
        if index is None:
            raise fault(self.name, "script_ended", position.why_none(request.agent))
        position.use(index)
        return self._entries[index]

    def _position(self, request: ModelRequest) -> _Position:
        conversation = request.cache_key or ""
        # Ids of child runs are paths under the id of the root run.
        run = conversation.split("/", 1)[0] if self._per_run else ""
        position = self._positions.get(run)
        if position is None:
            position = self._positions[run] = _Position(self._entries, self._places)
        self._positions.move_to_end(run)
        if len(self._positions) > self._keep_runs:
            self._positions.popitem(last=False)
        if conversation in position.conversations:
            position.hear(request)
        else:
            position.conversations.add(conversation)
            position.catch_up(request)
        return position

    async def _play(self, entry: ScriptEntry, on_delta: DeltaSink | None) -> ModelReply:
        pieces = entry.pieces if on_delta is not None else ()
        pause_seconds = entry.delay_ms / 1000.0 / max(1, len(pieces))
        if pause_seconds and not pieces:
            await self._sleep(pause_seconds)
        for piece in pieces:
            if pause_seconds:
                await self._sleep(pause_seconds)
            wait = on_delta(piece) if on_delta is not None and piece else None
            if isawaitable(wait):
                await wait
        if entry.error is not None:
            raise self._failure(entry.error, entry.text)
        return ModelReply(
            text=entry.text,
            finish=entry.finish,
            refusal=entry.refusal,
            usage=entry.usage,
            model=self.name,
            total_ms=entry.delay_ms,
        )

    def _failure(self, planned: ScriptError, partial: str) -> ModelError:
        kind = planned.kind or kind_of(planned.status, Complaint(planned.message))
        error = fault(
            self.name,
            kind,
            planned.message,
            status=planned.status,
            retry_after=planned.retry_after_seconds,
        )
        error.partial = partial
        return error


class _Position:
    """How far one run has come in a script."""

    def __init__(self, entries: Sequence[Playable], places: Mapping[str, Sequence[int]]) -> None:
        self._entries = entries
        self._places = places
        self._used = bytearray(len(entries))
        self._first = 0
        self.conversations: set[str] = set()

    def find(self, agent: str, system: str, messages: Sequence[ChatMessage]) -> int | None:
        """The first entry that is left and fits a call."""
        return next(
            (index for index in self._left() if self._fits(index, agent, system, messages)), None
        )

    def use(self, index: int) -> None:
        """Mark an entry as played."""
        self._used[index] = 1
        while self._first < len(self._used) and self._used[self._first]:
            self._first += 1

    def catch_up(self, request: ModelRequest) -> None:
        """Use up what the replies already in a conversation stand for."""
        for place, message in enumerate(request.messages):
            if message.role == "assistant":
                self._account_for(message.text, request, place)

    def hear(self, request: ModelRequest) -> None:
        """Use up what another process has played meanwhile: the latest reply is an entry that was never played here."""
        place = len(request.messages) - 1
        while place >= 0 and request.messages[place].role != "assistant":
            place -= 1
        text = request.messages[place].text if place >= 0 else ""
        places = self._places.get(text.strip(), ())
        if places and not any(self._used[one] for one in places):
            self._account_for(text, request, place)

    def why_none(self, agent: str) -> str:
        """Why no entry fits a call."""
        left = sum(1 for _ in self._left())
        total = len(self._entries)
        if not left:
            return f"all {total} entries have been played; add one for this call"
        whom = f" of agent {agent!r}" if agent else ""
        return f"{left} of {total} entries are left, but none fits this call{whom}; look at their agent and when"

    def _left(self) -> Iterable[int]:
        return (index for index in range(self._first, len(self._used)) if not self._used[index])

    def _account_for(self, text: str, request: ModelRequest, place: int) -> None:
        prefix = request.messages[:place]
        fitting = [
            index
            for index in self._left()
            if self._fits(index, request.agent, request.system, prefix)
            and _answers(self._entries[index])
        ]
        same = (index for index in fitting if _text(self._entries[index]).strip() == text.strip())
        chosen = next(same, fitting[0] if fitting else None)
        if chosen is None:
            return
        for index in list(self._left()):
            if index < chosen and self._passed(index, request):
                self.use(index)
        self.use(chosen)

    def _passed(self, index: int, request: ModelRequest) -> bool:
        """Whether an entry before one that was surely played must have been played too."""
        entry = self._entries[index]
        if not isinstance(entry, ScriptEntry):
            return True
        in_root = "/" not in (request.cache_key or "")
        return entry.contains is None and (in_root or entry.agent in {None, request.agent})

    def _fits(self, index: int, agent: str, system: str, messages: Sequence[ChatMessage]) -> bool:
        entry = self._entries[index]
        if not isinstance(entry, ScriptEntry):
            return True
        if entry.agent is not None and entry.agent != agent:
            return False
        wanted = entry.contains
        return wanted is None or wanted in system or any(wanted in one.text for one in messages)


def _playables(name: str, script: Iterable[Playable]) -> tuple[Playable, ...]:
    return tuple(
        one if isinstance(one, ModelError) else _entry(f"{name}, entry {number}", one)
        for number, one in enumerate(script, 1)
    )


def _entry(name: str, playable: Playable) -> ScriptEntry:
    try:
        return entry_of(playable)
    except BadEntryError as error:
        raise ConfigError(f"{name}: {error}") from None


def _answers(playable: Playable) -> bool:
    return isinstance(playable, ScriptEntry) and playable.answers


def _places(entries: Sequence[Playable]) -> dict[str, list[int]]:
    """Where the entries stand that say a text."""
    places: dict[str, list[int]] = {}
    for index, one in enumerate(entries):
        places.setdefault(_text(one).strip(), []).append(index)
    return places


def _text(playable: Playable) -> str:
    return playable.text if isinstance(playable, ScriptEntry) else ""
