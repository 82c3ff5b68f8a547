"""What pages draw of runs and turns, without a browser: values in, values out."""

from __future__ import annotations

from typing import Any

from loopagent.runtime.course import course_of
from loopagent.web.render import amount, found, visible
from loopagent.web.run_view import children_of, filtered, notes_of, pad_history
from loopagent.web.turn_view import decision_of, lines_of


Json = dict[str, Any]


def event(turn: int, kind: str, at: float = 0.0, **data: Any) -> Json:
    return {"runId": "r", "turn": turn, "type": kind, "ts": at, "decidedBy": "model", "data": data}


LOG = [
    event(1, "turn.started", 1),
    event(
        1,
        "reply.rejected",
        2,
        raw="{",
        problems=[{"path": "", "message": "no"}],
        usage={"inputTokens": 5},
    ),
    event(1, "turn.ended", 2, outcome="refused"),
    event(2, "turn.started", 3),
    event(2, "reply.received", 4, raw="{}", type="Actions", message="Looking."),
    event(2, "action.started", 4, callId="2:action.0", action="look", params={"item": 1}),
    {**event(2, "action.started", 4, callId="x", action="other"), "runId": "child"},
    event(2, "payload.changed", 4, patch=[{"op": "add", "path": "/a", "value": 1}]),
    event(2, "action.rejected", 5, callId="2:action.1", action="mail", code="denied"),
    event(2, "action.completed", 6, callId="2:action.0", action="look", ok=True, result="seen"),
]


def test_turns_with_their_work_are_folded_from_events() -> None:
    first, second = course_of(LOG, "r", {}).turns
    assert (first.reply, first.outcome, first.input_tokens) == ("rejected", "refused", 5)
    assert [(one.name, one.ok, one.ended_at) for one in second.work] == [
        ("look", True, 6),
        ("mail", False, 5),
    ]
    assert second.work[0].data["params"] == {"item": 1}
    assert (second.before, second.payload) == ({}, {"a": 1})
    assert notes_of(second) == [("payload.changed", "model")]
    approved = {**event(2, "plan.approved", by="human:bob"), "decidedBy": "human"}
    decided = course_of([*LOG[:-1], approved], "r", {}).turns[-1]
    assert notes_of(decided)[-1] == ("plan.approved", "human:bob")


def test_a_turn_that_is_taken_anew_begins_anew() -> None:
    copy = [*LOG, event(2, "run.forked"), event(2, "turn.started", 9)]
    again = course_of(copy, "r", {}).turns[-1]
    assert (again.started_at, again.reply, again.work, again.before) == (9, "", [], {"a": 1})


def test_turns_are_filtered_by_what_they_have_to_do_with() -> None:
    course = course_of(LOG[1:], "r")
    shown, kinds = filtered(course, "failed")
    assert [one.number for one in shown.turns] == [2]
    assert kinds == ["Actions", "action", "failed", "payload.changed", "rejected", "reply.rejected"]
    assert [one.number for one in filtered(course, "")[0].turns] == [1, 2]


def test_the_scratchpad_has_a_history() -> None:
    task = {"id": "a", "title": "Look", "status": "pending"}
    other = {"id": "b", "title": "Go", "status": "blocked"}
    one, two, three = pad_history(
        [
            event(1, "scratchpad.changed", notes="n", tasks=[task]),
            event(
                2, "scratchpad.changed", notes="n", tasks=[{**task, "status": "in_progress"}, other]
            ),
            event(3, "scratchpad.changed", notes="", tasks=[{**other, "notes": "why"}]),
        ]
    )
    assert (one.tasks, one.notes) == (["Look: new, pending"], "n")
    assert (two.tasks, two.notes) == (["Look: pending → in progress", "Go: new, blocked"], None)
    assert (three.tasks, three.notes) == (["Go: reworded", "Look: taken off"], "")


def test_children_are_counted() -> None:
    below = [{"status": one} for one in ("completed", "failed", "running")]
    found = children_of({"children": below})
    assert found is not None
    assert (found.done, found.failed, found.total) == (1, 1, 3)
    assert children_of({"children": []}) is None


def test_a_reply_is_cut_into_lines_with_its_marks() -> None:
    raw = "x\n{a: 1"
    marks = [
        {"start": 0, "end": 2, "kind": "cut"},
        {"start": 3, "end": 4, "kind": "repaired"},
        {"start": 7, "end": 7, "kind": "added"},
    ]
    one, two = lines_of(raw, marks, [{"pointer": "/a", "message": "no", "line": 2}])
    assert one.pieces == [("x", "cut")]
    assert two.pieces == [("", "cut"), ("{", ""), ("a", "repaired"), (": 1", ""), ("}", "added")]
    assert two.problems == ["/a: no"]
    assert decision_of("nothing") == []
    assert decision_of('{"message": "m", "odd": 1}') == [
        ("message", "spoken", "m"),
        ("odd", "plain", 1),
    ]


def test_what_nobody_sees_is_named() -> None:
    assert visible("a\u202eb<\n\t") == 'a<span class="odd">U+202E</span>b&lt;\n\t'
    assert found("aXx<", "x") == "a<mark>X</mark><mark>x</mark>&lt;"
    assert found("a.b", ".") == "a<mark>.</mark>b"
    assert [amount(9), amount(15_800, "text/csv"), amount(2_000_000)] == [
        "9 characters",
        "15.8 kB",
        "2 M characters",
    ]
