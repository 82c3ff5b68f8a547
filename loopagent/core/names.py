"""Finding what a model meant by a name: exactly, then blind to case and separators, then by a unique part."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from loopagent.core.problems import Problem


_SEPARATORS = re.compile(r"[\s_\-.]+")
SHOWN_NAMES = 30


@dataclass(frozen=True, slots=True)
class Match:
    """The resolved name, or None with the problem; warnings say what was guessed."""

    name: str | None
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def resolve_name(asked: str, available: Sequence[str], path: str, noun: str) -> Match:
    """Find `asked` among the available names; unknown and ambiguous names are problems that list what there is."""
    if asked in available:
        return Match(asked)
    folded = fold_name(asked)
    same = [one for one in available if fold_name(one) == folded]
    if len(same) == 1:
        return Match(same[0], (f"{path}: {asked!r} read as {same[0]!r}",))
    containing = [one for one in available if folded and folded in fold_name(one)]
    if not same and len(containing) == 1:
        return Match(containing[0], (f"{path}: {asked!r} read as {containing[0]!r}",))
    return Match(
        None, (), (Problem(path, _unknown(asked, same or containing, available, noun), asked[:80]),)
    )


def fold_name(name: str) -> str:
    """A name without case and separators."""
    return _SEPARATORS.sub("", name).casefold()


def closest(asked: str, available: Sequence[str]) -> list[str]:
    """Up to three names that look like the one asked for."""
    by_fold = {fold_name(one): one for one in available}
    return [
        by_fold[one]
        for one in difflib.get_close_matches(fold_name(asked[:200]), by_fold, n=3, cutoff=0.6)
    ]


def _unknown(asked: str, several: list[str], available: Sequence[str], noun: str) -> str:
    if several:
        return f"several {noun}s match: {', '.join(several[:SHOWN_NAMES])}; give the whole name"
    near = closest(asked, available)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    listed = ", ".join(available[:SHOWN_NAMES]) or "none"
    return f"unknown {noun}; {hint}available: {listed}"
