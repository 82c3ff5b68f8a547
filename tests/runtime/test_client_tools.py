"""Runs that wait for a client: no lease, no work, and whoever has the answer may go on, in any process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, ClientToolSpec, RequestError, ToolAnswer
from loopagent.clients import fingerprint
from loopagent.core.client_calls import DUE
from loopagent.core.events import Settled
from loopagent.models.scripted import ScriptedModel


pytestmark = pytest.mark.anyio
PICK = ClientToolSpec(name="pick", effects="read")
CALLS = {"type": "ClientTools", "clientTools": [{"name": "pick"}]}
SCRIPT: list[Any] = [{"nextStep": CALLS}, {"taskComplete": True, "message": "Done."}]


def app(store: str, script: list[Any] | None = None, **options: Any) -> App:
    """An app with one agent, as each of several processes would have it."""
    limits = options.pop("limits", {})
    model = ScriptedModel(script or SCRIPT)
    agent = Agent("picker", model=model, client_tools=(PICK,), limits=limits)
    return App(agents=[agent], store=store, recover=False, **options)


async def test_a_waiting_run_has_no_lease_and_tells_that_it_rests(tmp_path: Path) -> None:
    script = [SCRIPT[0], *SCRIPT]
    async with app(f"sqlite:///{tmp_path}/runs.db", script) as host:
        view = await host.wait((await host.start("picker", "Go.")).id, timeout_seconds=60)
        assert (view.loop.state, view.state.waiting) == ("client_tool", True)
        assert await host.store.owner(view.id) is None
        following = asyncio.create_task(_types(host, view.id, view.seq, "run.idle"))
        await asyncio.sleep(0.05)
        await host.answer_call(view.id, "1:tool.0", ToolAnswer(result="a"))
        async with asyncio.timeout(10):
            assert (await following)[-2:] == ["run.state", "run.idle"]
        assert (await host.get(view.id)).loop.state == "client_tool"
        await host.answer_call(view.id, "2:tool.0", ToolAnswer(result="a"))
        assert (await _ended(host, view.id)).state.status == "completed"
        with pytest.raises(RequestError, match="first answer counts"):
            await host.answer_call(view.id, "2:tool.0", ToolAnswer(result="b"))


async def _ended(host: App, run_id: str) -> Any:
    async for event in host.events(run_id):
        del event
    return await host.get(run_id)


async def _types(host: App, run_id: str, after: int, until: str) -> list[str]:
    found: list[str] = []
    async for event in host.events(run_id, after=after):
        found.append(event["type"])
        if event["type"] == until:
            break
    return found


async def test_another_process_takes_the_answer_and_the_first_ones_clock_does_no_harm(
    tmp_path: Path,
) -> None:
    store = f"sqlite:///{tmp_path}/runs.db"
    limits = {"clientToolTimeoutMs": 700}
    ending = [SCRIPT[0], {"taskComplete": True, "message": "Done by the second."}]
    async with app(store, limits=limits) as first, app(store, ending) as second:
        view = await first.wait((await first.start("picker", "Go.")).id, timeout_seconds=60)
        await second.answer_call(view.id, "1:tool.0", ToolAnswer(result="a"))
        assert (await _ended(second, view.id)).state.result.message == "Done by the second."
        await asyncio.sleep(1.0)  # the first one's clock runs out meanwhile
        log = await first.store.log(view.id)
        assert [one.type for one in log[-1].facts][-1] == "run.completed"
        assert (await first.get(view.id)).state.status == "completed"


async def test_time_goes_on_to_the_same_moment_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/runs.db"
    limits = {"clientToolTimeoutMs": 1_000}
    async with app(store, limits=limits) as host:
        view = await host.wait((await host.start("picker", "Go.")).id, timeout_seconds=60)
        due = view.state.client_calls[0].due
        assert view.state.pending[f"1:tool.0{DUE}"] is not None
    async with app(store, limits=limits) as host:
        again = await host.get(view.id)
        assert again.client_calls == view.client_calls
        assert await host.engine.recover() == [view.id]
        assert await host.engine.recover() == []
        ended = await _ended(host, view.id)
        assert ended.state.status == "completed"
        assert 0 <= ended.state.clock - due < 5
        log = await host.store.log(view.id)
        events = [one for entry in log for one in entry.events]
        assert [one.effect_id for one in events if isinstance(one, Settled)] == [
            "1:model",
            f"1:tool.0{DUE}",
            "2:model",
        ]
        with pytest.raises(RequestError, match="too late"):
            await host.answer_call(view.id, "1:tool.0", ToolAnswer(result="a"))


async def test_steering_and_messages_do_not_touch_an_open_call() -> None:
    async with app("memory://") as host:
        view = await host.wait((await host.start("picker", "Go.")).id, timeout_seconds=60)
        await host.post(view.id, "hurry", delivery="steer")
        assert (await host.get(view.id)).loop.state == "client_tool"
        await host.answer_call(view.id, "1:tool.0", ToolAnswer(result="a"))
        view = await _ended(host, view.id)
        assert view.state.status == "completed"
        assert "hurry" in [one.text for one in await host.store.transcript(view.id)]


async def test_the_hosts_own_code_may_answer_for_any_client() -> None:
    async with app("memory://") as host:
        session = fingerprint("a-secret-of-client-one")
        view = await host.start("picker", "Go.", client=session)
        await host.wait(view.id, timeout_seconds=60)
        with pytest.raises(RequestError, match="another client"):
            await host.answer_call(view.id, "1:tool.0", ToolAnswer(result="a", client=""))
        with pytest.raises(RequestError, match="There is no run"):
            await host.answer_call("run_0", "1:tool.0", ToolAnswer())
        await host.answer_call(view.id, "1:tool.0", ToolAnswer(result={"a": (1, 2)}))
        view = await _ended(host, view.id)
        assert view.state.status == "completed"


async def test_results_that_are_no_json_or_too_large_leave_the_call_open() -> None:
    async with app("memory://", limits={"maxResultBytes": 1_000, "maxResultChars": 300}) as host:
        view = await host.wait((await host.start("picker", "Go.")).id, timeout_seconds=60)
        for result, code in ((object(), "invalid_result"), ("x" * 2_000, "result_too_large")):
            with pytest.raises(RequestError) as caught:
                await host.answer_call(view.id, "1:tool.0", ToolAnswer(result=result))
            assert caught.value.code == code
        assert (await host.get(view.id)).client_calls
        wrong = ToolAnswer(success=False, error="e" * 1_000)
        await host.answer_call(view.id, "1:tool.0", wrong)
        view = await _ended(host, view.id)
        told = [one.text for one in await host.store.transcript(view.id) if one.kind == "results"]
        assert "… (1000 characters)" in told[0]
        assert len(told[0]) < 600


async def test_a_client_brings_tools_as_objects_mappings_or_names() -> None:
    async with app("memory://") as host:
        for given in (PICK, {"name": "pick", "effects": "read"}):
            view = await host.start("picker", "Go.", client_tools=[given])
            assert (await host.wait(view.id, timeout_seconds=60)).loop.state == "client_tool"
        view = await host.start("picker", "Go.", client_tools=["PICK"])
        assert [one.name for one in view.state.spec.client_tools] == ["PICK"]
        view = await host.wait(view.id, timeout_seconds=60)
        assert (
            view.loop.state == "interactive"
        )  # what a bare name does is unknown: a person is asked


async def test_what_no_store_can_hold_is_replaced_in_what_clients_bring(tmp_path: Path) -> None:
    tool = {"name": "pick", "effects": "read", "description": "lone \ud800 and \0"}
    async with app(f"sqlite:///{tmp_path}/runs.db") as host:
        view = await host.start("picker", "Go.", client_tools=[tool])
        await host.wait(view.id, timeout_seconds=60)
        medium = {"mediaType": "text/plain", "data": "eA==", "name": "\ud83d.txt"}
        answer = ToolAnswer(result={"\ud800": "\0"}, media=(medium,))
        await host.answer_call(view.id, "1:tool.0", answer)
        assert (await _ended(host, view.id)).state.status == "completed"


@pytest.mark.parametrize(
    ("schema", "detail"),
    [
        ({"$ref": "http://127.0.0.1:9/schema"}, "is not valid"),
        ({"pattern": "(a+)+\\1$"}, "is not valid"),
    ],
)
async def test_a_clients_schema_reaches_for_nothing(schema: dict[str, Any], detail: str) -> None:
    async with app("memory://") as host:
        tool = {"name": "pick", "result": schema}
        with pytest.raises(RequestError, match=detail) as caught:
            await host.start("picker", "Go.", client_tools=[tool])
    assert [one["pointer"] for one in caught.value.errors] == ["/clientTools/0/result"]


async def test_a_clients_schema_has_a_depth_that_can_be_kept() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(60):
        deep = {"type": "object", "properties": {"a": deep}}
    async with app("memory://") as host:
        with pytest.raises(RequestError, match="nested more than 100 levels"):
            await host.start("picker", "Go.", client_tools=[{"name": "pick", "parameters": deep}])


async def test_a_result_has_a_depth_that_can_be_kept() -> None:
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    async with app("memory://") as host:
        view = await host.wait((await host.start("picker", "Go.")).id, timeout_seconds=60)
        with pytest.raises(RequestError) as caught:
            await host.answer_call(view.id, "1:tool.0", ToolAnswer(result=deep))
    assert caught.value.code == "invalid_result"


async def test_the_result_of_a_run_that_waits_lists_its_calls() -> None:
    agent = Agent("picker", model=ScriptedModel(SCRIPT), client_tools=(PICK,))
    result = await agent.run("Go.")
    assert result.status == "waiting"
    assert [one["callId"] for one in result.client_calls] == ["1:tool.0"]
