"""Scenarios as users write them: files in, verdicts out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from loopagent import Agent, action
from loopagent.errors import ConfigError
from loopagent.project import Project, load_project, load_skill
from loopagent.testing import ScenarioResult, load_scenarios, run_scenario


ACTIONS = '''
import asyncio, time
from loopagent import action

@action(effects="read")
async def look(item: int) -> str:
    """Look at an item."""
    await asyncio.sleep(0.02)
    return f"seen {item}"

@action(effects="read")
def count(item: int) -> int:
    """Count slowly."""
    time.sleep(0.02)
    return item

@action(effects="external")
async def mail(to: str) -> str:
    """Send a mail."""
    raise RuntimeError("a test sent a real mail")
'''
AGENT = """
name: clerk
model: openai:gpt-5-mini
fallbackModels: [openai:gpt-5-nano]
actions: [look, count, mail]
clientTools:
  - {name: open_map, description: Opens a map., effects: read, parameters: {type: object, properties: {place: {type: string}}}, timeoutMs: 60000}
"""


def calls(*named: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "nextStep": {"type": "Actions", "actions": [{"name": n, "params": p} for n, p in named]}
    }


DONE = {"taskComplete": True, "message": "Done.", "payloadChangeRequest": {"newElements": {"n": 1}}}
LOOK = calls(("look", {"item": 1}))
MAIL = calls(("mail", {"to": "ann"}))


def project(folder: Path) -> Project:
    for name, text in (("actions/tools.py", ACTIONS), ("agents/clerk.agent.yaml", AGENT)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return load_project(folder, env={})


def play(folder: Path, **body: Any) -> ScenarioResult:
    full = {"agent": "clerk", "message": "Go.", "replies": [DONE], **body}
    path = folder / "scenarios" / "one.scenario.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(full, indent=1))
    [one] = load_scenarios(project(folder))
    return run_scenario(one)


def complaints(folder: Path, text: str) -> list[str]:
    (folder / "scenarios").mkdir(exist_ok=True)
    (folder / "scenarios" / "bad.scenario.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_scenarios(project(folder))
    return [one.partition("bad.scenario.yaml:")[2] for one in caught.value.problems]


def failures(result: ScenarioResult) -> list[str]:
    lines = [f"{one.loc[-1] if one.loc else ''}: {one.message}" for one in result.problems]
    return [re.sub(r"event \d+", "event N", line) for line in lines]


# --- what holds


def test_fakes_answer_in_order_and_real_actions_run(tmp_path: Path) -> None:
    result = play(
        tmp_path,
        replies=[calls(("look", {"item": 1}), ("look", {"item": 2}), ("count", {"item": 3})), DONE],
        actions={"look": [{"result": "first"}, {"error": {"message": "gone", "code": "lost"}}]},
        realActions=["*"],
        expect={
            "message": "Done.",
            "payload": {"n": 1},
            "payloadAt": {"n": {"$not": 2}},
            "modelCalls": 2,
            "calls": {"look": 2, "mail": 0},
            "events": [
                "turn.started",
                {"type": "action.completed", "data": {"result": "first"}},
                {"type": "action.completed", "data": {"error": {"code": "lost"}}},
                {"type": "run.completed", "decidedBy": "engine"},
            ],
            "noEvents": [
                "guard.mistake",
                {"type": "action.completed", "data": {"result": "seen 1"}},
            ],
            "prompts": [
                {"call": 2, "contains": ["first", "gone"], "excludes": ["seen 1"]},
                {"agent": "clerk", "contains": ["Go."]},
            ],
        },
    )
    result.check()
    assert result.public()["passed"] is True
    assert result.played is not None
    assert any(one["data"].get("result") == 3 for one in result.played.events)


def test_hooks_of_the_project_are_in_force(tmp_path: Path) -> None:
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "guard.py").write_text(
        "from loopagent import before_action, deny\n\n"
        "@before_action(actions=['look'])\n"
        "def closed(call):\n"
        "    return deny('The shelf is closed.')\n"
    )
    result = play(
        tmp_path,
        replies=[LOOK, DONE],
        actions={"look": [{"result": "seen", "optional": True}]},
        expect={
            "calls": {"look": 0},
            "prompts": [{"call": 2, "contains": ["The shelf is closed."]}],
        },
    )
    result.check()


def test_entries_with_a_condition_answer_every_call_that_fits(tmp_path: Path) -> None:
    looks = calls(*(("look", {"item": item}) for item in (1, 2, 1, 1)))
    fakes = [{"when": {"item": 1}, "times": 2, "result": "one"}, {"when": {}, "result": "any"}]
    result = play(tmp_path, replies=[looks, DONE], actions={"look": fakes})
    result.check()
    assert result.played is not None
    done = [one["data"] for one in result.played.events if one["type"] == "action.completed"]
    assert sorted(one["result"] for one in done) == ["any", "any", "one", "one"]


def test_people_approve_edit_and_reject(tmp_path: Path) -> None:
    result = play(
        tmp_path,
        replies=[MAIL, MAIL, DONE],
        actions={"mail": [{"when": {"to": "bob"}, "result": "sent"}]},
        answers=[
            {"request": {"kind": "approval"}, "decision": "approve", "edited": {"to": "bob"}},
            {"decision": "reject", "feedback": "Enough mails."},
        ],
        expect={
            "requests": [{"subject": {"params": {"to": "ann"}}}, {"kind": "approval"}],
            "calls": {"mail": 1},
            "prompts": [{"call": 3, "contains": ["Enough mails."]}],
        },
    )
    result.check()


def test_questions_are_answered_with_values(tmp_path: Path) -> None:
    form = {"questions": [{"id": "n", "label": "How many?", "type": {"type": "number"}}]}
    ask = {"message": "How many?", "responseForm": form, "nextStep": {"type": "Chat"}}
    result = play(
        tmp_path,
        replies=[ask, DONE],
        answers=[{"decision": "answer", "values": {"n": 5}, "delayMs": 86_400_000}],
        expect={"prompts": [{"call": 2, "contains": ["How many?: 5"]}]},
    )
    result.check()


def test_client_tools_are_answered_and_time_out_on_a_clock_that_jumps(tmp_path: Path) -> None:
    tool = {"name": "open_map", "params": {"place": "Porto"}}
    ask = {"nextStep": {"type": "ClientTools", "clientTools": [tool]}}
    started = monotonic()
    result = play(
        tmp_path,
        replies=[ask, ask, DONE],
        answers=[
            {"request": {"kind": "client_tool", "tool": "open_map"}, "result": {"shown": True}},
            {"result": {}, "delayMs": 3_600_000, "refused": "gone"},
        ],
        expect={
            "requests": [{"tool": "open_map"}, {"tool": "open_map"}],
            "events": [
                {"type": "client_tool.completed", "data": {"status": "answered"}},
                {"type": "client_tool.completed", "data": {"status": "timed_out"}},
            ],
        },
    )
    result.check()
    assert monotonic() - started < 10


def test_slow_fakes_and_retried_models_cost_no_time(tmp_path: Path) -> None:
    started = monotonic()
    result = play(
        tmp_path,
        replies=[{"error": {"status": 503}}, LOOK, DONE],
        actions={"look": [{"result": "late", "delayMs": 120_000}]},
        expect={
            "modelCalls": 2,
            "events": [
                "model.retry",
                {"type": "action.completed", "data": {"ok": False, "error": {"code": "timeout"}}},
            ],
        },
    )
    result.check()
    assert monotonic() - started < 10


def test_a_run_may_be_expected_to_wait_or_fail(tmp_path: Path) -> None:
    play(tmp_path, replies=[MAIL], expect={"status": "waiting"}).check()
    limit = {"status": "failed", "reason": "limit"}
    play(
        tmp_path, limits={"maxTurns": 1}, replies=[LOOK], realActions=["look"], expect=limit
    ).check()


def test_agents_in_python_are_played_too(tmp_path: Path) -> None:
    @action(effects="read")
    def roll(sides: int) -> int:
        """Roll a die."""
        raise AssertionError("rolled for real")

    agent = Agent("dicer", actions=[roll])
    path = tmp_path / "dice.scenario.yaml"
    path.write_text(
        "agent: dicer\nmessage: Roll.\nactions: {roll: [{result: 4}]}\nreplies:\n"
        "- {nextStep: {type: Actions, actions: [{name: roll, params: {sides: 6}}]}}\n"
        "- {taskComplete: true, message: Four.}\n"
    )
    here = Project(tmp_path, agents={"dicer": agent})
    [one] = load_scenarios(here, [path])
    assert str(one) == "dice"
    run_scenario(one).check()


def test_files_of_skills_are_really_read(tmp_path: Path) -> None:
    head = "---\nname: rates\ndescription: Rates.\nmetadata: {loopagent-activation: auto}\n---\n"
    (tmp_path / "rates" / "references").mkdir(parents=True)
    (tmp_path / "rates" / "SKILL.md").write_text(f"{head}Read the file.")
    (tmp_path / "rates" / "references" / "rates.md").write_text("5 %")
    skill = load_skill(tmp_path / "rates")
    agent = Agent("clerk", skills=[skill], skill_activation="auto")
    read = calls(("read_skill_file", {"skill": "rates", "path": "references/rates.md"}))
    body = {
        "agent": "clerk",
        "message": "/rates Which?",
        "replies": [read, {"taskComplete": True, "message": "5 %."}],
        "expect": {
            "events": [
                {"type": "skill.activated", "data": {"activatedBy": "user"}},
                {"type": "action.completed", "data": {"result": {"text": "5 %"}}},
            ]
        },
    }
    path = tmp_path / "rates.scenario.json"
    path.write_text(json.dumps(body))
    [one] = load_scenarios(Project(tmp_path, agents={"clerk": agent}), [path])
    run_scenario(one).check()


def test_sub_agents_are_played_with_those_above_and_their_requests_answered(tmp_path: Path) -> None:
    @action(effects="external")
    def post(text: str) -> str:
        """Post a text."""
        raise AssertionError("posted for real")

    writer = Agent(
        "writer", model="openai:gpt-5", fallback_models=("openai:gpt-4",), actions=[post]
    )
    chief = Agent("chief", model="openai:gpt-5", agents=[writer])
    give = {
        "nextStep": {"type": "Sub-Agent", "subAgents": [{"name": "writer", "message": "Write."}]}
    }
    body = {
        "agent": "chief",
        "message": "Go.",
        "replies": [
            {"agent": "chief", **give},
            {"agent": "writer", **calls(("post", {"text": "Hi"}))},
            {"agent": "writer", "error": {"status": 503}},
            {"agent": "writer", "taskComplete": True, "message": "Written."},
            {"agent": "chief", "taskComplete": True, "message": "Done."},
        ],
        "actions": {"post": [{"result": "posted"}]},
        "answers": [{"request": {"subject": {"action": "post"}}, "decision": "approve"}],
        "expect": {
            "modelCalls": 4,
            "calls": {"post": 1},
            "events": [
                "subagent.started",
                {"type": "request.resolved", "decidedBy": "human"},
                {"type": "subagent.completed", "data": {"agent": "writer", "status": "completed"}},
            ],
            "prompts": [{"agent": "chief", "contains": ["Written."], "excludes": ["Post a text."]}],
        },
    }
    path = tmp_path / "one.scenario.json"
    here = Project(tmp_path, agents={"chief": chief})
    path.write_text(json.dumps(body))
    [one] = load_scenarios(here, [path])
    run_scenario(one).check()
    path.write_text(json.dumps({**body, "answers": [], "unusedReplies": True}))
    [one] = load_scenarios(here, [path])
    assert "status: expected completed, got waiting" in failures(run_scenario(one))


# --- what does not hold


def test_what_went_wrong_is_said_with_its_place(tmp_path: Path) -> None:
    result = play(
        tmp_path,
        replies=[LOOK, DONE, DONE],
        realActions=["look"],
        actions={"mail": [{"result": 1}]},
        answers=[{"decision": "approve"}],
        expect={
            "status": "cancelled",
            "reason": "limit",
            "message": {"$contains": "Failed"},
            "payload": {"n": 2},
            "payloadAt": {"x.y": 1},
            "modelCalls": 3,
            "calls": {"look": 2},
            "events": ["turn.started", {"type": "action.completed", "data": {"ok": False}}],
            "noEvents": ["run.completed"],
            "requests": [{"kind": "approval"}],
            "prompts": [
                {"call": 1, "contains": ["no such text"], "excludes": ["Go."]},
                {"call": 9},
                {"contains": ["nowhere"]},
            ],
        },
    )
    assert failures(result) == [
        "status: expected cancelled, got completed",
        "reason: is not as expected",
        "message: is not as expected",
        '1: no event fits {"type": "action.completed", "data": {"ok": false}} after event N',
        "0: event N should not have happened",
        "requests: expected 1 requests, got 0",
        "modelCalls: expected 3, got 2",
        "look: expected 2 calls, got 1",
        "payload: is not as expected",
        "x.y: is not as expected",
        '0: misses "no such text"',
        '0: a prompt says "Go."',
        "1: there was no such model call",
        '0: no prompt says "nowhere"',
        "0: no call of mail used this entry; remove it, or make it `optional`",
        "0: no open request fitted this answer",
        "replies: 1 of 3 replies were not asked for",
    ]
    text = result.text()
    assert "one.scenario.json:" in text
    assert re.search(r"event \d+ action.completed: data.ok: expected false, got true", text)
    assert "n: expected 2, got 1" in text
    with pytest.raises(AssertionError, match="expected cancelled"):
        result.check()


def test_an_action_without_a_fake_never_runs(tmp_path: Path) -> None:
    result = play(
        tmp_path,
        replies=[MAIL, LOOK, DONE],
        answers=[{"decision": "approve"}],
        actions={"look": [{"when": {"item": 9}, "result": 1, "optional": True}]},
    )
    assert failures(result) == [
        'mail: mail was called, and has no results: give it results there, or name it in realActions; parameters: {"to": "ann"}',
        'look: no entry is left that fits this call of look; parameters: {"item": 1}',
    ]


def test_a_request_without_an_answer_is_shown(tmp_path: Path) -> None:
    result = play(tmp_path, replies=[MAIL, DONE], unusedReplies=True)
    assert failures(result) == ["status: expected completed, got waiting"]
    assert "Run mail?" in result.text()


def test_a_refused_answer_and_a_refused_run_are_problems(tmp_path: Path) -> None:
    wrong = [{"decision": "answer"}]
    result = play(tmp_path, replies=[MAIL], answers=wrong, expect={"status": "waiting"})
    assert failures(result)[0].startswith("0: was refused (invalid_answer): ")
    result = play(tmp_path, limits={"maxTurns": "many"})
    assert failures(result)[0].startswith(": the run was refused (invalid_limits): ")
    taken = [{"decision": "reject", "refused": "gone"}]
    result = play(tmp_path, replies=[MAIL, DONE], answers=taken)
    assert failures(result) == ["refused: was taken; it should have been refused (gone)"]


# --- files


def test_complaints_name_file_line_and_column_all_at_once(tmp_path: Path) -> None:
    text = """\
