"""A completion claim: what the policy asks for, then the verifier's word, and only then the end of the run.

Source: decision seats G1, G2 and G6. Whoever verifies is never the author; one that cannot be asked has not agreed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from loopagent.core import ending
from loopagent.core.compaction import count_call
from loopagent.core.completion import missing_for_completion
from loopagent.core.effects import Verify
from loopagent.core.facts import ActionCompleted, ActionStarted
from loopagent.core.facts_guards import GuardNudged
from loopagent.core.json_values import compact_json
from loopagent.core.state import Claim


if TYPE_CHECKING:
    from loopagent.core.outcome import Outcome
    from loopagent.core.tx import Tx

NO_VERDICT = "the verifier gave no verdict"


def claim(tx: Tx, made: Claim) -> None:
    """Take a completion claim, or say what is missing, or have it verified first.

    Args:
        tx: The transition; the turn of the claim is open.
        made: What the model said.
    """
    state = tx.state
    state.claim = None
    if state.mail:
        _go_on(tx, made)
        return
    missing = missing_for_completion(state)
    if missing:
        _not_yet(tx, made, missing)
        return
    verifier = state.spec.completion.verifier
    if verifier is None:
        _accept(tx, made)
    elif verifier.model is not None and verifier.model == state.model:
        _not_yet(
            tx, made, ["the verifier's word: it is the model that did the work, so it has none"]
        )
    else:
        state.claim = made
        effect = Verify(f"{state.turn}:verify", made.message)
        tx.issue(effect)
        if verifier.action is not None:
            params = {"message": made.message}
            started = ActionStarted(call_id=effect.id, action=verifier.action, params=params)
            tx.fact(started, "policy", key="verify")


def verified(tx: Tx, effect: Verify, outcome: Outcome) -> None:
    """Absorb the verifier's word."""
    state, made = tx.state, tx.state.claim
    verifier = state.spec.completion.verifier
    state.claim = None
    if made is None or verifier is None:
        return
    value = cast("dict[str, Any]", outcome.value) if isinstance(outcome.value, dict) else {}
    if verifier.action is not None:
        _tell(tx, effect, verifier.action, outcome, value.get("verdict"))
    for call in [value["call"]] if "call" in value else value.get("attempts", ()):
        failed = {} if outcome.error is None else {"error": outcome.error.message}
        count_call(tx, "verifier", {"model": verifier.model, **call, **failed})
    if state.mail:
        _go_on(tx, made)
        return
    error = outcome.error
    problems = verdict(value.get("verdict")) if error is None else [error.message]
    if problems:
        _not_yet(tx, made, [f"the verifier does not agree: {one}" for one in problems])
    else:
        _accept(tx, made)


def verdict(value: Any) -> list[str]:
    """What a verifier objects to; empty when it agrees.

    Args:
        value: `true`, `false`, or `{"accepted": bool, "problems": [text]}`; anything else is no verdict.
    """
    if isinstance(value, bool):
        return [] if value else ["it does not say why"]
    if not isinstance(value, dict):
        return [NO_VERDICT]
    said = cast("dict[str, Any]", value)
    if said.get("accepted") is True:
        return []
    if said.get("accepted") is not False:
        return [NO_VERDICT]
    problems = said.get("problems")
    listed = [str(one) for one in problems] if isinstance(problems, list) else []
    return listed or ["it does not say why"]


def _accept(tx: Tx, made: Claim) -> None:
    ending.complete(tx, made.message, list(made.commands), made.form)


def _go_on(tx: Tx, made: Claim) -> None:
    tx.close_turn("step" if made.by_step else "continue")


def _not_yet(tx: Tx, made: Claim, missing: list[str]) -> None:
    """Tell the model what is missing, a bounded number of times where it claimed completion itself."""
    listed = "\n".join(f"- {one}" for one in missing)
    if made.by_step:
        tx.notice(f"The run was not ended with this step. Still missing:\n{listed}")
        _go_on(tx, made)
        return
    claims = tx.state.counters.claims + 1
    tx.count(claims=claims)
    tx.close_turn("continue")
    if claims >= tx.state.spec.limits.max_claims:
        message = "The task is not done: " + "; ".join(missing)
        ending.fail(tx, "completion", message, by="policy", missing=missing)
        return
    tx.fact(GuardNudged(reason="completion"), "policy")
    tx.notice(f"Completion was not accepted yet. Still missing:\n{listed}")


def _tell(tx: Tx, effect: Verify, action: str, outcome: Outcome, value: Any) -> None:
    found = outcome.error
    error = None if found is None else {"code": found.code, "message": found.message}
    shown = compact_json(value)[: tx.state.spec.limits.max_result_chars]
    fact = ActionCompleted(
        call_id=effect.id,
        action=action,
        ok=outcome.ok,
        result=shown if outcome.ok else None,
        error=error,
        duration_ms=outcome.duration_ms,
    )
    tx.fact(fact, key="verify")
