"""Trying again: what is tried how often, how long is waited, who is asked next, and what is told at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.errors import ConfigError, ModelError, ModelErrorKind
from loopagent.models.http import HttpSettings
from loopagent.models.openai import OpenAIModel
from loopagent.models.scripted import ScriptedModel
from loopagent.ports import ChatMessage, DeltaSink, Model, ModelReply, ModelRequest, Usage
from loopagent.runtime.attempts import FALLBACK_KINDS, Attempt, RetryNotice, RetryPolicy, ask
from tests.fakes.provider import FakeProvider
from tests.fakes.wire import REPLY


pytestmark = pytest.mark.anyio
REQUEST = ModelRequest("JSON.", [ChatMessage("user", "go")])
POLICY = RetryPolicy()


class Asking:
    """One call of `ask` with all that it did to the world."""

    def __init__(self, *models: Model, policy: RetryPolicy = POLICY, chance: float = 0.0) -> None:
        self.models = models
        self.policy = policy
        self.chance = chance
        self.notices: list[RetryNotice] = []
        self.waits: list[float] = []

    async def call(
        self, timeout_seconds: float | None = None, on_delta: DeltaSink | None = None
    ) -> tuple[ModelReply, tuple[Attempt, ...]]:
        return await ask(
            self.models,
            REQUEST,
            policy=self.policy,
            on_delta=on_delta,
            on_retry=self._on_retry,
            sleep=self._sleep,
            chance=lambda: self.chance,
            timeout_seconds=timeout_seconds,
        )

    async def fail(self, timeout_seconds: float | None = None) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.call(timeout_seconds)
        return caught.value

    async def _on_retry(self, notice: RetryNotice) -> None:
        self.notices.append(notice)

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def model(*script: Any, name: str = "test:a") -> ScriptedModel:
    return ScriptedModel(script, name=name)


def always(
    answer: Callable[[], Any] | ModelErrorKind, name: str = "test:a", **more: Any
) -> ScriptedModel:
    """A model that gives the same answer for ever: a kind of error, or what a function makes."""
    if callable(answer):
        return ScriptedModel(lambda _: answer(), name=name)
    return ScriptedModel(lambda _: ModelError(answer, f"{name} {answer}", **more), name=name)


async def test_a_good_reply_needs_one_try() -> None:
    asking = Asking(model("fine"))
    reply, failed = await asking.call()
    assert (reply.text, failed) == ("fine", ())
    assert (asking.notices, asking.waits) == ([], [])


async def test_each_failed_try_is_told() -> None:
    errors = [ModelError("rate_limit", "slow down", status=429), ModelError("connection", "reset")]
    asking = Asking(model(*errors, "fine"))
    reply, failed = await asking.call()
    assert reply.text == "fine"
    assert asking.notices == [
        RetryNotice(1, "test:a", "rate_limit", "slow down", 1.0, "test:a", 429),
        RetryNotice(2, "test:a", "connection", "reset", 2.0, "test:a"),
    ]
    assert failed == (
        Attempt(1, "test:a", "rate_limit", "slow down", 429),
        Attempt(2, "test:a", "connection", "reset"),
    )


async def test_five_tries_with_growing_waits() -> None:
    broken = always("server", status=500)
    asking = Asking(broken)
    error = await asking.fail()
    assert len(broken.requests) == 5
    assert asking.waits == [1.0, 2.0, 4.0, 8.0]
    assert len(asking.notices) == 4, "the last failure is the call's own"
    assert (error.kind, error.status) == ("server", 500)
    assert str(error) == "server after 5 attempts: test:a server"


@given(
    failures=st.integers(1, 1000),
    chance=st.floats(0, 1),
    asked=st.none() | st.floats(0, 1000),
)
def test_waits_stay_in_bounds(failures: int, chance: float, asked: float | None) -> None:
    wait = POLICY.delay_seconds(failures, asked, chance)
    if asked is None:
        assert 0.75 <= wait <= 15.0
    else:
        assert asked <= wait <= asked + 15.0 * 0.25


async def test_jitter_spreads_the_waits() -> None:
    asking = Asking(always("server"), chance=1.0)
    await asking.fail()
    assert asking.waits == [0.75, 1.5, 3.0, 6.0]


async def test_the_server_s_own_wait_is_kept() -> None:
    hint = ModelError("rate_limit", "x", retry_after_seconds=7.0)
    asking = Asking(model(hint, hint, "fine"), chance=0.5)
    await asking.call()
    assert asking.waits == [7.125, 7.25]


async def test_a_wait_too_long_is_left_to_the_caller() -> None:
    asking = Asking(always("rate_limit", retry_after_seconds=120.0))
    error = await asking.fail()
    assert (error.kind, error.retry_after_seconds, asking.waits) == ("rate_limit", 120.0, [])
    assert str(error).endswith("it asks to wait 120 s, and no more than 60 s are waited")
    assert str(error).startswith("rate_limit after 1 attempt: ")
    patient = Asking(model(ModelError("rate_limit", "x", retry_after_seconds=120.0), "fine"))
    patient.policy = RetryPolicy(max_inline_wait_seconds=200.0)
    assert (await patient.call())[0].text == "fine"


@pytest.mark.parametrize("kind", get_args(ModelErrorKind))
async def test_which_kinds_are_tried_again(kind: ModelErrorKind) -> None:
    broken = always(kind)
    error = await Asking(broken).fail()
    again = {"rate_limit", "server", "connection", "timeout", "truncated_stream", "bad_response"}
    assert len(broken.requests) == (5 if kind in again else 1)
    assert error.kind == kind
    assert f"{kind} after" in str(error)


async def test_an_empty_reply_is_tried_three_times() -> None:
    blank = always(lambda: ModelReply(" \n", usage=Usage(input_tokens=10)))
    asking = Asking(blank)
    error = await asking.fail()
    assert len(blank.requests) == 3
    assert error.kind == "bad_response"
    assert "empty reply (finish: stop)" in str(error)
    assert error.usage["input_tokens"] == 30
    reply, failed = await Asking(model(ModelReply(""), "fine")).call()
    assert (reply.text, [one.kind for one in failed]) == ("fine", ["bad_response"])


async def test_a_reply_cut_at_its_limit_is_a_reply() -> None:
    reply, failed = await Asking(model(ModelReply("", finish="length"))).call()
    assert (reply.finish, failed) == ("length", ())


@pytest.mark.parametrize("finish", ["refusal", "content_filter"])
async def test_a_refusal_fails_at_once(finish: Any) -> None:
    refusing = always(lambda: ModelReply("", finish=finish, refusal="Not this."))
    error = await Asking(refusing).fail()
    assert len(refusing.requests) == 1
    assert error.kind == finish
    assert "Not this." in str(error)
    assert not error.retryable


@pytest.mark.parametrize("kind", get_args(ModelErrorKind))
async def test_which_failures_the_next_model_is_asked_for(kind: ModelErrorKind) -> None:
    first, second = always(kind), model("from b", name="test:b")
    asking = Asking(first, second)
    if kind not in FALLBACK_KINDS:
        assert (await asking.fail()).kind == kind
        assert second.requests == []
        return
    reply, failed = await asking.call()
    assert reply.text == "from b"
    assert {one.model for one in failed} == {"test:a"}
    assert (asking.notices[-1].next_model, asking.notices[-1].delay_seconds) == ("test:b", 0.0)
    assert len(asking.notices) == len(first.requests)


async def test_a_refusal_goes_to_the_next_model() -> None:
    refusing = model(ModelReply("", finish="refusal", usage=Usage(output_tokens=3)))
    reply, failed = await Asking(refusing, model("fine", name="test:b")).call()
    assert reply.text == "fine"
    assert [(one.kind, one.usage["output_tokens"]) for one in failed] == [("refusal", 3)]


async def test_the_last_error_tells_of_all_models() -> None:
    error = await Asking(always("server"), always("auth", name="test:b")).fail()
    assert error.kind == "auth"
    assert str(error) == "auth after 6 attempts (5 of test:a, 1 of test:b): test:b auth"


async def test_usage_of_failed_attempts_is_kept_and_summed() -> None:
    def spent(tokens: int) -> ModelError:
        return ModelError("server", "x", usage={"input_tokens": tokens, "cost_usd": None})

    _, failed = await Asking(model(spent(5), spent(7), "fine")).call()
    assert [one.usage["input_tokens"] for one in failed] == [5, 7]
    error = await Asking(always(lambda: spent(5))).fail()
    assert error.usage == {"input_tokens": 25}


async def test_one_bound_on_everything() -> None:
    async def hang(_: ModelRequest) -> str:
        await asyncio.sleep(30)
        return "late"

    error = await Asking(ScriptedModel(hang)).fail(timeout_seconds=0.05)
    assert str(error) == "timeout after 1 attempt: no reply within 0.05 s"
    assert error.kind == "timeout"


async def test_a_wait_that_outlasts_the_bound_is_not_begun() -> None:
    limited = ModelError("rate_limit", "slow down", retry_after_seconds=2.0)
    asking = Asking(model(limited, "fine"))
    error = await asking.fail(timeout_seconds=1.5)
    assert (error.kind, asking.waits) == ("rate_limit", [])
    other = Asking(model(limited, "fine"), model("from b", name="test:b"))
    assert (await other.call(timeout_seconds=1.5))[0].text == "from b"


async def test_an_adapter_that_breaks_is_no_crash() -> None:
    def broken(_: ModelRequest) -> str:
        raise KeyError("plain-secret-42")

    error = await Asking(ScriptedModel(broken, name="mine:x")).fail()
    assert error.kind == "config"
    assert "mine:x: the adapter failed with KeyError" in str(error)
    assert "plain-secret" not in str(error)


async def test_an_adapter_s_own_complaint_is_kept() -> None:
    def unready(_: ModelRequest) -> str:
        raise ConfigError("set X")

    assert "set X" in str(await Asking(ScriptedModel(unready)).fail())


async def test_cancellation_passes_through() -> None:
    async def hang(_: ModelRequest) -> str:
        await asyncio.sleep(30)
        return "late"

    asking = Asking(ScriptedModel(hang), model("fine"))
    task = asyncio.ensure_future(asking.call())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asking.notices == []


async def test_a_timeout_of_somebody_else_is_not_taken_for_ours() -> None:
    async def on_retry(_: RetryNotice) -> None:
        raise TimeoutError("the store is slow")

    with pytest.raises(TimeoutError, match="the store is slow"):
        await ask(
            [always("server")],
            REQUEST,
            policy=POLICY,
            on_delta=None,
            on_retry=on_retry,
            timeout_seconds=9,
        )


async def test_without_a_model_there_is_nothing_to_ask() -> None:
    with pytest.raises(ConfigError, match="No model"):
        await Asking().call()


async def test_text_of_a_failed_try_comes_before_its_notice() -> None:
    told: list[str] = []

    async def on_retry(notice: RetryNotice) -> None:
        told.append(f"<{notice.kind}>")

    script = model({"chunks": ["he", "l"], "error": {"kind": "connection"}}, {"chunks": ["hello"]})
    await ask(
        [script],
        REQUEST,
        policy=RetryPolicy(first_delay_seconds=0),
        on_delta=told.append,
        on_retry=on_retry,
    )
    assert told == ["he", "l", "<connection>", "hello"]


async def test_against_a_real_server() -> None:
    settings = HttpSettings(idle_seconds=0.3, wait_seconds=0.3)
    with FakeProvider() as provider:

        def at(scenario: str) -> OpenAIModel:
            return OpenAIModel(f"test:{scenario}", scenario, provider.url, "k", settings=settings)

        for scenario, tries in (("ok", 1), ("rl-once", 2), ("e500-once", 2)):
            model = at(scenario)
            reply, failed = await Asking(model).call(on_delta=lambda _: None)
            assert (reply.text, len(failed)) == (REPLY, tries - 1)
            assert len(provider.bodies(scenario)) == tries
            await model.aclose()
        for scenario, tries, kind in (
            ("rl-forever", 5, "rate_limit"),
            ("rl-long", 1, "rate_limit"),
            ("rl-quota", 1, "quota"),
            ("auth", 1, "auth"),
            ("ctx", 1, "context_window"),
            ("empty", 3, "bad_response"),
            ("eof", 5, "truncated_stream"),
        ):
            model = at(scenario)
            with pytest.raises(ModelError) as caught:
                await Asking(model).call(on_delta=lambda _: None)
            assert (caught.value.kind, len(provider.bodies(scenario))) == (kind, tries)
            await model.aclose()


async def test_five_at_once_live_through_a_rate_limit() -> None:
    with FakeProvider() as provider:
        model = OpenAIModel("test:script", "script", provider.url, "k")
        provider.say(*[429] * 7, *['{"message": "fine"}'] * 5)
        policy = RetryPolicy(first_delay_seconds=0.01, max_delay_seconds=0.05)

        async def told(notice: RetryNotice) -> None:
            assert notice.kind == "rate_limit"

        one = [ask([model], REQUEST, policy=policy, on_delta=None, on_retry=told) for _ in range(5)]
        answers = await asyncio.gather(*one)
        assert {reply.text for reply, _ in answers} == {'{"message": "fine"}'}
        assert sum(len(failed) for _, failed in answers) == 7
        assert len(provider.bodies("script")) == 12
        await model.aclose()
