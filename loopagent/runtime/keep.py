"""Results that are too long for the prompt: kept in full in the store, and shown by their beginning and end."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from loopagent.core.artifact_kinds import kind_of
from loopagent.core.results import STORED
from loopagent.ports import StoredArtifact


if TYPE_CHECKING:
    from loopagent.core.outcome import Outcome
    from loopagent.ports import Store


HEAD_SHARE = 0.75
"""Part of the shown text of a long result that comes from its start; the rest comes from its end."""


def stays(outcome: Outcome, cap_chars: int) -> bool:
    """Whether an outcome is fit for the prompt as it is."""
    value = outcome.value
    if not outcome.ok or value is None:
        return True
    posing = isinstance(value, dict) and STORED in value
    return len(outcome.text()) <= cap_chars and not posing


async def kept(
    store: Store,
    run_id: str,
    call_id: str,
    outcome: Outcome,
    cap_chars: int,
    *,
    always: bool = False,
) -> Outcome:
    """The outcome, with a result over the cap kept in the store and replaced by head, tail and size.

    Args:
        store: Where it is kept.
        run_id: The run it belongs to.
        call_id: What brought it.
        outcome: The outcome as it came.
        cap_chars: Longest result, as text, that stays as it is.
        always: Keep a shorter one too.
    """
    nothing = not outcome.ok or outcome.value is None
    if nothing or (not always and stays(outcome, cap_chars)):
        return outcome
    text = outcome.text()
    plain = isinstance(outcome.value, str)
    content = text.encode("utf-8", "replace")
    stored = StoredArtifact(
        artifact_id=sha256(content).hexdigest(),
        media_type="text/plain" if plain else "application/json",
        size_bytes=len(content),
        content=content,
    )
    await store.put_artifact(run_id, stored)
    return outcome.with_value({STORED: _excerpt(stored, text, call_id, cap_chars)})


def _excerpt(stored: StoredArtifact, text: str, call_id: str, cap_chars: int) -> dict[str, Any]:
    shown = cap_chars // 4
    head = int(shown * HEAD_SHARE)
    return {
        "artifactId": stored.artifact_id,
        "callId": call_id,
        "kind": kind_of(stored.media_type),
        "chars": len(text),
        "head": text[:head],
        "tail": text[-(shown - head) :],
    }
