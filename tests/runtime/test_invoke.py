from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, field_serializer

from loopagent.action import Action, ActionContext, action
from loopagent.core.action_spec import ActionRetry
from loopagent.core.outcome import ErrorInfo, Outcome
from loopagent.errors import ActionError
from loopagent.runtime.invoke import Invoker


pytestmark = pytest.mark.anyio
CONTEXT = ActionContext("run-1", "3:action.0")
READ = action(effects="read")


@contextlib.asynccontextmanager
async def invoking(**options: Any) -> AsyncIterator[Callable[..., Any]]:
    """`call(action, **params)`, with `limits` for everything that is no parameter."""
    invoker = Invoker(**{"grace_seconds": 0.2, **options})

    async def call(
        one: Action[..., Any], limits: dict[str, Any] | None = None, **params: Any
    ) -> Outcome:
        return await invoker.invoke(one, params, CONTEXT, **(limits or {}))

    try:
        yield call
    finally:
        await invoker.aclose()


def failure(outcome: Outcome) -> ErrorInfo:
    assert not outcome.ok
    assert outcome.value is None
    assert outcome.error is not None
    return outcome.error


@READ
async def double(n: int) -> int:
    return n * 2


@READ
def double_blocking(n: int) -> int:
    return n * 2


@pytest.mark.parametrize("one", [double, double_blocking], ids=["async", "sync"])
async def test_a_result_comes_back_with_its_time(one):
    async with invoking() as call:
        outcome = await call(one, n=4)
    assert (outcome.ok, outcome.value, outcome.error, outcome.attempts) == (True, 8, None, 1)
    assert outcome.duration_ms > 0


# --- arguments -----------------------------------------------------------------------------------


async def test_parameters_become_typed_arguments():
    class Trip(BaseModel):
        city: str

    def typed(trip, days):
        return [type(trip).__name__, trip.city, days]

    typed.__annotations__ = {"trip": Trip, "days": int}
    async with invoking() as call:
        assert (await call(action(typed), trip={"city": "Porto"}, days=2)).value == [
            "Trip",
            "Porto",
            2,
        ]


def _not_seven(value: int) -> int:
    if value == 7:
        raise ValueError("not seven")
    if value == 8:
        raise KeyError("eight")
    return value


@action
async def picky(ns: list[Annotated[int, AfterValidator(_not_seven)]]) -> None:
    raise AssertionError(f"must not be called: {ns}")


async def test_parameters_that_do_not_fit_their_types_are_an_outcome():
    async with invoking() as call:
        error = failure(await call(picky, ns=[1, 7], other=2))
        assert error.code == "bad_params"
        assert (
            error.message == "params.ns[1]: not seven; params.other: Extra inputs are not permitted"
        )
        assert failure(await call(picky, ns=[8])) == ErrorInfo("exception", "KeyError: 'eight'")


# --- failures ------------------------------------------------------------------------------------


class RudeExit(BaseException):
    pass


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ActionError("no such order", code="not_found"), ErrorInfo("not_found", "no such order")),
        (
            ActionError("no key", code="no_key", fatal=True),
            ErrorInfo("no_key", "no key", fatal=True),
        ),
        (ActionError(""), ErrorInfo("failed", "failed")),
        (KeyError("city"), ErrorInfo("exception", "KeyError: 'city'")),
        (ValueError(), ErrorInfo("exception", "ValueError")),
        (TimeoutError("upstream"), ErrorInfo("exception", "TimeoutError: upstream")),
        (StopIteration("x"), None),
        (SystemExit(3), ErrorInfo("exception", "SystemExit: 3")),
        (GeneratorExit(), ErrorInfo("exception", "GeneratorExit")),
        (RudeExit("now"), ErrorInfo("exception", "RudeExit: now")),
        (MuteError(), ErrorInfo("exception", "MuteError")),
        (RuntimeError("a\x00b\ud800"), ErrorInfo("exception", "RuntimeError: a\ufffdb\ufffd")),
        (
            ExceptionGroup("two", [ValueError("a"), KeyError("b")]),
            ErrorInfo(
                "exception", "ExceptionGroup: two (2 sub-exceptions): ValueError: a; KeyError: 'b'"
            ),
        ),
    ],
    ids=[
        "declared",
        "fatal",
        "silent",
        "key",
        "bare",
        "timeout",
        "stop",
        "exit",
        "generator",
        "base",
        "mute",
        "nul",
        "group",
    ],
)
async def test_whatever_an_action_raises_is_an_outcome(error, expected):
    @action
    async def fails() -> None:
        raise error

    @action
    def fails_blocking() -> None:
        raise error

    async with invoking() as call:
        for one in (fails, fails_blocking):
            got = failure(await call(one))
            assert expected is None or got == expected


