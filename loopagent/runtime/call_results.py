"""How a call of an action ended, as an outcome: a result that is JSON, or an error in words, both without secrets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from loopagent.core.jsonable import NotJsonError, TooLargeError, storable, to_jsonable
from loopagent.core.outcome import Outcome
from loopagent.core.text import clean_text
from loopagent.errors import ActionError, AsksPersonError
from loopagent.runtime.describe import complaints, described, said
from loopagent.runtime.threads import BusyError


if TYPE_CHECKING:
    from loopagent.core.action_spec import ActionSpec

MAX_MESSAGE_CHARS = 2_000
INLINE_BYTES = 64_000
"""A result up to this size is converted at once, a larger one in a thread."""


class CallResults:
    """Makes outcomes of what calls return or raise.

    Args:
        mask: Applied to every text, to take out secrets; None for nothing.
    """

    def __init__(self, mask: Callable[[str], str] | None) -> None:
        self.text: Callable[[str], str] = storable if mask is None else partial(_masked, mask)
        """A text as it can be stored and may be seen."""

    def quickly_converted(self, spec: ActionSpec, value: Any, max_bytes: int) -> Outcome | None:
        """The outcome of an action that ran and returned; None when converting its result would take long."""
        limit = min(INLINE_BYTES, max_bytes)
        try:
            form = to_jsonable(value, max_bytes=limit, text=self.text)
            return Outcome(True, form)  # by name it would take twice as long
        except TooLargeError:
            return None
        except (Exception, SystemExit):
            return self.converted(spec, value, max_bytes)

    def converted(self, spec: ActionSpec, value: Any, max_bytes: int) -> Outcome:
        """The outcome of an action that ran and returned."""
        try:
            form = to_jsonable(value, max_bytes=max_bytes, text=self.text)
            return Outcome(ok=True, value=form)
        except TooLargeError as error:
            code, why = "result_too_large", f"{error.reason}, and at most {max_bytes} are kept"
        except NotJsonError as error:
            code, why = "bad_result", str(error)
        except (Exception, SystemExit) as error:  # raised by a serializer of the author's
            code, why = "bad_result", described(error)
        text = f"{spec.name} ran, but its result cannot be kept: {why}."
        return self._failure(code, text, may_have_run=spec.effects != "read")

    def failed(self, error: BaseException) -> Outcome:
        """An exception as an outcome: its message, never its stack trace."""
        if isinstance(error, ActionError):
            failed = self._failure(
                error.code,
                said(error) or error.code,
                fatal=error.fatal,
                may_have_run=error.may_have_run,
            )
            asks = error.asks if isinstance(error, AsksPersonError) else None
            return failed if asks is None else failed.with_value(to_jsonable(asks, text=self.text))
        return self._failure("exception", described(error))

    def _failure(
        self, code: str, text: str, *, fatal: bool = False, may_have_run: bool = False
    ) -> Outcome:
        text = self.text(text)
        if len(text) > MAX_MESSAGE_CHARS:
            text = text[: MAX_MESSAGE_CHARS - 1] + "…"
        return Outcome.failed(code, text, fatal=fatal, may_have_run=may_have_run)

    def refused(self, spec: ActionSpec, error: Exception) -> Outcome:
        """An attempt that did not begin; a validator of the author's may raise anything."""
        if isinstance(error, BusyError):
            text = f"{spec.name} was not started: {error}."
            return Outcome.failed("not_started", text)
        if isinstance(error, ValidationError):
            return self._failure("bad_params", complaints(error))
        return self.failed(error)


def _masked(mask: Callable[[str], str], text: str) -> str:
    """A text as it can be stored and may be seen; `storable` is written out, as every text comes by here."""
    return mask(text if text.isascii() and "\0" not in text else clean_text(text))
