"""How results are shown to the model: one JSON object, so that no text in them can pose as anything else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from loopagent.core.json_values import compact_json
from loopagent.core.outcome import Outcome


STORED = "$artifact"
"""Key of a result that was too long for the prompt: `{"$artifact": {artifactId, chars, head, tail, callId}}`."""

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
    value = entry.get("result")
    if not isinstance(value, dict) or STORED not in value:
        return entry
    stored = cast("dict[str, object]", value[STORED])
    short = {
        "artifact": handle(stored),
        "chars": stored["chars"],
        "head": stored["head"],
        "tail": stored["tail"],
        "note": "Too long for the prompt; kept in full under this handle.",
    }
    return {**entry, "result": short}
