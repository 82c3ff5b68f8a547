"""How an effect ended: well, with a value, or badly, with an error. Plain JSON either way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from loopagent.core.json_values import compact_json
from loopagent.core.values import value_object


NOT_FAILURES = frozenset({"rejected", "expired", "denied", "not_started"})
"""Codes that say a call was not made by decision; they count neither as success nor as mistake."""
NOT_MADE = NOT_FAILURES | {
    "blocked",
    "max_calls",
    "no_approver",
    "plan_mode",
    "unknown_action",
}
"""Codes of calls that never reached their action."""
HOPELESS = NOT_MADE - {"denied"}
"""Those of them after which a loop goes no further: the next pass would fare alike. A hook looks at each call."""
INTERRUPTED = "interrupted"
"""Code of a call that was started and whose end nobody knows."""


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """Why an effect failed.

    `code` is a stable word. `fatal`: no later call can work. `may_have_run`: the effect may have happened
    although no result is known.
    """

    code: str
    message: str
    fatal: bool = False
    may_have_run: bool = False

    def public(self) -> dict[str, Any]:
        """The same as camelCase JSON, flags only where they are set."""
        body: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.may_have_run:
            body["mayHaveRun"] = True
        return body


@value_object(frozen=True, slots=True)
class Outcome:
    """What became of an effect. `value` is JSON; `duration_ms` covers all `attempts`.

    `early_ms`: how long before it was asked for it had begun; see `core.early`.
    """

    ok: bool
    value: Any = None
    error: ErrorInfo | None = None
    duration_ms: float = 0.0
    attempts: int = 1
    early_ms: float = 0.0
    hooks: tuple[dict[str, Any], ...] = ()
    """What hooks after a call said, until the core takes it in."""
    model_calls: tuple[dict[str, Any], ...] = ()
    """Models that an action asked: `{model, usage, error?}` each; their cost counts towards the run."""

    @classmethod
    def done(cls, value: Any = None, *, duration_ms: float = 0.0, attempts: int = 1) -> Outcome:
        """It worked."""
        return cls(True, value, None, round(duration_ms, 2), attempts)

    @classmethod
    def failed(
        cls,
        code: str,
        message: str,
        *,
        fatal: bool = False,
        may_have_run: bool = False,
        duration_ms: float = 0.0,
        attempts: int = 1,
    ) -> Outcome:
        """It did not work."""
        error = ErrorInfo(code, message, fatal, may_have_run)
        return cls(False, None, error, round(duration_ms, 2), attempts)

    def with_value(self, value: Any) -> Outcome:
        """The same outcome with another value."""
        return replace(self, value=value)

    def text(self) -> str:
        """The value as text: a string as it is, anything else as JSON."""
        if isinstance(self.value, str):
            return self.value
        return compact_json(self.value)
