"""The stream of a run for many readers: each gets everything once, however often it comes back, and none slows the run."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.http.server import make_project, serving


pytestmark = pytest.mark.anyio
IDLE_STREAMS = 500


class Reader:
    """One reader with a bare socket: a client library would cost more than what is measured."""

    def __init__(self, base_url: str, run_id: str) -> None:
        self._url = httpx2.URL(base_url)
        self._run_id = run_id
        self.events: list[dict[str, Any]] = []

    @property
    def last(self) -> int:
        """Number of the last event read."""
        return max((one.get("seq", 0) for one in self.events), default=0)

    async def read(self, most: int | None = None) -> None:
        """Connect behind the last event, and read until the stream ends or so many events came."""
        reader, writer = await asyncio.open_connection(self._url.host, self._url.port)
        path = f"{self._url.path.rstrip('/')}/runs/{self._run_id}/stream"
        head = f"GET {path} HTTP/1.1\r\nHost: test\r\nLast-Event-ID: {self.last}\r\n\r\n"
        writer.write(head.encode())
        try:
            count = 0
            while line := await reader.readline():
                if line.startswith(b"data: "):
                    self.events.append(json.loads(line[6:]))
                    count += 1
                if line == b"0\r\n" or (most is not None and count >= most):
                    return
        finally:
            writer.close()


def numbers(reader: Reader) -> list[int]:
    """The numbers of the stored events that were read."""
    return [one["seq"] for one in reader.events if "seq" in one]


async def test_readers_that_come_and_go_get_everything_once(tmp_path: Path) -> None:
    chance = random.Random(11)  # noqa: S311 - repeatable
    project, db = make_project(tmp_path / "project"), tmp_path / "runs.db"
    with serving(project, db) as (client, _):
        body = {"agent": "planner", "message": "Go."}
        run = client.post("/runs", params={"wait": 20}, json=body).json()
        readers = [Reader(str(client.base_url), run["id"]) for _ in range(8)]
        for one in readers:
            await asyncio.wait_for(one.read(most=chance.randrange(1, 8)), 20)
    with serving(project, db) as (client, _):
        again = [Reader(str(client.base_url), run["id"]) for _ in readers]
        for new, old in zip(again, readers, strict=True):
            new.events = old.events
        reading = [asyncio.create_task(one.read()) for one in again]
        while run["status"] == "running":
            answer = f"/requests/{run['requests'][0]['requestId']}/answer"
            await asyncio.to_thread(client.post, answer, json={"decision": "approve"})
            run = (
                await asyncio.to_thread(client.get, f"/runs/{run['id']}", params={"wait": 20})
            ).json()
        await asyncio.wait_for(asyncio.gather(*reading), 30)
        for one in again:
            assert numbers(one) == list(range(1, run["seq"] + 1))
            assert one.events[-1]["type"] == "run.completed"


async def test_hundreds_of_idle_streams_cost_little_and_all_hear_the_end(tmp_path: Path) -> None:
    def memory_mib() -> float:
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        return pages * 4096 / 2**20

    with serving(make_project(tmp_path / "project"), tmp_path / "runs.db") as (client, process):
        body = {"agent": "mailer", "message": "Go."}
        run = client.post("/runs", params={"wait": 20}, json=body).json()
        before = memory_mib()
        readers = [Reader(str(client.base_url), run["id"]) for _ in range(IDLE_STREAMS)]
        reading = [asyncio.create_task(one.read()) for one in readers]
        while not all(one.last == run["seq"] for one in readers):  # noqa: ASYNC110 - sockets tell nobody
            await asyncio.sleep(0.05)
        assert (memory_mib() - before) / IDLE_STREAMS < 0.2
        answer = f"/requests/{run['requests'][0]['requestId']}/answer"
        await asyncio.to_thread(client.post, answer, json={"decision": "approve"})
        await asyncio.wait_for(asyncio.gather(*reading), 40)
        assert {one.events[-1]["type"] for one in readers} == {"run.completed"}
        assert len({tuple(numbers(one)) for one in readers}) == 1
