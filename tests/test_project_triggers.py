"""Trigger files: what they may say, and how a slip is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loopagent import resources
from loopagent.errors import ConfigError
from loopagent.project import load_project
from tests.folders import filled


AGENT = "name: looker\nmodel: scripted:x.jsonl\n"
GOOD = """\
apiVersion: loopagent/v1
kind: Trigger
agent: looker
message: "Look at {{ event.dueAt }}"
schedule: {cron: "0 7 * * MON-FRI", timeZone: Europe/Vienna}
"""


def written(folder: Path, **triggers: str) -> Path:
    given = {"agents/looker.agent.yaml": AGENT, **triggers}
    places = {one: one if "/" in one else f"triggers/{one}.trigger.yaml" for one in given}
    return filled(folder, **{places[name]: text for name, text in given.items()})


def test_a_file_is_a_trigger(tmp_path: Path) -> None:
    project = load_project(written(tmp_path, morning=GOOD), env={})
    spec = project.triggers["morning"]
    assert (spec.kind, spec.agent, spec.schedule and spec.schedule.missed) == ("schedule", "looker", "once")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("agent: looker", "agent: loker"), ":3:1: agent: there is no agent 'loker'; did you mean looker?"),
        (GOOD.replace("0 7 * * MON-FRI", "0 7 * *"), "schedule.cron: must have five fields"),
        (GOOD.replace("Europe/Vienna", "Europe/Wien"), "schedule.timeZone: there is no such time zone"),
        (GOOD.replace("timeZone", "timezone"), "schedule.timezone: unknown key; did you mean timeZone?"),
        (GOOD + "webhook: {}\n", "must have one of schedule, webhook"),
        (GOOD.replace("event.dueAt", "body.x"), ":4:1: message: {{ body.x }}: unknown name body"),
        (GOOD + "filter: 'event.id =='\n", ":6:1: filter: "),
        (GOOD + "match: {'event.id + 1': 2}\n", "must be a path like body.action"),
        (GOOD + "name: Big Name\n", ":6:1: name: "),
        (GOOD + "cooldownSeconds: -1\n", ":6:1: cooldownSeconds: "),
        ("agent: looker\nmessage: x\nwebhook: {auth: {type: hmac}}\n", "type hmac needs secretEnv"),
        ("agent: looker\nmessage: x\nwebhook: {eventId: {}}\n", "must have one of header, field"),
        (GOOD.replace("kind: Trigger", "kind: Agent"), ":2:1: kind: must be Trigger"),
    ],
)  # fmt: skip
def test_slips_are_told_with_their_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_project(written(tmp_path, morning=text), env={})
    assert any(said in one for one in caught.value.problems), caught.value.problems
    assert all("morning.trigger.yaml:" in one for one in caught.value.problems)


def test_names_are_unique_and_files_are_not_ignored(tmp_path: Path) -> None:
    files = {"a": GOOD + "name: x\n", "b": GOOD + "name: x\n", "triggers/c.yaml": GOOD}
    with pytest.raises(ConfigError) as caught:
        load_project(written(tmp_path, **files), env={})
    assert any("another trigger is named x too" in one for one in caught.value.problems)
    assert any("would be ignored; name it c.trigger.yaml" in one for one in caught.value.problems)


def test_the_schema_says_the_same(tmp_path: Path) -> None:
    schema = json.loads((resources.folder("schemas") / "trigger.json").read_text())
    assert {"agent", "message"} == set(schema["required"])
    assert schema["additionalProperties"] is False
