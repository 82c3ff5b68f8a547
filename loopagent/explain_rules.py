"""What each stored event decides: at which seat, in words, and on which grounds.

A seat is a question that comes up in every run. Events that only repeat others decide nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final


Data = dict[str, Any]
Says = Callable[[Data], str]
MAX_CHARS: Final = 160
"""How much of a text is quoted."""
HASH_CHARS: Final = 12
"""How much of a hash is shown."""
NONE: Final = "-"
"""The seat of events that report something and leave no question open."""
QUIET: Final = frozenset(
    {"run.started", "run.state", "run.resumed", "turn.started", "turn.ended", "pipeline.step"}
)
"""Events that decide nothing."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How to read one type of event. `seat` is the seat, or picks it by the event's data."""

    seat: str | Says
    decision: Says
    grounds: Says = lambda _: ""

    def seat_of(self, data: Data) -> str:
        """The seat at which an event with this data was decided."""
        return self.seat if isinstance(self.seat, str) else self.seat(data)


def quoted(value: Any) -> str:
    """A text or value on one line, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"


def joined(*parts: str) -> str:
    """The parts that say something."""
    return "; ".join(one for one in parts if one)


def _by(table: dict[str, str], key: str, default: str) -> Says:
    return lambda data: table.get(str(data.get(key)), default)


def _said(label: str, value: Any) -> str:
    return f"{label}: {quoted(value)}" if value else ""


def _wish(data: Data) -> str:
    words = {"complete": "it claims to be done", "continue": "it goes on without a step"}
    return words.get(data["type"], f"next step {data['type']}")


def _triggered(by: dict[str, str] | None) -> str:
    return f"trigger {by['name']} ({by['kind']}), event {quoted(by['eventId'])}" if by else ""


def _hash(data: Data) -> str:
    return f"revision {data['revision']}, SHA-256 {data['sha256'][:HASH_CHARS]}"


def _problems(data: Data) -> str:
    listed = (f"{one['path'] or 'reply'}: {one['message']}" for one in data["problems"])
    return quoted("; ".join(listed))


def _retry(data: Data) -> str:
    if data["nextModel"] == data["model"]:
        return f"{data['model']} is asked again in {data['delayMs']} ms"
    return f"{data['nextModel']} is asked instead of {data['model']}"


_HOOK: Final = {
    "context": "it added context",
    "stop": "it stopped the run",
    "deny": "it refused the call",
    "params": "it changed the parameters",
    "result": "it replaced the result",
    "error": "it failed",
}


def _ignored(data: Data) -> str:
    return ", which was ignored" if data["ignored"] else ""


def _ended(data: Data) -> str:
    return f"{data['action']} {'brought a result' if data['ok'] else 'failed'}"


def _result(data: Data) -> str:
    if data["ok"]:
        return quoted(data.get("result"))
    error = data["error"]
    return joined(f"{error['code']}: {quoted(error['message'])}", _attempts(data))


def _attempts(data: Data) -> str:
    return f"{data['attempts']} attempts" if data.get("attempts", 1) > 1 else ""


def _changes(data: Data) -> str:
    return quoted(", ".join(f"{one['op']} {one['path'] or '/'}" for one in data["patch"]) or "none")


def _under_plan(data: Data) -> str:
    return f"while plan revision {data['plan']} holds" if data.get("plan") else ""


def _passes(data: Data) -> str:
    many = "as long as it holds" if data.get("passes") is None else f"{data['passes']} passes"
    return f"{many}, {data['sideBySide']} at a time"


def _counts(data: Data) -> str:
    left = f", {data['notStarted']} not begun" if data["notStarted"] else ""
    return f"{data['done']} passes went well, {data['failed']} did not{left}"


def _answer(data: Data) -> str:
    return joined(
        f"by {data['by']}",
        "with changes" if data.get("edited") else "",
        _said("they said", data.get("feedback")),
        _said("values", data.get("values")),
    )


_ASKED_SEAT: Final = _by(
    {"approval": "D2", "guard": "F1", "plan": "A3", "limit": "F3"}, "kind", NONE
)
_REFUSED_SEATS: Final = {
    "rejected": "D3",
    "max_calls": "F3",
    "blocked": "F2",
    "unknown_action": "B4",
    "plan_mode": "A3",
}
_END_SEATS: Final = {
    "limit": "F3",
    "model": "C3",
    "truncated": "C5",
    "mistakes": "F1",
    "stalled": "G2",
}
_CLIENT_SEATS: Final = {"timed_out": "D5", "rejected": "D2"}

RULES: Final[dict[str, Rule]] = {
    "run.created": Rule(
        lambda d: "A6" if d.get("trigger") else "A1",
        lambda d: f"{d['model'] or 'the model'} answers for {d['agent']}",
        lambda d: joined(
            _triggered(d.get("trigger")),
            f"definition {d['specHash'][:HASH_CHARS]}",
            _said("task", d.get("message")),
        ),
    ),
    "run.message_queued": Rule(
        "A4",
        lambda d: "it is heard at once" if d["delivery"] == "steer" else "it waits for its turn",
        lambda d: quoted(d["text"]),
    ),
    "run.waiting": Rule(
        "G3",
        lambda d: f"it waits for {len(d['requests'])} answer(s)",
        lambda d: ", ".join(d["requests"]),
    ),
    "run.task_complete": Rule(
        "G1",
        lambda _: "the claim to be done is accepted",
        lambda d: joined(
            f"payload {d['payloadHash'][:HASH_CHARS]} is valid", _said("it said", d["message"])
        ),
    ),
    "run.completed": Rule("G1", lambda _: "the run is completed"),
    "run.failed": Rule(
        _by(_END_SEATS, "reason", NONE),
        lambda d: f"the run is ended as failed ({d['reason']})",
        lambda d: quoted(d["message"]),
    ),
    "run.cancelled": Rule(
        "C7", lambda d: f"the run is stopped by {d['by']}", lambda d: quoted(d["reason"])
    ),
    "run.paused": Rule("C7", lambda d: f"{d['by']} pauses it", lambda d: quoted(d["reason"])),
    "run.limits_raised": Rule(
        "F3", lambda d: f"{d['by']} lets it spend more", lambda d: quoted(d["limits"])
    ),
    "run.forked": Rule(
        "B9",
        lambda d: f"{d['by']} takes turn {d['turn']} of {d['fromRunId']} anew",
        lambda d: _said("told", d.get("message")),
    ),
    "plan.proposed": Rule(
        "A3",
        lambda d: f"plan revision {d['revision']} is put to a person",
        lambda d: joined(_hash(d), _said("it would change", d.get("effects"))),
    ),
    "plan.edited": Rule(
        "A3", lambda d: f"{d['by']} changed the plan", lambda d: joined(_hash(d), quoted(d["text"]))
    ),
    "plan.approved": Rule("A3", lambda d: f"{d['by']} approved exactly this plan", _hash),
    "plan.rejected": Rule(
        "A3",
        lambda d: f"{d['by']} rejected the plan",
        lambda d: joined(_hash(d), _said("they said", d.get("feedback"))),
    ),
    "reply.received": Rule(
        "C1",
        _wish,
        lambda d: joined(_said("it said", d.get("message")), _said("tolerated", d.get("warnings"))),
    ),
    "reply.repaired": Rule(
        "C1", lambda _: "its text was read all the same", lambda d: joined(*d["repairs"])
    ),
    "reply.rejected": Rule("C4", lambda _: "nothing of it counts; it is told why", _problems),
    "reply.truncated": Rule("C5", lambda _: "nothing of it counts; a shorter one is asked for"),
    "model.retry": Rule(
        _by({"empty": "C3"}, "kind", "C2"),
        _retry,
        lambda d: f"attempt {d['attempt']} failed: {d['kind']}: {quoted(d['message'])}",
    ),
    "context.compacted": Rule(
        _by({"superseded": "B6"}, "reason", "F4"),
        lambda d: (
            f"{d['messages']} messages up to #{d['upTo']} are "
            + ("shown as stubs" if d["how"] == "stubs" else "summed up")
        ),
        lambda d: f"{d['reason']}; about {d['tokens']} of {d['windowTokens']} tokens then",
    ),
    "model.call": Rule(
        "C8",
        lambda d: f"{d['model']} is asked as well ({d['purpose']})",
        lambda d: d.get("error") or "answered",
    ),
    "context.expanded": Rule(
        "F4",
        lambda d: f"message #{d['number']} is shown in full",
        lambda d: f"{d['chars']} characters",
    ),
    "action.started": Rule(
        "D1", lambda d: f"{d['action']} runs", lambda d: f"with {quoted(d['params'])}"
    ),
    "action.completed": Rule(lambda d: "D1" if d["ok"] else "D4", _ended, _result),
    "action.rejected": Rule(
        _by(_REFUSED_SEATS, "code", "D2"),
        lambda d: f"{d['action']} does not run ({d['code']})",
        lambda d: quoted(d["reason"]),
    ),
    "action.discarded": Rule(
        "D9",
        lambda d: f"{d['action']}, begun early, is not used",
        lambda d: f"the reply asks otherwise ({d['reason'].replace('_', ' ')})",
    ),
    "client_tool.requested": Rule(
        "D8",
        lambda d: f"the client is asked to carry out {d['tool']}",
        lambda d: f"within {d['timeoutMs'] / 1000:g} s, with {quoted(d['params'])}",
    ),
    "client_tool.completed": Rule(
        _by(_CLIENT_SEATS, "status", "D8"),
        lambda d: f"{d['tool']} was {d['status'].replace('_', ' ')}",
        lambda d: quoted(d.get("result") if d["ok"] else (d.get("error") or {}).get("message", "")),
    ),
    "subagent.started": Rule(
        "H1", lambda d: f"{d['agent']} is called", lambda d: _said("with", d.get("message"))
    ),
    "subagent.completed": Rule(
        "G5",
        lambda d: f"{d['agent']} {d['status']}",
        lambda d: quoted((d.get("error") or {}).get("message") or d.get("message") or ""),
    ),
    "run.mode_changed": Rule("A2", lambda _: "the mode changes", quoted),
    "conversation.read": Rule(
        "B8",
        lambda d: f"{d['tool']} reads the conversation",
        lambda d: "found" if d["ok"] else d["error"]["message"],
    ),
    "skill.activated": Rule("A5", lambda _: "a skill is used", quoted),
    "skill.refused": Rule("B3", lambda _: "a skill is not used", quoted),
    "loop.started": Rule("D1", lambda d: f"{d['what']} over {d['over']}", _passes),
    "loop.completed": Rule("D1", _counts, lambda d: d["stopped"]),
    "pipeline.started": Rule("D1", lambda d: f"{d['stages']} stages run", lambda d: d["label"]),
    "pipeline.completed": Rule(
        lambda d: "D1" if d["ok"] else "D4",
        lambda d: "the pipeline ended" if d["ok"] else "the pipeline failed",
        lambda d: quoted(d.get("error") or d["preview"]),
    ),
    "request.created": Rule(
        _ASKED_SEAT, lambda d: f"a person is asked: {d['title']}", lambda d: quoted(d["text"])
    ),
    "request.resolved": Rule(_ASKED_SEAT, lambda d: f"answered: {d['decision']}", _answer),
    "request.cancelled": Rule(
        _ASKED_SEAT, lambda _: "the request is taken back", lambda d: d["reason"]
    ),
    "request.expired": Rule(_ASKED_SEAT, lambda _: "nobody answered in time", lambda d: d["then"]),
    "approval.waived": Rule(
        "D2", lambda d: f"{d['action']} is not asked about", lambda d: d["text"]
    ),
    "approval.remembered": Rule(
        "D2",
        lambda d: f"{d['action']} is not asked about again in this {d['scope']}",
        lambda d: joined(d["by"], _under_plan(d) or quoted(d["params"])),
    ),
    "approval.forgotten": Rule(
        "D2", lambda d: f"{d['action']} is asked about again", lambda d: d["by"]
    ),
    "request.claimed": Rule(NONE, lambda d: f"{d['holder']} takes care of it", lambda d: d["by"]),
    "request.released": Rule(NONE, lambda _: "nobody takes care of it", lambda d: d["by"]),
    "payload.changed": Rule(
        NONE,
        lambda d: "the payload changes" if d["patch"] else "the payload stays as it is",
        lambda d: joined(
            _changes(d), _said("refused", d.get("refused")), _said("note", d.get("warnings"))
        ),
    ),
    "scratchpad.changed": Rule(
        NONE, lambda d: f"it notes {len(d['tasks'])} task(s)", lambda d: quoted(d["notes"])
    ),
    "hook.decided": Rule(
        "B10",
        lambda d: f"hook {d['hook']} ({d['point']}): {_HOOK[d['decision']]}{_ignored(d)}",
        lambda d: joined(d.get("action") or "", _said("says", d["text"])),
    ),
    "memory.read": Rule(
        "B8",
        lambda d: f"{len(d['notes'])} note(s) of earlier runs are shown",
        lambda d: joined(_said("failed", (d.get("error") or {}).get("message"))),
    ),
    "memory.written": Rule(
        NONE,
        lambda d: f"a note: {d.get('disposition') or 'not kept'}",
        lambda d: joined(d["note"], _said("because", d.get("reason"))),
    ),
    "artifact.read": Rule(
        NONE,
        lambda d: f"it looks into {d['handle']} with {d['tool']}",
        lambda d: joined(_said("failed", (d.get("error") or {}).get("message"))),
    ),
    "artifact.created": Rule(
        "D6",
        lambda d: f"it is kept in full as {d['handle']}",
        lambda d: f"{d['chars']} characters of {d['callId'] or 'an attachment'}",
    ),
    "command.issued": Rule(
        NONE,
        lambda d: "the client is told" if d["automatic"] else "the person is offered",
        lambda d: quoted(d["command"]),
    ),
    "guard.nudged": Rule(
        _by({"completion": "G1"}, "reason", "G2"),
        lambda _: "it is reminded",
        lambda d: d["reason"].replace("_", " "),
    ),
    "guard.mistake": Rule("F1", lambda _: "that is too many", lambda d: f"{d['count']} in a row"),
    "guard.repeated": Rule(
        "F2", lambda _: "it is told so", lambda d: f"the same step {d['count']} times"
    ),
    "guard.limit": Rule(
        "F3", lambda d: f"{d['limit']} is reached", lambda d: f"{d['value']:g} of {d['maximum']:g}"
    ),
}
"""Type of event → how to read it."""
OTHER: Final = Rule(NONE, lambda _: "", quoted)
"""How to read a type that is not known here."""
