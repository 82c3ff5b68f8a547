"""Hooks that fail, are late, are gone or come again: nothing passes that should not, nothing is asked twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from loopagent import (
    Agent,
    App,
    ConfigError,
    HookAnswer,
    HookCall,
    RequestError,
    add_context,
    after_action,
    after_run,
    before_action,
    before_run,
    before_turn,
    replace_result,
)
from loopagent.core.advance import advance
from loopagent.core.hook_spec import HookSpec
from loopagent.core.state import RunState
from loopagent.core.state_bytes import dump_state
from tests.runtime.hooked import SENT, Listening, act, run, send


pytestmark = pytest.mark.anyio


def broken(kind: str) -> Any:
    def function(call: HookCall) -> Any:
        del call
        if kind == "raises":
            raise ValueError("no luck")
        if kind == "late":
            time.sleep(5)
        return {"allowed": True} if kind == "nonsense" else replace_result("x")

    return function


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("raises", "ValueError: no luck"),
        ("late", "within 0.05 s"),
        ("nonsense", "it returned dict"),
        ("not allowed", "cannot answer result"),
    ],
)
async def test_what_goes_wrong_in_a_hook_counts_as_a_refusal(kind: str, text: str) -> None:
    SENT.clear()
    hook = before_action(name="guard", timeout_seconds=0.05 if kind == "late" else 60)(broken(kind))
    model = Listening(act(("send", {"to": "ann"})))
    _, view, events = await run(model, hook)
    assert SENT == []
    assert text in model.text()
    assert view.state.status == "completed"
    [data] = [one["data"] for one in events if one["type"] == "hook.decided"]
    assert (data["decision"], data["ignored"]) == ("error", False)


async def test_a_hook_may_say_that_its_failure_means_nothing() -> None:
    SENT.clear()
    hook = before_action(name="guard", on_error="ignore")(broken("raises"))
    _, _, events = await run(Listening(act(("send", {"to": "ann"}))), hook)
    assert SENT == ["ann"]
    [data] = [one["data"] for one in events if one["type"] == "hook.decided"]
    assert (data["decision"], data["ignored"]) == ("error", True)


async def test_a_result_that_no_hook_could_look_at_is_kept_back() -> None:
    hook = after_action(name="mask")(broken("raises"))
    model = Listening(act(("send", {"to": "ann"})))
    _, _, events = await run(model, hook)
    assert "sk-live-123" not in json.dumps(events)
    assert "its result is kept back" in model.text()


async def test_before_turn_that_fails_stops_the_run_and_before_run_too() -> None:
    for point in (before_run, before_turn):
        _, view, _ = await run(Listening(), point(name="guard")(broken("raises")))
        assert (view.state.status, view.state.result.reason) == ("failed", "hook")


async def test_the_log_is_gone_through_again_without_any_hook(tmp_path: Path) -> None:
    calls: list[str] = []

    @before_turn
    async def count(call: HookCall) -> HookAnswer:
        calls.append(call.point)
        return add_context(f"{len(calls)}")

    store = f"sqlite:///{tmp_path}/runs.db"
    model = Listening(act(("send", {"to": "ann"})))
    agent = Agent("clerk", model=model, actions=[send])
    async with App(agents=[agent], hooks=[count], store=store) as app:
        view = await app.wait((await app.start("clerk", "Go.")).id)
        before = len(calls)
        log = await app.store.log(view.id)
        state = RunState(
            id=view.id, root_id=view.id, spec=view.state.spec, model=view.state.model, payload={}
        )
        for entry in log:
            moved = advance(state, *entry.events)
            assert moved.facts == entry.facts
            state = moved.state
        assert json.loads(dump_state(state)) == json.loads(dump_state(view.state))
        assert len(calls) == before == 2


async def test_nothing_is_said_to_a_run_that_says_farewell() -> None:
    inside, go_on = threading.Event(), threading.Event()

    @after_run
    def slow(call: HookCall) -> None:
        del call
        inside.set()
        go_on.wait(30)

    async with App(agents=[Agent("a", model=Listening())], hooks=[slow]) as app:
        view = await app.start("a", "Go.")
        while not inside.is_set():
            view = await app.wait(view.id, timeout_seconds=0.02)
        with pytest.raises(RequestError) as caught:
            await app.post(view.id, "One more thing.")
        assert (caught.value.code, caught.value.status) == ("run_ended", 409)
        view = await app.cancel(view.id)
        assert view.state.result is not None
        assert (view.state.status, view.state.result.message) == ("completed", "Done.")
        go_on.set()


async def test_a_pinned_hook_that_is_gone_refuses() -> None:
    """A definition says which hooks there are; a process without their code must not go on as if there were none."""
    spec = HookSpec(name="audit", point="before_run")
    agent = Agent("a", model=Listening())
    agent.spec = agent.spec.model_copy(update={"hooks": (spec,)})
    async with App(agents=[agent]) as app:
        view = await app.wait((await app.start("a", "Go.")).id)
        assert view.state.result is not None
        assert "not in this process" in view.state.result.message


def test_what_is_no_hook_is_refused_when_it_is_handed_in() -> None:
    def plain(call: HookCall) -> None:
        del call

    with pytest.raises(ConfigError, match="plain is no hook; decorate it"):
        App(hooks=[plain])  # type: ignore[list-item]
    twin = before_run(name="x")(plain)
    with pytest.raises(ConfigError, match="two before_run hooks named 'x'"):
        App(hooks=[twin, twin])
    with pytest.raises(ConfigError, match="`actions` is for"):
        before_run(actions=["a"])(plain)
    with pytest.raises(ConfigError, match="timeout_seconds"):
        before_run(timeout_seconds=0)(plain)
    with pytest.raises(ConfigError, match="hooks are Python"):
        Agent(spec=Agent("a").spec.model_copy(update={"hooks": (twin.spec,)}))


KILLED = textwrap.dedent("""
    import asyncio, os, signal, sys
    from pathlib import Path
    from loopagent import Agent, App, action, add_context, before_action, before_turn
    from loopagent.models.scripted import ScriptedModel

    folder = Path(sys.argv[1])

    @action(effects="read")
    async def look() -> str:
        if not (folder / "died").exists():
            (folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "seen"

    @before_turn
    @(lambda fn: fn)
    def count(call):
        with (folder / "asked").open("a") as file:
            file.write(f"turn {call.turn}\\n")
        return add_context("asked")

    @before_action
    def guard(call):
        with (folder / "asked").open("a") as file:
            file.write(f"{call.action}\\n")

    SCRIPT = [
        {"nextStep": {"type": "Actions", "actions": [{"name": "look", "params": {}}]}, "taskComplete": False},
        {"taskComplete": True, "message": "finished"},
    ]

    async def main():
        agent = Agent("clerk", model=ScriptedModel(SCRIPT), actions=[look])
        async with App(agents=[agent], hooks=[count, guard], store=f"sqlite:///{folder}/runs.db") as app:
            rows, _ = await app.runs()
            run = rows[0].id if rows else (await app.start("clerk", "Go.")).id
            view = await app.wait(run, timeout_seconds=60)
            print(view.state.status, view.state.result.message)

    asyncio.run(main())
""")


def test_a_killed_process_does_not_ask_again_what_was_answered(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(KILLED)
    command = [sys.executable, str(tmp_path / "worker.py"), str(tmp_path)]
    env = {**os.environ, "LOOPAGENT_LEASE_SECONDS": "1"}
    first = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=env, check=False
    )
    assert first.returncode == -signal.SIGKILL, first.stderr
    second = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=env, check=False
    )
    assert second.stdout.strip() == "completed finished", second.stderr
    assert (tmp_path / "asked").read_text().splitlines() == ["turn 0", "look", "turn 1"]
