"""Finding the object in a text that arrives: prose, code fences and thoughts before it are passed over.

The same marks that `core.text` looks for, in pieces of any size: what may be the beginning of a mark is kept until
more has come, and never more than a mark is long.
"""

from __future__ import annotations

import re
from typing import Final, Literal


Found = Literal["object", "doubtful", "forget"]
TAGS: Final = ("thinking", "think", "reasoning")
"""Names of tags around thoughts."""
_FIRST: Final = re.compile("[<{]")
_BLANK: Final = re.compile(r"\s*+")
_TAG: Final = re.compile(rf"<(?P<close>/?)(?P<tag>{'|'.join(TAGS)})\s*+>", re.IGNORECASE)
_BEGUN: Final = "|".join(
    sorted({re.escape(tag[:end]) for tag in TAGS for end in range(1, len(tag))}, key=len)[::-1]
)
HALF_TAG: Final = rf"</?(?:(?:{'|'.join(TAGS)})\s*+|{_BEGUN}|)\Z"
"""Pattern of a tag of which only the beginning is there, at the end of a text."""
_HALF: Final = re.compile(HALF_TAG, re.IGNORECASE)
_DOUBTFUL: Final = re.compile(r"['\\/a-z_$\u201c\u201d]", re.IGNORECASE)
"""What may begin an object that is no plain JSON."""


class Opening:
    """Looks for the next object.

    `text` and `at` of `feed` belong together as long as nothing was found; `at` is then where to go on.
    """

    def __init__(self) -> None:
        self._kept = ""
        self._brace = False
        self._thought = ""
        """Name of the tag whose end is waited for."""

    def feed(self, text: str) -> tuple[Found | None, str]:
        """Look at a piece.

        Returns:
            What was found, and the rest of the text behind it; of an object, the rest begins with what follows its
            brace. `doubtful`: an object may begin that is no plain JSON. `forget`: a thought ends here whose
            beginning was not marked, so nothing before counts.
        """
        text, self._kept = self._kept + text, ""
        at = 0
        while True:
            if self._brace:
                found, at = self._behind_brace(text, at)
                if found is not None:
                    return found, text[at:]
            mark = _FIRST.search(text, at)
            if mark is None or self._brace:
                return None, ""
            at = mark.start()
            if mark.group() == "{":
                self._brace = not self._thought
                at += 1
                continue
            tag = _TAG.match(text, at)
            if tag is not None:
                at = tag.end()
                if self._pass(tag):
                    return "forget", text[at:]
            elif _HALF.match(text, at):
                self._kept = _short(text[at:])
                return None, ""
            else:
                at += 1

    def _behind_brace(self, text: str, at: int) -> tuple[Found | None, int]:
        """Decide what a brace was, by what follows it."""
        blank = _BLANK.match(text, at)
        at = blank.end() if blank else at
        if at == len(text):
            return None, at
        self._brace = False
        if text[at] == '"':
            return "object", at
        return ("doubtful" if _DOUBTFUL.match(text, at) else None), at

    def _pass(self, tag: re.Match[str]) -> bool:
        """Step over a tag; True when it ends a thought that nothing began."""
        name = tag["tag"].casefold()
        if self._thought:
            if tag["close"] and name == self._thought:
                self._thought = ""
            return False
        if tag["close"]:
            return True
        self._thought = name
        return False


def _short(half: str) -> str:
    """The beginning of a tag, any blanks at its end as one."""
    bare = half.rstrip()
    return bare if bare == half else f"{bare} "
