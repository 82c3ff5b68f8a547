from __future__ import annotations

from pydantic import TypeAdapter

from loopagent.core.outcome import ErrorInfo, Outcome


def test_outcomes_survive_being_stored():
    adapter = TypeAdapter(Outcome)
    for outcome in (
        Outcome.done({"a": [1, None, "é"]}, duration_ms=1.234, attempts=2),
        Outcome.failed("timeout", "Too slow.", may_have_run=True),
        Outcome.failed("no_key", "No key.", fatal=True),
    ):
        assert adapter.validate_json(adapter.dump_json(outcome)) == outcome


def test_the_public_error_has_flags_only_where_they_are_set():
    assert ErrorInfo("a", "b").public() == {"code": "a", "message": "b"}
    error = Outcome.failed("a", "b", may_have_run=True).error
    assert error is not None
    assert error.public() == {"code": "a", "message": "b", "mayHaveRun": True}


def test_text_and_exchange_of_the_value():
    assert Outcome.done("plain").text() == "plain"
    assert Outcome.done({"é": [1, None]}).text() == '{"é":[1,null]}'
    assert Outcome.done(1, attempts=3).with_value(2) == Outcome.done(2, attempts=3)
