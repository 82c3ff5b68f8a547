from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopagent.core.docstring import read_docstring


def test_google_style():
    text = """Find places
near a point.

More about it.

Args:
    query (str): What to look for,
        in words.

    limit: How many: at most 5.
    *rest: More.
    kind (dict[str, (int)]): Which.

Returns:
    limit: not a parameter
Raises:
    query: neither
"""
    assert read_docstring(text) == (
        "Find places near a point.",
        {
            "query": "What to look for, in words.",
            "limit": "How many: at most 5.",
            "rest": "More.",
            "kind": "Which.",
        },
    )


def test_rest_style():
    text = """Send a mail.
:param str to: Whom to,
    one address
:param body: The text
:type body: str
:returns: nothing
"""
    assert read_docstring(text) == (
        "Send a mail.",
        {"to": "Whom to, one address", "body": "The text"},
    )


def test_a_docstring_without_parameters_or_without_text():
    assert read_docstring("") == ("", {})
    assert read_docstring("One line.") == ("One line.", {})
    assert read_docstring("Args:\n    a: The a.") == ("", {"a": "The a."})
    assert read_docstring("Sum.\nArgs:\n    stray line\n    a: The a.") == ("Sum.", {"a": "The a."})


@given(st.text(alphabet="Args:\n aparm*()xy[] ", max_size=200))
def test_no_text_makes_it_fail(text):
    summary, texts = read_docstring(text)
    assert "\n" not in summary
    assert all("\n" not in one for one in texts.values())
