"""Asking a model until it answers: what is tried again, how long to wait, when to fall back.

One call of `Model.generate` is one attempt and retries nothing by itself, so every try is visible here.
Source: decision seats, the model call.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from loopagent.errors import ConfigError, LoopAgentError, ModelError


if TYPE_CHECKING:
    from loopagent.ports import DeltaSink, Model, ModelReply, ModelRequest


FALLBACK_KINDS = frozenset(
    {
        "rate_limit",
        "quota",
        "server",
        "connection",
        "timeout",
        "truncated_stream",
        "bad_response",
        "refusal",
        "content_filter",
    }
)
"""Failures that the next model is asked for: this one is not available, or will not answer."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When to try a model again.

    The wait doubles from `first_delay_seconds` to `max_delay_seconds`, less a random share of up to
    `jitter`. A wait that the server asks for is kept, plus that share on top. A server that asks
    for more than `max_inline_wait_seconds` is not waited for.
    """

    max_tries: int = 5
    max_empty_tries: int = 3
    first_delay_seconds: float = 1.0
    max_delay_seconds: float = 15.0
    growth: float = 2.0
    jitter: float = 0.25
    max_inline_wait_seconds: float = 60.0

    def delay_seconds(self, failures: int, asked_seconds: float | None, chance: float) -> float:
        """How long to wait after so many failures in a row.

        Args:
            failures: At least 1.
            asked_seconds: What the server asked for, if it did.
            chance: A random number from 0 to 1.
        """
        step = min(
            self.max_delay_seconds, self.first_delay_seconds * self.growth ** min(failures - 1, 64)
        )
        if asked_seconds is not None:
            return asked_seconds + step * self.jitter * chance
        return step * (1.0 - self.jitter * chance)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try that failed. `usage`: tokens it is known to have cost, as in `ModelReply.usage`; else empty."""

    number: int
    model: str
    kind: str
    message: str
    status: int | None = None
    usage: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class RetryNotice:
    """One try has failed and another follows: of `next_model`, in `delay_seconds`."""

    attempt: int
    model: str
    kind: str
    message: str
    delay_seconds: float
    next_model: str
    status: int | None = None


def notice_data(notice: RetryNotice, mask: Callable[[str], str]) -> dict[str, Any]:
    """A notice as the data of its event; secrets are masked."""
    return {
        "attempt": notice.attempt,
        "kind": notice.kind,
        "message": mask(notice.message),
        "delayMs": round(notice.delay_seconds * 1000),
        "model": notice.model,
        "nextModel": notice.next_model,
    }


async def ask(
    models: Sequence[Model],
    request: ModelRequest,
    *,
    policy: RetryPolicy,
    on_delta: DeltaSink | None,
    on_retry: Callable[[RetryNotice], Awaitable[None]],
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    chance: Callable[[], float] = random.random,
    timeout_seconds: float | None = None,
) -> tuple[ModelReply, tuple[Attempt, ...]]:
    """Ask for one usable reply.

    Args:
        models: The model to ask, then its fallbacks in order.
        request: The same for all.
        policy: When to try again.
        on_delta: Receives reply text as it arrives; after a notice, what had arrived is void.
        on_retry: Awaited after each failed try that another one follows.
        sleep: Waits, in seconds.
        chance: Random numbers from 0 to 1, for jitter.
        timeout_seconds: Bound on everything together, waits included.

    Returns:
        The reply, whose finish is `stop`, `length` or `unknown`, and the tries that failed before
        it.

    Raises:
        ModelError: No reply could be had. Its message names kind and number of attempts, its usage
            is the sum over all of them, and `retry_after_seconds` what the server asked for last.
        ConfigError: There is no model.
    """
    if not models:
        raise ConfigError("No model is configured for this run.")
    call = _Call(request, policy, on_delta, on_retry, sleep, chance, failed=[])
    if timeout_seconds is None:
        return await call.ask_all(models), tuple(call.failed)
    call.due = asyncio.get_running_loop().time() + timeout_seconds
    clock = asyncio.timeout(timeout_seconds)
    try:
        async with clock:
            reply = await call.ask_all(models)
    except TimeoutError as error:
        if not clock.expired():
            raise
        raise call.out_of_time(timeout_seconds) from error
    return reply, tuple(call.failed)


