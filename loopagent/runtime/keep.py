"""Results that are too long for the prompt: kept in full in the store, and shown by their beginning and end."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from loopagent.action import Keeping
from loopagent.core.artifact_kinds import kind_of
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
    keeping: Keeping = AS_USUAL,
    params: dict[str, Any] | None = None,
) -> Outcome:
    """The outcome, with a result over the cap kept in the store and replaced by a summary, or head, tail and size.

    Args:
        store: Where it is kept.
        run_id: The run it belongs to.
        call_id: What brought it.
        outcome: The outcome as it came.
        cap_chars: Longest result, as text, that stays as it is.
        always: Keep a shorter one too.
        keeping: What the action says about that.
        params: Parameters of the call, for the summary.
    """
    nothing = not outcome.ok or outcome.value is None
    if nothing or (not (always or keeping.always) and stays(outcome, cap_chars)):
        return outcome
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
    summary = "" if keeping.summary is None else keeping.summary(outcome.value, params or {})
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


async def kept_as_said(
    store: Store,
    state: RunState,
    effect: RunAction,
    outcome: Outcome,
    action: Action[..., Any] | None,
) -> Outcome:
    """The outcome of a call as its action wants it kept and shown; see `kept`."""
    cap = max(state.spec.limits.max_result_chars, effect.room)
    if action is None:
        return await kept(store, state.id, effect.id, outcome, cap)
    return await kept(
        store,
        state.id,
        effect.id,
        outcome,
        cap if effect.room else min(cap, action.spec.max_result_chars or cap),
        keeping=action.keeping or AS_USUAL,
        params=effect.params,
    )


def _ends(text: str, cap_chars: int) -> dict[str, str]:
    """The beginning and the end of a text; all of a short one is its beginning."""
    shown = cap_chars // 4
    if len(text) <= shown:
        return {"head": text, "tail": ""}
    head = int(shown * HEAD_SHARE)
    return {"head": text[:head], "tail": text[-(shown - head) :]}
