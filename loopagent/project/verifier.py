"""The verifier of an agent file: checked against the actions that the agent is given by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from loopagent.core.completion_spec import Completion, VerifierSpec
from loopagent.core.names import closest


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from loopagent.core.action_spec import ActionSpec
    from loopagent.project.files import Loc

PLACE: Final = ("completion", "verifier")
SHAPE: Final = (
    "must be {action: NAME}, an action of the agent that only reads, or {model: provider:name}"
)


def take_verifier(body: dict[str, Any]) -> Any:
    """What a file says of its verifier, taken out of it; the definition does not know the actions yet."""
    completion = body.get(PLACE[0])
    if not isinstance(completion, dict) or PLACE[1] not in completion:
        return None
    body[PLACE[0]] = {key: one for key, one in completion.items() if key != PLACE[1]}
    return completion[PLACE[1]]


def checked_verifier(
    given: Any,
    actions: Iterable[ActionSpec],
    workers: Iterable[Any],
    complain: Callable[[Loc, str], None],
) -> VerifierSpec | None:
    """The verifier, if it can be one; else there are complaints.

    Args:
        given: What the file says.
        actions: The agent's actions.
        workers: Models that do the work.
        complain: Takes a place and what is wrong there.
    """
    if given is None:
        return None
    try:
        spec = VerifierSpec.model_validate_json(json.dumps(given), strict=True)
    except ValidationError:
        complain(PLACE, SHAPE)
        return None
    known = {one.name: one for one in actions}
    if spec.action is not None and (what := _wrong_action(spec.action, known)):
        complain((*PLACE, "action"), what)
    elif spec.model is not None and spec.model in workers:
        complain((*PLACE, "model"), "the model that does the work cannot verify it; name another")
    elif spec.model is not None and ":" not in spec.model:
        complain((*PLACE, "model"), f"{spec.model[:80]!r} is no model; write provider:name")
    else:
        return spec
    return None


def with_verifier(completion: Completion, verifier: VerifierSpec | None) -> Completion:
    """The completion policy with its verifier."""
    return completion.model_copy(update={"verifier": verifier})


def _wrong_action(name: str, known: Mapping[str, ActionSpec]) -> str | None:
    action = known.get(name)
    if action is None:
        near = closest(name, sorted(known))
        hint = (
            f"; did you mean {' or '.join(near)}?"
            if near
            else f" (known: {', '.join(known) or 'none'})"
        )
        return f"the agent has no such action{hint}"
    if action.effects != "read":
        return f"a verifier only reads, and {name} has {action.effects} effects"
    return None
