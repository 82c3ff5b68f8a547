"""Patterns of models: searched in linear time, bounded in size, never a crash."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.regex import MAX_PATTERN_CHARS, Pattern, compile_pattern


def found(pattern: str, text: str, **options: bool) -> bool:
    compiled = compile_pattern(pattern, **options)
    assert isinstance(compiled, Pattern)
    return compiled.found_in(text)


def test_a_pattern_is_searched_for_anywhere() -> None:
    assert found(r"INV-\d+", "see INV-12.")
    assert not found(r"^INV-\d+$", "see INV-12.")
    assert found("é", "É", ignore_case=True)
    assert not found("é", "É")
    assert found("a|b", "xb", ignore_case=True)
    assert found("", "")
    assert not found("x\ud800", "x\ud800")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?=x)x", "look-around"),
        (r"(a)\1", "backreferences"),
        ("(a", "unclosed group"),
        ("x" * (MAX_PATTERN_CHARS + 1), "at most 200 characters"),
        ("(?:.*a.{99}){0,50}c", "repeats too much"),
        ("((a{90}){90}){90}", "repeats too much"),
    ],
)
def test_what_cannot_be_searched_for_is_said(pattern: str, reason: str) -> None:
    assert reason in str(compile_pattern(pattern))


def test_ordinary_counts_are_fine() -> None:
    uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    assert found(uuid, "id 123e4567-e89b-12d3-a456-426614174000")
    assert found(r"^\d{4}-\d{2}-\d{2}$", "2024-02-29")
    assert found(r"[{]{2}x{0}", "{{")


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x", r"(\w+\s?)+$!", "(a?){60}a{60}"]
)
def test_fix_24_a_hostile_pattern_takes_no_long_time(pattern: str) -> None:
    begun = time.perf_counter()
    found(pattern, "a" * 20_000 + "!")
    assert time.perf_counter() - begun < 5


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_pattern_and_no_text_is_a_crash(pattern: str, text: str) -> None:
    compiled = compile_pattern(pattern)
    assert isinstance(compiled, str) or compiled.found_in(text) in {True, False}
