"""Decision seats B1 to B10: what the model sees, one test a seat, through the library as a user calls it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, Attachment, action, add_context, before_turn
from loopagent.core.away import duration
from loopagent.core.skill_spec import SkillSpec
from loopagent.project import load_project
from loopagent.skill import Skill
from tests.runtime.hooked import Json, Listening, act


pytestmark = pytest.mark.anyio
RETRY: Json = {"taskComplete": False, "message": "On.", "nextStep": {"type": "Retry"}}
ASK: Json = {"taskComplete": False, "message": "Which?", "nextStep": {"type": "Chat"}}


class Clock:
    """Seconds since the epoch, set by hand."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@action(effects="read")
async def look(what: str) -> str:
    """Look at something."""
    return what * 30_000


@action(effects="read")
async def peek(what: str) -> str:
    """Look shortly."""
    return what


@action(effects="write", approval="auto")
async def save(what: str) -> str:
    """Save something."""
    return what * 30_000


async def run(app: App, agent: str = "a", **options: Any) -> Any:
    return await app.wait((await app.start(agent, "Go.", **options)).id)


def last_of(model: Listening, at: int = -1) -> str:
    return model.asked[at].messages[-1].text


async def test_seat_b1_the_stable_part_comes_first_and_what_changes_comes_last() -> None:
    pad = {"scratchpad": {"notes": "mine"}, "payloadChangeRequest": {"newElements": {"n": 1}}}
    model = Listening({**act(("peek", {"what": "x"})), **pad}, RETRY)
    async with App(agents=[Agent("a", model=model, actions=[peek], plan_mode="optional")]) as app:
        await run(app)
    assert len({one.system for one in model.asked}) == 1
    for before, after in zip(model.asked, model.asked[1:], strict=False):
        stable = list(before.messages[:-1])
        assert list(after.messages[: len(stable)]) == stable, "all bytes up to the newest messages"
    state = json.loads(last_of(model).removeprefix("State: "))
    assert state["payload"] == {"n": 1}
    assert state["scratchpad"]["notes"] == "mine"
    assert state["left"]["turns"] == 47


def test_seat_b2_standing_instructions_are_sorted_by_name_and_can_be_turned_off(
    tmp_path: Path,
) -> None:
    for name in ("agents", "instructions"):
        (tmp_path / name).mkdir()
    (tmp_path / "agents" / "a.agent.yaml").write_text("name: a\nmodel: scripted:x.jsonl\n")
    (tmp_path / "agents" / "AGENTS.md").write_text("Rule of AGENTS.")
    (tmp_path / "instructions" / "b.md").write_text("Rule b.")
    (tmp_path / "instructions" / "a.md").write_text("Rule a.")
    (tmp_path / "instructions" / "c.md").write_text("---\nenabled: false\n---\nRule c.")
    spec = load_project(tmp_path).agents["a"].spec
    assert spec.standing == ("Rule of AGENTS.", "Rule a.", "Rule b.")
    prompt = App(agents=[load_project(tmp_path).agents["a"]]).system(spec)
    places = [prompt.index(one) for one in spec.standing]
    assert places == sorted(places)
    assert "Rule c." not in prompt


async def test_seat_b3_a_skill_is_known_by_name_and_description_until_it_is_active() -> None:
    spec = SkillSpec(
        name="budget", description="Counts money.", instructions="Count twice.", activation="auto"
    )
    skill = Skill(spec, Path())
    model = Listening(
        {
            "taskComplete": False,
            "nextStep": {"type": "Skill", "skills": [{"name": "budget", "reason": "Money."}]},
        }
    )
    agent = Agent("a", model=model, skills=[skill], skill_activation="auto")
    async with App(agents=[agent]) as app:
        await run(app)
    assert "Counts money." in model.asked[0].system
    assert "Count twice." not in model.asked[0].system + model.text(0)
    assert "Count twice." in model.text(1)


async def test_seat_b4_in_plan_mode_reading_goes_on_and_the_rest_is_refused_with_the_reason() -> (
    None
):
    model = Listening(act(("save", {"what": "x"})), act(("peek", {"what": "seen"})))
    async with App(agents=[Agent("a", model=model, actions=[peek, save])]) as app:
        await run(app, plan_mode=True)
    assert "no plan has been approved yet" in model.text(1)
    assert '"result":"seen"' in model.text(2)
    assert "save" in model.asked[0].system, "it is named: a plan may unlock it"


async def test_seat_b5_attachments_are_listed_with_their_tools_and_never_dumped() -> None:
    model = Listening()
    files = [
        Attachment("orders.csv", b"id,secret\n" + b"1,xyzzy\n" * 5),
        Attachment("a.png", b"\x89PNG\r\n\x1a\n" + bytes(60)),
    ]
    async with App(agents=[Agent("a", model=model)]) as app:
        await run(app, attachments=files)
    state = json.loads(last_of(model).removeprefix("State: "))
    assert state["artifacts"]["A"] == "orders.csv, text/csv, 50 bytes"
    assert state["artifacts"]["B"].startswith("a.png, image/png, 68 bytes")
    assert "get_rows" in state["artifactTools"]["csv"]
    assert "xyzzy" not in model.text()


