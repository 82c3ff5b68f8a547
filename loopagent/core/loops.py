"""What ForEach and While share: passes that start in order, run side by side, and end in any order.

A `Course` is derived from what is known of a step: which passes have ended and how, which are under way and what they
still need. It can be made anew from the results at any time, and is kept beside the open step only so that a loop of
a thousand passes does not look at a thousand results each time one more of them ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.effects import SetTimer, key_of
from loopagent.core.expression import Failure, parse
from loopagent.core.loop_body import Pass
from loopagent.core.mapping import Outputs
from loopagent.core.outcome import HOPELESS, INTERRUPTED, Outcome
from loopagent.core.outcomes import Outcomes
from loopagent.core.paths import rules_of
from loopagent.core.problems import Problem


if TYPE_CHECKING:
    from collections.abc import Callable

    from loopagent.core.effects import Effect
    from loopagent.core.loop_body import Body
    from loopagent.core.state import RunState
    from loopagent.core.steps import MadeCall


def seen_payload(run: RunState, payload: Any) -> Any:
    """The part of a payload that the agent may read."""
    rules = rules_of(run.spec.payload.read)
    return payload if rules.everything else rules.filter(payload)


def name_problems(where: str, **names: str) -> list[Problem]:
    """What is wrong with the names that a loop gives to what `{{ }}` sees in a pass.

    Args:
        where: The loop's place in the reply.
        names: Key on the wire and the name given to it.
    """
    problems: list[Problem] = []
    for key, name in names.items():
        read = parse(name)
        if isinstance(read, Failure) or read.path != (name,):
            text = "expected a name of letters, digits and _ that means nothing else"
            problems.append(Problem(f"{where}.{key}", text, name))
    if len(set(names.values())) < len(names):
        text = f"expected {' and '.join(names)} to be different names"
        problems.append(Problem(f"{where}.{next(iter(names))}", text, next(iter(names.values()))))
    return problems


PAUSE: Final = "pause"
"""Start of the keys of pauses."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How a loop goes.

    Args:
        prefix: Start of the keys of its passes.
        most: Passes at most.
        side_by_side: Passes at a time.
        go_on: Whether to go on after a failed pass.
        pause_ms: Pause before the pass of this number, in milliseconds.
        scope: What `{{ }}` sees in a pass.
        more: Whether another pass is to start: yes, no, or why it cannot be said.
        carry: Whether a pass sees what earlier ones put into the payload.
    """

    prefix: str
    most: int
    side_by_side: int
    go_on: bool
    pause_ms: Callable[[int], int]
    scope: Callable[[Course, int], dict[str, Any]]
    more: Callable[[Course], bool | str]
    carry: bool


@dataclass
class Course:
    """How far a loop is."""

    rule: Rule
    body: Body
    outputs: Outputs
    in_a_row: int
    """Failed passes one after the other that stop the loop."""
    results: Outcomes = field(default_factory=Outcomes)
    ended: dict[int, Outcome] = field(default_factory=dict[int, Outcome])
    under_way: dict[int, tuple[Effect, ...]] = field(
        default_factory=dict[int, "tuple[Effect, ...]"]
    )
    next: int = 0
    begun: int = -1
    """Last pass of which the run knows anything; those up to it are taken up in any case."""
    failed: int = 0
    streak: int = 0
    stopped: str = ""
    _seen: tuple[int, Any] | None = None
    _scopes: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    """Of the passes under way: nothing that they see changes before they end."""

    @classmethod
    def begin(cls, run: RunState, rule: Rule, body: Body) -> Course:
        """A loop of which nothing is known yet."""
        outputs = Outputs(run.payload, rules_of(run.spec.payload.write))
        return cls(rule, body, outputs, run.spec.limits.breaker.in_a_row)

    def seen(self, run: RunState) -> Any:
        """What passes may read of the payload; looked through again only after one of them has written."""
        written = len(self.outputs.patch)
        if self._seen is None or self._seen[0] != written:
            self._seen = (written, seen_payload(run, self.outputs.payload))
        return self._seen[1]

    def follow(self, run: RunState, results: Outcomes) -> tuple[Effect, ...]:
        """Take in what became known, start what may start; returns what is needed now, empty when all has ended."""
        new = {self._pass_of(key) for key, _ in results.since(len(self.results))}
        self.results = results
        for index in sorted(new & self.under_way.keys()):
            self._look(run, index)
        self.begun = max(new | self._mentioned(run) | {self.begun})
        if self.stopped:  # passes that waited behind an open request were never started
            for index in [one for one in self.under_way if one > self.begun]:
                del self.under_way[index]
                self._scopes.pop(index, None)
        while self._may_start(self.begun):
            self.next += 1
            self._look(run, self.next - 1)
        return tuple(effect for needed in self.under_way.values() for effect in needed)

    def _mentioned(self, run: RunState) -> set[int]:
        """Passes that are under way or that a person has decided on, as after a crash."""
        decided = run.step.decisions if run.step else ()
        return {self._pass_of(key_of(one)) for one in run.pending} | {
            self._pass_of(one) for one in decided
        }

    def _may_start(self, begun: int) -> bool:
        """Whether to take up the next pass; one that was begun before always is."""
        if self.next <= begun:
            return True
        room = len(self.under_way) < self.rule.side_by_side
        if self.stopped or not room or self.next >= self.rule.most:
            return False
        more = self.rule.more(self)
        if isinstance(more, str):
            self.stopped = more
        return more is True

    def _look(self, run: RunState, index: int) -> None:
        pause_ms = self.rule.pause_ms(index) if index >= self.rule.side_by_side else 0
        if pause_ms and (pause := f"{PAUSE}.{index}") not in self.results:
            due = run.clock + pause_ms / 1000.0
            self.under_way[index] = (SetTimer(f"{run.turn}:{pause}", due),)
            return
        key = self._key(index)
        scope = self._scopes.pop(index, None) or self.rule.scope(self, index)
        seen = self.body.look(self._now(run), key, scope, self.results)
        if isinstance(seen, Outcome):
            self._end(run, index, Pass(key, scope, seen))
        else:
            self.under_way[index] = seen
            self._scopes[index] = scope

    def _key(self, index: int) -> str:
        return f"{self.rule.prefix}.{index}"

    def _now(self, run: RunState) -> RunState:
        """The run as a pass sees it: with the payload that earlier passes left, where it is handed on."""
        if not self.outputs.patch:
            return run
        run = run.fork()
        run.payload = self.outputs.payload
        return run

    def _end(self, run: RunState, index: int, one: Pass) -> None:
        outcome = one.outcome
        self.under_way.pop(index, None)
        self.ended[index] = outcome
        if outcome.ok:
            self.streak = 0
            if self.rule.carry:
                self.body.put(run, self.outputs, one)
                self.outputs.merge = None  # the next pass saw it, so it may change it again
            return
        self.failed += 1
        crashed = outcome.error is not None and outcome.error.code == INTERRUPTED
        self.streak += not crashed
        self.stopped = self.stopped or self._stops(outcome)

    def _stops(self, outcome: Outcome) -> str:
        """Why a failed pass is the last to be started, if it is."""
        error = outcome.error
        if error is not None and (error.fatal or error.code in HOPELESS):
            return error.message
        if not self.rule.go_on:
            return "a pass failed"
        return f"{self.streak} passes in a row failed" if self.streak >= self.in_a_row else ""

    def collect(self, run: RunState) -> Outputs:
        """The payload with what all passes put into it, in the order of the passes."""
        if self.rule.carry:
            return self.outputs
        outputs = Outputs(run.payload, rules_of(run.spec.payload.write))
        for index in sorted(self.ended) if self.body.puts else ():
            if self.ended[index].ok:
                self.body.put(run, outputs, self._pass(index))
        return outputs

    def _pass(self, index: int) -> Pass:
        return Pass(self._key(index), self.rule.scope(self, index), self.ended[index])

    def calls(self, run: RunState) -> tuple[MadeCall, ...]:
        """The calls since the last pass that went well, and that one: earlier ones make no difference any more."""
        made: list[MadeCall] = []
        for index in sorted(self.ended, reverse=True):
            made[:0] = self.body.calls(run, self._pass(index))
            if self.ended[index].ok:
                break
        return tuple(made)

    def _pass_of(self, key: str) -> int:
        """Number of the pass a key belongs to; -1 for none."""
        head, _, rest = key.partition(".")
        number = rest.partition(".")[0]
        return int(number) if head in {self.rule.prefix, PAUSE} and number.isdecimal() else -1
