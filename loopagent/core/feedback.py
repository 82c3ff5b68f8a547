"""What the model is told about a reply that was not taken.

Paths and problems repeat pieces of the reply. They stand in one list, each on one line and cut, so
that nothing quoted can look like words of the engine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from loopagent.core.problems import Problem


MAX_LISTED: Final = 20
"""Most problems that are listed."""
MAX_LINE_CHARS: Final = 400
"""Longest line about one problem, in characters."""


AGAIN: Final = (
    "Send the whole reply again, corrected, as one raw JSON object without any text around it."
)
SHORTER: Final = (
    "It is too long to be shown to you again. Send a much shorter reply, corrected, as one raw JSON object without "
    "any text around it: keep large data out of it."
)


def refusal_feedback(problems: Sequence[Problem], *, shown: bool = True) -> str:
    """Name every problem at once.

    Args:
        problems: What is wrong with the reply.
        shown: Whether the model sees the reply itself as well.
    """
    lines = [f"- {_line(one)}" for one in problems[:MAX_LISTED]]
    if len(problems) > MAX_LISTED:
        lines.append(f"- and {len(problems) - MAX_LISTED} more")
    listed = "\n".join(lines)
    wanted = AGAIN if shown else SHORTER
    return f"Nothing of your last reply took effect. What is wrong with it:\n{listed}\n{wanted}"


def truncation_feedback() -> str:
    """Ask for a shorter reply."""
    return (
        "Your last reply was cut off at the output limit, so nothing of it took effect. "
        "Send a much shorter one, as one raw JSON object: say less, change less at a time, "
        "or spread the work over several turns."
    )


def _line(problem: Problem) -> str:
    came = ""
    if problem.got and problem.got not in problem.message:
        came = f", got {_quoted(problem.got)}"
    line = " ".join(f"{problem.path or 'reply'}: {problem.message}{came}".split())
    return line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}…"


def _quoted(got: str) -> str:
    """What came, as JSON; what is JSON already is not quoted again, so that null and "null" stay apart."""
    try:
        json.loads(got)
    except (ValueError, RecursionError):
        return json.dumps(got, ensure_ascii=False)
    return got
