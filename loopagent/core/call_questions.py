"""Questions that a server puts in the middle of a call: asked of a person, answered with the next attempt.

The call ends with its questions, and waits as data: no task, no connection, nothing that a restart could lose. Once
they are answered it is made again, with the answers and whatever the server wants to have back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from loopagent.core.effects import AskHuman, RunAction, key_of
from loopagent.core.facts import RequestCancelled
from loopagent.core.hashing import json_hash
from loopagent.core.outcome import Outcome
from loopagent.core.people import ask, request_id, stop_clock
from loopagent.core.question_state import OpenCall


if TYPE_CHECKING:
    from loopagent.core.effects import Effect
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx


ASKS: Final = "asks"
"""Code of the outcome of an attempt that ended with questions, which are its value."""
OFTEN: Final = "asks_too_often"
SERVER: Final = "server"
"""Key of a request's subject that says whose question it is; no model's and no message's answer reaches those."""
RESULTS: Final = {"answer": "accept", "approve": "accept", "reject": "decline"}
"""What a server is told, by what the person decided; when the time is up it is `cancel`."""


def is_foreign(request: AskHuman) -> bool:
    """Whether a request is the question of a server, not of the model."""
    return request.ask == "question" and SERVER in request.subject


def put(tx: Tx, call: RunAction, outcome: Outcome) -> Outcome | None:
    """Put the questions of an attempt to a person.

    Returns:
        None when they are asked, or how the call ended: as it did, unless it asked what nobody answers.
    """
    error, said = outcome.error, outcome.value
    if error is None or error.code != ASKS:
        return outcome
    if not isinstance(said, dict) or not tx.state.spec.interactive:
        return outcome.with_value(None)
    wanted = cast("dict[str, Any]", said)
    rounds = int((call.resume or {}).get("rounds", 0)) + 1
    if rounds > wanted["most"]:
        text = f"{wanted['server']} asked {rounds} times in one call; {wanted['most']} are allowed."
        return Outcome.failed(OFTEN, text, may_have_run=error.may_have_run)
    due = tx.at + float(wanted["seconds"])
    asked = [
        _request(call, f"{call.id}.q{rounds}.{index}", wanted["server"], one, due)
        for index, one in enumerate(wanted["questions"])
    ]
    opened = OpenCall(
        call=call,
        rounds=rounds,
        state=wanted.get("state"),
        open=tuple(one.id for one in asked),
    )
    tx.state.asking = {**tx.state.asking, call.id: opened}
    for one in asked:
        ask(tx, one, key_of(one.id))
    return None


def hold(tx: Tx, data: dict[str, Any]) -> None:
    """Put a question of a call that goes on meanwhile; it finds the answer in what is known of the call."""
    state = tx.state
    call, wanted = state.pending.get(str(data["effect"])), cast("dict[str, Any]", data["asks"])
    if not isinstance(call, RunAction):
        return
    opened = state.asking.get(call.id) or OpenCall(call=call, rounds=0)
    [question] = wanted["questions"]
    rounds = opened.rounds + 1
    if not state.spec.interactive or rounds > wanted["most"]:
        known = {**opened.known, str(question["hash"]): {"action": "cancel"}}
        state.asking = {**state.asking, call.id: replace(opened, rounds=rounds, known=known)}
        return
    due = tx.at + float(wanted["seconds"])
    request = _request(call, f"{call.id}.q{rounds}.0", wanted["server"], question, due)
    opened = replace(opened, rounds=rounds, open=(*opened.open, request.id))
    state.asking = {**state.asking, call.id: opened}
    ask(tx, request, key_of(request.id))


def closed(tx: Tx, call: RunAction) -> None:
    """Take back what a call still asks that has ended."""
    opened = tx.state.asking.get(call.id)
    if opened is None:
        return
    tx.state.asking = {key: one for key, one in tx.state.asking.items() if key != call.id}
    for effect_id in opened.open:
        request = tx.state.pending.get(effect_id)
        if isinstance(request, AskHuman):
            tx.drop(effect_id)
            stop_clock(tx, request)
            reason = "The call that asked has ended."
            tx.fact(RequestCancelled(request_id=request_id(tx.state, request), reason=reason))


def _request(
    call: RunAction, effect_id: str, server: str, question: dict[str, Any], due: float
) -> AskHuman:
    form = question.get("form")
    shown = {name: question[name] for name in ("url", "host", "warning") if question.get(name)}
    subject = {SERVER: server, "action": call.action, "call": call.id, **shown}
    subject |= {"question": question["id"], "hash": question["hash"], "onExpiry": "cancel"}
    text = str(question["message"])
    return AskHuman(
        id=effect_id,
        ask="question",
        title=f"{server} asks, in the middle of {call.action}",
        text=text,
        form=form,
        subject=subject,
        decisions=("answer" if form else "approve", "reject", "terminate"),
        content_hash=json_hash({"text": text, "form": form, "subject": subject}),
        expires_at=due,
    )


def answered(tx: Tx, request: AskHuman, answer: dict[str, Any] | None) -> None:
    """Take an answer, None when the time is up; with the last one the call can go on."""
    subject = request.subject
    opened = tx.state.asking.get(str(subject["call"]))
    if opened is None:
        return
    result: dict[str, Any] = {"action": "cancel"}
    if answer is not None:
        result = {"action": RESULTS[answer["decision"]]}
        if answer["decision"] == "answer":
            result["content"] = answer.get("values") or {}
    opened = replace(
        opened,
        open=tuple(one for one in opened.open if one != request.id),
        answers={**opened.answers, str(subject["question"]): result},
        known={**opened.known, str(subject["hash"]): result},
    )
    tx.state.asking = {**tx.state.asking, opened.call.id: opened}


def go_on(tx: Tx, effect: Effect) -> bool:
    """Make a call again whose questions are all answered; False when it is none of those."""
    opened = tx.state.asking.get(effect.id) if tx.state.asking else None
    if opened is None or opened.open or effect.id in tx.state.pending:
        return False
    tx.state.asking = {key: one for key, one in tx.state.asking.items() if key != effect.id}
    tx.issue(replace(opened.call, started=False, resume=_resume(opened)))
    return True


def _resume(opened: OpenCall) -> dict[str, Any]:
    """What the call is made again with; answers to earlier questions are kept, should they be put again."""
    before = (opened.call.resume or {}).get("known") or {}
    return {
        "rounds": opened.rounds,
        "state": opened.state,
        "answers": opened.answers,
        "known": {**before, **opened.known},
    }


def waiting_calls(state: RunState) -> list[RunAction]:
    """The calls that have ended with questions, and wait for the answers."""
    return [one.call for one in state.asking.values() if one.call.id not in state.pending]
