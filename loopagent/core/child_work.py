"""Work for sub-agents, whatever step asks for it: checked, turned into an effect, and its outcome taken in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from loopagent.core import policy
from loopagent.core.abilities import find_named, usable_children
from loopagent.core.child_merge import Merge, Taken
from loopagent.core.child_messages import task, with_parameters
from loopagent.core.child_payload import carve, upstream_rules
from loopagent.core.effects import StartRun
from loopagent.core.lineage import ARROW, MAY_GO_ON, names_above, strongest_effects
from loopagent.core.names import fold_name
from loopagent.core.outcome import Outcome
from loopagent.core.params import check_params
from loopagent.core.problems import Problem


if TYPE_CHECKING:
    from loopagent.core.agent_spec import SubAgentSpec
    from loopagent.core.state import RunState


STOPPED: Final = (
    "What it has done is kept: instead of doing all again, resumeRunId and a message let it go on."
)
"""What a model is told of a run that failed for a reason that may pass."""


class Work(Protocol):
    """One piece of work as a step asks for it."""

    @property
    def name(self) -> str:
        """Name of the sub-agent."""
        ...

    @property
    def message(self) -> str:
        """What to do."""
        ...

    @property
    def template_parameters(self) -> dict[str, Any] | None:
        """Values for the places in the sub-agent's instructions."""
        ...

    @property
    def resume_run_id(self) -> str | None:
        """An earlier child run to go on with."""
        ...


# --- before anything is done -----------------------------------------------------------------------


def find_agent(run: RunState, name: str, path: str) -> tuple[str | None, list[Problem], list[str]]:
    """The sub-agent that is meant.

    Args:
        run: The run that gives the work.
        name: What the model wrote.
        path: Where in the reply it stands.

    Returns:
        Its name, or problems; and warnings.
    """
    match = find_named(run, name, [one.name for one in usable_children(run)], path, "sub-agent")
    if match.name is None and fold_name(name) in map(fold_name, names_above(run)):
        circle = ARROW.join((*names_above(run), name))
        text = f"agents do not call each other in a circle ({circle}); do the work yourself"
        return None, [Problem(path, text, name)], []
    return match.name, list(match.problems), list(match.warnings)


def check_work(
    run: RunState, sub: SubAgentSpec, work: Work, path: str
) -> tuple[dict[str, Any] | None, list[Problem], list[str]]:
    """Check the parameters of a piece of work, and the run it wants to go on with.

    Args:
        run: The run that gives the work.
        sub: The sub-agent that is meant.
        work: What was asked for.
        path: Where in the reply it stands.

    Returns:
        The template parameters as they will be used, problems, and warnings.
    """
    named = sub.name if sub.with_skill else None  # an approved plan knew only of what was there
    held = policy.allowed(run, strongest_effects(run, sub), name=named, path=f"{path}.name")
    if held is not None:
        return None, [held], []
    wanted = work.resume_run_id
    if wanted is not None:
        problem = _not_resumable(run, sub.name, wanted)
        wrong = [] if problem is None else [Problem(f"{path}.resumeRunId", problem, wanted)]
        return None, wrong, []
    where = f"{path}.templateParameters"
    schema, given = sub.spec.parameters, work.template_parameters
    if schema is not None:
        closed = {"additionalProperties": False, **schema}
        params, problems, warnings = check_params(closed, given or {}, where)
        return params, problems, warnings
    if given:
        return None, [Problem(where, f"{sub.name} declares no parameters; leave the field out")], []
    return None, [], []


def _not_resumable(run: RunState, name: str, wanted: str) -> str | None:
    asked = run.asked.get(wanted)
    if asked is not None and asked.agent == name:
        return None
    waiting = ", ".join(key for key, one in run.asked.items() if one.agent == name) or "none"
    return f"only runs of {name} that asked you something or were stopped can be gone on with: {waiting}"


def too_much_work(run: RunState, names: Sequence[str], path: str) -> list[Problem]:
    """What exceeds the number of pieces of work that a sub-agent may get; counted for the whole batch."""
    problems: list[Problem] = []
    for name, times in Counter(names).items():
        sub = run.spec.agent(name)
        if sub is None or sub.max_calls is None:
            continue
        left = sub.max_calls - run.agent_calls.get(name, 0)
        if times > left:
            problems.append(
                Problem(path, f"{name} may be given work {left} more time(s)", f"{times} pieces")
            )
    return problems