async def test_seat_b6_a_replaced_result_gives_way_once_that_saves_enough() -> None:
    reads = act(("look", {"what": "a"}), ("look", {"what": "b"}))
    model = Listening(reads, act(("save", {"what": "c"})), reads, reads, RETRY)
    big = {"maxResultChars": 100_000, "repeatLimit": 50}
    agent = Agent("a", model=model, actions=[look, save], limits=big)
    async with App(agents=[agent]) as app:
        view = await run(app)
        events = [
            one["data"]
            async for one in app.events(view.id, live=False)
            if one["type"] == "context.compacted"
        ]
    assert [(one["reason"], one["messages"]) for one in events] == [("superseded", 2)]
    sizes = [sum("aaaa" in one.text for one in request.messages) for request in model.asked]
    assert sizes == [0, 1, 1, 2, 1, 1], "60 KB are not worth it, 120 KB are"
    assert sum("cccc" in one.text for one in model.asked[-1].messages) == 1, "it changed something"
    stubs = [one.text for one in model.asked[-1].messages if "replaced by a later call" in one.text]
    assert len(stubs) == 2
    assert "Retry messageIndex" in stubs[0]
    again = model.asked[4].messages
    assert list(model.asked[5].messages[: len(again) - 1]) == list(again[:-1]), "stable once more"


async def test_seat_b6_a_failure_replaces_nothing_and_a_part_is_not_the_whole() -> None:
    calls: list[str] = []

    @action(effects="read")
    async def flaky(what: str) -> str:
        """Look, perhaps."""
        calls.append(what)
        if len(calls) == 3:
            raise RuntimeError("down")
        return what * 80_000

    both = act(("flaky", {"what": "a"}), ("flaky", {"what": "b"}))
    one = act(("flaky", {"what": "a"}))
    model = Listening(both, one, {**one, "message": "Again."}, RETRY)
    agent = Agent("a", model=model, actions=[flaky], limits={"maxResultChars": 200_000})
    async with App(agents=[agent]) as app:
        view = await run(app)
    assert calls == ["a", "b", "a", "a"]
    shown = view.state.view
    assert (shown.superseded, shown.outdated) == ((), ())
    assert [len(found.keys) for found in shown.latest] == [1, 1], "of the first, b still counts"


async def test_seat_b7_a_call_without_a_result_is_given_one_that_says_so(tmp_path: Path) -> None:
    started = asyncio.Event()

    @action(effects="external", approval="auto")
    async def pay(what: str) -> str:
        """Pay."""
        started.set()
        await asyncio.sleep(3600)
        return what

    store, model = f"sqlite:///{tmp_path}/runs.db", Listening(act(("pay", {"what": "rent"})))
    async with App(agents=[Agent("a", model=model, actions=[pay])], store=store) as app:
        view = await app.start("a", "Go.")
        await started.wait()
    async with App(agents=[Agent("a", model=model, actions=[pay])], store=store) as app:
        view = await app.wait(view.id)
    assert view.state.status == "completed"
    assert '"code":"interrupted"' in model.text()
    assert '"mayHaveRun":true' in model.text()


async def test_seat_b8_a_run_that_was_away_hears_what_happened_and_in_which_mode_it_is(
    tmp_path: Path,
) -> None:
    clock, store = Clock(), f"sqlite:///{tmp_path}/runs.db"
    model = Listening(RETRY, ASK)
    async with App(agents=[Agent("a", model=model)], store=store, clock=clock) as app:
        view = await run(app)
        assert view.waiting
    clock.now += 2 * 86_400 + 3 * 3_600
    async with App(agents=[Agent("a", model=model)], store=store, clock=clock) as app:
        await app.set_mode(view.id, "plan")
        await app.post(view.id, "The blue one.")
        await app.wait(view.id)
    before, after = model.asked[1], model.asked[2]
    assert list(after.messages[: len(before.messages) - 1]) == list(before.messages[:-1])
    assert "2 days 3 hours passed since your last reply" not in model.text(1)
    assert "2 days 3 hours passed since your last reply" in model.text(2)
    assert "The mode was changed from act to plan." in model.text(2)
    assert "The blue one." in model.text(2)


async def test_seat_b8_a_short_pause_is_not_worth_a_word() -> None:
    clock = Clock()
    model = Listening(ASK)
    async with App(agents=[Agent("a", model=model)], clock=clock) as app:
        view = await run(app)
        clock.now += 3_599
        await app.post(view.id, "The blue one.")
        await app.wait(view.id)
    assert "since your last reply" not in model.text()
    assert [duration(one) for one in (59, 60, 3_661, 90_000)] == [
        "59 seconds",
        "1 minute",
        "1 hour 1 minute",
        "1 day 1 hour",
    ]


async def test_seat_b10_hooks_add_context_and_the_event_says_so() -> None:
    @before_turn
    async def weather(call: Any) -> Any:
        return add_context(f"It rains in turn {call.turn + 1}.")

    model = Listening(RETRY)
    async with App(agents=[Agent("a", model=model)], hooks=[weather]) as app:
        view = await run(app)
        events = [one async for one in app.events(view.id, live=False)]
    assert "It rains in turn 2." in model.text(1)
    said = [one for one in events if one["type"] == "hook.decided"]
    assert [(one["decidedBy"], one["data"]["hook"]) for one in said] == [("policy", "weather")] * 2
