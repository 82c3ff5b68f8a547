"""How much text a model takes, by the beginning of its name, where that is known."""

from __future__ import annotations

from functools import lru_cache
from typing import Final


UNKNOWN_TOKENS: Final = 128_000
"""Assumed of a model that is not in the table. Source: decision seat F4."""
_INPUT_TOKENS: Final[tuple[tuple[str, int], ...]] = (
    ("gpt-5", 272_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4", 8_192),
    ("gpt-3.5", 16_385),
    ("o1-mini", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("claude", 200_000),
    ("gemini-1.5-pro", 2_097_152),
    ("gemini", 1_048_576),
)


@lru_cache(64)
def input_tokens(model: str) -> int:
    """The longest prompt that a model takes, in tokens.

    Args:
        model: `provider:name`, or a name alone; a longer beginning goes before a shorter one.
    """
    name = model.rpartition("#")[2] if "#" in model else model.partition(":")[2] or model
    name = name.rpartition("/")[2].lower()
    return next((size for start, size in _INPUT_TOKENS if name.startswith(start)), UNKNOWN_TOKENS)