async def test_long_messages_are_cut_and_hold_no_stack_trace():
    @action
    async def fails() -> None:
        raise ValueError("x" * 5_000)

    async with invoking() as call:
        message = failure(await call(fails)).message
    assert len(message) == 2_000
    assert message.endswith("…")
    assert "Traceback" not in message
    assert __file__ not in message


@pytest.mark.parametrize("blocking", [False, True])
async def test_keyboard_interrupt_passes(blocking):
    def interrupted() -> None:
        raise KeyboardInterrupt

    async def interrupted_async() -> None:
        raise KeyboardInterrupt

    async with invoking() as call:
        with pytest.raises(KeyboardInterrupt):
            await call(action(interrupted if blocking else interrupted_async))


async def test_an_action_that_cancels_itself_is_an_outcome():
    @action
    async def cancels() -> None:
        raise asyncio.CancelledError

    async with invoking() as call:
        assert failure(await call(cancels)).code == "exception"


def test_functions_without_anything_to_wait_for_are_known():
    async def at_once(n: int) -> int:
        return n

    async def sleeps() -> None:
        await asyncio.sleep(0)

    async def locks() -> None:
        async with asyncio.Lock():
            pass

    async def reads() -> list[int]:
        return [one async for one in numbers()]

    async def numbers() -> AsyncIterator[int]:
        yield 1

    def wraps() -> Any:
        return sleeps()

    waiting = {one.__name__: not action(one).never_waits for one in (at_once, sleeps, locks, reads)}
    assert waiting == {"at_once": False, "sleeps": True, "locks": True, "reads": True}
    assert action(name="bound")(partial(at_once, n=1)).never_waits
    assert not action(wraps).never_waits


async def test_one_failing_call_leaves_the_others_alone():
    done: list[str] = []

    @action
    async def mixed(kind: str) -> Any:
        if kind == "raises":
            raise ValueError(kind)
        if kind == "slow":
            await asyncio.sleep(0.1)
        if kind == "for ever":
            await asyncio.Event().wait()
        done.append(kind)
        return object() if kind == "no json" else kind

    kinds = ["fast", "raises", "no json", "for ever", "slow", "slow"]
    async with invoking() as call:
        outcomes = await asyncio.gather(
            *(call(mixed, {"timeout_ms": 300}, kind=kind) for kind in kinds)
        )
    codes = [one.error.code if one.error else one.value for one in outcomes]
    assert codes == ["fast", "exception", "bad_result", "timeout", "slow", "slow"]
    assert sorted(done) == ["fast", "no json", "slow", "slow"]


# --- results -------------------------------------------------------------------------------------


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


class Rude(BaseModel):
    a: int = 1

    @field_serializer("a")
    def _fail(self, value: int) -> int:
        raise RuntimeError(f"rude {value}")


class Quitter(BaseModel):
    a: int = 1

    @field_serializer("a")
    def _fail(self, value: int) -> int:
        sys.exit(value)


class Evil(dict[str, int]):
    def items(self):
        raise LookupError("evil")


async def nothing() -> None:
    return None


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize(
    ("value", "code", "said"),
    [
        (float("nan"), "bad_result", "nan is not a JSON number"),
        (cycle(), "bad_result", "result[0]: it refers to itself"),
        ({"a": [object()]}, "bad_result", "result.a[0]: object has no JSON form"),
        (Rude(), "bad_result", "rude"),
        (Quitter(), "bad_result", "SystemExit: 1"),
        (Evil(), "bad_result", "LookupError: evil"),
        ("x" * 200_000, "result_too_large", "200002 bytes as JSON, and at most 100000 are kept"),
        (["x"] * 70_000, "result_too_large", "more than 100000 bytes as JSON"),
    ],
    ids=["nan", "cycle", "object", "model", "quitter", "mapping", "long", "many"],
)
async def test_results_that_cannot_be_kept_are_outcomes(blocking, value, code, said):
    def returns() -> Any:
        return value

    async def returns_async() -> Any:
        return value

    returns_async.__name__ = "returns"
    async with invoking() as call:
        for effects in ("read", "write"):
            one = action(effects=effects)(returns if blocking else returns_async)
            error = failure(await call(one, {"max_result_bytes": 100_000}))
            assert error.code == code
            assert error.message.startswith("returns ran, but its result cannot be kept: ")
            assert said in error.message or code == "result_too_large"
            assert error.may_have_run == (effects == "write")


