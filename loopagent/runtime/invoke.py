"""The one way to call an action: typed arguments, a limit that holds, a JSON result, no exception."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias

from loopagent.action import Action, ActionContext, CallClock
from loopagent.core.outcome import ErrorInfo, Outcome
from loopagent.core.values import changed
from loopagent.logs import log
from loopagent.runtime.call_results import MAX_MESSAGE_CHARS, CallResults
from loopagent.runtime.coroutines import CANCELLED_ITSELF, AsyncAttempt, kill
from loopagent.runtime.deadlines import Deadlines
from loopagent.runtime.threads import BusyError, Threads, Work


AnyAction: TypeAlias = Action[..., Any]
MAX_BACKOFF_SECONDS = 30.0
LATE_MS = 100.0
HELD_UP = "it blocks the event loop: make it a plain function, or await what it waits for"
FINAL_CODES = frozenset(
    {"bad_params", "bad_result", "result_too_large", "timeout", "not_started", "asks"}
)
"""Failures that another attempt would only repeat, or for which no time is left."""


@dataclass(slots=True)
class _Call:
    """What stays the same for all attempts of a call."""

    action: AnyAction
    params: dict[str, Any]
    context: ActionContext | None
    seconds: float
    ends_at: float
    max_bytes: int

    def given_up(self) -> None:
        """Let the action see that nobody waits for it any more."""
        if self.context is not None:
            self.context.clock.stopped = True


_Work: TypeAlias = Outcome | AsyncAttempt | Work[Outcome]
"""An attempt that is over, or one that is under way."""


class Invoker:
    """Calls actions, on one event loop; `aclose` ends what still runs.

    Args:
        max_threads: Synchronous actions that run side by side; further ones wait, and their waiting
            counts towards their time limit.
        max_stuck_threads: Synchronous calls that were given up and still run, before no further ones
            are taken.
        grace_seconds: How long an async action that was cancelled is waited for.
        mask: Applied to every text of a result, an error or a progress report, to take out secrets.
    """

    def __init__(
        self,
        *,
        max_threads: int = 32,
        max_stuck_threads: int = 256,
        grace_seconds: float = 0.5,
        mask: Callable[[str], str] | None = None,
    ) -> None:
        self._threads = Threads(max_threads, max_stuck_threads)
        self._grace_seconds = grace_seconds
        self._results = CallResults(mask)
        self._closed = False
        self._serial: dict[AnyAction, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._deadlines = Deadlines()

    async def invoke(
        self,
        action: AnyAction,
        params: dict[str, Any],
        context: ActionContext | None,
        *,
        timeout_ms: int | None = None,
        max_result_bytes: int = 50_000_000,
    ) -> Outcome:
        """Call an action, and again where its retry policy says so and it does no harm.

        Args:
            action: What to call.
            params: Parameters, already checked against the action's schema.
            context: Handed to an action that asks for it; None for one that does not.
            timeout_ms: For all attempts together, waiting included; None for what the action says.
            max_result_bytes: Largest result as JSON.

        Returns:
            How it ended; every failure is an outcome.

        Raises:
            asyncio.CancelledError: The caller was cancelled; so is the action.
            KeyboardInterrupt: As ever.
        """
        started = perf_counter()
        spec = action.spec
        seconds = (spec.timeout_ms if timeout_ms is None else timeout_ms) / 1000
        work: _Work | None = None
        if action.never_waits and not spec.serial and not action.wants_context:
            work = self._run_through(action, params, None, max_result_bytes)
        if isinstance(work, Outcome) and work.error is None:
            outcome = work  # as most: all that follows is for calls that take time
        else:
            left = seconds - (perf_counter() - started)
            ends_at = asyncio.get_running_loop().time() + left
            if context is not None and action.wants_context:
                context = self._bound(context, ends_at)
            call = _Call(action, params, context, seconds, ends_at, max_result_bytes)
            outcome = await self._ended(call, work)
        duration_ms = round((perf_counter() - started) * 100_000) / 100  # quicker than two digits
        if (
            duration_ms > seconds * 1000 + LATE_MS
            and action.is_async
            and code_of(outcome) != "timeout"
        ):
            # It was not told that its time is over, so it kept the event loop, and with it all other runs.
            log.warning(
                "action.held_up_all", action=spec.name, duration_ms=duration_ms, hint=HELD_UP
            )
        # Nobody else has seen the outcome yet; a copy with the duration would be one more for each call.
        object.__setattr__(outcome, "duration_ms", duration_ms)
        return outcome

    async def _ended(self, call: _Call, work: _Work | None) -> Outcome:
        """How a call ends, of which a first attempt may be there already, after all its attempts."""
        attempts = 1
        while True:
            work = work or await self._begun(call)
            outcome = work if isinstance(work, Outcome) else await self._outcome(call, work)
            if outcome.error is None or not await _may_repeat(call, outcome.error, attempts):
                break
            attempts, work = attempts + 1, None
        if attempts > 1:
            object.__setattr__(outcome, "attempts", attempts)
        return outcome

    async def aclose(self) -> None:
        """End every async action that still runs, even one that ignores it; threads are let go."""
        self._closed = True
        await asyncio.sleep(0)  # a task that is cancelled before it began would say nothing
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._grace_seconds)
        for task in tasks:
            if not task.done():
                await kill(task)

    def _bound(self, context: ActionContext, ends_at: float) -> ActionContext:
        """The context of one call: with its clock, and with progress that may come from any thread."""
        clock, loop, sink = CallClock(ends_at), asyncio.get_running_loop(), context.on_progress

        def report(text: str) -> None:
            if sink is not None and not clock.stopped:
                shown = self._results.text(text)[:MAX_MESSAGE_CHARS]
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody watches
                    loop.call_soon_threadsafe(sink, shown)

        bound = changed(context, clock=clock, on_progress=report)
        return changed(bound, call=partial(self._inside, bound))

    async def _inside(
        self, outer: ActionContext, action: AnyAction, params: dict[str, Any], name: str
    ) -> Outcome:
        """Call an action inside of another call: within its time, with keys of its own, once it is given up no more."""
        if outer.clock.stopped:
            return Outcome.failed("not_started", "The call was given up.")
        context = changed(
            outer,
            effect_id=f"{outer.effect_id}/{name}",
            idempotency_key=f"{outer.idempotency_key}/{name}",
        )
        left_ms = round(outer.seconds_left * 1000)
        timeout_ms = max(1, min(action.spec.timeout_ms, left_ms))
        return await self.invoke(action, params, context, timeout_ms=timeout_ms)

    async def _begun(self, call: _Call) -> _Work:
        """One attempt, under way."""
        action = call.action
        if action.never_waits and not action.spec.serial:
            return self._run_through(action, call.params, call.context, call.max_bytes)
        if self._closed:
            return self._closing(action)
        try:
            return await self._start(call, action.arguments(call.params, call.context))
        except Exception as error:
            return self._results.refused(action.spec, error)

    def _closing(self, action: AnyAction) -> Outcome:
        return self._results.refused(action.spec, BusyError("the runtime is shutting down"))

    async def _start(self, call: _Call, arguments: dict[str, Any]) -> _Work:
        """Begin one attempt, when it is its turn."""
        on_end = await self._turn(call) if call.action.spec.serial else None
        if call.action.is_async:
            return self._start_coroutine(self._call_async(call, arguments), on_end)
        blocking = partial(self._call_sync, call, arguments)
        try:
            return await self._threads.start(blocking, ends_at=call.ends_at, on_end=on_end)
        except BaseException:
            if on_end is not None:
                on_end()
            raise

    async def _turn(self, call: _Call) -> Callable[[], None]:
        """Wait until no call of a serial action runs, given up or not; gives what ends the turn."""
        lock = self._serial.setdefault(call.action, asyncio.Lock())
        try:
            async with asyncio.timeout_at(call.ends_at):
                await lock.acquire()
        except TimeoutError:
            text = "an earlier call is still running, and this action runs one call at a time"
            raise BusyError(text) from None
        return lock.release

    def _run_through(
        self,
        action: AnyAction,
        params: dict[str, Any],
        context: ActionContext | None,
        max_bytes: int,
    ) -> Outcome | AsyncAttempt:
        """Run an async action that never waits: nothing can come between, so it needs no task and no timer."""
        if self._closed:
            return self._closing(action)
        results = self._results
        try:
            running = action.fn(**action.arguments(params, context))
        except Exception as error:
            return results.refused(action.spec, error)
        try:
            copy_context().run(running.send, None)
        except StopIteration as end:
            value = end.value
        except asyncio.CancelledError:
            return Outcome.failed("exception", CANCELLED_ITSELF)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # it must not end the loop, whatever it raises
            return results.failed(error)
        else:
            raise AssertionError(action)
        outcome = results.quickly_converted(action.spec, value, max_bytes)
        return outcome or self._start_coroutine(self._convert_aside(action, value, max_bytes), None)

    def _start_coroutine(
        self, running: Coroutine[Any, Any, Outcome], on_end: Callable[[], None] | None
    ) -> AsyncAttempt:
        work = AsyncAttempt(running, self._grace_seconds)
        self._tasks.add(work.task)
        if on_end is not None:
            work.task.add_done_callback(lambda _: on_end())
        return work

    async def _outcome(self, call: _Call, work: AsyncAttempt | Work[Outcome]) -> Outcome:
        """Wait for an attempt, not longer than the call may take."""
        result = work.result
        self._deadlines.add(result, call.ends_at)
        try:
            outcome = await result
        except asyncio.CancelledError:
            call.given_up()
            await work.give_up()
            raise
        finally:
            self._deadlines.drop(result)
            if isinstance(work, AsyncAttempt):
                self._leave(work.task)
        if outcome is not None:
            return outcome
        call.given_up()
        await work.give_up()
        return _timed_out(call)

    def _leave(self, task: asyncio.Task[None]) -> None:
        """Stop keeping a task in mind when it has ended; most have, and need no callback for it."""
        if task.done():
            self._tasks.discard(task)
        else:
            task.add_done_callback(self._tasks.discard)

    async def _call_async(self, call: _Call, arguments: dict[str, Any]) -> Outcome:
        try:
            result = call.action.fn(**arguments)
            value = await result if inspect.isawaitable(result) else result
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:  # a task must not end the loop, whatever it raises
            return self._results.failed(error)
        action, most = call.action, call.max_bytes
        outcome = self._results.quickly_converted(action.spec, value, most)
        return outcome or await self._convert_aside(action, value, most)

    async def _convert_aside(self, action: AnyAction, value: Any, max_bytes: int) -> Outcome:
        convert = partial(self._results.converted, action.spec, value, max_bytes)
        try:
            work = await self._threads.start(convert, ends_at=0)
        except BusyError:  # none is free at this moment; waiting would eat up the call's time
            return convert()
        return await work.result or convert()

    def _call_sync(self, call: _Call, arguments: dict[str, Any]) -> Outcome:
        try:
            value = call.action.fn(**arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return self._results.failed(error)
        return self._results.converted(call.action.spec, value, call.max_bytes)


def code_of(outcome: Outcome) -> str:
    """Why it failed; empty if it did not."""
    return outcome.error.code if outcome.error is not None else ""


def _timed_out(call: _Call) -> Outcome:
    spec = call.action.spec
    advice = ""
    if spec.effects != "read":
        advice = " It may have taken effect: " + (
            "calling it again with the same parameters is safe."
            if spec.idempotent
            else "check before you call it again."
        )
    text = f"{spec.name} did not end within {call.seconds:g} s and was given up.{advice}"
    return Outcome.failed("timeout", text, may_have_run=spec.effects != "read")


async def _may_repeat(call: _Call, error: ErrorInfo, attempts: int) -> bool:
    """Wait before the next attempt, where there is to be one; False when no time would be left for it."""
    spec = call.action.spec
    if attempts >= spec.retry.max_attempts or not spec.repeatable:
        return False
    if error.fatal or error.code in FINAL_CODES:
        return False
    wanted = spec.retry.backoff_seconds * 2 ** (attempts - 1)
    pause = min(wanted, MAX_BACKOFF_SECONDS)
    if asyncio.get_running_loop().time() + pause >= call.ends_at:
        return False
    await asyncio.sleep(pause)
    return True
