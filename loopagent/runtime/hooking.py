"""Asking hooks: each in its turn, for no longer than it may take, with whatever goes wrong as part of the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from loopagent.core.hook_spec import at
from loopagent.core.hooks import name_of
from loopagent.core.json_values import copied
from loopagent.core.jsonable import NotJsonError, to_jsonable
from loopagent.core.outcome import Outcome
from loopagent.hooks import ALLOWED, Hook, HookAnswer, HookCall
from loopagent.runtime.describe import described
from loopagent.runtime.threads import BusyError, Threads


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loopagent.core.agent_spec import Limits
    from loopagent.core.effects import CallClientTool, CallHook, RunAction
    from loopagent.core.hook_spec import HookPoint, HookSpec
    from loopagent.core.state import RunState
    from loopagent.runtime.live import Live

Answer = dict[str, Any]
HooksOf = Callable[[str], Iterable[Hook]]
"""The hooks around an agent that this process has, by the agent's name."""
MAX_THREADS = 16
MAX_STUCK = 64
WITHHELD = "hook_failed"
"""Code of a result that is kept back because a hook that should have looked at it failed."""


class HookError(Exception):
    """A hook failed; the text says how."""


@dataclass(frozen=True, slots=True)
class Hooking:
    """Asks the hooks of this process.

    Args:
        hooks_of: Those around an agent.
        text: Applied to every text of an answer: takes out secrets.
        threads: Where sync hooks run.
    """

    hooks_of: HooksOf
    text: Callable[[str], str]
    threads: Threads

    @classmethod
    def create(cls, hooks_of: HooksOf, text: Callable[[str], str]) -> Hooking:
        """With threads of its own."""
        return cls(hooks_of, text, Threads(MAX_THREADS, MAX_STUCK))

    async def perform(self, live: Live, effect: CallHook, report: object) -> Outcome:
        """Ask the hooks of a place, until one refuses."""
        del report
        data = effect.data
        call = replace(
            _told(live.state, effect.point),
            message=str(data.get("message", "")),
            call_id=str(data.get("callId", "")),
            action=str(data.get("action", "")),
            params=copied(data.get("params") or {}),
            status=str(data.get("status", "")),
            reason=str(data.get("reason", "")),
        )
        answers, _ = await self._all(live.state, call)
        return Outcome.done({"answers": answers})

    async def after_action(
        self,
        state: RunState,
        effect: RunAction | CallClientTool,
        outcome: Outcome,
        media: Sequence[Mapping[str, Any]] = (),
    ) -> Outcome:
        """Ask the hooks after a call; the outcome as they want it, with what they said.

        Args:
            state: The run.
            effect: The call.
            outcome: What came of it.
            media: What is told of the images and files beside the result.
        """
        name = name_of(effect)
        if not at(state.spec.hooks, "after_action", name):
            return outcome
        call = replace(
            _told(state, "after_action"),
            call_id=effect.id,
            action=name,
            params=copied(effect.params),
            media=tuple(map(copied, media)),
            ok=outcome.ok,
            result=copied(outcome.value),
            error=outcome.error.public() if outcome.error else None,
        )
        answers, last = await self._all(state, call)
        failed = next((one for one in answers if "error" in one and "ignored" not in one), None)
        if failed is not None:
            text = f"{name} ended, but its result is kept back: hook {failed['hook']!r} failed."
            kept = Outcome.failed(WITHHELD, text, may_have_run=True)
            outcome = replace(kept, duration_ms=outcome.duration_ms, attempts=outcome.attempts)
        elif any("result" in one for one in answers):
            outcome = replace(outcome, ok=True, value=last.result, error=None)
        told = [{**one, "result": ""} if "result" in one else one for one in answers]
        return replace(outcome, hooks=tuple(told))

    async def _all(self, state: RunState, call: HookCall) -> tuple[list[Answer], HookCall]:
        """What each hook said, silence left out, and the call as they leave it."""
        here = {(one.spec.point, one.spec.name): one for one in self.hooks_of(state.spec.name)}
        answers: list[Answer] = []
        for spec in at(state.spec.hooks, call.point, call.action):
            answer = await self._one(spec, here.get((spec.point, spec.name)), call, state)
            if answer:
                answers.append({"hook": spec.name, **answer})
            if "params" in answer:
                call = replace(call, params=copied(answer["params"]))
            if "result" in answer:
                call = replace(call, ok=True, result=copied(answer["result"]), error=None)
            if {"stop", "deny"} & answer.keys() or ("error" in answer and "ignored" not in answer):
                break
        return answers, call

    async def _one(
        self, spec: HookSpec, hook: Hook | None, call: HookCall, state: RunState
    ) -> Answer:
        try:
            if hook is None:
                raise HookError("it is not in this process")  # noqa: TRY301 - one way to report
            said = await self._asked(hook, call)
            return self._answer(said, call.point, state.spec.limits)
        except Exception as error:  # a hook may raise anything, and none of it ends the loop
            why = str(error) if isinstance(error, HookError) else described(error)
            ignored = {"ignored": True} if spec.on_error == "ignore" else {}
            return {"error": self.text(why)[: state.spec.limits.max_hook_chars], **ignored}

    async def _asked(self, hook: Hook, call: HookCall) -> Any:
        """Call the function, and wait for it no longer than it may take."""
        seconds = hook.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                if hook.is_async:
                    return await cast("Any", hook.fn(call))
                return await self._in_thread(partial(hook.fn, call), seconds)
        except TimeoutError:
            raise HookError(f"it gave no answer within {seconds:g} s") from None

    async def _in_thread(self, function: Callable[[], Any], seconds: float) -> Any:
        ends_at = asyncio.get_running_loop().time() + seconds
        try:
            work = await self.threads.start(function, ends_at=ends_at)
        except BusyError as error:
            raise HookError(f"it was not asked: {error}") from None
        try:
            return await work.result
        except asyncio.CancelledError:
            await work.give_up()
            raise

    def _answer(self, said: Any, point: HookPoint, limits: Limits) -> Answer:
        """An answer as plain JSON, if the place allows it."""
        if said is None:
            return {}
        if not isinstance(said, HookAnswer):
            raise HookError(f"it returned {type(said).__name__}, not an answer such as `deny(…)`")
        wrong = sorted(said.says.keys() - ALLOWED[point])
        if wrong:
            raise HookError(f"a {point} hook cannot answer {', '.join(wrong)}")
        return {name: self._value(name, value, limits) for name, value in said.says.items()}

    def _value(self, name: str, value: Any, limits: Limits) -> Any:
        if name in {"params", "result"}:
            try:
                return to_jsonable(value, max_bytes=limits.max_result_bytes, text=self.text)
            except NotJsonError as error:
                raise HookError(f"its {name} cannot be kept: {error}") from None
        return self.text(str(value))[: limits.max_hook_chars]


def _told(state: RunState, point: HookPoint) -> HookCall:
    return HookCall(
        point=point,
        run_id=state.id,
        root_run_id=state.root_id,
        agent=state.spec.name,
        turn=state.turn,
        user=state.user,
        tenant=state.tenant,
        conversation=state.conversation,
        payload=copied(state.payload),
    )
