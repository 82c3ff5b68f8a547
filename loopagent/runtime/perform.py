"""Performing effects: each kind has one small function that turns an effect into an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from loopagent.action import ActionContext
from loopagent.core.abilities import active_skills
from loopagent.core.call_questions import ASKS
from loopagent.core.effects import (
    CallHook,
    CallModel,
    Compact,
    Effect,
    KeepValue,
    ReadArtifact,
    ReadConversation,
    ReadMemory,
    ReadMessage,
    RunAction,
    SetTimer,
    Verify,
    WriteMemory,
)
from loopagent.core.jsonable import storable
from loopagent.core.lineage import place_in_tree
from loopagent.core.outcome import Outcome
from loopagent.errors import ModelError
from loopagent.ports import ModelRequest
from loopagent.redaction import Redactor
from loopagent.runtime import held, verify
from loopagent.runtime.asking import Asking
from loopagent.runtime.at_hand import ActionOf, AtHand, BuiltOf
from loopagent.runtime.compact import compact
from loopagent.runtime.early import EarlyCalls
from loopagent.runtime.hooking import Hooking, HooksOf
from loopagent.runtime.keep import kept, kept_as_said
from loopagent.runtime.looking import Looker
from loopagent.runtime.performs import Report
from loopagent.runtime.recall import Recall, summary_of
from loopagent.runtime.remembering import Remembering
from loopagent.runtime.similar import Similar
from loopagent.runtime.streaming import masked


if TYPE_CHECKING:
    from loopagent.action import Action
    from loopagent.ports import Store
    from loopagent.runtime.bus import Bus
    from loopagent.runtime.invoke import Invoker
    from loopagent.runtime.live import Live
    from loopagent.runtime.model_calls import ModelCalls


async def _untold(kind: str, data: dict[str, Any]) -> None:
    """For what begins early: it is told when it counts."""
    del kind, data


class Performer:
    """Turns effects into outcomes: asks models, calls actions, reads the store."""

    def __init__(
        self,
        *,
        store: Store,
        bus: Bus,
        invoker: Invoker,
        models: ModelCalls,
        action_of: ActionOf,
        built_of: BuiltOf | None = None,
        clock: Callable[[], float],
        redactor: Redactor | None = None,
        hooks_of: HooksOf = lambda _: (),
        similar: Similar | None = None,
    ) -> None:
        self._store = store
        self.looker = Looker(store)
        self._bus = bus
        self._invoker = invoker
        self.models = models
        self.at_hand = AtHand(action_of, built_of)
        self._clock = clock
        self._mask = (redactor or Redactor()).mask
        self._similar = similar or Similar()
        self._memory = Remembering(store, self._mask, clock, self._similar)
        self.hooking = Hooking.create(hooks_of, lambda text: self._mask(storable(text)))
        self._kinds: Mapping[type[Any], Callable[[Live, Any, Report], Awaitable[Outcome]]] = {
            CallModel: self._call_model,
            RunAction: self._run_action,
            ReadMessage: self._read_message,
            KeepValue: self._keep_value,
            ReadArtifact: self._read_artifact,
            ReadConversation: self._read_conversation,
            SetTimer: self._set_timer,
            Compact: self._compact,
            Verify: self._verify,
            ReadMemory: self._memory.read,
            WriteMemory: self._memory.write,
            CallHook: self.hooking.perform,
        }

    async def perform(self, live: Live, effect: Effect, report: Report) -> Outcome:
        """Do what an effect asks for; failures are outcomes, only cancellation comes out as an exception."""
        try:
            return await self._kinds[type(effect)](live, effect, report)
        except ModelError as error:
            spent = [{"kind": error.kind, "usage": error.usage}] if error.usage else []
            return Outcome.failed(error.kind, self._mask(str(error))).with_value(
                {"attempts": spent}
            )

    async def aclose(self) -> None:
        """Close the models that were opened."""
        await self.models.aclose()
        await self._similar.aclose()

    async def _call_model(self, live: Live, effect: CallModel, report: Report) -> Outcome:
        live.close()
        if live.state.spec.early_start:
            begin = partial(self._invoke, live)
            live.early = EarlyCalls(live, effect.id, begin, lambda one: masked(one, self._mask))
        return await self.models.next_step(live, effect, report)

    async def _run_action(self, live: Live, effect: RunAction, report: Report) -> Outcome:
        at_hand, name = self.at_hand, effect.action
        action = at_hand.of_process(live.state, name) or await at_hand.of_library(live.state, name)
        outcome = None if live.early is None else await live.early.taken(effect)
        if outcome is None:
            outcome = await self._call(live, effect, action, report)
        if outcome.error is not None and outcome.error.code == ASKS:
            return outcome  # it has not ended
        if live.state.spec.hooks:
            outcome = await self.hooking.after_action(live.state, effect, outcome)
        if effect.whole:
            return outcome
        return await kept_as_said(self._store, live.state, effect, outcome, action)

    async def _invoke(self, live: Live, effect: RunAction, report: Report = _untold) -> Outcome:
        """Call an action; its result is as it gave it."""
        action = await self.at_hand.action(live.state, effect.action)
        return await self._call(live, effect, action, report)

    async def _call(
        self, live: Live, effect: RunAction, action: Action[..., Any] | None, report: Report
    ) -> Outcome:
        if action is None:
            return Outcome.failed(
                "unknown_action", f"Action {effect.action!r} is not available any more.", fatal=True
            )
        limits = live.state.spec.limits
        most = limits.max_result_bytes
        if effect.whole:  # the pipeline that asked for it holds it
            most = min(most, limits.max_pipeline_bytes)
        asking = context = None
        if action.wants_context:
            asking = self._asking(live, effect, report)
            context = self._context(live, effect, asking, report)
        outcome = await self._invoker.invoke(
            action,
            effect.params,
            context,
            timeout_ms=effect.timeout_ms,
            max_result_bytes=most,
        )
        if asking is None or not asking.calls:
            return outcome
        return replace(outcome, model_calls=tuple(asking.calls))

    def _asking(self, live: Live, effect: RunAction, report: Report) -> Asking:
        return Asking(
            lambda name: self.models.beside(live, effect, report, names=(name,) if name else ()),
            place_in_tree(live.state),
        )

    def _context(
        self, live: Live, effect: RunAction, asking: Asking, report: Report
    ) -> ActionContext:
        state = live.state
        return ActionContext(
            run_id=live.run_id,
            effect_id=effect.id,
            turn=state.turn,
            agent=state.spec.name,
            idempotency_key=f"{live.run_id}/{effect.id}",
            timeout_seconds=effect.timeout_ms / 1000.0,
            skills={one.name: one.hash for one in active_skills(state)},
            resume=effect.resume,
            put_question=partial(held.put, live, effect, report),
            on_progress=lambda text: self._progress(live, effect.id, text),
            ask=asking.ask,
        )

    def _progress(self, live: Live, effect_id: str, text: str) -> None:
        if effect_id not in live.state.pending:
            return  # it began early, or nobody waits for it any more
        event = {
            "runId": live.run_id,
            "type": "action.progress",
            "turn": live.state.turn,
            "decidedBy": "engine",
        }
        shown = {**event, "data": {"callId": effect_id, "text": text}}
        self._bus.publish(live.run_id, [shown], live.state.root_id)

    async def _shortened(
        self,
        live: Live,
        effect_id: str,
        outcome: Outcome,
        *,
        always: bool = False,
    ) -> Outcome:
        """The outcome, with a result over the cap kept in the store and replaced by head, tail and size."""
        cap = live.state.spec.limits.max_result_chars
        return await kept(self._store, live.run_id, effect_id, outcome, cap, always=always)

    async def _read_message(self, live: Live, effect: ReadMessage, report: Report) -> Outcome:
        del report
        found = await self._store.transcript(live.run_id, first=effect.number, last=effect.number)
        if not found:
            return Outcome.failed(
                "no_message", f"There is no message #{effect.number} in this run."
            )
        return Outcome.done({"number": effect.number, "role": found[0].role, "text": found[0].text})

    async def _read_artifact(self, live: Live, effect: ReadArtifact, report: Report) -> Outcome:
        del report
        return await self.looker.read(live.state, effect)

    async def _read_conversation(
        self, live: Live, effect: ReadConversation, report: Report
    ) -> Outcome:
        put = self.models.beside(live, effect, report, effect.timeout_ms)

        async def summarise(request: ModelRequest) -> dict[str, Any]:
            return summary_of(*await put(request), self._mask)

        return await Recall(self._store, live.state, summarise, monotonic).read(effect)

    async def _keep_value(self, live: Live, effect: KeepValue, report: Report) -> Outcome:
        del report
        kept = Outcome.done(effect.value)
        return await self._shortened(live, effect.id, kept, always=effect.always)

    async def _compact(self, live: Live, effect: Compact, report: Report) -> Outcome:
        return await compact(live, effect, self.models.texts(live, effect, report), self._mask)

    async def _verify(self, live: Live, effect: Verify, report: Report) -> Outcome:
        verifier = live.state.spec.completion.verifier
        assert verifier is not None  # nothing is verified without one
        if verifier.model is not None:
            asker = self.models.texts(live, effect, report, (verifier.model,))
            return await verify.ask_model(live, effect, verifier, asker)
        spec = live.state.spec.action(str(verifier.action))
        assert spec is not None  # the definition was checked
        params = verify.parameters(live, effect, spec.parameters)
        call = RunAction(effect.id, spec.name, params, spec.timeout_ms, repeatable=True, whole=True)
        outcome = await self._invoke(live, call)
        return outcome.with_value({"verdict": outcome.value})

    async def _set_timer(self, live: Live, effect: SetTimer, report: Report) -> Outcome:
        del live, report
        await asyncio.sleep(max(0.0, effect.due - self._clock()))
        return Outcome.done()
