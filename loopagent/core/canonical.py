"""Whether a reply is spelled as the protocol spells it, so that nothing in it has to be folded.

Most replies are. The look is much cheaper than folding and errs on one side only: what it is not sure of is
folded, which gives the same for a reply that needs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from loopagent.core.envelope import LoopAgentResponse
from loopagent.core.fold_values import MAX_ENTRIES
from loopagent.core.protocol.forms import FormQuestion
from loopagent.core.spelling import (
    Choice,
    Flag,
    Free,
    Kind,
    Listed,
    Numeric,
    Record,
    Shape,
    Variant,
    shape_of,
)
from loopagent.core.steps import STEP_TYPES


Json = dict[str, Any]
_SORTED_OUT: Final = frozenset({"subAgent", "subAgents"})
"""Keys of a step whose places depend on each other."""


def canonical_reply(value: Any, max_entries: int = MAX_ENTRIES) -> Json | None:
    """The reply as folding would give it, without a warning or problem; None when it has to be folded.

    Args:
        value: Any JSON value; it is not changed.
        max_entries: Most entries in all lists of the protocol together.
    """
    if type(value) is not dict or not value:
        return None
    reply = cast("Json", value)
    looker = _Looker(max_entries)
    step = reply.get("nextStep")
    if step is not None:
        if reply.get("taskComplete") is True or not looker.step(step):
            return None
        reply = {key: one for key, one in reply.items() if key != "nextStep"}
    if not looker.keys(shape_of(LoopAgentResponse), reply) or not _likely(reply):
        return None
    if step is not None:
        reply["nextStep"] = step
    return reply


def _likely(reply: Json) -> bool:
    """Whether the confidence, if there is one, needs no warning."""
    return bool(0 <= reply.get("confidence", 0) <= 1)


class _Looker:
    """Looks through one reply; `left` is how many entries its lists may still have."""

    __slots__ = ("left",)

    def __init__(self, max_entries: int) -> None:
        self.left = max_entries

    def step(self, step: Any) -> bool:
        """Whether a `nextStep` is of a known type and has the keys of that type only."""
        if type(step) is not dict:
            return False
        fields = cast("Json", step)
        name = fields.get("type")
        model = STEP_TYPES.get(name) if isinstance(name, str) else None
        if model is None or not _SORTED_OUT.isdisjoint(fields):
            return False
        return self.keys(shape_of(model), fields)

    def keys(self, shape: Shape, fields: Json) -> bool:
        """Whether an object has known keys only, none of them null, and what they hold is as it should be."""
        kinds = shape.kinds
        for key, value in fields.items():
            if value is None or key not in kinds:
                return False
            kind = kinds[key]
            if kind is not None and not _BY_KIND[type(kind)](self, kind, value):
                return False
        return True

    def listed(self, kind: Listed, value: Any) -> bool:
        """Whether it is a list whose entries are as they should be."""
        if type(value) is not list:
            return False
        items: list[Any] = value
        self.left -= len(items)
        item = kind.item
        if self.left < 0:
            return False
        return item is None or all(_BY_KIND[type(item)](self, item, one) for one in items)

    def record(self, kind: Record, value: Any) -> bool:
        """Whether it is an object of the protocol."""
        if type(value) is not dict or kind.model is FormQuestion:
            return False
        return self.keys(shape_of(kind.model), cast("Json", value))


def _never(_looker: _Looker, _kind: Kind, _value: Any) -> bool:
    return False


_BY_KIND: Final[dict[type[Any], Callable[[_Looker, Any, Any], bool]]] = {
    Flag: lambda _looker, _kind, value: type(value) is bool,
    Numeric: lambda _looker, _kind, value: type(value) is int or type(value) is float,
    Free: lambda _looker, _kind, value: type(value) is dict,
    Choice: lambda _looker, kind, value: type(value) is str and value in kind.values,
    Record: _Looker.record,
    Variant: _never,
    Listed: _Looker.listed,
}
"""How each kind of value is looked at."""
