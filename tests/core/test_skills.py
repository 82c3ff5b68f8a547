"""Skills in a run: who may activate them, what the model then sees and may call, what is recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loopagent import resources
from loopagent.core.abilities import may_have_actions, supplied_by, usable_action, usable_actions
from loopagent.core.action_spec import ActionSpec
from loopagent.core.agent_spec import AgentSpec, Approval, ApprovalPolicy, Limits
from loopagent.core.dialect_writer import Dialect
from loopagent.core.dialects import DIALECTS
from loopagent.core.prompt import system_prompt, volatile_message
from loopagent.core.reply_schema import reply_schema
from loopagent.core.skill_spec import SkillFile, SkillSet, SkillSpec
from loopagent.core.state import RunState
from loopagent.core.steps import STEP_TYPES
from tests.core.play import MAIL, WORK, AskHuman, CallModel, Play, RunAction, act, agent, pending


BOOK = ActionSpec(
    name="book",
    effects="external",
    description="Book an amount.",
    parameters={"type": "object", "properties": {"amount": {"type": "number"}}},
)
FILES = (SkillFile(path="references/rates.md", size_bytes=12),)


def skill(name: str = "budgeting", **options: Any) -> SkillSpec:
    given = {
        "description": f"Helps with {name}.",
        "instructions": f"# How to do {name}\n\nCount twice. {{{{ nothing }}}} {{% if %}}",
        "hash": "abc",
        "activation": "auto",
        **options,
    }
    return SkillSpec(name=name, **given)


BUDGETING = skill(actions=(BOOK, WORK), agents=("accountant",), files=FILES)
MANUAL = skill("taxes", activation="requested")


def with_skills(*skills: SkillSpec, activation: Any = "auto", **options: Any) -> AgentSpec:
    return agent(skills=SkillSet(activation=activation, available=skills), **options)


def ask(*names: str, **more: Any) -> dict[str, Any]:
    skills = [{"name": one, "reason": "It fits."} for one in names]
    return {"taskComplete": False, "nextStep": {"type": "Skill", "skills": skills}, **more}


def active(play: Play) -> list[str]:
    return [one.name for one in play.state.skills]


def told(play: Play) -> list[str]:
    return [one.text for one in play.messages if one.kind == "skill"]


def prompt(spec: AgentSpec) -> str:
    return system_prompt(resources.prompt("system.md.j2"), spec)


# --- the prompt ------------------------------------------------------------------------------------


def test_the_catalogue_has_names_and_descriptions_only() -> None:
    text = prompt(with_skills(BUDGETING, MANUAL))
    assert "# Skills\n\n- `budgeting` Helps with budgeting.\n" in text
    assert "Count twice" not in text
    assert "`book`" not in text
    assert "taxes" not in text
    assert "## Skill\n" in text


@pytest.mark.parametrize(
    "spec",
    [
        agent(),
        with_skills(BUDGETING, activation="requested"),
        with_skills(BUDGETING, activation="none"),
        with_skills(MANUAL),
        with_skills(skill(reviewed=False)),
    ],
)
def test_without_a_skill_for_the_model_the_prompt_says_nothing_about_skills(
    spec: AgentSpec,
) -> None:
    assert prompt(spec) == prompt(agent())


def test_actions_are_explained_when_only_skills_bring_them() -> None:
    spec = with_skills(BUDGETING, actions=())
    assert may_have_actions(spec)
    assert "## Actions\n" in prompt(spec)
    assert STEP_TYPES["Actions"].offered(spec)
    assert not STEP_TYPES["Actions"].offered(with_skills(MANUAL, actions=()))
    assert not may_have_actions(with_skills(BUDGETING, actions=(), activation="none"))


def test_an_agent_without_the_step_has_no_catalogue() -> None:
    assert "# Skills" not in prompt(with_skills(BUDGETING, steps=("Actions",)))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_schema_of_replies_knows_actions_that_skills_bring(dialect: Dialect) -> None:
    def names(spec: AgentSpec) -> set[str]:
        schema = json.dumps(reply_schema(spec, dialect))
        return {one for one in ("work", "book", "read_skill_file") if f'"{one}"' in schema}

    assert names(with_skills(BUDGETING)) == {"work", "book", "read_skill_file"}
    assert names(with_skills(BUDGETING, activation="none")) == {"work"}


# --- the model activates ---------------------------------------------------------------------------


def test_a_skill_step_says_the_instructions_in_full_and_brings_the_actions() -> None:
    play = Play(with_skills(BUDGETING))
    assert usable_action(play.state, "book") is None
    play.reply(ask("budgeting"))
    assert active(play) == ["budgeting"]
    (text,) = told(play)
    assert BUDGETING.instructions in text
    assert "`book` {amount?: number} Book an amount. [external, a person approves]" in text
    assert "`accountant`" in text
    assert "`references/rates.md` (12 bytes)" in text
    assert "`work`" not in text, "the agent has it by itself"
    assert pending(play, CallModel) == ["model"]
    assert play.state.turn == 2
    names = [one.name for one in usable_actions(play.state)]
    assert names == ["work", "mail", "book", "read_skill_file"]
    assert '"activeSkills":["budgeting"]' in volatile_message(play.state)


def test_the_activation_is_recorded_with_its_gates_and_reason() -> None:
    play = Play(with_skills(BUDGETING)).reply(ask("budgeting"))
    (fact,) = [one for one in play.facts if one.type == "skill.activated"]
    assert fact.decided_by == "model"
    assert fact.data == {
        "skill": "budgeting",
        "hash": "abc",
        "activatedBy": "model",
        "reason": "It fits.",
        "gates": {"agent": "auto", "skill": "auto", "reviewed": True},
        "actions": ["book"],
        "agents": ["accountant"],
        "message": 3,
    }
    assert play.messages[2].number == 3
    assert play.messages[2].kind == "skill"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (with_skills(MANUAL, BUDGETING), "only a person can activate it"),
        (with_skills(skill("taxes", reviewed=False), BUDGETING), "nobody has reviewed it"),
        (with_skills(BUDGETING), "there is no skill"),
        (with_skills(BUDGETING, limits=Limits(max_active_skills=0)), "there is no skill"),
    ],
)
def test_a_reply_that_asks_for_a_closed_skill_is_refused_as_a_whole(
    spec: AgentSpec, why: str
) -> None:
    play = Play(spec).reply(ask("budgeting", "taxes"))
    assert active(play) == []
    assert told(play) == []
    problems = play.last("reply.rejected")["problems"]
    assert [one["path"] for one in problems if why in one["message"]] == ["nextStep.skills[1].name"]
    assert "available: budgeting" in play.said or "taxes cannot be activated" in play.said


@pytest.mark.parametrize("spec", [agent(), with_skills(BUDGETING, activation="requested")])
def test_the_step_is_refused_where_it_is_not_offered(spec: AgentSpec) -> None:
    play = Play(spec).reply(ask("budgeting"))
    assert "reply.rejected" in play.types
    assert active(play) == []


def test_names_are_resolved_like_those_of_actions() -> None:
    play = Play(with_skills(BUDGETING, skill("travel-plans"))).reply(
        ask("Travel_Plans", "budget", "travelplans")
    )
    assert active(play) == ["travel-plans", "budgeting"]
    warnings = play.last("reply.received")["warnings"]
    assert any("asked for twice" in one for one in warnings)
    assert sum("read as" in one for one in warnings) == 3


def test_the_number_of_active_skills_is_bounded() -> None:
    spec = with_skills(BUDGETING, skill("travel"), limits=Limits(max_active_skills=1))
    play = Play(spec).reply(ask("budgeting", "travel"))
    assert active(play) == []
    assert "1 skills are active already" in play.said
    play.reply(ask("budgeting"))
    assert active(play) == ["budgeting"]
    play.post("/travel now").settle("model", {"text": json.dumps(ask("budgeting"))})
    assert play.last("skill.refused")["reason"].startswith("1 skills are active")


def test_fix_20_skill_text_is_said_once_however_often_it_is_activated() -> None:
    play = Play(with_skills(BUDGETING)).reply(ask("budgeting"))
    play.post("/budgeting and now?").reply(ask("budgeting", "Budgeting"))
    play.reply(ask("budgeting"))
    assert len(told(play)) == 1
    assert [one for one in play.types if one == "skill.activated"] == ["skill.activated"]
    assert any("active already" in one for one in play.last("reply.received")["warnings"])
    assert "is active already; its instructions are in message #3." in play.said
    assert play.state.skills[0].message == 3


def test_a_step_that_activates_nothing_new_resets_no_guard() -> None:
    spec = with_skills(BUDGETING, limits=Limits(max_mistakes=2))
    play = Play(spec).reply(ask("budgeting"))
    play.reply(act(("work", {"item": 1}))).settle("action.0", error="broke")
    play.reply(ask("budgeting"))
    assert play.state.counters.mistakes == 1
    play.reply(act(("work", {"item": 1}))).settle("action.0", error="broke")
    assert "guard.mistake" in play.types


def test_completion_claimed_with_a_skill_step_is_not_taken_before_it() -> None:
    play = Play(with_skills(BUDGETING)).reply(ask("budgeting", taskComplete=True, message="done"))
    assert active(play) == ["budgeting"]
    assert not play.state.ended
    assert "taskComplete was not taken" in play.said


# --- a person activates ----------------------------------------------------------------------------


def begun(spec: AgentSpec, message: str, parent: str | None = None) -> Play:
    """A run that begins with this task."""

    class Begun(Play):
        def give(self, *events: Any) -> Play:
            if self.state.turn == 0 and not self.facts:
                self.state.parent_id = parent
                events = (type(events[0])(message, self.at, "ann"),)
            return super().give(*events)

    return Begun(spec)


@pytest.mark.parametrize("activation", ["requested", "auto"])
@pytest.mark.parametrize("command", ["/taxes", "/TAXES", " /Taxes "])
def test_a_person_activates_with_the_name_in_front_of_the_task(
    activation: Any, command: str
) -> None:
    play = begun(with_skills(MANUAL, activation=activation), f"{command} File mine.\n/taxes")
    assert active(play) == ["taxes"]
    assert [(one.kind, one.text) for one in play.messages[:1]] == [("task", "File mine.\n/taxes")]
    assert told(play)[0].startswith("A person activated the skill `taxes`")
    (fact,) = [one for one in play.facts if one.type == "skill.activated"]
    assert fact.decided_by == "human"
    assert fact.data["activatedBy"] == "user"
    assert fact.data["gates"] == {"agent": activation, "skill": "requested", "reviewed": True}
    assert play.last("run.created")["message"].startswith(command)


@pytest.mark.parametrize(
    "text",
    [
        "/unknown do it",
        "/etc/passwd is odd",
        "do /taxes",
        "/taxes.",
        "/ taxes",
        "//taxes",
        "/tax me",
    ],
)
def test_anything_else_stays_text(text: str) -> None:
    play = begun(with_skills(MANUAL), text)
    assert active(play) == []
    assert play.messages[0].text == text
    assert "skill.refused" not in play.types


def test_several_names_and_nothing_else() -> None:
    play = begun(with_skills(MANUAL, BUDGETING), "/taxes /budgeting")
    assert active(play) == ["taxes", "budgeting"]
    assert play.messages[0].text == "/taxes /budgeting", "an empty message says nothing"
    play = begun(with_skills(MANUAL, BUDGETING), "/taxes /budgeting go")
    assert play.messages[0].text == "go"


def test_a_skill_that_nobody_reviewed_is_refused_to_people_too() -> None:
    play = begun(with_skills(skill("taxes", reviewed=False)), "/taxes File mine.")
    assert active(play) == []
    assert play.messages[0].text == "/taxes File mine."
    (fact,) = [one for one in play.facts if one.type == "skill.refused"]
    assert fact.decided_by == "policy"
    assert fact.data["requestedBy"] == "user"
    assert "asked for the skill `taxes`. It is not available: it is new or has changed" in play.said


def test_an_agent_that_uses_no_skills_leaves_the_text_alone() -> None:
    play = begun(with_skills(MANUAL, activation="none"), "/taxes File mine.")
    assert play.messages[0].text == "/taxes File mine."
    assert "skill.refused" not in play.types
    assert not told(play)


def test_a_posted_message_activates_at_its_turn_boundary() -> None:
    play = Play(with_skills(MANUAL)).post("/taxes and mind the deadline")
    assert active(play) == []
    play.reply(act(("work", {"item": 1}))).settle("action.0", 1)
    assert active(play) == ["taxes"]
    kinds = [one.kind for one in play.messages[-3:]]
    assert kinds == ["results", "person", "skill"]
    assert play.messages[-2].text == "and mind the deadline"


def test_an_answer_to_a_question_activates_too() -> None:
    play = Play(with_skills(MANUAL))
    play.reply({"taskComplete": False, "message": "How?", "nextStep": {"type": "Chat"}})
    play.post("/taxes like last year")
    assert active(play) == ["taxes"]
    assert play.messages[-2].text == "like last year"


def test_a_parents_model_does_not_pass_for_a_person() -> None:
    play = begun(with_skills(MANUAL), "/taxes File mine.", parent="run_0")
    assert active(play) == []
    assert play.messages[0].text == "/taxes File mine."


# --- what it brings --------------------------------------------------------------------------------


def test_a_brought_action_goes_through_the_gate_and_names_its_skill() -> None:
    play = Play(with_skills(BUDGETING)).reply(ask("budgeting"))
    play.reply(act(("book", {"amount": 5}), ("work", {"item": 1})))
    assert pending(play, AskHuman) == ["action.0.ask"]
    assert play.state.asks[0].subject["skill"] == "budgeting"
    play.answer("approve")
    assert pending(play, RunAction) == ["action.0", "action.1"]
    play.settle("action.0", "ok").settle("action.1", 1)
    shown = {
        one.data["action"]: one.data.get("skill")
        for one in play.facts
        if one.type in {"action.started", "action.completed"}
    }
    assert shown == {"book": "budgeting", "work": None}
    assert supplied_by(play.state, "book") == "budgeting"
    assert supplied_by(play.state, "work") is None


def test_a_refused_call_of_a_brought_action_names_its_skill() -> None:
    play = Play(with_skills(BUDGETING)).reply(ask("budgeting"))
    play.reply(act(("book", {"amount": 5}))).answer("reject", feedback="Too much.")
    assert play.last("action.rejected")["skill"] == "budgeting"


def test_a_loop_over_a_brought_action_goes_through_the_same_gate() -> None:
    play = Play(with_skills(BUDGETING), payload={"rows": [1, 2]})
    action = {"name": "book", "params": {"amount": "{{ item }}"}}
    loop = {"collectionPath": "payload.rows", "action": action}
    each = {"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": loop}}
    play.reply(each)
    assert "there is no action" in play.said
    play.reply(ask("budgeting")).reply(each)
    assert play.state.asks[0].subject["skill"] == "budgeting"
    play.answer("approve")
    assert play.last("action.started")["skill"] == "budgeting"


def test_a_pipeline_over_a_brought_action_goes_through_the_same_gate() -> None:
    stages = {"steps": [{"tool": "book", "with": {"amount": 2}}]}
    pipe = {"taskComplete": False, "nextStep": {"type": "Pipeline", "pipeline": stages}}
    play = Play(with_skills(BUDGETING)).reply(pipe)
    assert "there is no action" in play.said
    play.reply(ask("budgeting")).reply(pipe)
    assert play.state.asks[0].subject["skill"] == "budgeting"
    play.answer("approve")
    assert play.last("action.started")["skill"] == "budgeting"


PLAN: dict[str, Any] = {"taskComplete": False, "nextStep": {"type": "Plan", "plan": "1. Book 5."}}


def test_a_skill_activated_after_a_plan_was_approved_widens_nothing_before_a_new_approval() -> None:
    book = act(("book", {"amount": 5}))
    play = Play(with_skills(BUDGETING, plan_mode="required")).reply(PLAN).answer("approve")
    play.reply(ask("budgeting")).reply(book)
    assert active(play) == ["budgeting"]
    problems = play.last("reply.rejected")["problems"]
    assert "was not among those that plan revision 1 was approved for" in problems[0]["message"]
    assert not pending(play, RunAction)
    play.reply({**PLAN, "nextStep": {**PLAN["nextStep"], "plan": "1. Book 5 with the skill."}})
    unlocks = [one["action"] for one in play.state.asks[0].subject["unlocks"]]
    assert unlocks == ["mail", "book"]
    play.answer("approve").reply(book)
    assert pending(play, AskHuman) == ["action.0.ask"]


def test_a_skill_activated_by_a_person_widens_nothing_either() -> None:
    play = Play(with_skills(BUDGETING, plan_mode="required")).reply(PLAN).answer("approve")
    play.post("/budgeting go").reply(act(("work", {"item": 1}))).settle("action.0", 1)
    assert active(play) == ["budgeting"]
    play.reply(act(("book", {"amount": 5})))
    assert "reply.rejected" in play.types
    assert not pending(play, RunAction)


def test_in_plan_mode_a_skill_may_be_read_and_its_actions_wait() -> None:
    read = act(("read_skill_file", {"skill": "budgeting", "path": "references/rates.md"}))
    play = Play(with_skills(BUDGETING, plan_mode="required")).reply(ask("budgeting")).reply(read)
    assert pending(play, RunAction) == ["action.0"]
    play.settle("action.0", "5 %").reply(act(("book", {"amount": 5})))
    assert "no plan has been approved yet" in play.said
    unlocks = play.reply(PLAN).state.asks[0].subject["unlocks"]
    assert [one["action"] for one in unlocks] == ["mail", "book"]


def test_a_brought_action_cannot_be_called_before() -> None:
    play = Play(with_skills(BUDGETING)).reply(act(("book", {"amount": 5})))
    assert "there is no action" in play.said
    assert "book" not in play.said.partition("available:")[2]


def test_approval_never_holds_for_brought_actions() -> None:
    never: Approval = "never"
    spec = with_skills(BUDGETING, approval=ApprovalPolicy(external=never), actions=(WORK, MAIL))
    play = Play(spec).reply(ask("budgeting"))
    assert "`book`" not in told(play)[0]
    play.reply(act(("book", {"amount": 5})))
    assert "reply.rejected" in play.types


def test_files_are_read_of_active_skills_that_have_some() -> None:
    read = act(("read_skill_file", {"skill": "budgeting", "path": "references/rates.md"}))
    play = Play(with_skills(BUDGETING, MANUAL)).reply(read)
    assert "there is no action" in play.said
    play.reply(ask("budgeting")).reply(
        act(("read_skill_file", {"skill": "taxes", "path": "references/rates.md"}))
    )
    problems = play.last("reply.rejected")["problems"]
    assert problems[0]["path"] == "nextStep.actions[0].params.skill"
    play.reply(read)
    assert pending(play, RunAction) == ["action.0"]
    effect = play.state.pending["4:action.0"]
    assert isinstance(effect, RunAction)
    assert effect.params["offset"] == 0
    assert effect.repeatable


def test_the_stored_state_is_small_and_the_same_skills_come_back() -> None:
    play = Play(with_skills(BUDGETING)).reply(ask("budgeting"))
    state: RunState = play.state
    assert [(one.name, one.by, one.turn) for one in state.skills] == [("budgeting", "model", 1)]