async def test_a_large_result_within_the_limit_is_kept():
    @READ
    async def large() -> list[str]:
        return ["x" * 1_000] * 1_000

    async with invoking() as call:
        assert (await call(large)).value == ["x" * 1_000] * 1_000
        error = failure(await call(large, {"max_result_bytes": 500}))
    assert error.code == "result_too_large"


async def test_fifty_megabytes_are_refused_without_a_pause_for_others():
    @READ
    async def huge() -> list[str]:
        return ["x" * 50] * 1_000_000

    pauses: list[float] = []

    async def watch() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0.01)
            pauses.append(time.perf_counter() - start)

    watcher = asyncio.ensure_future(watch())
    async with invoking() as call:
        error = failure(await call(huge))
    watcher.cancel()
    assert error.code == "result_too_large"
    assert "huge" in error.message
    assert "50000000" in error.message
    assert max(pauses) < 1


async def test_a_large_result_is_converted_at_once_when_no_thread_is_free():
    release = threading.Event()

    @READ
    def block() -> None:
        release.wait(10)

    @READ
    async def large() -> str:
        return "x" * 100_000

    async with invoking(max_threads=1) as call:
        blocked = asyncio.ensure_future(call(block))
        await asyncio.sleep(0.05)
        assert len((await call(large, {"timeout_ms": 100})).value) == 100_000
        release.set()
        assert (await blocked).ok


async def test_secrets_are_masked_in_results_errors_and_progress():
    heard: list[str] = []
    context = ActionContext("r", "e", on_progress=heard.append)

    @READ
    async def leaks(context: ActionContext, fail: bool) -> dict[str, str]:
        context.progress("using tok-CANARY-1")
        if fail:
            raise RuntimeError("401 for https://x/?key=tok-CANARY-1")
        return {"tok-CANARY-1": "tok-CANARY-1"}

    invoker = Invoker(mask=lambda text: text.replace("tok-CANARY-1", "***"))
    outcomes = [await invoker.invoke(leaks, {"fail": fail}, context) for fail in (True, False)]
    await invoker.aclose()
    assert failure(outcomes[0]).message == "RuntimeError: 401 for https://x/?key=***"
    assert outcomes[1].value == {"***": "***"}
    assert heard == ["using ***", "using ***"]


# --- time limits ---------------------------------------------------------------------------------


@action
async def for_ever() -> None:
    await asyncio.Event().wait()


@action(idempotent=True)
async def deaf() -> None:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3_600)


@READ
def sleeps(seconds: float) -> None:
    time.sleep(seconds)


async def test_an_action_that_awaits_for_ever_is_cancelled():
    async with invoking() as call:
        start = time.perf_counter()
        error = failure(await call(for_ever, {"timeout_ms": 100}))
        assert time.perf_counter() - start < 1.5
        assert (error.code, error.may_have_run) == ("timeout", True)
        assert error.message == (
            "for_ever did not end within 0.1 s and was given up. It may have taken effect: "
            "check before you call it again."
        )


async def test_an_action_that_ignores_cancellation_is_left_behind_and_ended_at_the_end():
    before = asyncio.all_tasks()
    async with invoking() as call:
        start = time.perf_counter()
        error = failure(await call(deaf, {"timeout_ms": 100}))
        assert time.perf_counter() - start < 2
        assert "calling it again with the same parameters is safe" in error.message
        assert len(asyncio.all_tasks() - before) == 1
    assert asyncio.all_tasks() == before


