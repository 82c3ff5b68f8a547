"""A run that this process is working on: its last committed state, its transcript, its effects under way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from loopagent.core.effects import WORK, SetTimer, StartRun, is_outside
from loopagent.core.events import Event
from loopagent.ports import Snapshot
from loopagent.runtime.view import ChatView


if TYPE_CHECKING:
    from collections.abc import Iterable

    from loopagent.core.effects import Effect
    from loopagent.core.facts import Fact, FactData
    from loopagent.core.state import Message, RunState
    from loopagent.core.transition import Transition
    from loopagent.ports import ChatMessage, Commit
    from loopagent.runtime.early import EarlyCalls
    from loopagent.runtime.streaming import ReplyStream


class Live:
    """The in-memory side of a run. Everything here can be thrown away and read again from the store."""

    __slots__ = (
        "_shown",
        "early",
        "held",
        "held_until",
        "idle",
        "lock",
        "owned",
        "pauses",
        "queued",
        "ready",
        "reply",
        "run_id",
        "spreading",
        "state",
        "system",
        "taken_up",
        "tasks",
        "version",
        "view",
        "workers",
    )

    def __init__(self, snapshot: Snapshot, transcript: Iterable[Message]) -> None:
        self.run_id = snapshot.state.id
        self.state: RunState = snapshot.state
        self.version = snapshot.version
        self.view = ChatView(snapshot.state)
        self.system: str | None = None
        self.lock = asyncio.Lock()
        self.ready: dict[str, Event] = {}
        """Of effects that were performed: what is still to be delivered."""
        self.queued: dict[str, Effect] = {}
        """Effects that are to be performed and that no worker has taken yet, oldest first."""
        self.tasks: dict[str, asyncio.Task[None]] = {}
        """Who performs which effect; a worker goes from one effect to the next."""
        self.workers: set[asyncio.Task[None]] = set()
        """All of them, also those that deliver what they have brought."""
        self.taken_up = False  # a worker delivers at this moment, and goes on with what follows
        self.spreading = False  # more workers come as soon as one has to wait
        self.idle = asyncio.Event()
        self.owned = False
        self.pauses = 0
        """Tries of model calls that are not made before some time has passed."""
        self.reply: ReplyStream | None = None
        """The reply that is arriving, if somebody follows it."""
        self.early: EarlyCalls | None = None
        """Calls that began before the reply was complete."""
        self.held: list[Commit] = []
        """What this state holds and the store does not yet, see `runtime.hold`."""
        self.held_until = 0.0
        """When that is stored at the latest, by the clock of the event loop."""
        self._shown: FactData | None = None
        self.view.follow(self.state, transcript)

    async def pause(self, seconds: float) -> None:
        """Let time pass before a model is asked again."""
        self.pauses += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self.pauses -= 1

    @classmethod
    def fresh(cls, transition: Transition) -> Live:
        """The live side of a run that was just created by its first transition."""
        return cls(
            Snapshot(transition.state, version=1, seq=len(transition.facts)), transition.messages
        )

    @property
    def chat(self) -> list[ChatMessage]:
        """The conversation as the model will see it."""
        return self.view.chat

    def take(self) -> Effect | None:
        """The next effect to perform, unless nobody wants it any more."""
        queued, state = self.queued, self.state
        while queued:
            effect = queued.pop(next(iter(queued)))
            if effect.id in state.pending and state.paused is None:
                return effect
        return None

    def take_held(self) -> list[Commit]:
        """What was kept back, which is nothing from now on."""
        held, self.held = self.held, []
        return held

    def stop(self, effect_id: str) -> None:
        """Stop what is done for an effect; an outcome that came in this moment is dropped."""
        worker = self.tasks.pop(effect_id, None)
        if worker is not None:
            worker.cancel()
        self.queued.pop(effect_id, None)
        self.ready.pop(effect_id, None)

    def stop_all(self) -> None:
        """Stop what is done for all effects; outcomes that came in stay to be delivered."""
        for worker in self.tasks.values():
            worker.cancel()
        self.tasks.clear()
        self.queued.clear()

    @property
    def partial(self) -> str:
        """What a person may have read of the message that is arriving."""
        return "" if self.reply is None else self.reply.message

    def settle(self, facts: Iterable[Fact]) -> list[dict[str, Any]]:
        """Something was stored, so a reply may count or not; gives the early calls that were in vain."""
        if self.reply is not None and self.reply.effect_id not in self.state.pending:
            self.reply.settled(facts)
            self.reply = None
        return [] if self.early is None else self.early.settled(facts)

    def close(self) -> None:
        """Stop what goes on beside the effects: nobody works on the run here any more."""
        self.reply = None
        if self.early is not None:
            self.early.close()
            self.early = None

    def progress(self) -> dict[str, Any] | None:
        """The event that says how far the open step is, when that has changed since the last time."""
        step = self.state.handler
        data = step.progress() if step is not None else None
        if data is None or data == self._shown:
            return None
        self._shown = data
        return {
            "runId": self.run_id,
            "type": data.fact,
            "turn": self.state.turn,
            "decidedBy": "engine",
            "data": data.model_dump(by_alias=True, exclude_none=True),
        }

    @property
    def calls(self) -> list[asyncio.Task[None]]:
        """Who waits for somebody outside, as models and actions are, or delivers what came from there."""
        pending = self.state.pending
        others = {
            task
            for key, task in self.tasks.items()
            if isinstance(pending.get(key), StartRun | SetTimer)
        }
        return [*(self.workers - others)]

    @property
    def workable(self) -> list[str]:
        """Ids of pending effects that a worker must perform and nobody performs yet; of a paused run, none."""
        return [one.id for one in self.to_perform(self.state.pending.values())]

    def to_perform(self, effects: Iterable[Effect]) -> list[Effect]:
        """Those of some effects that are pending, must be performed by a worker, and nobody performs yet."""
        wanted: list[Effect] = []
        if self.state.paused is not None:
            return wanted
        for one in effects:
            key = one.id
            now = self.state.pending.get(key)
            if now is None or (type(one) not in WORK and is_outside(now)):
                continue
            if key not in self.tasks and key not in self.queued and key not in self.ready:
                wanted.append(one)
        return wanted

    @property
    def quiet(self) -> bool:
        """Whether nothing is worked on: the run rests, or only a clock runs beside what it waits for."""
        return self.resting or (self.state.waiting and not self.ready)

    @property
    def resting(self) -> bool:
        """Whether nothing goes on here: no work under way, none waiting that is ours, nothing to deliver."""
        if self.tasks or self.queued or self.ready or self.state.unheard:
            return False
        return self.state.ended or not self.owned or not self.workable
