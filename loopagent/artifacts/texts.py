"""Tools for texts: `get_full`, `get_lines`, `grep`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from loopagent.artifacts.source import Params, Source, ToolError, page
from loopagent.core.json_values import compact_json
from loopagent.core.regex import Pattern, compile_pattern


MAX_LINE_CHARS = 2_000
"""Longest line that `grep` and `get_lines` show; more of it is there with `get_full`."""
MAX_PAGE_CHARS = 100_000
"""Most that `get_full` brings at once, if the agent's limit does not say less."""

Position = Annotated[int, Field(ge=0)]
Amount = Annotated[int, Field(ge=1)]


class FullParams(Params):
    """Which stretch of the text: `start` and `count` in characters."""

    start: Position = 0
    count: Amount = 20_000


class LinesParams(Params):
    """Which lines; the first has number 1."""

    start: Amount = 1
    count: Annotated[int, Field(ge=1, le=10_000)] = 100


class GrepParams(Params):
    """What to look for; `flags` may hold `i`. `start` is where to go on: the number of a line."""

    pattern: Annotated[str, Field(min_length=1)]
    flags: str = ""
    start: Amount = 1
    max_results: Annotated[int, Field(ge=1, le=500)] = 50


def get_full(source: Source, params: FullParams) -> dict[str, Any]:
    """The text, a page of it."""
    return full_page(source, source.text(), params)


def full_page(source: Source, text: str, params: FullParams) -> dict[str, Any]:
    """A stretch of a text that fits, and where the next one begins."""
    start = params.start
    shown = text[start : start + min(params.count, MAX_PAGE_CHARS)]
    most = source.max_chars - 120
    while len(shown) > 1 and len(compact_json(shown)) > most:  # escapes count as they are sent
        shown = shown[: max(1, min(most, len(shown) * 9 // 10))]
    after = start + len(shown)
    body = {"chars": len(text), "start": start, "text": shown}
    return body if after >= len(text) else {**body, "next": after}


def get_lines(source: Source, params: LinesParams) -> dict[str, Any]:
    """Some lines, numbered from 1."""
    return lines_page(source, lines_of(source.text()), params)


def lines_page(source: Source, lines: list[str], params: LinesParams) -> dict[str, Any]:
    """Lines from a number on, as many as were asked for and as fit."""
    found = page(source, _Cut(lines), params.start - 1, params.count)
    body: dict[str, Any] = {"totalLines": len(lines), "start": params.start, "lines": found.entries}
    return body if found.next is None else {**body, "next": found.next + 1}


def lines_of(text: str) -> list[str]:
    """The lines of a text, however they end; a line end at the very end begins no further line."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = plain.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


class _Cut(list[str]):
    """Lines, each no longer than is shown."""

    def __getitem__(self, position: Any) -> Any:
        return cut_line(super().__getitem__(position))


def cut_line(line: str) -> str:
    """A line as it is shown."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    return f"{line[:MAX_LINE_CHARS]}… ({len(line)} characters)"


def grep(source: Source, params: GrepParams) -> dict[str, Any]:
    """Lines in which a pattern is found, each with its number."""
    return grep_lines(source, lines_of(source.text()), params)


def grep_lines(source: Source, lines: list[str], params: GrepParams) -> dict[str, Any]:
    """Search line by line; a line that is very long is searched whole."""
    pattern = compiled(params.pattern, params.flags)
    found: list[dict[str, Any]] = []
    after: int | None = None
    for number in range(params.start, len(lines) + 1):
        if not number % 1_000:
            source.check_time()
        if pattern.found_in(lines[number - 1]):
            if len(found) == params.max_results:
                after = number
                break
            found.append({"line": number, "text": cut_line(lines[number - 1])})
    return matches(source, found, after, totalLines=len(lines))


def matches(
    source: Source,
    found: list[dict[str, Any]],
    after: int | None,
    key: str = "line",
    **more: Any,
) -> dict[str, Any]:
    """Matches that fit; `next` is where the first one that is not shown stands."""
    shown = page(source, found, 0, len(found))
    cut = found[shown.next][key] if shown.next is not None else after
    body: dict[str, Any] = {**more, "matches": shown.entries}
    return body if cut is None else {**body, "next": cut}


def compiled(source: str, flags: str = "") -> Pattern:
    """A pattern that is searched in linear time.

    Raises:
        ToolError: It is none.
    """
    if flags.strip("igmsu"):
        raise ToolError(f"flags may be `i`, got {flags[:20]!r}")
    pattern = compile_pattern(source, ignore_case="i" in flags)
    if isinstance(pattern, str):
        raise ToolError(pattern)
    return pattern