async def test_blocking_code_is_given_up_near_the_limit_and_holds_up_nobody():
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticker = asyncio.ensure_future(tick())
    async with invoking() as call:
        start = time.perf_counter()
        outcomes = await asyncio.gather(
            *(call(sleeps, {"timeout_ms": 200}, seconds=4) for _ in range(4))
        )
        assert 0.19 <= time.perf_counter() - start < 2
    ticker.cancel()
    assert [failure(one).code for one in outcomes] == ["timeout"] * 4
    assert [failure(one).may_have_run for one in outcomes] == [False] * 4
    assert failure(outcomes[0]).message == "sleeps did not end within 0.2 s and was given up."
    assert ticks > 3


async def test_the_limit_of_the_action_holds_when_none_is_given():
    @action(timeout_ms=1_000, effects="read")
    async def slow() -> None:
        await asyncio.sleep(60)

    async with invoking() as call:
        start = time.perf_counter()
        assert failure(await call(slow)).code == "timeout"
        assert 0.99 <= time.perf_counter() - start < 3


async def test_a_late_result_changes_nothing():
    @READ
    async def late() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "late"
        return "never"

    async with invoking() as call:
        assert failure(await call(late, {"timeout_ms": 50})).code == "timeout"


async def test_an_action_cleans_up_when_it_is_cancelled_and_ends_its_child_process():
    pids: list[int] = []

    @action
    async def child() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "import time; time.sleep(60)"
        )
        pids.append(process.pid)
        try:
            await process.wait()
        finally:
            process.kill()
            await process.wait()

    async with invoking(grace_seconds=5) as call:
        assert failure(await call(child, {"timeout_ms": 500})).code == "timeout"
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


async def test_a_blocking_action_sees_that_it_was_given_up():
    ended = threading.Event()

    @action
    def child(context: ActionContext) -> None:
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        while not context.cancelled and process.poll() is None:
            time.sleep(0.02)
        process.kill()
        process.wait()
        context.progress("nobody listens any more")
        ended.set()

    async with invoking() as call:
        assert failure(await call(child, {"timeout_ms": 300})).code == "timeout"
        assert await asyncio.to_thread(ended.wait, 5)


SLOW_SERVER = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
peer, _ = server.accept()
peer.recv(1000)
peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 100\\r\\n\\r\\n")
while True:
    peer.sendall(b"x")
    time.sleep(0.1)
