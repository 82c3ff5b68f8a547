"""The two wire formats as tests ask for them: one attempt against the fake provider, for either adapter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from loopagent.errors import ModelError
from loopagent.models.anthropic import AnthropicModel
from loopagent.models.http import HttpSettings
from loopagent.models.openai import OpenAIModel
from loopagent.ports import ChatMessage, Model, ModelReply, ModelRequest
from tests.fakes.provider import FakeProvider


KEY = "plain-secret-42"
FAST = HttpSettings(idle_seconds=0.4, first_token_seconds=0.6, wait_seconds=0.4, drain_seconds=0.2)
REQUEST = ModelRequest(system="Answer in JSON.", messages=[ChatMessage("user", "Ahoj")])
both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@dataclass(frozen=True)
class Adapter:
    """One adapter, opened for a scenario of the fake provider."""

    name: str
    open: Callable[..., Model]
    """Takes the scenario, the address of a server and options of the adapter."""

    async def ask(
        self,
        provider: FakeProvider,
        scenario: str,
        *,
        stream: bool,
        request: ModelRequest = REQUEST,
        raw: bool = False,
        **options: Any,
    ) -> tuple[ModelReply, list[str]]:
        """One attempt, and the pieces that the listener got."""
        root = provider.raw_root if raw else provider.root
        model = self.open(scenario, root, **{"settings": FAST, **options})
        pieces: list[str] = []
        try:
            reply = await model.generate(request, on_delta=pieces.append if stream else None)
        finally:
            await model.aclose()
        return reply, pieces

    async def fail(
        self, provider: FakeProvider, scenario: str, *, stream: bool, **more: Any
    ) -> ModelError:
        """The error of one attempt, which never tells the key."""
        with pytest.raises(ModelError) as caught:
            await self.ask(provider, scenario, stream=stream, **more)
        assert KEY not in str(caught.value)
        return caught.value


def _openai(scenario: str, root: str, **options: Any) -> Model:
    return OpenAIModel(f"test:{scenario}", scenario, f"{root}/v1", **{"api_key": KEY, **options})


def _anthropic(scenario: str, root: str, **options: Any) -> Model:
    key = options.pop("api_key", KEY)
    return AnthropicModel(f"test:{scenario}", scenario, key, root, **options)


OPENAI = Adapter("openai", _openai)
ANTHROPIC = Adapter("anthropic", _anthropic)
ADAPTERS = (OPENAI, ANTHROPIC)
