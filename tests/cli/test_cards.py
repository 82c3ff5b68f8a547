"""What a person at the terminal is shown of a request."""

from __future__ import annotations

from typing import Any

import pytest

from loopagent.cli.session import show_card, show_form


def test_an_approval_of_a_loop_shows_the_first_calls_filled_in(
    capsys: pytest.CaptureFixture[str],
) -> None:
    subject: dict[str, Any] = {
        "action": "mail",
        "effects": "external",
        "params": {"to": "{{ item }}"},
        "first": [{"to": "ann"}, {"to": "bob"}],
        "passes": 7,
        "skill": "mailing",
    }
    show_card({"kind": "approval", "title": "Run mail, 7 times?", "subject": subject})
    shown = capsys.readouterr().out
    assert 'call 1 of 7: {"to": "ann"}' in shown
    assert 'call 2 of 7: {"to": "bob"}' in shown
    assert "effects: external, brought by the skill mailing" in shown


def test_a_form_shows_how_its_answers_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    options = [{"value": "a"}, {"value": "b"}]
    questions = [
        {"id": "n", "label": "How many?", "type": {"type": "number"}, "required": True},
        {"id": "which", "label": "Which?", "type": {"type": "radio", "options": options}},
    ]
    show_form({"form": {"questions": questions}})
    assert capsys.readouterr().out.splitlines() == [
        "n: How many? (number, required)",
        'which: Which? ("a" | "b")',
    ]
