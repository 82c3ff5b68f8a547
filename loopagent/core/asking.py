"""How a person is asked about a call: when, shown what, by when, who may answer, and for how long it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field, field_validator

from loopagent.core.spec import Spec


if TYPE_CHECKING:
    from loopagent.core.reshape import Expression

Remember = Literal["never", "run", "session"]
OnExpiry = Literal["reject", "fail"]
KINDS: Final = ("role", "scope")
"""What an approver may be named by, beside a name."""
MAX_SECONDS: Final = 366 * 86_400.0
"""Longest time that a person is given."""


class Asking(Spec):
    """What an action says about its approvals, beside whether it needs one."""

    when: str | None = Field(default=None, min_length=1)
    """JMESPath over `params`: a person is asked only about calls for which it is `true`, or cannot be worked out."""
    show: tuple[str, ...] = Field(default=(), max_length=50)
    """Parameters that the card shows first."""
    allow_edit: bool = True
    """Whether the person may change the parameters."""
    expires_seconds: float | None = Field(default=None, gt=0, le=MAX_SECONDS, allow_inf_nan=False)
    """How long the person has; null for ever."""
    on_expiry: OnExpiry = "reject"
    """What happens then: the call is refused, or the run fails. It is never made."""
    approvers: tuple[str, ...] = Field(default=(), max_length=50)
    """Who may answer: names of people, `role:NAME`, `scope:NAME`; left out, whoever may answer requests."""
    remember: Remember = "never"
    """For how long a person may let the very same call through without being asked again."""

    @field_validator("when")
    @classmethod
    def _is_an_expression(cls, text: str | None) -> str | None:
        if text is not None:
            compiled(text)
        return text

    @field_validator("approvers")
    @classmethod
    def _are_named(cls, approvers: tuple[str, ...]) -> tuple[str, ...]:
        return named(approvers)


def named(approvers: tuple[str, ...]) -> tuple[str, ...]:
    """Approvers as they stand.

    Raises:
        ValueError: One of them names nobody.
    """
    for one in approvers:
        kind, colon, name = one.partition(":")
        if not (name if colon else kind).strip() or (colon and kind not in KINDS):
            known = ", ".join(f"{kind}:NAME" for kind in KINDS)
            raise ValueError(f"{one[:40]!r} is no approver: write a name, {known}")
    return approvers


def compiled(text: str) -> Expression:
    """A condition, ready to be asked.

    Raises:
        ValueError: It is none; the message says why.
    """
    from loopagent.core.reshape import Expression  # noqa: PLC0415 - only where there is a condition

    return Expression(text)


def holds(text: str, params: dict[str, Any]) -> bool:
    """Whether a condition is `true` for the parameters of a call; null and anything else is not.

    Raises:
        ValueError: It cannot be worked out for them.
    """
    return compiled(text).holds({"params": params}, strict=True)
