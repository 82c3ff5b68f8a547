"""What a sub-agent gets of the payload, and what it changed.

A child starts with a copy of a part. At its end only its changes count, told from what it started with, so a
stale copy never overwrites what somebody else did meanwhile.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from loopagent.core.json_values import Json, is_array, is_object
from loopagent.core.paths import Rule, Rules, parse_rules, rules_of
from loopagent.core.payload_writer import ABSENT, same


if TYPE_CHECKING:
    from loopagent.core.agent_spec import SubAgentTerms
    from loopagent.core.paths import Path

Change: TypeAlias = Json
"""One change as JSON: `{path, op: set|delete|append, value?, was?}`; `was` is what a container held before."""


@dataclass(frozen=True, slots=True)
class Carved:
    """The part of a payload that a child starts with.

    Args:
        payload: The part; meaningless beside a problem.
        path: Where in the payload the part is, as far as it has a scope.
        problem: Why there is no such part.
    """

    payload: Any = None
    path: Path = ()
    problem: str | None = None


def carve(payload: Any, downstream: tuple[str, ...], scope: str) -> Carved:
    """Cut out what a child may see.

    Args:
        payload: The parent's payload.
        downstream: Paths that are sent down, as `AgentSpec` has them.
        scope: Where in the payload the child works, like `/case/notes`; empty for the whole.
    """
    value = rules_of(downstream).filter({} if payload is None else payload)
    path: list[str | int] = []
    for token in _tokens(scope):
        key = int(token) if is_array(value) and token.isdecimal() else token
        value = member(value, key)
        if value is ABSENT:
            text = f"the sub-agent works on {scope}, and the payload it is sent has no such part"
            return Carved(problem=text)
        path.append(key)
    return Carved(value, tuple(path))


def path_problems(sub: SubAgentTerms) -> list[str]:
    """What is wrong with the paths between an agent and a sub-agent."""
    problems = [f"downstream {one}" for one in parse_rules(sub.downstream)[1]]
    problems += [f"upstream {one}" for one in parse_rules(sub.upstream)[1]]
    if sub.scope and not sub.scope.startswith("/"):
        problems.append(f"scope {sub.scope!r}: must start with / as in /case/notes")
    return problems


def _tokens(scope: str) -> list[str]:
    inner = scope.strip().strip("/")
    return [one.replace("~1", "/").replace("~0", "~") for one in inner.split("/")] if inner else []


@lru_cache(maxsize=256)
def upstream_rules(texts: tuple[str, ...]) -> Rules:
    """What a child's changes may do: without operations a path lets add and update, `*` lets everything."""
    rules: list[Rule] = []
    for text in texts:
        plain, problems = parse_rules([f"{text}:add,update"])
        if (
            problems or text.strip() == "*"
        ):  # it names its operations, or is meant to let everything
            plain, _ = parse_rules([text])
        rules += plain.rules
    return Rules(tuple(rules))


# --- what changed ----------------------------------------------------------------------------------


def differences(start: Any, final: Any) -> list[Change]:
    """What leads from the payload a child started with to the one it ended with.

    Objects are compared key by key, new ones down to their leaves. Arrays are compared by position while items
    only change or are appended; one whose items moved or went is one change as a whole.
    """
    found: list[Change] = []
    _differ({} if start is None else start, final, (), found)
    return found


def _differ(old: Any, new: Any, path: Path, found: list[Change]) -> None:
    if old is ABSENT and is_object(new) and new:
        for key, one in new.items():
            _differ(ABSENT, one, (*path, key), found)
    elif old is ABSENT:
        found.append(_change("set", path, old, new))
    elif same(old, new):
        return
    elif is_object(old) and is_object(new):
        _differ_objects(old, new, path, found)
    elif is_array(old) and is_array(new) and not _rearranged(old, new):
        for index, before in enumerate(old):
            _differ(before, new[index], (*path, index), found)
        if len(new) > len(old):
            found.append(_change("append", path, ABSENT, new[len(old) :]))
    else:
        found.append(_change("set", path, old, new))


def _differ_objects(old: Json, new: Json, path: Path, found: list[Change]) -> None:
    for key, before in old.items():
        if key in new:
            _differ(before, new[key], (*path, key), found)
        else:
            found.append(_change("delete", (*path, key), before, ABSENT))
    for key, one in new.items():
        if key not in old:
            _differ(ABSENT, one, (*path, key), found)


def _rearranged(old: list[Any], new: list[Any]) -> bool:
    """Whether items went, or moved to other places."""
    if len(new) < len(old):
        return True
    moved = [one for index, one in enumerate(old) if not same(one, new[index])]
    if len(new) > len(old) and not all(isinstance(one, dict | list) for one in moved):
        return True
    there = {_text(one) for one in new} if moved else set[str]()
    return any(_text(one) in there for one in moved)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _change(op: str, path: Path, old: Any, new: Any) -> Change:
    change: Change = {"op": op, "path": list(path)}
    if new is not ABSENT:
        change["value"] = new
    if isinstance(old, dict | list):
        change["was"] = old
    return change


def member(value: Any, key: str | int) -> Any:
    """What an object or array holds there, or `ABSENT`."""
    if is_object(value):
        return value.get(cast("str", key), ABSENT)
    if is_array(value) and isinstance(key, int):
        return value[key] if 0 <= key < len(value) else ABSENT
    return ABSENT