"""


async def test_a_server_that_sends_byte_by_byte_does_not_keep_the_call():
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        SLOW_SERVER,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert server.stdout is not None
    port = int(await server.stdout.readline())

    @READ
    async def fetch() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            return await reader.read(-1)
        finally:
            writer.close()
            await writer.wait_closed()

    async with invoking() as call:
        start = time.perf_counter()
        assert failure(await call(fetch, {"timeout_ms": 400})).code == "timeout"
        assert time.perf_counter() - start < 3
    with contextlib.suppress(ProcessLookupError):
        server.kill()
    await server.wait()


# --- cancellation from outside -------------------------------------------------------------------


async def test_cancellation_reaches_the_action_and_the_caller():
    seen: list[str] = []

    @action
    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            seen.append("cleaned up")

    async with invoking() as call:
        task = asyncio.ensure_future(call(waits))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert seen == ["cleaned up"]


@pytest.mark.parametrize("one", [deaf, sleeps], ids=["deaf", "blocking"])
async def test_cancellation_is_not_held_up(one):
    params = {"seconds": 4} if one is sleeps else {}
    async with invoking() as call:
        task = asyncio.ensure_future(call(one, **params))
        await asyncio.sleep(0.02)
        start = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.perf_counter() - start < 2


async def test_a_call_cancelled_before_its_first_step_leaves_nothing_behind():
    before = asyncio.all_tasks()

    @READ
    async def waits() -> None:
        await asyncio.sleep(60)

    async with invoking() as call:
        task = asyncio.ensure_future(call(waits))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == before


# --- retries -------------------------------------------------------------------------------------


def flaky(failures: int, error: Exception, **options: Any) -> tuple[Action[..., Any], list[int]]:
    calls: list[int] = []

    async def flaky_call() -> str:
        calls.append(len(calls))
        if len(calls) <= failures:
            raise error
        return "ok"

    retry = ActionRetry(max_attempts=3, backoff_seconds=0.02)
    return action(**{"retry": retry, "effects": "read", **options})(flaky_call), calls


async def test_repeatable_actions_are_tried_again():
    async with invoking() as call:
        one, calls = flaky(2, ConnectionError("reset"))
        start = time.perf_counter()
        outcome = await call(one)
        assert time.perf_counter() - start >= 0.055  # 0.02 s, then twice that
        assert (outcome.value, outcome.attempts, len(calls)) == ("ok", 3, 3)
        one, calls = flaky(9, ConnectionError("reset"), effects="external", idempotent=True)
        outcome = await call(one)
        assert (failure(outcome).code, outcome.attempts) == ("exception", 3)


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (ConnectionError("reset"), {"effects": "write"}),
        (ActionError("no key", fatal=True), {}),
        (ConnectionError("reset"), {"retry": ActionRetry()}),
        (ConnectionError("reset"), {"retry": ActionRetry(max_attempts=3, backoff_seconds=60)}),
    ],
    ids=["not repeatable", "fatal", "no policy", "no time left"],
)
async def test_other_failures_are_not_repeated(error, options):
    one, calls = flaky(9, error, **options)
    async with invoking() as call:
        outcome = await call(one, {"timeout_ms": 5_000})
    assert not outcome.ok
    assert (outcome.attempts, len(calls)) == (1, 1)


async def test_bad_parameters_and_results_are_not_repeated():
    retry = ActionRetry(max_attempts=3, backoff_seconds=0)

    @action(effects="read", retry=retry)
    async def odd(n: int) -> object:
        return [n, object()]

    async with invoking() as call:
        assert (await call(odd, n=1)).attempts == 1
        assert (await call(odd, n="x")).attempts == 1


# --- context -------------------------------------------------------------------------------------


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="unset")


async def test_context_variables_reach_the_action_and_do_not_come_back():
    @READ
    async def reads() -> str:
        got = VARIABLE.get()
        VARIABLE.set("changed")
        return got

    @READ
    def reads_blocking() -> str:
        got = VARIABLE.get()
        VARIABLE.set("changed")
        return got

    VARIABLE.set("caller")
    async with invoking() as call:
        assert (await call(reads)).value == "caller"
        assert (await call(reads_blocking)).value == "caller"
    assert VARIABLE.get() == "caller"


@pytest.mark.parametrize("blocking", [False, True])
async def test_the_context_tells_the_key_and_the_time_left_and_takes_progress(blocking):
    heard: list[tuple[str, int]] = []

    def work(context: ActionContext) -> list[Any]:
        context.progress("half\x00")
        return [context.idempotency_key, 1.5 < context.seconds_left <= 2, context.cancelled]

    async def work_async(context: ActionContext) -> list[Any]:
        return work(context)

    context = ActionContext(
        "run-1", "3:action.0", on_progress=lambda text: heard.append((text, threading.get_ident()))
    )
    invoker = Invoker()
    outcome = await invoker.invoke(
        action(work if blocking else work_async), {}, context, timeout_ms=2_000
    )
    await invoker.aclose()
    assert outcome.value == ["run-1/3:action.0", True, False]
    assert heard == [("half\ufffd", threading.get_ident())]  # on the loop's thread


async def test_a_wrapper_that_gives_a_plain_value_instead_of_a_coroutine():
    def cached(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper() -> str:
            return "from the cache"

        wrapper.__wrapped__ = function  # type: ignore[attr-defined]
        return wrapper

    async with invoking() as call:
        assert (await call(action(cached(nothing)))).value == "from the cache"


# --- serial calls and threads --------------------------------------------------------------------


@pytest.mark.parametrize("blocking", [False, True])
async def test_serial_calls_run_one_at_a_time_in_order(blocking):
    running, most, order = 0, 0, []

    def enter(n: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        order.append(n)

    def leave() -> None:
        nonlocal running
        running -= 1

    @action(name="one", serial=True)
    def serial(n: int) -> None:
        enter(n)
        time.sleep(0.02)
        leave()

    @action(name="one", serial=True)
    async def serial_async(n: int) -> None:
        enter(n)
        await asyncio.sleep(0.02)
        leave()

    async with invoking() as call:
        one = serial if blocking else serial_async
        outcomes = await asyncio.gather(*(call(one, n=n) for n in range(5)))
    assert all(outcome.ok for outcome in outcomes)
    assert (most, order) == (1, [0, 1, 2, 3, 4])


async def test_a_serial_action_waits_also_for_a_call_that_was_given_up():
    release = threading.Event()

    @action(serial=True)
    def stuck() -> None:
        release.wait(10)

    async with invoking() as call:
        assert failure(await call(stuck, {"timeout_ms": 50})).code == "timeout"
        error = failure(await call(stuck, {"timeout_ms": 50}))
        assert error.code == "not_started"
        assert "an earlier call is still running" in error.message
        release.set()
        assert (await call(stuck)).ok


async def test_a_serial_call_that_cannot_start_gives_its_turn_back():
    release = threading.Event()

    @action(serial=True)
    def one() -> None: ...

    @action
    def block() -> None:
        release.wait(10)

    async with invoking(max_threads=1) as call:
        blocked = asyncio.ensure_future(call(block))
        await asyncio.sleep(0.05)
        error = failure(await call(one, {"timeout_ms": 50}))
        assert (
            error.message == "one was not started: all 1 threads for synchronous actions are busy."
        )
        release.set()
        assert (await blocked).ok
        assert (await call(one)).ok


async def test_stuck_threads_leave_room_for_others_up_to_a_number():
    release = threading.Event()

    @action
    def stuck() -> None:
        release.wait(10)

    async with invoking(max_threads=1, max_stuck_threads=2) as call:
        for _ in range(2):
            assert failure(await call(stuck, {"timeout_ms": 30})).code == "timeout"
        error = failure(await call(double_blocking, n=1))
        assert error.code == "not_started"
        assert "2 calls that were given up are still running" in error.message
        release.set()
        await asyncio.sleep(0.05)
        assert (await call(double_blocking, n=1)).value == 2


# --- shutdown ------------------------------------------------------------------------------------


async def test_closing_ends_what_runs_and_nothing_new_is_started():
    invoker = Invoker(grace_seconds=0.1)
    running = asyncio.ensure_future(invoker.invoke(for_ever, {}, CONTEXT))
    await asyncio.sleep(0)
    await invoker.aclose()
    assert failure(await running).code == "exception"
    for one in (double, double_blocking):
        error = failure(await invoker.invoke(one, {"n": 1}, CONTEXT))
        assert error == ErrorInfo(
            "not_started", f"{one.spec.name} was not started: the runtime is shutting down."
        )
    await invoker.aclose()


PROGRAM = """
import asyncio, sys, time
from loopagent.action import ActionContext, action
from loopagent.runtime.invoke import Invoker

