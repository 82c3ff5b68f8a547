"""How runs look in a terminal: one line an event, colours only where a terminal is."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from pydantic.alias_generators import to_camel
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from loopagent.core.results import STORED


out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)
MAX_VALUE_CHARS = 160
Json = dict[str, Any]


def fail(message: str, details: Sequence[str] = ()) -> None:
    """Say on standard error what went wrong."""
    err.print(Text(f"error: {message}", style="red"))
    for one in details:
        err.print(Text(f"  {one}"))


def print_json(value: Any) -> None:
    """A value as JSON on standard output, on one line when it goes to another program."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=indent) + "\n")
    sys.stdout.flush()


ROOM_CELLS = 24
"""Least width of a column whose texts are broken."""


def wire(row: Any) -> dict[str, Any]:
    """A row of a store under the names that JSON has everywhere, here as over HTTP."""
    return {to_camel(one.name): getattr(row, one.name) for one in fields(row)}


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under headings.

    What is one word, such as an id, is never cut, so that it can be copied. Longer texts are broken where that leaves
    them some room, and only in a terminal: what reads the output otherwise gets a line a row.
    """
    cells = [[name, *(visible(row[at]).plain for row in rows)] for at, name in enumerate(columns)]
    widths = [max(cell_len(one) for one in column) for column in cells]
    words = [not any(" " in one for one in column[1:]) for column in cells]
    gaps = 2 * (len(columns) - 1)
    room = out.width - gaps - sum(width for width, word in zip(widths, words, strict=True) if word)
    whole = not out.is_terminal or room < ROOM_CELLS * words.count(False)
    made = Table(box=None, pad_edge=False, width=sum(widths) + gaps if whole else None)
    for name, width, word in zip(columns, widths, words, strict=True):
        made.add_column(name, no_wrap=whole or word, width=width if word else None)
    for row in rows:
        made.add_row(*(visible(one) for one in row))
    out.print(made, soft_wrap=whole)


def short(value: Any, most: int = MAX_VALUE_CHARS) -> str:
    """A value on one line, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def visible(text: str) -> Text:
    """Text from a model or an action with everything shown that a terminal would act on or hide."""
    kept = (one if one.isprintable() or one in "\n\t" else f"\\u{ord(one):04x}" for one in text)
    return Text("".join(kept))


def show_event(event: Json) -> None:
    """One event as a line of the timeline; types that would only repeat others are left out."""
    say = LINES.get(event["type"])
    if say is None:
        return
    line = say(event["data"])
    turn = event.get("turn")
    mark = f"{turn:>3} " if turn is not None else "    "
    text = Text(mark + _below(event), style="dim")
    text.append(f"{event['type']:<18} ", style=STYLES.get(event["type"].partition(".")[0], ""))
    text.append_text(visible(line))
    out.print(text)


def _below(event: Json) -> str:
    """Which sub-agent's run an event belongs to, as in `1.sub.0`; empty for the run that was started."""
    run, root = str(event.get("runId", "")), str(event.get("rootRunId", ""))
    return f"{run.removeprefix(f'{root}.')} " if root and run != root else ""


STYLES = {
    "run": "bold",
    "turn": "dim",
    "reply": "cyan",
    "action": "green",
    "skill": "blue",
    "request": "yellow",
    "client_tool": "yellow",
    "subagent": "green",
    "loop": "green",
    "pipeline": "green",
    "plan": "yellow",
    "payload": "magenta",
    "guard": "red",
    "model": "red",
}


def _patch(data: Json) -> str:
    done = [
        f"{one['op']} {one['path'] or '/'} {short(one.get('value', ''), 60)}"
        for one in data["patch"]
    ]
    return "; ".join([*done, *(f"refused {short(one, 120)}" for one in data["refused"])])


def _completed(data: Json) -> str:
    if data["ok"]:
        return f"{data['action']} ok in {data['durationMs']:.0f} ms: {_result(data.get('result'))}"
    return f"{data['action']} failed: {data['error']['code']}: {short(data['error']['message'])}"


def _result(value: Any) -> str:
    """A result on one line; of one that is long and kept elsewhere, its beginning."""
    kept: Any = value.get(STORED, value) if isinstance(value, dict) else None
    if not isinstance(kept, dict) or "chars" not in kept:
        return short(value)
    return f"{kept['chars']} characters: {short(kept.get('summary') or kept.get('head', ''))}"


def _asked(data: Json) -> str:
    seconds = data["timeoutMs"] / 1000
    return f"{data['tool']} {short(data['params'])} within {seconds:g} s: {data['requestId']}"


def _brought(data: Json) -> str:
    if data["ok"]:
        files = f" and {len(data['media'])} file(s)" if data.get("media") else ""
        return f"{data['tool']} {data['status']}: {short(data.get('result'))}{files}"
    return f"{data['tool']} {data['status']}: {short(data['error']['message'])}"


def _problems(data: Json) -> str:
    return "; ".join(f"{one['path'] or 'reply'}: {one['message']}" for one in data["problems"])


def _passes(data: dict[str, Any]) -> str:
    times = "as often as it holds" if data.get("passes") is None else f"{data['passes']} times"
    return f"{times}, {data['sideBySide']} at a time"


