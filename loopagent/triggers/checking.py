"""What is known to be wrong with a trigger before anything reaches it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loopagent.core.expression import Failure, parse
from loopagent.core.expression_nodes import unknown_name
from loopagent.core.names import closest
from loopagent.core.template import check
from loopagent.triggers.incoming import NAMES
from loopagent.triggers.moments import problem_of
from loopagent.triggers.signatures import secret_of


if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from loopagent.triggers.spec import TriggerSpec

Loc = tuple[int | str, ...]
TEMPLATES: Final = {
    "message": "message",
    "payload": "payload",
    "metadata": "metadata",
    "conversation": "conversation",
    "dedupeKey": "dedupe_key",
    "debounceKey": "debounce_key",
}
"""Keys of a trigger file that hold templates, and their fields."""


def problems(spec: TriggerSpec, agents: Collection[str]) -> Iterator[tuple[Loc, str]]:
    """What cannot work, each with its place in the definition.

    Args:
        spec: The trigger.
        agents: Names of the agents there are.
    """
    if spec.agent not in agents:
        near = closest(spec.agent, sorted(agents))
        known = f" (known: {', '.join(sorted(agents)) or 'none'})"
        hint = f"; did you mean {' or '.join(near)}?" if near else known
        yield ("agent",), f"there is no agent {spec.agent!r}{hint}"
    if spec.schedule is not None and (found := problem_of(spec.schedule)):
        yield ("schedule", *found[0]), found[1]
    yield from _expressions(spec)
    for key, name in TEMPLATES.items():
        value: Any = getattr(spec, name)
        for one in check(value, NAMES[spec.kind], where=key):
            yield (key,), one.message


def _expressions(spec: TriggerSpec) -> Iterator[tuple[Loc, str]]:
    if spec.filter is not None and (wrong := _expression_problem(spec, spec.filter, path=False)):
        yield ("filter",), wrong
    for path in spec.match:
        if wrong := _expression_problem(spec, path, path=True):
            yield ("match", path), wrong
    wanted = None if spec.webhook is None else spec.webhook.event_id
    if wanted is not None and wanted.field is not None:
        wrong = _expression_problem(spec, wanted.field, path=True)
        if wrong:
            yield ("webhook", "eventId", "field"), wrong


def _expression_problem(spec: TriggerSpec, text: str, *, path: bool) -> str:
    read = parse(text)
    if isinstance(read, Failure):
        return str(read)
    names = NAMES[spec.kind]
    for name in sorted(read.names.difference(names)):
        return unknown_name(name, names)
    return "must be a path like body.action" if path and read.path is None else ""


def secret_problems(spec: TriggerSpec, env: Mapping[str, str]) -> Iterator[tuple[Loc, str]]:
    """Which secrets of a webhook cannot be used; nobody gets in with those."""
    auth = None if spec.webhook is None else spec.webhook.auth
    for index, name in enumerate(auth.secret_env if auth is not None else ()):
        try:
            assert auth is not None
            secret_of(auth, env.get(name, ""))
        except ValueError as error:
            what = f"the environment variable {name} {error if env.get(name) else 'is not set'}"
            yield ("webhook", "auth", "secretEnv", index), what
