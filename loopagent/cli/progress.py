"""Bars of the loops that are under way, below the timeline of a run that is followed in a terminal."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from loopagent.cli.output import out, short, visible


if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from rich.console import Console


PASS = re.compile(r"/(?:each|pass)/(\d+)(?:/|$)")
"""The number of the pass in the path of what happens in it."""
DONE = {"action.completed", "subagent.completed", "pipeline.completed"}


@dataclass(slots=True)
class _Loop:
    """The bar of a loop, and the passes in which something was completed."""

    bar: TaskID
    passes: set[str] = field(default_factory=set[str])
    told: int = 0


class Bars:
    """A bar for every loop of a run and of those below it, as long as the loop goes on.

    Whoever hears `loop.progress` knows how far a loop is. It is not stored, so where another process works on the run
    the passes are counted in which something was completed.

    Args:
        on: Draw; nothing is drawn either where the console is no terminal.
        console: Where to.
    """

    def __init__(self, *, on: bool, console: Console = out) -> None:
        self._on = on and console.is_terminal
        self._loops: dict[tuple[Any, Any], _Loop] = {}
        self._drawn = Progress(
            TextColumn("    {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=console,
            transient=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def add(self, event: Mapping[str, Any]) -> None:
        """Take an event into account."""
        if not self._on:
            return
        key, kind = (event.get("runId"), event.get("turn")), event["type"]
        known = self._loops.get(key)
        if kind == "loop.started":
            self._begin(key, event["data"])
        elif known is None:
            return
        elif kind == "loop.completed":
            self._end(key, known)
        else:
            self._count(known, event)

    def _begin(self, key: tuple[Any, Any], data: Mapping[str, Any]) -> None:
        about = visible(short(f"{data['kind']} {data['what']}", 40)).plain
        about = about.replace("[", "\\[")
        self._loops[key] = _Loop(self._drawn.add_task(about, total=data.get("passes")))
        self._drawn.start()

    def _end(self, key: tuple[Any, Any], known: _Loop) -> None:
        del self._loops[key]
        self._drawn.remove_task(known.bar)
        if not self._loops:
            self._stop()

    def _stop(self) -> None:
        if self._drawn.live.is_started:
            self._drawn.stop()

    def _count(self, known: _Loop, event: Mapping[str, Any]) -> None:
        if event["type"] == "loop.progress":
            known.told = event["data"]["done"] + event["data"]["failed"]
        elif event["type"] in DONE and (found := PASS.search(str(event.get("path", "")))):
            known.passes.add(found[1])
        self._drawn.update(known.bar, completed=max(known.told, len(known.passes)))
