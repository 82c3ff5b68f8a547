"""Requests to people: how they are asked, which answers hold, what an answer means.

An answer counts only for exactly what was shown: it names the revision and the content hash of the request, and
what runs afterwards is the stored or the explicitly edited content, never anything else that came with it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.effects import AskHuman, CallClientTool, CancelEffect, SetTimer, key_of
from loopagent.core.facts import RequestCreated, RequestResolved
from loopagent.core.forms import check_answers
from loopagent.core.hashing import json_hash
from loopagent.core.loop_view import BUTTONS
from loopagent.core.params import check_params
from loopagent.core.plan_card import read_decision
from loopagent.core.problems import Problem


if TYPE_CHECKING:
    from loopagent.core.events import Answer
    from loopagent.core.facts import DecidedBy
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx


DUE: Final = ".due"
"""Ending of the id of the timer beside a request; a stored format."""
_UNEDITABLE: Final = {
    "passes": "calls that are decided together cannot be edited; approve them as they are, or reject with feedback",
    "fixed": "this action takes no edits (allowEdit is false); approve it as it is, or reject with feedback",
}
"""Why an approval that shows no schema cannot be edited, by what else it shows."""
_NOT_STARTED: Final = "only the parameters of an action that has not started can be edited"


def request_id(state: RunState, ask: AskHuman | CallClientTool) -> str:
    """The public id of a request: the run's id and the effect's."""
    return f"{state.id}:{ask.id}"


def agents(state: RunState) -> list[str]:
    """Who asks: the names of the agents from the root run to this one."""
    return [*(one.agent for one in state.ancestors), state.spec.name]


def ask(tx: Tx, request: AskHuman, key: str) -> None:
    """Issue a request and tell the world."""
    tx.issue(request)
    if request.expires_at:
        tx.issue(SetTimer(f"{request.id}{DUE}", request.expires_at))
    primary, secondary = BUTTONS[request.ask]
    created = RequestCreated(
        request_id=request_id(tx.state, request),
        kind=request.ask,
        title=request.title,
        text=request.text,
        form=request.form,
        subject=request.subject,
        decisions=list(request.decisions),
        agents=agents(tx.state),
        revision=request.revision,
        content_hash=request.content_hash,
        primary=primary.model_dump(),
        secondary=secondary.model_dump(),
        expires_at=request.expires_at or None,
    )
    tx.fact(created, _asker(request), key=key)


def _asker(request: AskHuman) -> DecidedBy:
    """Who wants to know: the model, or for a server and a policy the engine and the policy."""
    if request.ask == "question":
        return "engine" if "server" in request.subject else "model"
    return "model" if request.ask == "plan" else "policy"


def question(
    effect_id: str,
    text: str,
    form: dict[str, Any] | None,
    commands: tuple[dict[str, Any], ...] = (),
) -> AskHuman:
    """The request that puts the model's question, with the form and the buttons that came with it."""
    title = (form or {}).get("title") or "Question"
    shown = {"text": text, "form": form, **({"commands": commands} if commands else {})}
    return AskHuman(
        id=effect_id,
        ask="question",
        title=str(title),
        text=text,
        form=form,
        subject={"commands": list(commands)} if commands else {},
        decisions=("answer", "terminate"),
        content_hash=json_hash(shown),
    )


def guard(effect_id: str, title: str, text: str) -> AskHuman:
    """The request that asks what to do with a run that is stuck."""
    return AskHuman(
        id=effect_id,
        ask="guard",
        title=title,
        text=text,
        decisions=("approve", "answer", "terminate"),
        content_hash=json_hash({"title": title, "text": text}),
    )


def limit(effect_id: str, name: str, used: float, maximum: float) -> AskHuman:
    """The request to raise a limit that a run has reached: to twice as much, or to what the person says instead."""
    kind = "integer" if name in {"maxTurns", "maxTokens"} else "number"
    allowed = {"type": kind, "exclusiveMinimum": used}
    subject = {
        "limit": name,
        "used": used,
        "maximum": maximum,
        "params": {name: max(2 * maximum, int(used) + 1)},
        "schema": {
            "type": "object",
            "properties": {name: allowed},
            "required": [name],
            "additionalProperties": False,
        },
    }
    return AskHuman(
        id=effect_id,
        ask="limit",
        title=f"Raise {name}?",
        text=f"The run has used {used:g} of {maximum:g}. Rejected, it ends here and keeps what it has.",
        decisions=("approve", "reject", "terminate"),
        subject=subject,
        content_hash=json_hash(subject),
    )


