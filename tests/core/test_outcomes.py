"""What a step knows: grows cheaply, and every version stays what it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.outcome import Outcome
from loopagent.core.outcomes import Outcomes, together


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9), st.integers(0, 5))))
def test_versions_behave_like_dictionaries_that_are_copied(
    moves: list[tuple[int, int, int]],
) -> None:
    versions: list[tuple[Outcomes, dict[str, Outcome]]] = [(Outcomes(), {})]
    for number, (base, key, value) in enumerate(moves):
        mapping, plain = versions[base % len(versions)]
        outcome = Outcome.done([number, value])
        versions.append((mapping.plus(f"k{key}", outcome), {**plain, f"k{key}": outcome}))
        looked_at, same = versions[value % len(versions)]
        assert dict(looked_at) == same
    for mapping, plain in versions:
        assert mapping == plain
        assert list(mapping) == list(plain)
        assert len(mapping) == len(plain)
        assert all((f"k{one}" in mapping) == (f"k{one}" in plain) for one in range(10))
        assert mapping.get("k0") == plain.get("k0")


def test_since_gives_only_what_is_new() -> None:
    one, two = Outcome.done(1), Outcome.done(2)
    first = Outcomes().plus("a", one)
    second = first.plus("b", two)
    assert second.since(1) == [("b", two)]
    assert first.since(1) == []
    assert first.since(0) == [("a", one)]


def test_a_view_of_an_older_version_can_be_brought_up_to_date() -> None:
    first = Outcomes().plus("a", Outcome.done(1))
    second = first.plus("b", Outcome.done(2))
    assert second.continues(first)
    assert not first.continues(second)
    other = first.plus("c", Outcome.done(3))
    assert not other.continues(second)


def test_parts_come_together_in_order() -> None:
    parts = [{"b": Outcome.done(1)}, {"a": Outcome.done(2)}]
    assert list(together(parts)) == ["b", "a"]
