"""What the model is told about a reply that was not taken."""

from __future__ import annotations

import json
from collections.abc import Sequence

from loopagent.core.problems import Problem


MAX_LISTED = 20


def refusal_feedback(problems: Sequence[Problem]) -> str:
    """Every problem at once; what came is quoted as JSON text, so that it cannot pose as words of the engine."""
    lines = [f"- {one.path or 'reply'}: {one.message}{_came(one)}" for one in problems[:MAX_LISTED]]
    if len(problems) > MAX_LISTED:
        lines.append(f"- and {len(problems) - MAX_LISTED} more")
    listed = "\n".join(lines)
    return f"Your last reply was refused and nothing of it took effect:\n{listed}\nSend one corrected JSON object."


def truncation_feedback() -> str:
    """The reply was cut off at the output limit."""
    return (
        "Your last reply was cut off before its end and nothing of it took effect. "
        "Send a shorter JSON object: say less, change less, or split the work over several turns."
    )


def _came(problem: Problem) -> str:
    return f" (came: {json.dumps(problem.got, ensure_ascii=False)})" if problem.got else ""
