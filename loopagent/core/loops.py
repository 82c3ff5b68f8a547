"""What ForEach and While share: passes that start in order, run side by side, and end in any order.

A `Course` is derived from what is known of a step: which passes have ended and how, which are under way and what they
still need. It can be made anew from the results at any time, and is kept beside the open step only so that a loop of
a thousand passes does not look at a thousand results each time one more of them ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

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
        pause_ms: Pause before the pass of this number, in milliseconds; None for a loop without pauses.
        scope: What `{{ }}` sees in a pass.
        more: Whether another pass is to start that would see this: yes, no, or why it cannot be said; None for always.
        carry: Whether a pass sees what earlier ones put into the payload.
        items: Over how many items it goes, were it not for `most`; None for a loop that goes over none.
    """

    prefix: str
    most: int
    side_by_side: int
    go_on: bool
    pause_ms: Callable[[int], int] | None
    scope: Callable[[Course, int], dict[str, Any]]
    more: Callable[[dict[str, Any]], bool | str] | None
    carry: bool
    items: int | None = None


UnderWay: TypeAlias = "tuple[int, dict[str, Any], tuple[Effect, ...]]"
"""A pass that has not ended: its number, what it sees, which stays as it is meanwhile, and what it needs."""


@dataclass
class Course:
    """How far a loop is."""

    rule: Rule
    body: Body
    outputs: Outputs
    payload: Any
    """What passes may read of the payload."""
    in_a_row: int
    """Failed passes one after the other that stop the loop."""
    results: Outcomes = field(default_factory=Outcomes)
    ended: dict[int, Outcome] = field(default_factory=dict[int, Outcome])
    under_way: dict[str, UnderWay] = field(default_factory=dict[str, UnderWay])
    next: int = 0
    begun: int = -1
    """Last pass of which the run knows anything; those up to it are taken up in any case."""
    failed: int = 0
    streak: int = 0
    stopped: str = ""

    @classmethod
    def begin(cls, run: RunState, rule: Rule, body: Body) -> Course:
        """A loop of which nothing is known yet."""
        outputs = Outputs(run.payload, rules_of(run.spec.payload.write))
        seen = seen_payload(run, outputs.payload)
        return cls(rule, body, outputs, seen, run.spec.limits.breaker.in_a_row)

    def follow(self, run: RunState, results: Outcomes) -> list[Effect]:
        """Take in what became known, and start what may start.

        Returns:
            What is to be asked for now. The loop has ended when no pass is under way.
        """
        new = dict(results.since(len(self.results)))
        self.results = results
        passes, pending = self.under_way, run.pending
        # Only of these: no loop is so long that what one transition costs would grow with it.
        about = {passes[key][0] if key in passes else self._pass_of(key) for key in new}
        self.begun = max((self.begun, *about))
        for index in sorted(about):
            key = f"{self.rule.prefix}.{index}"
            if key in passes:
                scope = passes[key][1]
                at = self._now(run) if self.outputs.patch and key not in new else run
                seen = self.body.look(at, key, scope, new)
                if isinstance(seen, Outcome):
                    del passes[key]
                    self._end(run, index, key, scope, seen)
                else:
                    passes[key] = (index, scope, seen)
        if self.stopped or not self.next:
            self.begun = max((self.begun, *self._mentioned(run)))
            # Passes that waited behind an open request were never started.
            for key in [key for key, one in passes.items() if one[0] > self.begun]:
                del passes[key]
        self._start(run, new)
        return [one for _, _, needed in passes.values() for one in needed if one.id not in pending]

    def _mentioned(self, run: RunState) -> set[int]:
        """Passes that are under way or that a person has decided on, as after a crash."""
        decided = run.step.decisions if run.step else ()
        return {self._pass_of(key_of(one)) for one in run.pending} | {
            self._pass_of(one) for one in decided
        }

    def _start(self, run: RunState, new: dict[str, Outcome]) -> None:
        """Take up the next passes: those that were begun before, and as many others as may go side by side."""
        rule, passes, index = self.rule, self.under_way, self.next
        while index <= self.begun or (
            len(passes) < rule.side_by_side and index < rule.most and not self.stopped
        ):
            key, scope = f"{rule.prefix}.{index}", rule.scope(self, index)
            if rule.more is not None and index > self.begun and not self._goes_on(rule.more(scope)):
                break
            seen: Outcome | tuple[Effect, ...] = ()
            if rule.pause_ms is not None:
                seen = self._pause(run, index, rule.pause_ms(index))
            if not seen:
                at = self._now(run) if self.outputs.patch else run
                seen = self.body.look(at, key, scope, new)
            if isinstance(seen, Outcome):
                self._end(run, index, key, scope, seen)
            else:
                passes[key] = (index, scope, seen)
            index += 1
        self.next = index

    def _goes_on(self, more: bool | str) -> bool:
        """Whether another pass is to start; where that cannot be said, none is, and the loop says why."""
        if isinstance(more, str):
            self.stopped = more
        return more is True

    def _pause(self, run: RunState, index: int, pause_ms: int) -> tuple[Effect, ...]:
        """The pause before a pass, if there is one: none before the first ones, and none that is over."""
        key = f"{PAUSE}.{index}"
        if not pause_ms or index < self.rule.side_by_side or key in self.results:
            return ()
        return (SetTimer(f"{run.turn}:{key}", run.clock + pause_ms / 1000.0),)

    def _end(
        self, run: RunState, index: int, key: str, scope: dict[str, Any], outcome: Outcome
    ) -> None:
        self.ended[index] = outcome
        if not outcome.ok:
            self._failed(outcome)
            return
        self.streak = 0
        if self.rule.carry and self.body.puts:
            self._carry(run, Pass(key, scope, outcome))

    def _now(self, run: RunState) -> RunState:
        """The run as a pass sees it where earlier ones changed the payload: with what they left."""
        run = run.fork()
        run.payload = self.outputs.payload
        return run

    def _carry(self, run: RunState, one: Pass) -> None:
        """Let the next passes see what one brought."""
        written = len(self.outputs.patch)
        self.body.put(run, self.outputs, one)
        self.outputs.merge = None  # the next pass saw it, so it may change it again
        if len(self.outputs.patch) > written:
            self.payload = seen_payload(run, self.outputs.payload)

    def _failed(self, outcome: Outcome) -> None:
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
        key = f"{self.rule.prefix}.{index}"
        return Pass(key, self.rule.scope(self, index), self.ended[index])

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
