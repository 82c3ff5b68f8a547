"""Asking models: for the next step of a run, and for whatever else is needed beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from loopagent.core.lineage import place_in_tree
from loopagent.core.outcome import Outcome
from loopagent.core.prompt import system_prompt, volatile_message
from loopagent.core.text import clean_text
from loopagent.errors import ModelError
from loopagent.ports import ChatMessage, Model, ModelReply, ModelRequest
from loopagent.runtime.attempts import Attempt, RetryNotice, RetryPolicy, ask, notice_data
from loopagent.runtime.compact import Summarise, usage_json
from loopagent.runtime.streaming import ReplyStream
from loopagent.runtime.structured import Schemas


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.effects import CallModel, Effect
    from loopagent.redaction import Redactor
    from loopagent.runtime.bus import Bus
    from loopagent.runtime.live import Live
    from loopagent.runtime.performs import Report


class ModelCalls:
    """Opens models, and asks them.

    Args:
        open_model: Opens the model of a name.
        template: The system prompt's.
        bus: Who listens while replies arrive.
        redactor: Takes secrets out of what comes back.
        retry: When to ask again.
        schemas: Which models are held to a schema.
    """

    def __init__(
        self,
        open_model: Callable[[str], Model],
        *,
        template: str,
        bus: Bus,
        redactor: Redactor,
        retry: RetryPolicy | None = None,
        schemas: Schemas | None = None,
    ) -> None:
        self._open_model = open_model
        self._template = template
        self._bus = bus
        self._redactor = redactor
        self._mask = redactor.mask
        self._retry = retry or RetryPolicy()
        self._schemas = schemas or Schemas()
        self._models: dict[str, Model] = {}
        self._prompts: dict[str, str] = {}

    def open(self, name: str) -> Model:
        """The model of a name, opened once.

        Raises:
            ConfigError: There is no such model or its key is missing.
        """
        if name not in self._models:
            self._models[name] = self._open_model(name)
        return self._models[name]

    async def aclose(self) -> None:
        """Close the models that were opened."""
        for model in self._models.values():
            await model.aclose()
        self._models.clear()

    def system(self, spec: AgentSpec) -> str:
        """The system prompt of a definition, rendered once."""
        digest = spec.digest()
        if digest not in self._prompts:
            self._prompts[digest] = system_prompt(self._template, spec)
        return self._prompts[digest]

    def request(self, live: Live) -> ModelRequest:
        """The model request for a run as it is now."""
        state, spec = live.state, live.state.spec
        if live.system is None:
            live.system = self.system(spec)
        return ModelRequest(
            live.system,
            [*live.view.chat, ChatMessage("user", volatile_message(state))],
            None,  # no schema yet
            spec.limits.max_output_tokens,
            spec.temperature,
            place_in_tree(state),
            spec.name,
        )

    async def next_step(self, live: Live, effect: CallModel, report: Report) -> Outcome:
        """Ask for the next reply of a run, and have it followed while it arrives."""
        state = live.state
        stream = live.reply = ReplyStream(live, effect.id, self._bus, self._redactor, live.early)

        async def on_retry(notice: RetryNotice) -> None:
            again = notice.next_model == notice.model
            stream.restart("retry" if again else "fallback")
            await _tell_dropped(live, report)
            await report("model_retry", {"effect": effect.id, **notice_data(notice, self._mask)})

        models = [
            self._schemas.held(self.open(name), state.spec, on_retry)
            for name in (state.model, *state.spec.fallback_models)
        ]
        request = self.request(live)
        prompt = live.view.fingerprint(request.system, request.messages[-1])
        try:
            reply, attempts = await ask(
                models,
                request,
                policy=self._retry,
                on_delta=stream.feed,
                on_retry=on_retry,
                sleep=live.pause,
                timeout_seconds=None if effect.timeout_ms is None else effect.timeout_ms / 1000.0,
            )
        except ModelError:
            stream.finish(None)
            raise
        stream.finish(reply)
        if live.early is not None:
            await _tell_dropped(live, report)
        value: dict[str, Any] = {
            "text": self._mask(clean_text(reply.text)),
            "finish": reply.finish,
            "model": reply.model,
            "usage": usage_json(reply.usage),
            "prompt": prompt,
        }
        if reply.bound:
            value["bound"] = True
        if attempts and (failed := [_attempt(one) for one in attempts if one.usage]):
            value["attempts"] = failed
        return Outcome(ok=True, value=value, duration_ms=round(reply.total_ms, 2))

    def texts(
        self, live: Live, effect: Effect, report: Report, names: Sequence[str] = ()
    ) -> Summarise:
        """Asks a model for a text; the run's models when none is named."""
        put = self.beside(live, effect, report, names=names)

        async def asked(request: ModelRequest) -> ModelReply:
            return (await put(request))[0]

        return asked

    def beside(
        self,
        live: Live,
        effect: Effect,
        report: Report,
        timeout_ms: int | None = None,
        names: Sequence[str] = (),
    ) -> Callable[[ModelRequest], Awaitable[tuple[ModelReply, tuple[Attempt, ...]]]]:
        """Asks models something other than the next step: the run's, when none are named."""
        names = names or (live.state.model, *live.state.spec.fallback_models)
        seconds = None if timeout_ms is None else timeout_ms / 1000.0

        async def on_retry(notice: RetryNotice) -> None:
            await report("model_retry", {"effect": effect.id, **notice_data(notice, self._mask)})

        return lambda request: ask(
            [self.open(name) for name in names],
            request,
            policy=self._retry,
            on_delta=None,
            on_retry=on_retry,
            timeout_seconds=seconds,
        )


async def _tell_dropped(live: Live, report: Report) -> None:
    """Put on record which early calls were stopped, while the run still goes on."""
    dropped = [] if live.early is None else live.early.dropped()
    if dropped:
        await report("discarded", {"calls": dropped})


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {"kind": attempt.kind, "model": attempt.model, "usage": dict(attempt.usage or {})}