@dataclass
class _Call:
    """One call of `ask`, and what has failed in it so far."""

    request: ModelRequest
    policy: RetryPolicy
    on_delta: DeltaSink | None
    on_retry: Callable[[RetryNotice], Awaitable[None]]
    sleep: Callable[[float], Awaitable[Any]]
    chance: Callable[[], float]
    failed: list[Attempt]
    due: float | None = None
    """When no time is left, by the clock of the loop."""

    async def ask_all(self, models: Sequence[Model]) -> ModelReply:
        """Ask the models in order until one answers, each as often as the policy allows."""
        for number, model in enumerate(models, 1):
            tries = empties = 0
            while True:
                try:
                    reply = await model.generate(self.request, on_delta=self.on_delta)
                except Exception as failure:  # an adapter of somebody else may fail in any way
                    error = _model_error(model, failure)
                else:
                    unusable = _unusable(model, reply)
                    if unusable is None:
                        return reply
                    error = unusable
                tries += 1
                empties += isinstance(error, _EmptyReplyError)
                self._record(model, error)
                wait = self._wait(error, tries, empties)
                if wait is None:
                    break
                await self._notify(error, model, wait, model)
                await self.sleep(wait)
            following = models[number] if number < len(models) else None
            if following is None or error.kind not in FALLBACK_KINDS:
                raise self._final(error) from error
            await self._notify(error, model, 0.0, following)
        raise AssertionError(models)

    def out_of_time(self, seconds: float) -> ModelError:
        """The error for a call that reached its bound."""
        detail = f"no reply within {seconds:g} s"
        last = f"; the last failure before: {self.failed[-1].message}" if self.failed else ""
        return self._final(ModelError("timeout", f"{detail}{last}"), tries=len(self.failed) + 1)

    def _wait(self, error: ModelError, tries: int, empties: int) -> float | None:
        """Seconds until the next try of the same model; None when there is none."""
        policy = self.policy
        if not error.retryable or tries >= policy.max_tries or empties >= policy.max_empty_tries:
            return None
        asked = error.retry_after_seconds
        if asked is not None and asked > policy.max_inline_wait_seconds:
            return None
        wait = policy.delay_seconds(tries, asked, self.chance())
        left = None if self.due is None else self.due - asyncio.get_running_loop().time()
        return None if left is not None and wait >= left else wait

    def _record(self, model: Model, error: ModelError) -> None:
        number = len(self.failed) + 1
        self.failed.append(
            Attempt(number, model.name, error.kind, str(error), error.status, error.usage)
        )

    async def _notify(self, error: ModelError, model: Model, wait: float, following: Model) -> None:
        await self.on_retry(
            RetryNotice(
                attempt=len(self.failed),
                model=model.name,
                kind=error.kind,
                message=str(error),
                delay_seconds=wait,
                next_model=following.name,
                status=error.status,
            )
        )

    def _final(self, error: ModelError, tries: int | None = None) -> ModelError:
        number = len(self.failed) if tries is None else tries
        per_model = Counter(one.model for one in self.failed)
        spread = ", ".join(f"{amount} of {name}" for name, amount in per_model.items())
        count = f"{number} attempt{'' if number == 1 else 's'}{f' ({spread})' if len(per_model) > 1 else ''}"
        return ModelError(
            error.kind,
            f"{error.kind} after {count}: {error}{self._too_long(error)}",
            status=error.status,
            retry_after_seconds=error.retry_after_seconds,
            partial=error.partial,
            usage=_total([one.usage for one in self.failed]),
        )

    def _too_long(self, error: ModelError) -> str:
        """Why a failure that can be tried again was not: the server wants more patience than there is."""
        asked, most = error.retry_after_seconds, self.policy.max_inline_wait_seconds
        if asked is None or asked <= most:
            return ""
        return f"; it asks to wait {asked:g} s, and no more than {most:g} s are waited"


def _model_error(model: Model, failure: Exception) -> ModelError:
    """What a model raised, as the error of a model."""
    if isinstance(failure, ModelError):
        return failure
    if isinstance(failure, LoopAgentError):
        return ModelError("config", str(failure))
    error = ModelError("config", f"{model.name}: the adapter failed with {type(failure).__name__}")
    error.__cause__ = failure
    return error


class _EmptyReplyError(ModelError):
    """A reply without text."""


def _unusable(model: Model, reply: ModelReply) -> ModelError | None:
    """The error that a reply amounts to, if it cannot be used."""
    if reply.finish in ("refusal", "content_filter"):
        reason = reply.refusal or "no reason given"
        return ModelError(
            reply.finish,
            f"{model.name}: {reply.finish}: {reason[:1000]}",
            partial=reply.text,
            usage=asdict(reply.usage),
        )
    if reply.text.strip() or reply.finish == "length":
        return None
    return _EmptyReplyError(
        "bad_response",
        f"{model.name}: empty reply (finish: {reply.finish})",
        usage=asdict(reply.usage),
    )


def _total(usages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for usage in usages:
        total.update(
            {key: amount for key, amount in usage.items() if isinstance(amount, (int, float))}
        )
    return dict(total)
