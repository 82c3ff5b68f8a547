"""Log lines: readable in a terminal, JSON elsewhere, fields kept, secrets masked."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from loopagent import logs
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
