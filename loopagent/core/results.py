"""How results are shown to the model: one JSON object, so that no text in them can pose as anything else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from loopagent.core.json_values import compact_json
from loopagent.core.outcome import Outcome


STORED = "$artifact"
"""Key of a result that was too long for the prompt: `{"$artifact": {artifactId, chars, head, tail, callId}}`."""

_NOTE = "Too long for the prompt; kept in full under this handle."
_NOTE_NAMED = "Kept in full under this handle."
ALL = "all"
"""Key of an entry that reports on many results: the stored whole; only its handle and size are shown."""


def call_result(number: int, action: str, outcome: Outcome) -> dict[str, Any]:
    """One call's entry: which call it was, whether it worked, and what it brought or why it failed."""
    entry: dict[str, Any] = {"call": number, "action": action, "ok": outcome.ok}
    if outcome.ok:
        entry["result"] = outcome.value
    elif outcome.error is not None:
        entry["error"] = outcome.error.public()
    return entry


def client_result(number: int, tool: str, outcome: Outcome) -> dict[str, Any]:
    """One client tool's entry; images and files of its result stand beside it as stored ones."""
    entry: dict[str, Any] = {"call": number, "tool": tool, "ok": outcome.ok}
    if outcome.ok:
        entry["result"] = outcome.value["result"]
        if outcome.value["media"]:
            entry["media"] = outcome.value["media"]
    elif outcome.error is not None:
        entry["error"] = outcome.error.public()
    return entry


def results_text(
    results: Sequence[dict[str, Any]], *, handle: Callable[[dict[str, object]], str]
) -> str:
    """The results message. `handle` names stored results; the model sees head, tail, size and that name."""
    shown = [_shown(one, handle) for one in results]
    return compact_json({"results": shown})


def _shown(entry: dict[str, Any], handle: Callable[[dict[str, object]], str]) -> dict[str, Any]:
    if ALL in entry:
        every = entry[ALL][STORED]
        return {**entry, ALL: {"artifact": handle(every), "chars": every["chars"]}}
    if "media" in entry:
        entry = {**entry, "media": [_medium(one, handle) for one in entry["media"]]}
    value = entry.get("result")
    if not isinstance(value, dict) or STORED not in value:
        return entry
    stored = cast("dict[str, object]", value[STORED])
    parts: dict[str, object] = {
        one: stored[one] for one in ("name", "summary", "head", "tail") if one in stored
    }
    short = {
        "artifact": handle(stored),
        "chars": stored["chars"],
        **parts,
        "note": _NOTE_NAMED if "name" in stored else _NOTE,
    }
    return {**entry, "result": short}


def _medium(stored: dict[str, Any], handle: Callable[[dict[str, object]], str]) -> dict[str, Any]:
    """An image or file as the model knows it: what it is, how large, and its handle; never its bytes."""
    keys = [one for one in ("name", "mediaType", "bytes") if one in stored]
    return {"artifact": handle(stored), **{one: stored[one] for one in keys}}