def _calls(data: Json) -> str:
    """Which calls are not asked about again."""
    return f"under plan revision {data['plan']}" if data.get("plan") else short(data["params"])


def _proposed(data: Json) -> str:
    lines = len(data["text"].splitlines())
    return (
        f"revision {data['revision']} ({lines} lines, {data['sha256'][:12]}): {short(data['text'])}"
    )


def _received(data: Json) -> str:
    return f"{data['type']}" + (f": {short(data['message'])}" if data.get("message") else "")


def _retry(data: Json) -> str:
    model, following = data["model"], data["nextModel"]
    what = (
        f"again in {data['delayMs']} ms" if following == model else f"falling back to {following}"
    )
    return f"attempt {data['attempt']} of {model} failed ({data['kind']}); {what}"


LINES: dict[str, Callable[[Json], str]] = {
    "run.created": lambda data: f"{data['agent']} ({data['model']}): {short(data['message'])}",
    "run.waiting": lambda data: f"waits for {len(data['requests'])} answer(s)",
    "run.resumed": lambda data: "goes on",
    "run.message_queued": lambda data: f"{data['delivery']}: {short(data['text'])}",
    "run.completed": lambda data: short(data["message"]),
    "run.failed": lambda data: f"{data['reason']}: {short(data['message'])}",
    "run.cancelled": lambda data: f"by {data['by']}: {short(data['reason'])}",
    "turn.started": lambda data: "asking the model",
    "reply.received": _received,
    "reply.repaired": lambda data: short("; ".join(data["repairs"])),
    "reply.rejected": _problems,
    "reply.truncated": lambda data: "cut off; nothing of it was used",
    "model.retry": _retry,
    "action.started": lambda data: f"{data['action']} {short(data['params'])}",
    "action.completed": _completed,
    "action.rejected": lambda data: f"{data['action']}: {short(data['reason'])}",
    "action.discarded": lambda data: f"{data['action']}, begun early: not used ({data['reason']})",
    "client_tool.requested": _asked,
    "client_tool.completed": _brought,
    "subagent.started": lambda data: f"{data['agent']}: {short(data['message'])}",
    "subagent.completed": lambda data: (
        f"{data['agent']} {data['status']}: {short(data['message'])}"
        + (f"{data['error']['message']}" if data.get("error") else "")
    ),
    "pipeline.started": lambda data: data["label"],
    "pipeline.completed": lambda data: (
        f"{data['calls']} call(s): " + short(data.get("error") or data.get("preview", ""))
    ),
    "loop.started": lambda data: (
        f"{data['kind']} over {short(data['over'])}: {data['what']}, {_passes(data)}"
    ),
    "loop.completed": lambda data: (
        f"{data['done']} done, {data['failed']} failed, {data['notStarted']} not started"
        + (f": {short(data['stopped'])}" if data["stopped"] else "")
    ),
    "skill.activated": lambda data: f"{data['skill']} by {data['activatedBy']}",
    "skill.refused": lambda data: f"{data['skill']}: {data['reason']}",
    "request.created": lambda data: (
        f"{data['kind']}: {data['title']} {short(data.get('text', ''))}"
    ),
    "request.resolved": lambda data: (
        f"{data['decision']} by {data['by']} {short(data.get('feedback', ''))}"
    ),
    "request.expired": lambda data: f"nobody answered in time: {data['then']}",
    "approval.waived": lambda data: f"{data['action']} is not asked about: {data['text']}",
    "approval.remembered": lambda data: (
        f"{data['action']} {_calls(data)}: not asked about again in this {data['scope']}, by {data['by']}"
    ),
    "approval.forgotten": lambda data: f"{data['action']} is asked about again, by {data['by']}",
    "request.cancelled": lambda data: data["reason"],
    "plan.proposed": _proposed,
    "plan.edited": lambda data: (
        f"revision {data['revision']} by {data['by']}: {short(data['text'])}"
    ),
    "plan.approved": lambda data: (
        f"revision {data['revision']} ({data['sha256'][:12]}) by {data['by']}"
    ),
    "plan.rejected": lambda data: (
        f"revision {data['revision']} by {data['by']}: {short(data['feedback'])}"
    ),
    "payload.changed": _patch,
    "scratchpad.changed": lambda data: f"{len(data['tasks'])} task(s); {short(data['notes'])}",
    "memory.read": lambda data: f"{len(data['notes'])} note(s) of earlier runs",
    "memory.written": lambda data: (
        f"{data.get('disposition') or 'not kept'}: {short(data['note'])}"
    ),
    "artifact.read": lambda data: (
        f"{data['handle']}: {data['tool']}"
        + ("" if data["ok"] else f" failed: {short(data['error']['message'])}")
    ),
    "artifact.created": lambda data: (
        f"{data['handle']}: {data['chars']} characters of {data['callId'] or 'an attachment'}"
    ),
    "guard.nudged": lambda data: data["reason"],
    "guard.mistake": lambda data: f"{data['count']} in a row",
    "guard.repeated": lambda data: f"the same step {data['count']} times",
    "guard.limit": lambda data: f"{data['limit']}: {data['value']:g} of {data['maximum']:g}",
}
