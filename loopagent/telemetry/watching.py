"""Watching the work: models and the performer, as the engine knows them, with a clock and a trace around each call."""

from __future__ import annotations

from inspect import isawaitable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from loopagent.errors import ModelError
from loopagent.telemetry import names


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opentelemetry.trace import Span

    from loopagent.core.effects import Effect
    from loopagent.core.outcome import Outcome
    from loopagent.ports import ChatMessage, DeltaSink, Model, ModelReply, ModelRequest, Usage
    from loopagent.runtime.live import Live
    from loopagent.runtime.performs import Performs, Report
    from loopagent.telemetry.measures import Measures
    from loopagent.telemetry.spans import Tracing


class WatchedPerformer:
    """Performs effects as another performer does, watched."""

    def __init__(self, inner: Performs, tracing: Tracing | None, measures: Measures | None) -> None:
        self._inner = inner
        self._tracing = tracing
        self._measures = measures

    async def perform(self, live: Live, effect: Effect, report: Report) -> Outcome:
        """Do what an effect asks for; see `Performer.perform`."""
        began = perf_counter()
        outcome = await self._traced(live, effect, report)
        if self._measures is not None and effect.kind != "set_timer":
            seconds, ok = perf_counter() - began, outcome.error is None
            self._measures.effect(live.state, effect.kind, seconds, ok=ok)
        return outcome

    async def _traced(self, live: Live, effect: Effect, report: Report) -> Outcome:
        if self._tracing is None:
            return await self._inner.perform(live, effect, report)
        with self._tracing.effect(live.state, effect) as span:
            outcome = await self._inner.perform(live, effect, report)
            self._tracing.performed(span, outcome)
            return outcome


class WatchedModel:
    """A model whose attempts are watched; in everything else it is the model that it stands for."""

    def __init__(self, inner: Model, tracing: Tracing | None, measures: Measures | None) -> None:
        self.name = inner.name
        self._inner = inner
        self._tracing = tracing
        self._measures = measures
        prefix, separator, rest = inner.name.partition(":")
        self._provider = names.PROVIDERS.get(prefix, names.OTHER_PROVIDER)
        self._model = rest if separator and prefix in names.PROVIDERS else inner.name

    def __getattr__(self, name: str) -> Any:
        """Whatever else the model has, such as `schema_support`."""
        return getattr(self._inner, name)

    async def aclose(self) -> None:
        """Give back connections."""
        await self._inner.aclose()

    async def generate(
        self, request: ModelRequest, *, on_delta: DeltaSink | None = None
    ) -> ModelReply:
        """Ask once; see `Model.generate`."""
        if self._tracing is None:
            return await self._measured(request, on_delta)
        name = f"{names.CHAT} {self._model}"
        from opentelemetry.trace import SpanKind  # noqa: PLC0415 - only who traces needs it

        with self._tracing.tracer.start_as_current_span(
            name,
            kind=SpanKind.CLIENT,
            attributes=self._asked(request, streams=on_delta is not None),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            return await self._told(span, request, on_delta)

    async def _told(
        self, span: Span, request: ModelRequest, on_delta: DeltaSink | None
    ) -> ModelReply:
        from loopagent.telemetry.spans import fail  # noqa: PLC0415 - only who traces needs it

        assert self._tracing is not None
        if self._tracing.with_content:
            self._tracing.content(span, names.SYSTEM_INSTRUCTIONS, [_text(request.system)])
            self._tracing.content(span, names.INPUT_MESSAGES, _messages(request.messages))
        try:
            reply = await self._measured(request, on_delta)
        except BaseException as error:
            fail(span, _kind(error))
            raise
        span.set_attributes(_answered(reply))
        if self._tracing.with_content:
            said = [
                {"role": "assistant", "parts": [_text(reply.text)], "finish_reason": reply.finish}
            ]
            self._tracing.content(span, names.OUTPUT_MESSAGES, said)
        return reply

    async def _measured(self, request: ModelRequest, on_delta: DeltaSink | None) -> ModelReply:
        measures, began = self._measures, perf_counter()
        if measures is None:
            return await self._inner.generate(request, on_delta=on_delta)
        heard = None if on_delta is None else _First(on_delta, began)
        usage: Usage | None = None
        kind: str | None = None
        try:
            reply = await self._inner.generate(request, on_delta=heard)
            usage = reply.usage
        except BaseException as error:
            kind = _kind(error)
            raise
        finally:
            seconds = perf_counter() - began
            measures.model_call(self._provider, self._model, seconds, usage, kind)
            if heard is not None and heard.seconds is not None:
                measures.first_chunk(self._provider, self._model, heard.seconds)
        return reply

    def _asked(self, request: ModelRequest, *, streams: bool) -> dict[str, Any]:
        about: dict[str, Any] = {
            names.OPERATION_NAME: names.CHAT,
            names.PROVIDER_NAME: self._provider,
            names.REQUEST_MODEL: self._model,
            names.REQUEST_STREAM: streams,
            names.AGENT_NAME: request.agent or None,
            names.REQUEST_MAX_TOKENS: request.max_output_tokens,
            names.REQUEST_TEMPERATURE: request.temperature,
        }
        return {key: one for key, one in about.items() if one is not None}


class _First:
    """Passes pieces of a reply on, and knows when the first one came."""

    def __init__(self, sink: DeltaSink, began: float) -> None:
        self._sink = sink
        self._began = began
        self.seconds: float | None = None

    async def __call__(self, text: str) -> None:
        if self.seconds is None:
            self.seconds = perf_counter() - self._began
        passed = self._sink(text)
        if isawaitable(passed):
            await passed


def watched_models(
    open_model: Callable[[str], Model], tracing: Tracing | None, measures: Measures | None
) -> Callable[[str], Model]:
    """Opens models as another function does, watched."""
    return lambda name: WatchedModel(open_model(name), tracing, measures)


def _kind(error: BaseException) -> str:
    """A stable word for what went wrong."""
    return error.kind if isinstance(error, ModelError) else type(error).__name__


def _answered(reply: ModelReply) -> dict[str, Any]:
    usage = reply.usage
    first = reply.first_token_ms
    about: dict[str, Any] = {
        names.RESPONSE_MODEL: reply.model or None,
        names.RESPONSE_ID: reply.request_id,
        names.RESPONSE_FINISH_REASONS: [reply.finish],
        names.RESPONSE_TIME_TO_FIRST_CHUNK: None if first is None else first / 1000.0,
        names.USAGE_INPUT_TOKENS: usage.input_tokens,
        names.USAGE_OUTPUT_TOKENS: usage.output_tokens,
        names.USAGE_CACHE_READ_INPUT_TOKENS: usage.cached_tokens,
        names.USAGE_REASONING_OUTPUT_TOKENS: usage.reasoning_tokens,
    }
    return {key: one for key, one in about.items() if one is not None}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "content": text}


def _messages(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    return [{"role": one.role, "parts": [_text(one.text)]} for one in messages]
