"""What runs use up, alone and together with the runs around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from loopagent.core.values import value_object


@value_object(frozen=True, slots=True)
class Usage:
    """Tokens and money spent so far, failed attempts included."""

    model_calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None

    def plus(self, other: dict[str, Any]) -> Usage:
        """This plus one attempt's usage (`ModelReply.usage` as JSON)."""
        told = other.get
        cost = told("cost_usd")
        return Usage(
            self.model_calls + 1,
            self.input_tokens + int(told("input_tokens") or 0),
            self.cached_tokens + int(told("cached_tokens") or 0),
            self.output_tokens + int(told("output_tokens") or 0),
            self.reasoning_tokens + int(told("reasoning_tokens") or 0),
            self.cost_usd if cost is None else (self.cost_usd or 0.0) + float(cost),
        )

    def together(self, other: Usage) -> Usage:
        """The sum of two."""
        cost, more = self.cost_usd, other.cost_usd
        return Usage(
            self.model_calls + other.model_calls,
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            more if cost is None else cost if more is None else cost + more,
        )

    def less(self, other: Usage) -> Usage:
        """What came on top of an earlier state of the same count."""
        cost = None if self.cost_usd is None else self.cost_usd - (other.cost_usd or 0.0)
        return Usage(
            self.model_calls - other.model_calls,
            self.input_tokens - other.input_tokens,
            self.cached_tokens - other.cached_tokens,
            self.output_tokens - other.output_tokens,
            self.reasoning_tokens - other.reasoning_tokens,
            cost,
        )

    @classmethod
    def read(cls, public: dict[str, Any]) -> Usage:
        """The usage that `public` wrote."""
        return cls(
            int(public.get("modelCalls") or 0),
            int(public.get("inputTokens") or 0),
            int(public.get("cachedTokens") or 0),
            int(public.get("outputTokens") or 0),
            int(public.get("reasoningTokens") or 0),
            public.get("costUsd"),
        )

    def public(self) -> dict[str, Any]:
        """The same as camelCase JSON."""
        return {
            "modelCalls": self.model_calls,
            "inputTokens": self.input_tokens,
            "cachedTokens": self.cached_tokens,
            "outputTokens": self.output_tokens,
            "reasoningTokens": self.reasoning_tokens,
            "costUsd": self.cost_usd,
        }

    def told(self) -> dict[str, Any]:
        """The same without what is nothing or not known."""
        told: dict[str, Any] = {}
        if self.model_calls:
            told["modelCalls"] = self.model_calls
        if self.input_tokens:
            told["inputTokens"] = self.input_tokens
        if self.cached_tokens:
            told["cachedTokens"] = self.cached_tokens
        if self.output_tokens:
            told["outputTokens"] = self.output_tokens
        if self.reasoning_tokens:
            told["reasoningTokens"] = self.reasoning_tokens
        if self.cost_usd:
            told["costUsd"] = self.cost_usd
        return told


NOTHING: Final = Usage()
"""The usage of a run that has asked no model yet."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What counts against the budget of a tree of runs."""

    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """The sum of two."""
        return Spent(
            self.turns + other.turns, self.tokens + other.tokens, self.cost_usd + other.cost_usd
        )

    def less(self, other: Spent) -> Spent:
        """The difference of two."""
        return Spent(
            self.turns - other.turns, self.tokens - other.tokens, self.cost_usd - other.cost_usd
        )

    def at_least(self, other: Spent) -> Spent:
        """The larger of two, number by number."""
        return Spent(
            max(self.turns, other.turns),
            max(self.tokens, other.tokens),
            max(self.cost_usd, other.cost_usd),
        )


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A run above a child: its limits count for the child as well."""

    run_id: str
    agent: str
    max_turns: int
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    seconds: float | None = None
    """Working time it had left when the child was started."""
    spent: Spent = Spent()
    """What it and the runs below it have spent, without this child."""
    max_seconds: float | None = None
    """Its own limit of working time, which tells how much more there is when that is raised."""

    def allowed(self, bounds: Sequence[Any]) -> Ancestor:
        """The same run with other limits: turns, tokens, cost and seconds."""
        turns, tokens, cost, seconds = bounds
        left = self.seconds
        if seconds is None:
            left = None
        elif left is not None and self.max_seconds is not None:
            left += seconds - self.max_seconds
        return replace(
            self,
            max_turns=turns,
            max_tokens=tokens,
            max_cost_usd=cost,
            max_seconds=seconds,
            seconds=left,
        )


@dataclass(frozen=True, slots=True)
class AskedChild:
    """A child run that its parent may go on with: it asked something and waits, or failed and may try again."""

    agent: str
    payload: Any = None
    """What it started with."""
    usage: Usage = NOTHING
    """What of its usage the parent has counted."""
    turns: int = 0
    """What of its turns the parent has counted."""
    stopped: str = ""
    """Why it failed; empty for one that asked and waits."""

    @property
    def counted(self) -> Spent:
        """What of its spending the parent has counted."""
        tokens = self.usage.input_tokens + self.usage.output_tokens
        return Spent(self.turns, tokens, self.usage.cost_usd or 0.0)
