"""What a model meant by a name: exactly, then blind to case and separators, then by a unique part."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Final

from loopagent.core.problems import Problem, quoted, shorten
from loopagent.core.values import value_object


MIN_PART: Final = 3
"""Shortest part of a name that may stand for it, in characters; less says too little."""
MAX_NAMES: Final = 30
"""Most names that a message lists."""
MAX_NAME_CHARS: Final = 200
"""Longest name that is compared with others for likeness, in characters."""
_SEPARATORS: Final = re.compile(r"[\s_-]+")


@value_object(frozen=True, slots=True)
class Match:
    """What was found for a name.

    Args:
        name: The available name; None beside a problem.
        warning: How the name was read, if not literally.
        problem: Why there is no name.
        suggestions: The available names that look most like it, best first; only beside a problem.
    """

    name: str | None
    warning: str | None = None
    problem: Problem | None = None
    suggestions: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warning, if any."""
        return () if self.warning is None else (self.warning,)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problem, if any."""
        return () if self.problem is None else (self.problem,)


def resolve(asked: str, available: Sequence[str], path: str = "", noun: str = "name") -> Match:
    """Find the name that is meant.

    Args:
        asked: What the model wrote.
        available: The names there are.
        path: Where in the reply it stands.
        noun: What is named, such as `action`.

    Returns:
        The name as it is available; or a problem that lists the closest and the available names.
    """
    if asked in available:
        return Match(asked)
    folded = fold_name(asked)
    found = [one for one in available if fold_name(one) == folded]
    if not found and len(folded) >= MIN_PART:
        found = [one for one in available if folded in fold_name(one)]
    if len(found) == 1:
        where = f"{path}: " if path else ""
        return Match(found[0], f"{where}{shorten(asked)} read as {found[0]}")
    return _no_match(asked, found, available, path, noun)


resolve_name = resolve
"""The same, for modules in which `resolve` means something else."""


def fold_name(name: str) -> str:
    """Give a name without case, blanks, hyphens and underscores."""
    return _SEPARATORS.sub("", name).casefold()


def closest(asked: str, available: Sequence[str]) -> list[str]:
    """Give up to three names that look like the one asked for, best first."""
    by_fold = {fold_name(one): one for one in available}
    folded = fold_name(asked[:MAX_NAME_CHARS])
    return [by_fold[one] for one in difflib.get_close_matches(folded, by_fold, n=3, cutoff=0.6)]


def _no_match(
    asked: str, several: list[str], available: Sequence[str], path: str, noun: str
) -> Match:
    got = quoted(asked)
    if several:
        message = f"{got} could be {_listed(several)}; give the whole name"
        return Match(None, None, Problem(path, message, got), tuple(several[:MAX_NAMES]))
    near = tuple(closest(asked, available))
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    message = f"there is no {noun} {got}; {hint}available: {_listed(available)}"
    return Match(None, None, Problem(path, message, got), near)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return (", ".join(names[:MAX_NAMES]) or "none") + more
