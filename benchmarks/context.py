"""How much of each prompt a provider can take from its cache: the bytes it shares with the prompt before it.

    python benchmarks/context.py [--turns 300] [--chars 7900] [--window 32000]

Prints, for the whole run, the share of prompt bytes that stand at the beginning of the prompt before as well, the
prompts that had to begin differently because room was made, and the largest prompt.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
from typing import Any

from loopagent import Agent, App, action
from loopagent.core.agent_spec import ContextSpec, Limits
from loopagent.ports import ModelReply, ModelRequest, Usage


class Reader:
    """A model that reads one page after another and measures what its prompts have in common."""

    name = "fake:reader"

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.asked = self.sent = self.shared = self.largest = self.rewritten = 0
        self._before: list[str] = []

    async def generate(self, request: ModelRequest, *, on_delta: Any = None) -> ModelReply:
        """Note the prompt, ask for the next page."""
        del on_delta
        texts = [request.system, *(one.text for one in request.messages)]
        size = sum(map(len, texts))
        usage = Usage(input_tokens=size // 4, output_tokens=10)
        if request.agent == "summary":
            return ModelReply("Everything so far was read.", usage=usage)
        self._compare(texts, size)
        self.asked += 1
        step = {"type": "Actions", "actions": [{"name": "page", "params": {"number": self.asked}}]}
        going_on = {"taskComplete": False, "nextStep": step}
        reply = going_on if self.asked < self.turns else {"taskComplete": True, "message": "Done."}
        return ModelReply(json.dumps(reply), usage=usage)

    def _compare(self, texts: list[str], size: int) -> None:
        same = 0
        for one, other in zip(texts, self._before, strict=False):
            if one != other:
                break
            same += 1
        self.rewritten += bool(self._before) and same < len(self._before) - 1
        self.shared += sum(map(len, texts[:same]))
        self.sent += size
        self.largest = max(self.largest, size // 4)
        self._before = texts

    async def aclose(self) -> None:
        """Nothing is open."""


async def measure(turns: int, chars: int, window: int) -> None:
    """Play one run and print what was measured."""

    @action(effects="read")
    async def page(number: int) -> str:
        """One page."""
        pieces = (
            hashlib.sha256(f"{number}/{one}".encode()).hexdigest() for one in range(chars // 64 + 1)
        )
        return "".join(pieces)[:chars]

    model = Reader(turns)
    context = ContextSpec(window_tokens=window)
    limits = Limits(max_turns=turns + 1)
    agent = Agent("reader", model=model, actions=[page], limits=limits, context=context)
    async with App(agents=[agent]) as app:
        run = await app.start("reader", "Read everything.")
        view = await app.wait(run.id)
    print(f"{view.state.status}, {model.asked} prompts, {model.sent:,} characters")
    print(f"cacheable share: {model.shared / model.sent:.1%}")
    print(f"prompts that begin differently: {model.rewritten}; largest: {model.largest:,} tokens")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--chars", type=int, default=7_900)
    parser.add_argument("--window", type=int, default=32_000, help="tokens")
    given = parser.parse_args()
    asyncio.run(measure(given.turns, given.chars, given.window))
