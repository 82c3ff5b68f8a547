"""Sending a request until it works, as often as does no harm."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, TypeVar

import httpx2

from loopagent.egress import EgressDeniedError
from loopagent.egress.decoding import TooLongError
from loopagent.errors import ActionError


if TYPE_CHECKING:
    from loopagent.actions.format import RetrySection

_T = TypeVar("_T")
_UNSENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""Failures before anything was sent."""
_TIMEOUTS: Final = (TimeoutError, httpx2.TimeoutException)


class TroubleError(Exception):
    """One attempt failed in a way that another may not.

    Args:
        cause: `timeout`, `connection`, or the status.
        error: What to tell when there is no other attempt.
        sent: Whether the server may have got the request.
        retryable: Whether another attempt is worth it whatever the settings list.
        after_seconds: How long the server asked to wait.
    """

    def __init__(
        self,
        cause: str,
        error: ActionError,
        *,
        sent: bool = True,
        retryable: bool = False,
        after_seconds: float | None = None,
    ) -> None:
        super().__init__(str(error))
        self.cause = cause
        self.error = error
        self.sent = sent
        self.retryable = retryable
        self.after_seconds = after_seconds


@dataclass(frozen=True, slots=True)
class Again:
    """When to send a request again.

    `repeatable`: it does no harm even if the server got it. `seconds_left` is the time left for the call. `chance` is
    a random number from 0 to 1; `tell` hears about each repetition.
    """

    section: RetrySection
    repeatable: bool
    seconds_left: Callable[[], float]
    chance: Callable[[], float]
    tell: Callable[[str], None]

    def wait_seconds(self, trouble: TroubleError, attempt: int) -> float | None:
        """How long to wait before the next attempt; None when there is none."""
        section = self.section
        if attempt >= section.attempts or (trouble.sent and not self.repeatable):
            return None
        if not trouble.retryable and not _listed(trouble.cause, section.retry_on):
            return None
        # Full jitter: callers that failed together do not come back together.
        wait = min(section.max_wait, section.wait * 2.0 ** (attempt - 1)) * self.chance()
        asked = trouble.after_seconds if section.respect_retry_after else None
        if asked is not None:
            if asked > section.max_wait:
                return None
            wait = max(wait, asked)
        return wait if wait < self.seconds_left() else None


async def attempted(send: Callable[[], Awaitable[_T]], again: Again) -> _T:
    """What one of the attempts gives.

    Args:
        send: Makes one attempt.
        again: When to make another.

    Raises:
        ActionError: All of them failed, or one in a way that no other can mend.
    """
    attempt = 1
    while True:
        try:
            return await _sent(send)
        except TroubleError as trouble:
            wait = again.wait_seconds(trouble, attempt)
            if wait is None:
                raise trouble.error from trouble
            again.tell(f"attempt {attempt} failed ({trouble.cause}); the next in {wait:.1f} s")
        attempt += 1
        await asyncio.sleep(wait)


async def _sent(send: Callable[[], Awaitable[_T]]) -> _T:
    """One attempt, with whatever the client raises in our words."""
    try:
        return await send()
    except EgressDeniedError as error:
        raise ActionError(f"{error}.", code="egress_denied", fatal=True) from error
    except TooLongError as error:
        text = f"Not taken: {error}. Ask for less, if that can be."
        raise ActionError(text, code="answer_too_large", may_have_run=True) from error
    except httpx2.InvalidURL as error:
        raise ActionError("The address cannot be called.", code="invalid_request") from error
    except _UNSENT as error:
        failed = ActionError(_unreached(error), code="connection")
        raise TroubleError("connection", failed, sent=False) from error
    except _TIMEOUTS as error:
        failed = ActionError(
            "The server did not answer in time.", code="timeout", may_have_run=True
        )
        raise TroubleError("timeout", failed) from error
    except httpx2.DecodingError as error:
        raise ActionError(
            f"The answer cannot be read: {error}.", code="bad_answer", may_have_run=True
        ) from error
    except httpx2.HTTPError as error:
        raise broken_off() from error


def broken_off() -> TroubleError:
    """Half an answer came."""
    text = "The connection broke off before the answer was complete."
    return TroubleError("connection", ActionError(text, code="connection", may_have_run=True))


def _unreached(error: BaseException | None) -> str:
    """Why nothing was sent: a certificate or a server without TLS is nothing that waiting mends."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"The certificate of the server is not trusted: {error.verify_message}."
        if isinstance(error, ssl.SSLError):
            return "No secure connection can be made with the server; perhaps it speaks http only."
        error = error.__cause__ or error.__context__
    return "The server could not be reached."


def _listed(cause: str, causes: tuple[int | str, ...]) -> bool:
    names = {cause, f"{cause[:1]}xx"} if cause.isdecimal() else {cause}
    return any(str(one) in names for one in causes)


def after_seconds(headers: httpx2.Headers, now: float) -> float | None:
    """How long a server asks to wait, by its `Retry-After`: seconds or a date."""
    text = headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text[:10])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now) if text else None
    except (ValueError, OverflowError):
        return None
