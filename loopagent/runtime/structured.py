"""Holding models to a JSON Schema: which of them, in which dialect, and what happens when one refuses it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from loopagent.core.reply_schema import reply_schema
from loopagent.errors import ConfigError, ModelError
from loopagent.logs import log
from loopagent.ports import ModelReply, ModelRequest, SchemaSupport
from loopagent.runtime.attempts import RetryNotice


if TYPE_CHECKING:
    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.dialect_writer import Dialect
    from loopagent.ports import DeltaSink, Model


StructuredMode = Literal["auto", "on", "off"]
"""When replies are held to a schema.

`auto`: by servers that are known to take one. `on`: by every server that could. `off`: by none.
"""
VARIABLE: Final = "LOOPAGENT_STRUCTURED"
"""Environment variable that sets the mode."""
MODES: Final[tuple[StructuredMode, ...]] = get_args(StructuredMode)
REFUSED: Final = "schema_refused"
"""Kind of the failed try in which a provider did not accept the schema."""
OnRetry = Callable[[RetryNotice], Awaitable[None]]


def structured_mode(env: Mapping[str, str]) -> StructuredMode:
    """The mode that the environment sets, or `auto`.

    Raises:
        ConfigError: There is no such mode.
    """
    text = env.get(VARIABLE, "").strip().lower() or "auto"
    for mode in MODES:
        if text == mode:
            return mode
    raise ConfigError(f"{VARIABLE} must be one of {', '.join(MODES)}; got {text!r}.")


class Schemas:
    """The schemas of agents, and which models take them."""

    def __init__(self, mode: StructuredMode = "auto") -> None:
        self._mode = mode
        self._made: dict[tuple[str, Dialect], dict[str, Any]] = {}
        self._refused: set[str] = set()

    def held(self, model: Model, spec: AgentSpec, on_retry: OnRetry) -> Model:
        """The model, held to the agent's schema if it can be.

        Args:
            model: The model to ask.
            spec: The pinned definition.
            on_retry: Awaited when the provider refuses the schema and is asked again without it.
        """
        support = getattr(model, "schema_support", None)
        if not isinstance(support, SchemaSupport) or not self._wanted(support):
            return model
        if model.name in self._refused:
            return model
        return _Held(model, self.schema(spec, support.dialect), on_retry, self._refused)

    def schema(self, spec: AgentSpec, dialect: Dialect) -> dict[str, Any]:
        """The schema of an agent in a dialect, written once."""
        key = (spec.digest(), dialect)
        if key not in self._made:
            self._made[key] = reply_schema(spec, dialect)
        return self._made[key]

    def _wanted(self, support: SchemaSupport) -> bool:
        return self._mode == "on" or (self._mode == "auto" and support.sure)


class _Held:
    """A model that is asked with a schema, and once more without it when the provider refuses that."""

    def __init__(
        self, model: Model, schema: dict[str, Any], on_retry: OnRetry, refused: set[str]
    ) -> None:
        self.name = model.name
        self._model = model
        self._schema = schema
        self._on_retry = on_retry
        self._refused = refused

    async def generate(
        self, request: ModelRequest, *, on_delta: DeltaSink | None = None
    ) -> ModelReply:
        held = replace(request, schema=self._schema)
        try:
            reply = await self._model.generate(held, on_delta=on_delta)
        except ModelError as error:
            if error.kind != "bad_request":
                raise
            await self._on_retry(self._notice(error))
        else:
            return replace(reply, bound=True)
        reply = await self._model.generate(request, on_delta=on_delta)
        # It was the schema: without it the same request is accepted.
        self._refused.add(self.name)
        log.warning("schema.refused", model=self.name, then="asked without a schema")
        return reply

    async def aclose(self) -> None:
        await self._model.aclose()

    def _notice(self, error: ModelError) -> RetryNotice:
        message = f"asked once more without a JSON Schema, because it was refused: {error}"
        return RetryNotice(1, self.name, REFUSED, message, 0.0, self.name, error.status)
