"""Calls that a client carries out: handed over, answered or timed out, and what an answer must look like.

A call is put once, in an event; its answer is bound to its id and counts once. Beside each call runs a timer, and
whichever settles first decides: the loser finds nothing to settle any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from loopagent.core.effects import CallClientTool, CancelEffect, SetTimer, key_of
from loopagent.core.facts_client import CallEnd, ClientToolCompleted, ClientToolRequested
from loopagent.core.loop_view import BUTTONS
from loopagent.core.outcome import Outcome
from loopagent.core.people import DUE, agents, request_id
from loopagent.core.schema_check import schema_problems


if TYPE_CHECKING:
    from loopagent.core.client_tool_spec import ClientToolSpec
    from loopagent.core.problems import Problem
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx


TIMED_OUT: Final = "timed_out"
"""Outcome code of a call that nobody answered in time."""


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """What a client brings back: a result, or `error` when it could not carry out the call.

    `media`: `{artifactId, mediaType, bytes, name?}` each, already stored.
    """

    success: bool
    result: Any = None
    error: str = ""
    media: tuple[dict[str, Any], ...] = ()


def hand_over(tx: Tx, call: CallClientTool) -> None:
    """Put a call to the client and start the clock."""
    state = tx.state
    put = replace(call, due=state.clock + call.timeout_ms / 1000.0)
    tx.issue(put)
    tx.issue(SetTimer(f"{put.id}{DUE}", put.due))
    tx.fact(requested(state, put), "model", key=key_of(put.id))


def requested(state: RunState, call: CallClientTool) -> ClientToolRequested:
    """An open call as the client is told of it."""
    spec = state.spec.client_tool(call.tool)
    primary, secondary = BUTTONS["client_tool"]
    return ClientToolRequested(
        call_id=call.id,
        request_id=request_id(state, call),
        title=f"Run {call.tool} in the client",
        tool=call.tool,
        params=call.params,
        text=call.description or (spec.description if spec else ""),
        result_schema=spec.result if spec else None,
        timeout_ms=call.timeout_ms,
        expires_at=call.due,
        agents=agents(state),
        primary=primary.model_dump(),
        secondary=secondary.model_dump(),
    )


def answered(tx: Tx, call: CallClientTool, outcome: Outcome) -> None:
    """Record what the client brought back."""
    timer = f"{call.id}{DUE}"
    if timer in tx.state.pending:
        tx.drop(timer)
        tx.effects.append(CancelEffect(f"{timer}.cancel", timer))
    value = cast("dict[str, Any]", outcome.value or {})
    fact = completed(tx.state, call, "answered", outcome).model_copy(
        update={"result": value.get("result"), "media": value.get("media", [])}
    )
    tx.fact(fact, "client", key=key_of(call.id))
    tx.result(key_of(call.id), outcome)


def time_out(tx: Tx, timer: SetTimer) -> bool:
    """End the call that a timer belongs to; False when it belongs to none."""
    if not timer.id.endswith(DUE):
        return False
    call = tx.state.pending.get(timer.id.removesuffix(DUE))
    if not isinstance(call, CallClientTool):
        return False
    text = f"The client did not answer within {call.timeout_ms} ms. It may still have carried out the call."
    outcome = Outcome.failed(TIMED_OUT, text, may_have_run=True)
    tx.drop(call.id)
    tx.fact(completed(tx.state, call, "timed_out", outcome), key=key_of(call.id))
    tx.result(key_of(call.id), outcome)
    return True


def completed(
    state: RunState, call: CallClientTool, status: CallEnd, outcome: Outcome
) -> ClientToolCompleted:
    """The end of a call as the world is told of it, without what it brought."""
    return ClientToolCompleted(
        call_id=call.id,
        request_id=request_id(state, call),
        tool=call.tool,
        status=status,
        ok=outcome.ok,
        error=outcome.error.public() if outcome.error else None,
    )


def read_answer(spec: ClientToolSpec | None, answer: CallAnswer) -> list[Problem]:
    """What is wrong with a result, by the tool's own schema; an error needs no form."""
    if not answer.success or spec is None or spec.result is None:
        return []
    return schema_problems(spec.result, answer.result, "result")


def outcome_of(answer: CallAnswer) -> Outcome:
    """An answer as the outcome that settles its call."""
    if not answer.success:
        return Outcome.failed("client_error", answer.error or "The client could not do it.")
    return Outcome.done({"result": answer.result, "media": list(answer.media)})
