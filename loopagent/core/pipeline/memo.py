"""What earlier looks at a pipeline found, so that looking again costs what is new and not what is known.

Only a shortcut: it can be thrown away at any time, is never stored, and goes with one request object.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loopagent.core.outcomes import Outcomes
from loopagent.core.pipeline.fuse import Fuse
from loopagent.core.pipeline.trace import Ran
from loopagent.core.template import Template


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopagent.core.effects import RunAction
    from loopagent.core.outcome import Outcome


@dataclass(slots=True)
class Entries:
    """How far a `map` is: the entries before `next` were begun, those of them in `open` have not ended."""

    base: Ran
    fuse: Fuse
    found: list[Ran | None]
    open: list[int] = field(default_factory=list[int])
    next: int = 0
    size_bytes: int = 0

    def ended(self, index: int, ran: Ran) -> None:
        """Take in how an entry ended."""
        self.found[index] = ran
        self.size_bytes += ran.size_bytes
        self.fuse.follow(self.found)


@dataclass(slots=True)
class Memo:
    """Stages, maps and calls under way by key, templates by the identity of their stage."""

    ran: dict[str, Ran] = field(default_factory=dict[str, Ran])
    maps: dict[str, Entries] = field(default_factory=dict[str, Entries])
    asked: dict[str, tuple[Ran, RunAction]] = field(
        default_factory=dict[str, "tuple[Ran, RunAction]"]
    )
    templates: dict[int, Template] = field(default_factory=dict[int, Template])
    _results: Outcomes | None = None

    def turn_to(self, results: Mapping[str, Outcome]) -> None:
        """Go on with what is known now; what was found rests on results that are still there, or is forgotten."""
        known = results if isinstance(results, Outcomes) else None
        if known is None or self._results is None or not known.continues(self._results):
            self.ran.clear()
            self.maps.clear()
            self.asked.clear()
        self._results = known

    def forget(self, key: str, stages: int) -> None:
        """Drop what was found inside an entry that has ended."""
        self.ran.pop(f"{key}.", None)
        for index in range(stages):
            self.ran.pop(f"{key}.{index}", None)
            self.maps.pop(f"{key}.{index}", None)
            self.asked.pop(f"{key}.{index}", None)
