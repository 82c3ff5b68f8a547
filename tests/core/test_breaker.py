from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from loopagent.core.breaker import (
    KEPT_CALLS,
    BreakerLimits,
    BreakerState,
    blocked,
    guidance,
    record,
)


LIMITS = BreakerLimits()
EMPTY = BreakerState()


def failing(state: BreakerState, *calls: Mapping[str, object], fatal: bool = False) -> BreakerState:
    for params in calls:
        state = record(state, "send", dict(params), ok=False, fatal=fatal)
    return state


def test_a_call_that_never_failed_is_free():
    assert blocked(EMPTY, "send", {"a": 1}, LIMITS) is None
    assert guidance(EMPTY, "send", {"a": 1}, LIMITS) is None


def test_the_same_failing_call_twice_blocks_that_call_only():
    state = failing(EMPTY, {"a": 1, "b": 2}, {"b": 2, "a": 1})
    text = blocked(state, "send", {"a": 1, "b": 2}, LIMITS)
    assert text is not None
    assert "exactly these parameters" in text
    assert blocked(state, "send", {"a": 2}, LIMITS) is None
    assert blocked(state, "fetch", {"a": 1, "b": 2}, LIMITS) is None


def test_five_failures_in_a_row_block_the_action():
    state = failing(EMPTY, *({"a": number} for number in range(4)))
    assert blocked(state, "send", {"a": 9}, LIMITS) is None
    state = failing(state, {"a": 4})
    text = blocked(state, "send", {"a": 9}, LIMITS)
    assert text is not None
    assert "5 times in a row" in text


def test_a_success_clears_the_action():
    state = failing(EMPTY, {"a": 1}, {"a": 1}, {"a": 2}, {"a": 3})
    assert record(state, "send", {"a": 4}, ok=True, fatal=False) == EMPTY


def test_a_fatal_failure_locks_the_action_for_good():
    state = failing(EMPTY, {"a": 1}, fatal=True)
    text = blocked(state, "send", {"other": True}, LIMITS)
    assert text is not None
    assert "unavailable" in text
    # A call that was under way when the lock came may still succeed; the lock holds.
    assert record(state, "send", {"a": 2}, ok=True, fatal=False) == state
    assert failing(state, {"a": 3}).actions["send"].locked


def test_limits_are_settings():
    strict = BreakerLimits(same_call=1, in_a_row=2)
    state = failing(EMPTY, {"a": 1})
    assert blocked(state, "send", {"a": 1}, strict) is not None
    assert blocked(state, "send", {"a": 2}, strict) is None
    assert blocked(failing(state, {"a": 2}), "send", {"a": 3}, strict) is not None
    assert BreakerLimits.model_validate({"sameCall": 3, "inARow": 9}) == BreakerLimits(
        same_call=3, in_a_row=9
    )


def test_guidance_rises_from_a_count_to_a_block():
    state = failing(EMPTY, {"a": 1})
    first = guidance(state, "send", {"a": 1}, LIMITS)
    assert first is not None
    assert "failure 1 of 5" in first
    assert "1 more time." in first
    state = failing(state, {"a": 1})
    assert guidance(state, "send", {"a": 1}, LIMITS) == blocked(state, "send", {"a": 1}, LIMITS)
    assert guidance(failing(EMPTY, {"a": 1}), "send", {"a": 2}, LIMITS) == first.replace(
        "1 more time.", "2 more times."
    )


def test_success_never_makes_it_grow():
    state = EMPTY
    for number in range(100):
        state = record(state, "send", {"a": number}, ok=True, fatal=False)
    assert state is EMPTY


def test_failures_are_bounded_and_the_latest_calls_are_kept():
    state = failing(EMPTY, {"a": "first"})
    state = failing(state, *({"a": number} for number in range(KEPT_CALLS - 1)), {"a": "first"})
    state = failing(state, *({"b": number} for number in range(KEPT_CALLS - 1)))
    generous = BreakerLimits(in_a_row=1_000)
    assert len(state.actions["send"].calls) == KEPT_CALLS
    assert blocked(state, "send", {"a": "first"}, generous) is not None  # failed again of late
    assert len(state.model_dump_json()) < 1_000


def test_it_survives_being_stored():
    state = failing(EMPTY, {"a": 1}, {"a": {"b": [1, None]}}, fatal=True)
    adapter = TypeAdapter(BreakerState)
    assert adapter.validate_json(adapter.dump_json(state)) == state


CALLS = st.lists(
    st.tuples(st.sampled_from("xyz"), st.integers(0, 3), st.sampled_from(["ok", "bad", "fatal"])),
    max_size=60,
)


@given(CALLS)
def test_the_rules_hold_whatever_happens(calls):
    state, in_a_row = EMPTY, dict.fromkeys("xyz", 0)
    same: dict[tuple[str, int], int] = {}
    locked: set[str] = set()
    for action, number, end in calls:
        state = record(state, action, {"n": number}, ok=end == "ok", fatal=end == "fatal")
        if end == "ok":
            in_a_row[action] = 0
            same = {key: times for key, times in same.items() if key[0] != action}
        else:
            in_a_row[action] += 1
            same[action, number] = same.get((action, number), 0) + 1
            locked |= {action} if end == "fatal" else set()
        for one in "xyz":
            for which in range(4):
                stop = one in locked or in_a_row[one] >= 5 or same.get((one, which), 0) >= 2
                assert (blocked(state, one, {"n": which}, LIMITS) is not None) == stop