# --- the effect, and what comes of it --------------------------------------------------------------


def start_child(run: RunState, work: Work, key: str) -> StartRun | Outcome:
    """The effect that has a piece of work done.

    Args:
        run: The run that gives the work; its payload is what the sub-agent's part is taken from.
        work: What was asked for, its name resolved and its parameters checked.
        key: Key of the effect in the turn, such as `sub.0`.

    Returns:
        The effect; or the outcome at once, when the work cannot be started.
    """
    effect_id = f"{run.turn}:{key}"
    under_way = run.pending.get(effect_id)
    if isinstance(under_way, StartRun):
        return under_way
    sub = run.spec.agent(work.name)
    if sub is None:
        return Outcome.failed("unknown_agent", f"There is no sub-agent {work.name!r}.")
    earlier = None if work.resume_run_id is None else run.asked.get(work.resume_run_id)
    parameters = work.template_parameters or {}
    message = work.message
    if earlier is not None:
        payload = earlier.payload
    else:
        carved = carve(run.payload, sub.downstream, sub.scope)
        if carved.problem is not None:
            return Outcome.failed("no_payload", carved.problem)
        payload = carved.payload if sub.downstream else sub.spec.payload.initial or {}
        message = task(message, with_parameters(sub.spec.instructions, parameters)[1])
    return StartRun(
        id=effect_id,
        agent=sub.name,
        message=message,
        payload=payload,
        template_parameters=parameters,
        resume_run_id=work.resume_run_id,
        active_ms=run.active_ms,
        effects=strongest_effects(run, sub),
    )


def take_child(
    run: RunState, merge: Merge, number: int, name: str, outcome: Outcome, *, who: str = ""
) -> dict[str, Any]:
    """Take a child's changes into a payload, and say to the model what became of its work.

    Args:
        run: The run that gave the work.
        merge: The payload with the changes of the children before it.
        number: Which piece of work it was, from 1.
        name: The sub-agent.
        outcome: What the effect's result is.
        who: How others that changed the same place name it.

    Returns:
        An entry for the results message.
    """
    taken = _merged(run, merge, who or f"call {number}, {name}", name, outcome)
    value: dict[str, Any] = outcome.value if isinstance(outcome.value, dict) else {}
    entry: dict[str, Any] = {"call": number, "agent": name, "ok": outcome.ok}
    for key in ("status", "message", "form", "usage"):
        if value.get(key):
            entry[key] = value[key]
    if "usage" in value:
        entry["usage"] = _short(value["usage"], value.get("turns", 0))
    if value.get("status") == "asked":
        entry["runId"] = value["runId"]
        entry["note"] = "It asked you and waits. Answer with resumeRunId and a message."
    if outcome.error is not None:
        entry["error"] = outcome.error.public()
        if MAY_GO_ON in value:
            entry["runId"] = value["runId"]
            entry["note"] = STOPPED
    changes = taken.public()
    if changes:
        entry["payload"] = changes
    return entry


def _merged(run: RunState, merge: Merge, who: str, name: str, outcome: Outcome) -> Taken:
    sub = run.spec.agent(name)
    value: dict[str, Any] = outcome.value if isinstance(outcome.value, dict) else {}
    changes = value.get("changes")
    if sub is None or not outcome.ok or not changes:
        return Taken()
    where = carve(merge.payload, ("*",), sub.scope)
    if where.problem is not None:
        gone = Taken(refused=[f"everything (there is no {sub.scope} in the payload any more)"])
        return merge.note(who, gone)
    return merge.take(who, changes, where.path, upstream_rules(sub.upstream))


def _short(usage: dict[str, Any], turns: int) -> dict[str, Any]:
    """What the work cost, as much as helps a model to decide."""
    tokens = int(usage.get("inputTokens") or 0) + int(usage.get("outputTokens") or 0)
    cost = usage.get("costUsd")
    return {"turns": turns, "tokens": tokens, **({} if cost is None else {"usd": round(cost, 4)})}
