"""Comparing short texts without a model: their words, how alike they are, whether one corrects the other.

Every store indexes and looks for the same words, so that what is found does not depend on where it is kept.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Final


MAX_TERMS: Final = 64
"""Words of a text that are looked for; a note is one statement, so the first ones say what it is about."""
_WORD: Final = re.compile(r"[^\W_]+")
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_COMMON: Final = frozenset(
    re.findall(
        r"\w+",
        """
        a about an and any are as at be been but by can could do does for from had has have he her his how i if in
        into is it its me my not of on or our she should so some than that the their them then there these they this
        to up us was we were what when where which who will with would you your user
        """,
    )
)
"""Words that say nothing about what a text is about."""
_ENDINGS: Final = ("ings", "ing", "ies", "ied", "ed", "es", "s")
_SHORTEST_STEM: Final = 4
"""An ending is taken off only where as many letters are left as still tell words apart."""
_SAYS_IS: Final = frozenset(
    {
        "is",
        "are",
        "was",
        "were",
        "=",
        ":",
        "equals",
        "means",
        "ist",
        "sind",
        "est",
        "sont",
        "es",
        "son",
    }
)
"""Words between what is talked about and what is said of it."""
_MOST_SLOT_WORDS: Final = 4
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_TOKEN: Final = re.compile(r"[^\W_]+|[=:]")


def folded(text: str) -> str:
    """A text without the differences that mean nothing: case, accents, punctuation, spacing."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    marks_off = "".join(one for one in plain if not unicodedata.combining(one))
    return " ".join(_TOKEN.findall(marks_off))


def terms(text: str, most: int = MAX_TERMS) -> tuple[str, ...]:
    """The words of a text that say what it is about, each once, in order; pairs of signs where no spaces are used.

    Args:
        text: Any text.
        most: How many at most.
    """
    found: dict[str, None] = {}
    for word in _WORD.findall(folded(text)):
        for one in _pieces(word):
            found.setdefault(one)
            if len(found) >= most:
                return tuple(found)
    return tuple(found)


def _pieces(word: str) -> list[str]:
    if _UNSPACED.search(word):
        return [word[at : at + 2] for at in range(max(1, len(word) - 1))]
    if word in _COMMON or (len(word) == 1 and not word.isdigit()):
        return []
    return [_stem(word)]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word.removesuffix(ending)
    return word


def similarity(one: str, other: str) -> float:
    """How alike two texts are, 0 to 1: the share of three-letter pieces that they have in common, by Dice."""
    first, second = _trigrams(folded(one)), _trigrams(folded(other))
    total = first.total() + second.total()
    return 1.0 if not total else 2.0 * (first & second).total() / total


def _trigrams(text: str) -> Counter[str]:
    padded = f"  {text} "
    return Counter(padded[at : at + 3] for at in range(len(padded) - 2))


def corrects(new: str, old: str) -> bool:
    """Whether a statement says something else of the same thing: "colour is green" after "colour is blue".

    So it is where the two differ only in what follows "is" or the like, or only in a number.
    """
    first, second = folded(new).split(), folded(old).split()
    if first == second:
        return False
    if _without_numbers(first) == _without_numbers(second):
        return True
    same = 0
    while same < min(len(first), len(second)) and first[same] == second[same]:
        same += 1
    if same < 2 or first[same - 1] not in _SAYS_IS:  # noqa: PLR2004 - a subject and "is"
        return False
    return all(0 < len(rest) <= _MOST_SLOT_WORDS for rest in (first[same:], second[same:]))


def _without_numbers(words: list[str]) -> str:
    return _NUMBER.sub("0", " ".join(words))
