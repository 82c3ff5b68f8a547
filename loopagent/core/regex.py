"""Regular expressions that models write: searched in linear time, bounded in size.

They run on the engine inside pydantic, which has neither look-around nor back-references and never
backtracks. What it would still take long for, patterns with large counted repetitions, is refused.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from pydantic_core import SchemaError, SchemaValidator, core_schema


MAX_PATTERN_CHARS: Final = 200
"""Longest pattern."""
MAX_PATTERN_PARTS: Final = 300
"""Most parts of a pattern with its counted repetitions written out; bounds the time per character."""
_PART: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])+\]|\{(\d*)(?:,(\d*))?\}|.", re.DOTALL)


class Pattern:
    """A compiled pattern.

    Args:
        validator: The engine's form of it.
    """

    __slots__ = ("_validator",)

    def __init__(self, validator: SchemaValidator) -> None:
        self._validator = validator

    def found_in(self, text: str) -> bool:
        """Whether the pattern matches somewhere in a text."""
        return self._validator.isinstance_python(text)


@lru_cache(maxsize=32)
def compile_pattern(
    source: str, *, ignore_case: bool = False, max_chars: int = MAX_PATTERN_CHARS
) -> Pattern | str:
    """Compile a pattern.

    Args:
        source: The regular expression.
        ignore_case: Whether upper and lower case are the same.
        max_chars: Its longest length, in characters.

    Returns:
        The pattern, or what is wrong with it.
    """
    if len(source) > max_chars:
        return f"expected a pattern of at most {max_chars} characters, got {len(source)}"
    if _parts(source) > MAX_PATTERN_PARTS:
        return f"the pattern repeats too much: at most {MAX_PATTERN_PARTS} parts, written out"
    try:
        schema = core_schema.str_schema(pattern=f"(?i:{source})" if ignore_case else source)
        return Pattern(SchemaValidator(schema))
    except SchemaError as error:
        reason = str(error).strip().splitlines()[-1].strip().removeprefix("error: ")
        return f"not a pattern that can be searched for: {reason}"


def _parts(source: str) -> int:
    """How many parts a pattern has when `x{9}` counts nine times; an estimate that is never too low."""
    groups, last = [0], 0
    for match in _PART.finditer(source):
        text = match[0]
        if match[1] is not None:
            times = max((int(one[:6]) for one in match.groups() if one), default=1)
            groups[-1] += last * (max(times, 1) - 1)
            last *= max(times, 1)
        elif text == "(":
            groups.append(0)
        elif text == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif text not in "*+?":
            last = 1
            groups[-1] += 1
    return sum(groups)
