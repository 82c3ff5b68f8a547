"""Results that are too long for the prompt: kept in full in the store, and shown by their beginning and end."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from loopagent.action import Keeping
from loopagent.core.artifact_kinds import kind_of
from loopagent.core.jsonable import is_short_number
from loopagent.core.results import STORED
from loopagent.ports import StoredArtifact


if TYPE_CHECKING:
    from loopagent.action import Action
    from loopagent.core.effects import RunAction
    from loopagent.core.outcome import Outcome
    from loopagent.core.state import RunState
    from loopagent.ports import Store


AS_USUAL = Keeping()
HEAD_SHARE = 0.75
"""Part of the shown text of a long result that comes from its start; the rest comes from its end."""


def _stays(outcome: Outcome, cap_chars: int, *, always: bool) -> bool:
    """Whether an outcome is not kept: there is nothing to keep, or it is fit for the prompt as it is."""
    value = outcome.value
    if value is None or not outcome.ok:
        return True
    if always:
        return False
    if type(value) is str:
        return len(value) <= cap_chars
    if is_short_number(value):
        return True
    posing = isinstance(value, dict) and STORED in value
    return not posing and len(outcome.text()) <= cap_chars


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
    if _stays(outcome, cap_chars, always=always):
        return outcome
    return await _put(store, run_id, call_id, outcome, cap_chars, keeping=AS_USUAL, params={})


async def kept_as_said(
    store: Store,
    state: RunState,
    effect: RunAction,
    outcome: Outcome,
    action: Action[..., Any] | None,
) -> Outcome:
    """The outcome of a call, kept and shown as its action says: with a summary of its own, or however short it is."""
    cap = state.spec.limits.max_result_chars
    if effect.room:
        cap = max(cap, effect.room)
    elif action is not None and action.spec.max_result_chars:
        cap = min(cap, action.spec.max_result_chars)
    keeping = AS_USUAL if action is None else action.keeping or AS_USUAL
    if _stays(outcome, cap, always=keeping.always):
        return outcome
    return await _put(
        store, state.id, effect.id, outcome, cap, keeping=keeping, params=effect.params
    )


async def _put(
    store: Store,
    run_id: str,
    call_id: str,
    outcome: Outcome,
    cap_chars: int,
    *,
    keeping: Keeping,
    params: dict[str, Any],
) -> Outcome:
    text = outcome.text()
    content = text.encode("utf-8", "replace")
    plain = "text/plain" if isinstance(outcome.value, str) else "application/json"
    stored = StoredArtifact(
        artifact_id=sha256(content).hexdigest(),
        media_type=keeping.media_type or plain,
        size_bytes=len(content),
        content=content,
    )
    await store.put_artifact(run_id, stored)
    summary = "" if keeping.summary is None else keeping.summary(outcome.value, params)
    about: dict[str, Any] = {
        "artifactId": stored.artifact_id,
        "callId": call_id,
        "kind": kind_of(stored.media_type, keeping.name),
        "chars": len(text),
    }
    if keeping.name:
        about["name"] = keeping.name
    shown = {"summary": summary[:cap_chars]} if summary else _ends(text, cap_chars)
    return outcome.with_value({STORED: about | shown})


def _ends(text: str, cap_chars: int) -> dict[str, str]:
    """The beginning and the end of a text; all of a short one is its beginning."""
    shown = cap_chars // 4
    if len(text) <= shown:
        return {"head": text, "tail": ""}
    head = int(shown * HEAD_SHARE)
    return {"head": text[:head], "tail": text[-(shown - head) :]}
