"""Texts that are shown while they grow, and what of them has been shown."""

from __future__ import annotations

import re
from typing import Final

from loopagent.core.presenting.opening import HALF_TAG


_JOIN_FROM: Final = 512
"""Pieces that are joined at a time."""
_MOST_HELD: Final = 24
"""Longest end of a text that is held back, in characters."""
_HALF: Final = re.compile(rf"(?:`+\Z|{HALF_TAG})", re.IGNORECASE)


class Growing:
    """One text. What of it might be half a code fence or half a tag is held back until more has come."""

    def __init__(self) -> None:
        self.done = False
        self.ending = False
        """It seems to have ended."""
        self.cut = False
        """It was closed although it is not complete."""
        self._held = ""
        self._joined: list[str] = []
        self._pieces: list[str] = []

    def take(self, piece: str) -> str:
        """Take a piece; returns what can be shown now."""
        text = self._held + piece
        half = _HALF.search(text, max(0, len(text) - _MOST_HELD))
        end = half.start() if half else len(text)
        if half and end == len(text) - _MOST_HELD and end:
            end = len(text)  # so long a run of the same is no mark
        self._held = text[end:]
        return self._shows(text[:end])

    def rest(self) -> str:
        """What was held back, as nothing more comes."""
        held, self._held = self._held, ""
        return self._shows(held)

    def add(self, text: str) -> None:
        """Add what is shown of it by others."""
        self._shows(text)

    def shown(self) -> str:
        """All that was shown."""
        self._join()
        text = "".join(self._joined)
        self._joined = [text]
        return text

    def _shows(self, text: str) -> str:
        if text:
            self._pieces.append(text)
            if len(self._pieces) >= _JOIN_FROM:
                self._join()
        return text

    def _join(self) -> None:
        self._joined.append("".join(self._pieces))
        self._pieces.clear()
