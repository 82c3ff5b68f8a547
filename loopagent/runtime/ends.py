"""How effects end, as the run and the process's log are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.core.effects import Effect, RunAction
from loopagent.core.events import Reported, Settled
from loopagent.core.outcome import INTERRUPTED, Outcome
from loopagent.logs import log


if TYPE_CHECKING:
    from loopagent.runtime.live import Live


def in_doubt(live: Live, at: float) -> list[Settled]:
    """The ends of calls that were started before a crash and may not silently run again."""
    pending = live.state.pending
    return [
        Settled(key, interrupted(one), at)
        for key in live.workable
        if isinstance(one := pending[key], RunAction) and one.started and not one.repeatable
    ]


def begun(effect_id: str, at: float) -> Reported:
    """What the run is told of an effect that is settled later, from elsewhere."""
    return Reported("started", {"effects": [effect_id]}, at)


def log_start(live: Live, effect: Effect) -> None:
    """Note in the process's log that an effect is performed."""
    log.debug("effect.started", **_named(live, effect))


def log_end(live: Live, effect: Effect, outcome: Outcome | None) -> None:
    """Note in the process's log how an effect ended; None for one that is settled from elsewhere."""
    code = outcome.error.code if outcome is not None and outcome.error is not None else None
    name = "effect.complete" if code is None else "effect.failed"
    log.info(name, **_named(live, effect), code=code)


def broken(live: Live, effect: Effect, error: Exception) -> Outcome:
    """The outcome of an effect that an unexpected exception ended; the process's log tells more."""
    log.error("effect.broke", error, **_named(live, effect))
    return Outcome.failed("internal", f"{type(error).__name__} while performing {effect.kind}.")


def _named(live: Live, effect: Effect) -> dict[str, Any]:
    """Which effect it is, for the log."""
    turn = effect.id.partition(":")[0]
    return {
        "run_id": live.run_id,
        "turn": int(turn) if turn.isdecimal() else live.state.turn,
        "effect_id": effect.id,
        "kind": effect.kind,
    }


def interrupted(effect: RunAction) -> Outcome:
    """The outcome of a call that was started before a crash and must not silently run again."""
    text = f"{effect.action} was interrupted by a crash and may have taken effect; check before repeating."
    return Outcome.failed(INTERRUPTED, text, may_have_run=True)
