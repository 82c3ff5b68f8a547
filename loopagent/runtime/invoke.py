"""The one way to call an action: typed arguments, real timeouts and cancellation, a JSON result, never an exception."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, cast

from pydantic import ValidationError

from loopagent.action import Action, ActionContext
from loopagent.core.envelope import problems_of
from loopagent.core.jsonable import NotJsonError, to_jsonable
from loopagent.core.outcome import Outcome
from loopagent.core.text import clean_text
from loopagent.errors import ActionError


MAX_MESSAGE_CHARS = 2_000
MAX_BACKOFF_SECONDS = 30.0


class Invoker:
    """Calls actions. One per process; gives back its threads on `aclose`.

    Args:
        max_threads: Synchronous actions that may run at once; further ones wait, and their waiting counts towards
            their timeout.
        grace_seconds: How long an asynchronous action that ignores its cancellation is waited for.
    """

    def __init__(self, *, max_threads: int = 32, grace_seconds: float = 1.0) -> None:
        self._threads = _Threads(max_threads)
        self._grace_seconds = grace_seconds
        self._serial: dict[str, asyncio.Lock] = {}

    async def invoke(
        self,
        action: Action[..., Any],
        params: dict[str, Any],
        context: ActionContext,
        *,
        timeout_ms: int,
        max_result_bytes: int = 50_000_000,
    ) -> Outcome:
        """Call an action, again as its retry policy says when that does no harm; failures are outcomes.

        Args:
            action: What to call.
            params: Parameters, already checked against the action's schema.
            context: Handed to an action that asks for it.
            timeout_ms: For all attempts together, waiting included.
            max_result_bytes: Largest result as JSON.
        """
        started = perf_counter()
        spec = action.spec
        attempts = spec.retry.max_attempts if spec.repeatable else 1
        outcome = Outcome.failed("failed", "not called")
        for attempt in range(1, attempts + 1):
            left = timeout_ms / 1000.0 - (perf_counter() - started)
            if attempt > 1 and left <= 0:
                break
            outcome = await self._serially(action, params, context, left)
            if outcome.ok or attempt == attempts or outcome.error is None or outcome.error.fatal:
                break
            pause = min(spec.retry.backoff_seconds * 2 ** (attempt - 1), MAX_BACKOFF_SECONDS)
            await asyncio.sleep(min(pause, max(0.0, timeout_ms / 1000.0 - (perf_counter() - started))))
        duration_ms = round((perf_counter() - started) * 1000, 2)
        done = Outcome(outcome.ok, outcome.value, outcome.error, duration_ms, attempt)
        return _capped(done, spec.name, max_result_bytes)

    async def aclose(self) -> None:
        """Stop taking work; threads that are stuck do not keep the process."""
        self._threads.close()

    async def _serially(
        self, action: Action[..., Any], params: dict[str, Any], context: ActionContext, seconds: float
    ) -> Outcome:
        if not action.spec.serial:
            return await self._attempt(action, params, context, seconds)
        lock = self._serial.setdefault(action.spec.name, asyncio.Lock())
        try:
            await asyncio.wait_for(lock.acquire(), seconds)
        except TimeoutError:
            return Outcome.failed("timeout", "Timed out while waiting for an earlier call of this action.")
        try:
            return await self._attempt(action, params, context, seconds)
        finally:
            lock.release()

    async def _attempt(
        self, action: Action[..., Any], params: dict[str, Any], context: ActionContext, seconds: float
    ) -> Outcome:
        try:
            arguments = action.arguments(params, context)
        except ValidationError as error:
            wrong = "; ".join(f"{one.path}: {one.message}" for one in problems_of(error.errors(include_url=False)))
            return Outcome.failed("bad_params", wrong[:MAX_MESSAGE_CHARS])
        call = self._async if action.is_async else self._sync
        try:
            return await call(action, arguments, seconds)
        except TimeoutError:
            return _timed_out(action, seconds)

    async def _async(self, action: Action[..., Any], arguments: dict[str, Any], seconds: float) -> Outcome:
        """Run a coroutine in this task when it behaves; a task of its own is needed only to outlive a deaf one."""
        work = asyncio.ensure_future(_guarded(lambda: cast("Awaitable[Any]", action.fn(**arguments))))
        try:
            done, _ = await asyncio.wait({work}, timeout=seconds)
        except asyncio.CancelledError:
            await self._stop(work)
            raise
        if done:
            return work.result()
        await self._stop(work)
        raise TimeoutError

    async def _stop(self, work: asyncio.Future[Outcome]) -> None:
        work.cancel()
        await asyncio.wait({work}, timeout=self._grace_seconds)

    async def _sync(self, action: Action[..., Any], arguments: dict[str, Any], seconds: float) -> Outcome:
        context = contextvars.copy_context()
        future = self._threads.submit(lambda: context.run(_guarded_sync, lambda: action.fn(**arguments)))
        return await asyncio.wait_for(future, seconds)


async def _guarded(call: Callable[[], Awaitable[Any]]) -> Outcome:
    try:
        return Outcome(ok=True, value=to_jsonable(await call()))
    except (Exception, SystemExit, GeneratorExit) as error:
        return _failed(error)


def _guarded_sync(call: Callable[[], Any]) -> Outcome:
    try:
        return Outcome(ok=True, value=to_jsonable(call()))
    except (Exception, SystemExit, GeneratorExit) as error:
        return _failed(error)


def _failed(error: BaseException) -> Outcome:
    """An exception as an outcome: its message, never its stack trace."""
    if isinstance(error, ActionError):
        return Outcome.failed(error.code, clean_text(str(error))[:MAX_MESSAGE_CHARS], fatal=error.fatal)
    if isinstance(error, NotJsonError):
        return Outcome.failed("bad_result", f"The result cannot be stored: {error}"[:MAX_MESSAGE_CHARS])
    try:
        message = clean_text(f"{type(error).__name__}: {error}")
    except Exception:  # noqa: BLE001 - an exception whose text itself fails
        message = type(error).__name__
    return Outcome.failed("exception", message[:MAX_MESSAGE_CHARS])


def _timed_out(action: Action[..., Any], seconds: float) -> Outcome:
    risky = not action.spec.repeatable
    tail = " It may have taken effect." if risky else ""
    return Outcome.failed("timeout", f"Timed out after {seconds:.1f} s.{tail}", may_have_run=risky)


def _capped(outcome: Outcome, name: str, max_bytes: int) -> Outcome:
    if not outcome.ok or isinstance(outcome.value, bool | int | float | None):
        return outcome
    if isinstance(outcome.value, str) and len(outcome.value) * 4 < max_bytes:
        return outcome
    size = len(outcome.text().encode("utf-8", "replace"))
    if size <= max_bytes:
        return outcome
    message = f"The result of {name} has {size} bytes; at most {max_bytes} are taken. Ask for less at once."
    return Outcome.failed("result_too_large", message, duration_ms=outcome.duration_ms, attempts=outcome.attempts)


class _Threads:
    """Daemon threads for blocking work: one that is stuck must not keep the process from ending."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._work: queue.SimpleQueue[tuple[Callable[[], Outcome], Callable[[Outcome], None]] | None] = (
            queue.SimpleQueue()
        )
        self._idle = threading.Semaphore(0)
        self._started = 0

    def submit(self, call: Callable[[], Outcome]) -> asyncio.Future[Outcome]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()

        def settle(outcome: Outcome) -> None:
            if not future.done():
                future.set_result(outcome)

        def hand_back(outcome: Outcome) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, outcome)

        self._work.put((call, hand_back))
        if not self._idle.acquire(blocking=False) and self._started < self._maximum:
            self._started += 1
            threading.Thread(target=self._serve, name=f"action-{self._started}", daemon=True).start()
        return future

    def _serve(self) -> None:
        while (job := self._work.get()) is not None:
            call, hand_back = job
            hand_back(call())
            self._idle.release()

    def close(self) -> None:
        for _ in range(self._started):
            self._work.put(None)
