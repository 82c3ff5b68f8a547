"""What the page of a turn draws: the reply with its marks line by line, the prompt in parts with their tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loopagent import resources
from loopagent.core.prompt import system_parts
from loopagent.core.text import read_text
from loopagent.core.tokens import estimate_tokens


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec

Json = Mapping[str, Any]
MAX_RAW_CHARS: Final = 200_000
"""How much of a reply the page shows."""
STATE: Final = "State: "
GROUPS: Final = {
    "reasoning": "thought",
    "message": "spoken",
    "taskComplete": "step",
    "nextStep": "step",
    "payloadChangeRequest": "data",
    "scratchpad": "thought",
    "memoryWrites": "aside",
    "artifactToolCalls": "aside",
    "conversationToolCalls": "aside",
}
"""Field of a reply → its colour; others are plain."""


@dataclass(slots=True)
class Line:
    """One line of a reply: its number, its text in pieces, each with its mark, and what is wrong there."""

    number: int
    pieces: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    problems: list[str] = field(default_factory=list[str])


def lines_of(raw: str, marks: Sequence[Json], problems: Sequence[Json]) -> list[Line]:
    """A reply line by line."""
    lines = [Line(1)]
    for text, mark in _pieces(raw[:MAX_RAW_CHARS], marks):
        first, *rest = text.split("\n")
        lines[-1].pieces.append((first, mark))
        lines += [Line(len(lines) + at, [(more, mark)]) for at, more in enumerate(rest, 1)]
    for one in problems:
        if one.get("line") and one["line"] <= len(lines):
            lines[one["line"] - 1].problems.append(f"{one['pointer']}: {one['message']}")
    return lines


def _pieces(raw: str, marks: Sequence[Json]) -> Iterator[tuple[str, str]]:
    at = 0
    for one in marks:
        start, end = min(one["start"], len(raw)), min(one["end"], len(raw))
        if start > at:
            yield raw[at:start], ""
        yield (raw[start:end] if end > start else "}"), one["kind"]
        at = max(at, end)
    if at < len(raw):
        yield raw[at:], ""


def decision_of(raw: str) -> list[tuple[str, str, Any]]:
    """The fields of a reply as they were read: name, colour, value; nothing when there is no object."""
    value = read_text(raw).value
    if not isinstance(value, dict):
        return []
    return [(str(key), GROUPS.get(str(key), "plain"), one) for key, one in value.items()]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a prompt; `tokens` are an estimate."""

    label: str
    text: str
    tokens: int
    parts: tuple[tuple[str, int], ...] = ()
    """What it is made of, with tokens, where it is made of parts."""


def prompt_parts(prompt: Json, spec: AgentSpec) -> list[Part]:
    """A prompt in its parts, in the order in which it is sent.

    Args:
        prompt: Of a turn, as the API gives it.
        spec: The definition that the run is pinned to.
    """
    system = str(prompt["system"])
    parts = system_parts(resources.prompt("system.md.j2"), spec)
    whole = "".join(one.text for one in parts) == system
    made = [Part(f"system: {one.name}", one.text, one.tokens) for one in parts] if whole else []
    made = made or [Part("system", system, estimate_tokens(system))]
    return [*made, *map(_message, prompt["messages"])]


def _message(one: Json) -> Part:
    text = str(one["text"])
    number = f" {one['number']}" if one["number"] else ""
    turn = f", turn {one['turn']}" if one["turn"] and one["number"] else ""
    label = f"{one['role']}: {one['kind']}{number}{turn}"
    inner = tuple(_state_parts(text)) if one["kind"] == "state" else ()
    return Part(label, text, estimate_tokens(text), inner)


def _state_parts(text: str) -> Iterator[tuple[str, int]]:
    """What the last message tells of, and how much of it each is."""
    try:
        told = json.loads(text.removeprefix(STATE))
    except (ValueError, RecursionError):
        return
    for key, value in told.items():
        yield str(key), estimate_tokens(json.dumps(value, ensure_ascii=False))