def read_answer(request: AskHuman, answer: Answer) -> tuple[dict[str, Any], list[Problem]]:
    """Check an answer against what was asked.

    Returns:
        The answer as JSON with typed values and, for an edited approval, checked parameters; and every problem.
        With a problem the answer must not be delivered: the request stays open.
    """
    body = asdict(answer)
    if not answer.remember:
        del body["remember"]  # as most
    problem = _unfit(request, answer)
    if problem is not None:
        return body, [problem]
    if request.ask == "plan":
        return read_decision(request, body)
    if answer.decision == "approve" and answer.edited is not None:
        return _edited(request, body)
    if request.form is not None and answer.decision == "answer":
        values, problems = check_answers(request.form, answer.values)
        return {**body, "values": values}, problems
    if (
        request.ask == "question"
        and answer.decision == "answer"
        and not (answer.values or answer.feedback.strip())
    ):
        return body, [
            Problem("feedback", "an answer needs a text in `feedback` or values", "nothing")
        ]
    return body, []


def _unfit(request: AskHuman, answer: Answer) -> Problem | None:
    """Why something cannot be answered, or its answer not remembered, whatever else the answer says."""
    if answer.decision not in request.decisions:
        allowed = ", ".join(request.decisions)
        return Problem("decision", f"must be one of {allowed}", answer.decision)
    if not answer.remember:
        return None
    offered = ", ".join(request.subject.get("remember", ()))
    if answer.remember not in request.subject.get("remember", ()):
        return Problem("remember", f"may be: {offered or 'nothing'}, here", answer.remember)
    if answer.decision != "approve" or answer.edited is not None:
        text = "only an approval of what is shown, as it is shown, can be remembered"
        return Problem("remember", text, answer.decision)
    return None


def _edited(request: AskHuman, body: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    if "schema" not in request.subject:
        known = (text for key, text in _UNEDITABLE.items() if key in request.subject)
        return body, [Problem("edited", next(known, _NOT_STARTED), "")]
    params, problems, _ = check_params(request.subject["schema"], body["edited"])
    return {**body, "edited": params}, [
        Problem(f"edited.{one.path}", one.message, one.got) for one in problems
    ]


def stop_clock(tx: Tx, request: AskHuman) -> None:
    """Stop the timer beside a request, if there is one."""
    timer = f"{request.id}{DUE}"
    if timer in tx.state.pending:
        tx.drop(timer)
        tx.effects.append(CancelEffect(f"{timer}.cancel", timer))


def resolved(tx: Tx, request: AskHuman, answer: dict[str, Any]) -> None:
    """Tell the world how a request was answered; its clock stops."""
    stop_clock(tx, request)
    fact = RequestResolved(
        request_id=request_id(tx.state, request),
        decision=answer["decision"],
        by=answer.get("by", "client"),
        feedback=answer.get("feedback", ""),
        values=answer.get("values", {}),
        edited=answer.get("edited") is not None,
    )
    tx.fact(fact, "human", key=key_of(request.id))


def answer_text(request: AskHuman, answer: dict[str, Any]) -> str:
    """An answer as the person's message in the transcript."""
    values = answer.get("values") or {}
    lines = [str(answer["feedback"])] if answer.get("feedback") else []
    labels = {
        str(one.get("id")): str(one.get("label"))
        for one in (request.form or {}).get("questions", [])
    }
    lines += [f"{labels.get(key, key)}: {_shown(value)}" for key, value in values.items()]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    """A typed value on one line: a text as it is, unless it could be taken for something else."""
    if isinstance(value, str) and len(value.splitlines()) == 1 and not _reads_as_json(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _reads_as_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
