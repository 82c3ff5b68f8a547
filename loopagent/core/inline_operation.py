"""What an operation is that a reply asks for beside its step: reads and writes that cost no turn of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.effects import Effect
    from loopagent.core.facts import FactData
    from loopagent.core.outcome import Outcome
    from loopagent.core.problems import Problem
    from loopagent.core.state import RunState
    from loopagent.core.tx import Tx


Entry = dict[str, Any]
E = TypeVar("E", bound="Effect")


class Operation(ABC, Generic[E]):
    """One field of a reply whose entries become effects. Their ids are `{turn}:inline.{key}.{number}`."""

    field: ClassVar[str]
    """The field of the reply."""
    key: ClassVar[str]
    """Its part of the effects' ids; a stored format."""
    reads: ClassVar[bool] = True
    """Whether the model wants to see the outcomes before it decides anything else."""
    tolerant: ClassVar[bool] = False
    """Whether an agent that may not use the field is told so with the outcomes, instead of having its reply refused."""

    @abstractmethod
    def offered(self, spec: AgentSpec) -> bool:
        """Whether the agent may use the field; if not, its prompt does not even name it."""

    @abstractmethod
    def check(
        self, run: RunState, entries: Sequence[Entry], path: str
    ) -> tuple[list[Entry], list[Problem], list[str]]:
        """Look at the entries before any of the reply takes effect.

        Args:
            run: The run as it is now.
            entries: What the reply holds, as canonical JSON.
            path: Where that is, for problems.

        Returns:
            The entries as they will be used, what is wrong (then the reply is refused), and warnings.
        """

    @abstractmethod
    def effects(self, run: RunState, entries: Sequence[Entry]) -> tuple[E, ...]:
        """The effects of checked entries, in their order; use `inline_id`."""

    @abstractmethod
    def entry(self, effect: E, outcome: Outcome) -> Entry:
        """How an outcome is told to the model; its number is added."""

    def answered(self, run: RunState, effect: E) -> Outcome | None:
        """The outcome of an effect that nobody needs to perform, because it can be known now; else None."""
        del run, effect
        return None

    def absorb(self, tx: Tx, effect: E, outcome: Outcome) -> None:
        """Take in what an outcome changes beside what is told of it, such as what it cost."""
        del tx, effect, outcome

    def fact(self, effect: E, outcome: Outcome) -> FactData | None:
        """The public event of an outcome, if there is one."""
        del effect, outcome
        return None

    def inline_id(self, run: RunState, number: int) -> str:
        """The id of the effect of an entry."""
        return f"{run.turn}:inline.{self.key}.{number}"
