"""loopagent in the peers' benchmark: the glue that their harness (`common.py`) asks of every engine.

See `benchmarks/README.md` for how to run it side by side with other engines.
"""

import json
import os

from common import FINAL, PROMPT, SYSTEM, Peer, crash_tool, main, script, script_at, tool_result

from loopagent import Agent, App, action
from loopagent.ports import ModelReply, Usage


LOOP = "loop"
"""In a script: ask for all items with one ForEach."""
EACH = {
    "collectionPath": "items",
    "executionMode": "parallel",
    "maxConcurrency": 8,
    "action": {"name": "work", "params": {"item": "{{ item }}"}},
}
USAGE = Usage(input_tokens=100, output_tokens=10)


class Fake:
    """The scripted model: one reply a call, in the protocol's own form."""

    name = "object:bench"

    def __init__(self, by_history=False):
        self.by_history = by_history

    async def generate(self, request, *, on_delta=None):
        if self.by_history:
            items = script_at(sum(one.text.count('"call":') for one in request.messages))
        else:
            s = script()
            items = LOOP if s.batches == [LOOP] and s.turn == 0 else s.next()
            s.turn += items == LOOP
            if s.measure:
                roles = [{"role": "system", "content": request.system}]
                roles += [{"role": one.role, "content": one.text} for one in request.messages]
                s.weigh(len(json.dumps({"messages": roles})))
            if s.latency:
                import asyncio

                await asyncio.sleep(s.latency)
        if items == LOOP:
            reply = {"taskComplete": False, "nextStep": {"type": "ForEach", "forEach": EACH}}
        elif items is None:
            reply = {"taskComplete": True, "message": FINAL}
        else:
            calls = [{"name": "work", "params": {"item": one}} for one in items]
            reply = {"taskComplete": False, "nextStep": {"type": "Actions", "actions": calls}}
        return ModelReply(text=json.dumps(reply, separators=(",", ":")), usage=USAGE)

    async def aclose(self):
        pass


@action(effects="read")
async def work(item: int) -> str:
    """Do the work for one item."""
    script().executed.append(item)
    return tool_result(item)


@action(name="work", effects="write", approval="ask")
async def gated_work(item: int) -> str:
    """Do the work for one item."""
    return await crash_tool(item)


@action(name="work", effects="write", approval="auto")
async def crash_work(item: int) -> str:
    """Do the work for one item."""
    return await crash_tool(item)


LIMITS = {
    "max_turns": 10_000,
    "repeat_limit": 10_000,
    "max_actions_per_reply": 1_000,
    "max_concurrency": 100,
}


def agent(tool, *, by_history=False):
    """The agent of all scenarios; nobody can be asked, unless its tool needs a person."""
    return Agent(
        "bench",
        instructions=SYSTEM,
        model=Fake(by_history),
        actions=[tool],
        limits=LIMITS,
        autonomy="interactive" if tool.spec.approval == "ask" else "autonomous",
    )


class LoopAgentPeer(Peer):
    name = "loopagent"
    packages = ["loopagent", "pydantic"]
    backends = ["sqlite", "sqlite-turn", "postgres"]

    def url(self):
        if not self.backend:
            return "memory://"
        if self.backend == "postgres":
            return self.where
        options = "?durability=turn" if self.backend == "sqlite-turn" else ""
        return f"sqlite:///{self.where}/loopagent.db{options}"

    async def open(self, tool, *, by_history=False, recover=False):
        self.app = App(
            agents=[agent(tool, by_history=by_history)], store=self.url(), recover=recover
        )
        await self.app.__aenter__()
        return self.app

    async def setup(self):
        if "BENCH_EFFECTS" not in os.environ:
            await self.open(work)

    async def run(self, s, thread):
        view = await self.app.start("bench", PROMPT, metadata={"thread": thread})
        view = await self.app.wait(view.id)
        return view.state.result.message

    async def close(self):
        if getattr(self, "app", None) is not None:
            await self.app.__aexit__(None, None, None)

    async def foreach(self, s, k):
        """One ForEach over the items, which are in the payload; the second reply finishes."""
        s.batches = [LOOP] if not s.batches else s.batches
        view = await self.app.start("bench", PROMPT, payload={"items": list(range(k))})
        view = await self.app.wait(view.id)
        return view.state.result.message

    async def hitl_pause(self, thread):
        app = getattr(self, "app", None) or await self.open(gated_work, by_history=True)
        view = await app.start("bench", PROMPT)
        view = await app.wait(view.id)
        assert view.state.waiting
        return {"run": view.id}

    async def hitl_resume(self, thread, state):
        app = await self.open(gated_work, by_history=True)
        approvals = 0
        view = await app.get(state["run"])
        while view.state.waiting:
            await app.answer(f"{view.id}:{view.state.asks[0].id}", decision="approve")
            approvals += 1
            view = await app.wait(view.id)
        return {"answer": view.state.result.message, "approvals": approvals}

    async def crash_start(self, thread):
        app = await self.open(crash_work, by_history=True)
        view = await app.start("bench", PROMPT)
        await app.wait(view.id)

    async def crash_resume(self, thread):
        app = await self.open(crash_work, by_history=True, recover=True)
        rows, _ = await app.runs()
        view = await app.wait(rows[0].id)
        return view.state.result.message


if __name__ == "__main__":
    main(LoopAgentPeer)
