"""The part of an action file about approvals, as types."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from loopagent.actions.durations import Seconds
from loopagent.core.asking import MAX_SECONDS, Asking, OnExpiry, Remember, named
from loopagent.core.spec import Spec


class ApprovalSection(Spec):
    """Who decides whether a call happens."""

    policy: Literal["auto", "ask", "never"] | None = None
    """`ask` puts calls to a person; `never` hides the action from models, for pipelines and people only; left out, the
    agent's policy for the effect class."""
    when: str | None = Field(default=None, min_length=1)
    """JMESPath over `params`: only calls for which it is `true`, or cannot be worked out, are put to a person."""
    show: tuple[str, ...] = Field(default=(), max_length=50)
    """Parameters that the card shows first."""
    allow_edit: bool = True
    """Whether the person may change the parameters."""
    expires: Seconds | None = Field(default=None, gt=0, le=MAX_SECONDS)
    """How long the person has, like `24h`; left out, for ever."""
    on_expiry: OnExpiry = "reject"
    """What happens then: the call is refused, or the run fails."""
    approvers: tuple[str, ...] = Field(default=(), max_length=50)
    """Who may answer: names of people or keys, `role:NAME`, `scope:NAME`; left out, whoever may answer requests."""
    remember: Remember = "never"
    """For how long a person may let the very same call through without being asked again: `run`, or `session`, its
    conversation."""

    @field_validator("approvers")
    @classmethod
    def _are_named(cls, approvers: tuple[str, ...]) -> tuple[str, ...]:
        return named(approvers)

    @property
    def says_more(self) -> bool:
        """Whether it says anything beside the policy."""
        return bool(self.model_fields_set - {"policy"})

    @property
    def asking(self) -> Asking | None:
        """The same in the engine's words; None when nothing is said beside the policy."""
        said = Asking(
            when=self.when,
            show=self.show,
            allow_edit=self.allow_edit,
            expires_seconds=self.expires,
            on_expiry=self.on_expiry,
            approvers=self.approvers,
            remember=self.remember,
        )
        return None if said == Asking() else said
