"""Names are found as they were meant, and never by luck."""

from __future__ import annotations

import pytest

from loopagent.core.names import MAX_NAMES, closest, resolve


ACTIONS = ["List Vendors", "list-invoices", "send_mail", "Mail Archive"]


@pytest.mark.parametrize("name", ACTIONS)
def test_exact_names_need_no_warning(name: str) -> None:
    match = resolve(name, ACTIONS)
    assert (match.name, match.warnings, match.problems) == (name, (), ())


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("list vendors", "List Vendors"),
        ("LIST_VENDORS", "List Vendors"),
        ("List  Invoices", "list-invoices"),
        ("sendMail", "send_mail"),
        ("Vendors", "List Vendors"),
        ("archive", "Mail Archive"),
    ],
)
def test_spellings_and_unique_parts_are_read_with_a_warning(asked: str, meant: str) -> None:
    match = resolve(asked, ACTIONS, "nextStep.actions[0].name", "action")
    assert match.name == meant
    assert match.problem is None
    assert match.warning is not None
    assert match.warning.startswith("nextStep.actions[0].name: ")
    assert meant in match.warning


def test_an_ambiguous_part_is_a_problem_that_lists_the_candidates() -> None:
    match = resolve("list", ACTIONS)
    assert match.name is None
    assert match.suggestions == ("List Vendors", "list-invoices")
    assert match.problem is not None
    assert "List Vendors, list-invoices" in match.problem.message
    assert "send_mail" not in match.problem.message


def test_names_that_differ_only_in_spelling_must_be_exact() -> None:
    both = ["send-mail", "send_mail"]
    assert resolve("send_mail", both).name == "send_mail"
    assert resolve("Send Mail", both).name is None


def test_an_exact_spelling_wins_over_a_part() -> None:
    assert resolve("MAIL", ["mail", "mail archive"]).name == "mail"


def test_an_unknown_name_lists_the_closest_and_all() -> None:
    match = resolve("broswer_fill", ["browser_fill", "browser_open", "read"], "p", "action")
    assert match.name is None
    assert match.suggestions[0] == "browser_fill"
    assert match.problem is not None
    assert match.problem.path == "p"
    assert "no action" in match.problem.message
    assert "browser_fill" in match.problem.message
    assert "read" in match.problem.message


@pytest.mark.parametrize("asked", ["", " ", "_", "e", "ma"])
def test_too_little_says_nothing(asked: str) -> None:
    assert resolve(asked, ["Mail Archive"]).name is None


def test_nothing_is_available() -> None:
    match = resolve("x", [])
    assert match.problem is not None
    assert "available: none" in match.problem.message


def test_messages_stay_short() -> None:
    names = [f"action {number}" for number in range(500)]
    match = resolve("x" * 1_000_000, names)
    assert match.problem is not None
    assert len(match.problem.message) < 1_000
    assert f"and {500 - MAX_NAMES} more" in match.problem.message
    assert len(match.problem.got) < 100


def test_closest_is_blind_to_spelling() -> None:
    assert closest("LIST VENDRS", ACTIONS)[0] == "List Vendors"
