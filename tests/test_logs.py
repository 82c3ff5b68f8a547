"""Log lines: readable in a terminal, JSON elsewhere, fields kept, secrets masked."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from loopagent import Agent, App, action, logs
from loopagent.models.scripted import ScriptedModel
from loopagent.redaction import Redactor


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root, own = logging.getLogger(), logging.getLogger(logs.NAME)
    handlers, levels = list(root.handlers), (root.level, own.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    own.setLevel(levels[1])


def written(form: logs.LogFormat, level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    logs.set_up(mask=Redactor(["hidden-one"]).mask, level=level, form=form, stream=stream)
    return stream


def test_json_lines_hold_the_event_and_its_fields() -> None:
    stream = written("auto")  # a text buffer is no terminal
    logs.log.info("effect.complete", run_id="run_1", turn=3, note="hidden-one\nnext")
    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "loopagent",
        "event": "effect.complete",
        "run_id": "run_1",
        "turn": 3,
        "note": "[redacted]\nnext",
    }


def test_plain_lines_are_one_line_an_event() -> None:
    stream = written("plain")
    logs.log.warning("schema.refused", model="openai:x", why="a b\nc", count=2, none="")
    line = stream.getvalue()
    assert line.endswith('warning schema.refused model=openai:x why="a b\\nc" count=2 none=""\n')
    assert line.count("\n") == 1


@pytest.mark.parametrize("form", ["json", "plain"])
def test_a_traceback_is_written_without_secrets(form: logs.LogFormat) -> None:
    stream = written(form)
    try:
        int("saw hidden-one")
    except ValueError as error:
        logs.log.error("effect.broke", error, effect_id="1:model")
    text = stream.getvalue()
    assert "Traceback" in text
    assert "'saw [redacted]'" in text
    assert "hidden-one" not in text


def test_the_level_is_ours_and_other_libraries_are_heard_from_warnings_on() -> None:
    stream = written("json", "debug")
    logs.log.debug("effect.started")
    logging.getLogger("httpx2").info("GET https://x/?key=1")
    logging.getLogger("uvicorn.error").warning("%s is late", "hidden-one")
    events = [json.loads(line)["event"] for line in stream.getvalue().splitlines()]
    assert events == ["effect.started", "[redacted] is late"]
    quiet = written("json", "warning")
    logs.log.info("effect.complete")
    assert quiet.getvalue() == ""


def test_what_looks_like_a_format_is_only_text() -> None:
    stream = written("plain")
    logs.log.info("100%s", value="%d")
    assert "100%s value=%d" in stream.getvalue()


@action(effects="read")
async def talk() -> str:
    """Write to another log."""
    logging.getLogger("some.library").warning("It rains")
    await asyncio.to_thread(logging.getLogger("some.library").warning, "It pours")
    return "said"


@pytest.mark.anyio
async def test_every_record_of_an_effect_says_of_which() -> None:
    stream = written("json")
    call = {"type": "Actions", "actions": [{"name": "talk", "params": {}}]}
    replies = [
        {"taskComplete": False, "nextStep": call},
        {"taskComplete": True, "message": "Done."},
    ]
    async with App(
        agents=[Agent("a", model=ScriptedModel(replies), actions=[talk])], env={}
    ) as app:
        run = await app.start("a", "Go.")
        await app.wait(run.id)
    lines = [json.loads(one) for one in stream.getvalue().splitlines()]
    ours = {"run_id": run.id, "turn": 1}
    for one in lines:
        assert one["run_id"] == run.id
        assert one["turn"] in (1, 2)
        assert one["effect_id"].startswith(f"{one['turn']}:")
    heard = [one for one in lines if one["logger"] == "some.library"]
    assert [one["event"] for one in heard] == ["It rains", "It pours"]
    assert all(one.items() >= ours.items() for one in heard)


def test_another_run_is_not_taken_for_the_effect() -> None:
    async def inside() -> None:
        logs.performing(("run_1", "3:action.0"))
        logs.log.info("x", run_id="run_2")
        logs.log.info("y")
        logging.getLogger("library").warning("z")

    stream = written("plain")
    asyncio.run(inside())
    ends = [one.split(" ", 2)[2].strip() for one in stream.getvalue().splitlines()]
    at = "run_id=run_1 turn=3 effect_id=3:action.0"
    assert ends == ["x run_id=run_2", f"y {at}", f"z {at}"]
