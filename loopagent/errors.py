"""Every exception that loopagent raises, as one tree ordered by whose fault it is.

```text
LoopAgentError
├─ ConfigError        the host's: unknown model, missing template variable, broken project file
├─ RequestError       the caller's: carries the HTTP status and a stable code
├─ EffectError        the world's: becomes an outcome, never ends the loop by itself
│  ├─ ActionError     an action failed in a way it declares itself
│  └─ ModelError      a model call failed; `kind` says how, `retryable` whether to try again
└─ StoreError         the store's: conflict, corrupt or unreadable data
```

What a model gets wrong is never an exception: it becomes a value that is fed back to the model.
"""

from __future__ import annotations

from typing import Any, Literal


class LoopAgentError(Exception):
    """Base class of everything that loopagent raises on purpose."""


class ConfigError(LoopAgentError):
    """The host configured something that cannot work.

    Args:
        message: What is wrong and what to do about it.
        problems: One line a complaint, `file:line:column: path: what is wrong`, when there are several.
    """

    def __init__(self, message: str, problems: list[str] | None = None) -> None:
        super().__init__(message)
        self.problems: list[str] = problems or []


class RequestError(LoopAgentError):
    """The caller asked for something that cannot be done; nothing was changed.

    Args:
        code: Stable machine-readable word, for example `unknown_run`.
        message: What is wrong and what to do about it.
        status: The HTTP status that says the same.
        errors: One entry a place: `{"pointer": "/payload/x", "detail": "…"}` (RFC 9457 extension).
        retryable: Whether the same request may succeed later.
        kept: What is kept now, as JSON, when the caller changed something older.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 422,
        errors: list[dict[str, str]] | None = None,
        retryable: bool = False,
        kept: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.kept = kept
        self.errors: list[dict[str, str]] = errors or []
        self.retryable = retryable


class EffectError(LoopAgentError):
    """Something outside failed; the runtime turns it into an outcome."""


class ActionError(EffectError):
    """Raised by an action to say that it failed.

    Args:
        message: Shown to the model; must hold no secret.
        code: Stable word, for example `not_found`.
        fatal: True when no later call can work (missing credential, wrong configuration): the action is
            locked for the rest of the run.
        may_have_run: Whether it may have taken effect although it failed.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "failed",
        fatal: bool = False,
        may_have_run: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.fatal = fatal
        self.may_have_run = may_have_run


class AsksPersonError(ActionError):
    """Raised by an action that cannot go on before a person has answered something.

    Args:
        message: Says so, where nobody can be asked.
        asks: `{server, questions, state, seconds, most}`; see `core.call_questions`.
        may_have_run: Whether it may have taken effect by now.
    """

    def __init__(self, message: str, asks: dict[str, Any], *, may_have_run: bool = False) -> None:
        super().__init__(message, code="asks", may_have_run=may_have_run)
        self.asks = asks


ModelErrorKind = Literal[
    "rate_limit",
    "quota",
    "auth",
    "not_found",
    "bad_request",
    "context_window",
    "server",
    "connection",
    "timeout",
    "truncated_stream",
    "bad_response",
    "refusal",
    "content_filter",
    "config",
    "script_ended",
]
RETRYABLE_KINDS = frozenset(
    {"rate_limit", "server", "connection", "timeout", "truncated_stream", "bad_response"}
)


class ModelError(EffectError):
    """One attempt at a model call failed.

    Args:
        kind: What went wrong, see `ModelErrorKind`.
        message: Safe to show; never holds a key.
        status: HTTP status, when there was one.
        retry_after_seconds: What the server asked to wait, when it said so.
        partial: Text that had arrived before the failure.
        usage: Tokens the failed attempt is known to have cost, as in `ModelReply.usage`.
    """

    def __init__(
        self,
        kind: ModelErrorKind,
        message: str,
        *,
        status: int | None = None,
        retry_after_seconds: float | None = None,
        partial: str = "",
        usage: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ModelErrorKind = kind
        self.status = status
        self.retry_after_seconds = retry_after_seconds
        self.partial = partial
        self.usage: dict[str, Any] = usage or {}

    @property
    def retryable(self) -> bool:
        """Whether another attempt may succeed (never for quota, auth or a too long context)."""
        return self.kind in RETRYABLE_KINDS


class StoreError(LoopAgentError):
    """The store could not do what was asked; nothing was written."""


class ConflictError(StoreError):
    """Somebody else moved the run on since it was read: load it again."""


class CorruptError(StoreError):
    """Stored data cannot be read: damaged, or written by a newer version."""