kind: Agent
agent: clark
mesage: Go.
replies:
  - {raw: 5}
  - {agent: nobody, taskComplete: true, message: Hi.}
actions:
  lok: [{result: 1}]
  look: [{}, {result: 1, erorr: x}, {result: 1, when: {item: {$contain: 1}}}]
realActions: [look, smile]
answers: [{values: {}}]
expect:
  events: [run.complete, {type: run.completed, dta: 1}, {data: {}}, loop.progress]
  payloadAt: {"a[": 1}
  calls: {mial: 0}
  prompts: [{cal: 1}]
"""
    *found, last = [
        re.sub(r"(did you mean \S+) or .*", r"\1?", one) for one in complaints(tmp_path, text)
    ]
    assert found == [
        "1:1: kind: must be Scenario",
        "1:1: message: required, but missing",
        "3:1: mesage: unknown key; did you mean message?",
        "9:26: actions.look[1].erorr: unknown key; did you mean error?",
        "16:14: expect.prompts[0].cal: unknown key; did you mean call?",
        "5:5: replies[0]: raw: must be a text",
        "6:6: replies[1].agent: there is no agent 'nobody' (known: clerk)",
        "2:1: agent: there is no agent 'clark'; did you mean clerk?",
        "8:3: actions.lok: there is no action 'lok'; did you mean look?",
        "10:15: realActions[0]: look has results in `actions` too",
        "10:21: realActions[1]: there is no action 'smile'; did you mean mail?",
        "15:11: expect.calls.mial: there is no action 'mial'; did you mean mail?",
        "9:10: actions.look[0]: must have one of result, error",
        "9:63: actions.look[2].when.item.$contain: unknown operator; did you mean $contains?",
        "11:11: answers[0]: must have one of decision, result, error",
        '14:15: expect.payloadAt["a["]: not a path (at character 2); write it like a.b, a[0].b, a["x.y"], a.* or *',
        "13:12: expect.events[0]: there is no stored event 'run.complete'; did you mean run.completed?",
        "13:48: expect.events[1].dta: there is no key of events 'dta'; did you mean data?",
        "13:57: expect.events[2]: must be the type of an event, or an object with it",
    ]
    assert last.startswith(
        "13:69: expect.events[3]: there is no stored event 'loop.progress' (known: "
    )


def test_a_project_without_scenarios_has_none_and_misnamed_files_are_told_of(
    tmp_path: Path,
) -> None:
    assert load_scenarios(project(tmp_path)) == []
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "one.yaml").write_text("agent: clerk\n")
    with pytest.raises(ConfigError) as caught:
        load_scenarios(project(tmp_path))
    assert "name it one.scenario.yaml" in caught.value.problems[0]


def test_replies_come_from_a_file_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "replies.jsonl").write_text(json.dumps(DONE) + "\n")
    play(tmp_path, replies=[], repliesFile="../replies.jsonl").check()
    with pytest.raises(ConfigError, match="problem"):
        play(tmp_path, replies=[], repliesFile="../no.jsonl")
    (tmp_path / "replies.jsonl").write_text("{\n")
    with pytest.raises(ConfigError) as caught:
        play(tmp_path, replies=[], repliesFile="../replies.jsonl")
    assert "replies.jsonl:1:" in caught.value.problems[0]


def test_the_scenario_in_the_documentation_holds(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text()
    shown = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    mail = ACTIONS.replace("mail(to: str)", "mail(to: str, text: str)").replace(
        "count(", "find_customer("
    )
    agent = AGENT.replace("count", "find_customer")
    for name, content in (
        ("actions/tools.py", mail),
        ("agents/clerk.agent.yaml", agent),
        (
            "scenarios/shown.scenario.yaml",
            shown[0],
        ),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    [scenario] = load_scenarios(load_project(tmp_path, env={}))
    run_scenario(scenario).check()
