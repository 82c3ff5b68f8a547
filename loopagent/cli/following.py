"""Following a run from a terminal: what is shown, when somebody is asked, and what Ctrl-C does."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from loopagent.app import App
from loopagent.cli.output import err, print_json, show_event
from loopagent.cli.progress import Bars
from loopagent.runview import RunView


Json = dict[str, Any]
Output = Literal["timeline", "json", "events"]
Answerer = Callable[[App, RunView], Awaitable[None]]
STILL = "resumable"
"""Loop state of a paused run."""
WAITING = frozenset({"interactive", "followup", "client_tool", STILL})
"""Loop states in which somebody outside has to do something."""
ASKS = frozenset({"request.created", "client_tool.requested"})
"""Events that somebody is asked with."""


async def follow(
    app: App, run_id: str, output: Output, answer: Answerer | None, after: int
) -> None:
    """Show a run until it ends, or until it waits for what nobody here can answer.

    Args:
        app: An open app.
        run_id: The run.
        output: What is printed.
        answer: Answers its open requests, or None when nobody can.
        after: Number of the last event that is not to be printed again.
    """
    while True:
        view = await app.get(run_id)
        asked = answer is not None and bool(view.asks)
        if not (asked or view.waiting or view.state.ended):
            after = await _watch(app, run_id, output, after, eager=answer is not None)
            continue
        if not asked:
            view = await app.wait(run_id)
        if answer is None or view.state.ended or view.loop.state == STILL:
            await _rest(app, run_id, after, output)
            return
        await answer(app, view)


async def _watch(app: App, run_id: str, output: Output, after: int, *, eager: bool) -> int:
    """Show what happens until the run waits or ends, or asks something in the middle of its work if `eager`.

    Returns:
        The number of the last event shown.
    """
    with Bars(on=output == "timeline") as bars:
        async for event in app.events(run_id, after=after):
            after = event.get("seq", after)
            bars.add(event)
            _print(event, output)
            if event["type"] == "run.state" and event["data"]["state"] in WAITING:
                break
            if eager and event["type"] in ASKS and await _is_held(app, run_id, event):
                break
    return after


async def _is_held(app: App, run_id: str, event: Json) -> bool:
    """Whether an event tells of a request that is open while the run goes on; else the run soon says that it waits."""
    view = await app.get(run_id)
    return not view.waiting and event["data"]["requestId"] in {
        one["requestId"] for one in view.asks
    }


async def _rest(app: App, run_id: str, after: int, output: Output) -> None:
    async for event in app.events(run_id, after=after, live=False):
        _print(event, output)


def _print(event: Json, output: Output) -> None:
    if output == "events":
        print_json(event)
    elif output == "timeline":
        show_event(event)


@asynccontextmanager
async def stopping(app: App, run_id: str) -> AsyncIterator[asyncio.Event]:
    """Ctrl-C cancels the run, so that nothing goes on unseen; a second one ends at once."""
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []
    stopped = asyncio.Event()

    async def cancel() -> None:
        await app.cancel(run_id, reason="Ctrl-C", by="human")
        stopped.set()

    def stop() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        err.print("stopping the run …")
        tasks.append(asyncio.create_task(cancel()))

    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield stopped
        await asyncio.gather(*tasks)
    finally:
        loop.remove_signal_handler(signal.SIGINT)
