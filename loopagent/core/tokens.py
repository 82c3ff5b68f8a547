"""How many tokens a text has, about: good enough to plan with, never used to account for what was spent."""

from __future__ import annotations

import re


_PIECE = re.compile(r"[A-Za-z]+|\d{1,3}|[^\sA-Za-z\d]|\n+")
_LETTERS_PER_TOKEN = 6


def estimate_tokens(text: str) -> int:
    """An estimate without a vocabulary: short words and signs are a token, long words several."""
    return sum(
        1 + (len(one) - 1) // _LETTERS_PER_TOKEN if one[0].isalpha() else 1
        for one in _PIECE.findall(text)
    )
