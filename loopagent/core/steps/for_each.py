"""ForEach: the same for every item of an array."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from pydantic import PrivateAttr

from loopagent.core.calls import too_many
from loopagent.core.facts_loop import LoopProgress, LoopStarted
from loopagent.core.hashing import json_hash
from loopagent.core.json_values import is_array, is_object
from loopagent.core.loop_body import asked, body_of, check_body, describe
from loopagent.core.loop_report import finished, progress
from loopagent.core.loop_step import LoopStep, most_passes
from loopagent.core.loops import Course, Rule, name_problems, seen_payload
from loopagent.core.paths import look_up, parse_path
from loopagent.core.problems import Problem, shorten
from loopagent.core.protocol.loops import ForEachOperation
from loopagent.core.shrink import kind_of
from loopagent.core.steps import Done, NextStep


if TYPE_CHECKING:
    from loopagent.core.facts import FactData
    from loopagent.core.outcomes import Outcomes
    from loopagent.core.state import RunState

STATIC: Final = "static:"
"""Start of a `collectionPath` that is an array itself."""
WHOLE: Final = ("$", "payload", "data")
"""Paths that mean the payload itself, where nothing in it has that name."""
PREFIX: Final = "each"
_PAYLOAD, _DATA = (re.compile(rf"\A{name}(?:\.|(?=\[))") for name in ("payload", "data"))
"""What a path may begin with: the names that templates have for the payload."""
SAMPLES: Final = 3
"""Filled-in parameters that an approval of the whole loop shows."""


class ForEach(LoopStep, NextStep):
    """Do the same for every item of an array without being asked again.

    `outputMapping` puts parts of each result into the payload, as in `{"total": "rows[{{ index }}].total"}`.
    """

    type: Literal["ForEach"]
    for_each: ForEachOperation
    """Over what, and what to do with each item."""
    body: ClassVar = ("forEach",)
    example: ClassVar[dict[str, Any]] = {
        "taskComplete": False,
        "nextStep": {
            "type": "ForEach",
            "forEach": {
                "collectionPath": "orders",
                "itemVariable": "order",
                "action": {"name": "check", "params": {"id": "{{ order.id }}"}},
            },
        },
    }
    _course: Course | None = PrivateAttr(None)

    def resolve(self, run: RunState) -> tuple[Self, list[Problem], list[str]]:
        """Check collection, body and templates as a whole, and reserve the calls."""
        loop = self.for_each
        items = _items(run, loop)
        names = {
            "payload",
            "data",
            "item",
            "index",
            "last",
            loop.item_variable,
            loop.index_variable,
        }
        checked, problems, warnings = check_body(loop, run, names, "nextStep.forEach")
        given = {"itemVariable": loop.item_variable, "indexVariable": loop.index_variable}
        problems[:0] = name_problems("nextStep.forEach", **given)
        if isinstance(items, str):
            problems.insert(
                0, Problem("nextStep.forEach.collectionPath", items, loop.collection_path)
            )
        else:
            calls = asked(checked, min(len(items), most_passes(run, loop)))
            problems.extend(too_many(run, calls, "nextStep.forEach"))
        pause, most = loop.delay_between_iterations_ms, run.spec.limits.max_pause_ms
        if pause > most:
            where = "nextStep.forEach.delayBetweenIterationsMs"
            problems.append(Problem(where, f"at most {most}", str(pause)))
        step = self if checked is loop else self.model_copy(update={"for_each": checked})
        return step, problems, warnings

    def opened(self, run: RunState) -> tuple[tuple[str, FactData], ...]:
        """The loop begins."""
        course = self._open(run)
        started = LoopStarted(
            kind="forEach",
            over=self.for_each.collection_path[:200],
            what=course.body.what,
            passes=course.rule.most,
            side_by_side=course.rule.side_by_side,
        )
        return ((PREFIX, started),)

    def _done(self, run: RunState, course: Course, results: Outcomes) -> Done:
        most = course.rule.most
        count = course.rule.items or 0
        more = {"items": count}
        if count > most:
            more["left"] = count - most
        return finished(run, course, results, "forEach", passes=min(count, most), **more)

    def progress(self) -> LoopProgress | None:
        """How many items are done."""
        course = self._course
        return progress(course, course.rule.most if course else None)

    def batch(self, run: RunState, key: str) -> dict[str, Any]:
        """What a person approves: the call for every item, with the first ones filled in."""
        course, items = self._begin(run), _items(run, self.for_each)
        count = course.rule.most
        scopes = [course.rule.scope(course, index) for index in range(min(count, SAMPLES))]
        described = describe(self.for_each, run, scopes, key)
        return {**described, "passes": count, "itemsHash": json_hash(items)}

    def _begin(self, run: RunState) -> Course:
        loop = self.for_each
        found = _items(run, loop)
        items = found if is_array(found) else []
        carries = loop.execution_mode == "sequential"
        width = 1 if carries else min(loop.max_concurrency, run.spec.limits.max_concurrency)

        item_name, index_name = loop.item_variable, loop.index_variable

        def scope(course: Course, index: int) -> dict[str, Any]:
            item, payload = items[index], course.payload
            last = course.ended.get(index - 1) if carries else None
            return {
                "payload": payload,
                "data": payload,
                "item": item,
                "index": index,
                "last": last.value if last is not None else None,
                item_name: item,
                index_name: index,
            }

        most = min(len(items), most_passes(run, loop))
        delay_ms = loop.delay_between_iterations_ms
        rule = Rule(
            prefix=PREFIX,
            most=most,
            side_by_side=width,
            go_on=loop.continue_on_error,
            pause_ms=(lambda _: delay_ms) if delay_ms else None,
            scope=scope,
            more=None,
            carry=carries,
            items=len(items),
        )
        return Course.begin(run, rule, body_of(loop, run, most))


def _items(run: RunState, loop: ForEachOperation) -> list[Any] | str:
    """The array to go over, or what is wrong with it."""
    where = loop.collection_path.strip()
    if where.startswith(STATIC):
        try:
            value = json.loads(where.removeprefix(STATIC))
        except (ValueError, RecursionError):
            return "expected a JSON array after static:"
        return value if is_array(value) else "expected a JSON array after static:"
    if where.startswith("{{") and where.endswith("}}"):
        where = where[2:-2].strip()
    payload = seen_payload(run, run.payload)
    if not (is_object(payload) and "data" in payload):
        where = _DATA.sub("", where)
    found = _at(payload, _PAYLOAD.sub("", where))
    if isinstance(found, str) and (bare := _bare(where)) != where:
        other = _at(payload, _PAYLOAD.sub("", bare))
        return found if isinstance(other, str) else other
    return found


def _bare(where: str) -> str:
    """A path without what other languages have around it: `$.rows`, `rows[*]`, `rows[]`."""
    for end in ("[*]", "[]"):
        where = where.removesuffix(end)
    return "" if where in WHOLE else where.removeprefix("$.")


def _at(payload: Any, where: str) -> list[Any] | str:
    """The array at a path of the payload, or what is there instead; the empty path is the payload itself."""
    path = parse_path(where) if where else ()
    if isinstance(path, str):
        return path
    try:
        value = look_up(payload, path)
    except LookupError:
        return f"there is nothing at this path; the payload is {shorten(payload)}"
    if is_array(value):
        return value
    return f"expected an array at this path of the payload, there is {kind_of(value)}"