@action
def blocks():
    time.sleep(3600)

@action
async def deaf():
    while True:
        try:
            await asyncio.sleep(3600)
        except {deaf_to}:
            pass

async def main():
    invoker = Invoker(grace_seconds=0.1)
    context = ActionContext("r", "e")
    try:
        for one in (blocks, deaf):
            outcome = await invoker.invoke(one, {{}}, context, timeout_ms=100)
            assert outcome.error.code == "timeout", outcome
        print("waiting", flush=True)
        await asyncio.sleep({wait_seconds})
    finally:
        await invoker.aclose()
        print("closed", flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("deaf_to", ["asyncio.CancelledError", "BaseException"])
@pytest.mark.parametrize("interrupt", [False, True])
async def test_stuck_code_does_not_keep_the_process(deaf_to, interrupt):
    program = PROGRAM.format(deaf_to=deaf_to, wait_seconds=60 if interrupt else 0)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    async with asyncio.timeout(20):
        assert await process.stdout.readline() == b"waiting\n"
        if interrupt:
            process.send_signal(signal.SIGINT)
        out, errors = await process.communicate()
    assert out == b"closed\n"
    assert (b"KeyboardInterrupt" in errors) == (process.returncode != 0) == interrupt


async def test_calling_costs_little():
    async with invoking() as call:
        await call(double, n=1)

        async def once() -> float:
            start = time.perf_counter()
            for _ in range(200):
                await call(double, n=1)
            return (time.perf_counter() - start) / 200

        best = min([await once() for _ in range(5)])
    assert best < 500e-6  # measured: about 20 µs; the rest is for slow machines


async def test_an_async_action_that_blocks_everything_is_named_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @READ
    async def blocks() -> str:
        time.sleep(0.3)  # noqa: ASYNC251 - what is to be found
        return "late"

    async with invoking() as call:
        outcome = await call(blocks, {"timeout_ms": 10})
    assert outcome.value == "late", "it was done, and is not said not to have been"
    assert "action.held_up_all" in caplog.text
    assert "action=blocks" in caplog.text
