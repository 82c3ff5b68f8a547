"""Notes by meaning: with a function of the host and with a real server, beside full text, never across users."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, ConfigError
from loopagent.core.notes import Circle, Note, NoteChange, changed
from loopagent.memory import Viewer
from loopagent.runtime.similar import Similar, cosine, fused, pack, unpack
from tests.runtime.hooked import DONE, Json, Listening


pytestmark = pytest.mark.anyio
MEANINGS = {"sea": (1.0, 0.0, 0.0), "money": (0.0, 1.0, 0.0), "trains": (0.0, 0.0, 1.0)}
WORDS = {
    "beach": "sea",
    "ocean": "sea",
    "swim": "sea",
    "budget": "money",
    "cheap": "money",
    "railway": "trains",
}
NOTES = ("Loves the ocean", "Keeps a strict budget", "Travels by railway")


def vector(text: str) -> list[float]:
    """The sum of what its words mean; deterministic."""
    found = [0.0, 0.0, 0.0]
    for word in re.findall(r"[a-z]+", text.lower()):
        meaning = MEANINGS.get(WORDS.get(word, ""), (0.0, 0.0, 0.0))
        found = [one + more for one, more in zip(found, meaning, strict=True)]
    return found


class Fake:
    """An embedder that keeps what it was asked."""

    name = "fake:v1"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return [vector(one) for one in texts]


def writes(*notes: str) -> Json:
    return {**DONE, "memoryWrites": [{"note": one, "type": "Context"} for one in notes]}


async def run(app: App, message: str, **options: Any) -> Any:
    return await app.wait((await app.start("keeper", message, **options)).id)


def keeper(model: Listening, **memory: Any) -> Agent[Any]:
    return Agent("keeper", model=model, memory=memory)


async def test_a_note_is_found_that_shares_no_word_with_the_task(tmp_path: Path) -> None:
    for url in ("memory://", f"sqlite:///{tmp_path}/runs.db"):
        model, fake = Listening(writes(*NOTES)), Fake()
        async with App(agents=[keeper(model)], store=url, embedder=fake) as app:
            await run(app, "Remember.", user="ann")
            assert sorted(fake.asked) == sorted(["Remember.", *NOTES][1:]), "no notes: no question"
            view = await run(app, "Where can one swim?", user="ann")
            events = [one async for one in app.events(view.id, live=False)]
            await run(app, "Where can one swim?", user="bob")
            await run(app, "Where can one swim?", user="ann", tenant="acme")
        assert "Loves the ocean" in model.text(1)
        assert "strict budget" not in model.text(1)
        assert fake.asked.count("Loves the ocean") == 1, "its vector is kept with the note"
        assert "ocean" not in model.text(2) + model.text(3), "never across users"
        [call] = [one["data"] for one in events if one["type"] == "model.call"]
        assert (call["purpose"], call["model"]) == ("embedding", "fake:v1")


async def test_without_an_embedder_only_words_count_and_nothing_is_asked() -> None:
    model = Listening(writes(*NOTES))
    async with App(agents=[keeper(model)]) as app:
        await run(app, "Remember.")
        await run(app, "Where can one swim?")
    assert "ocean" not in model.text(1)


async def test_old_notes_and_another_model_get_vectors_when_they_are_needed() -> None:
    model = Listening(writes(*NOTES))
    async with App(agents=[keeper(model)]) as first:
        await run(first, "Remember.")
        fake = Fake()
        async with App(agents=[keeper(model)], store=first.store, embedder=fake) as app:
            await run(app, "A beach, please.")
            await run(app, "A beach, please.")
    assert "Loves the ocean" in model.text(1)
    assert "Loves the ocean" in model.text(2)
    assert fake.asked.count("Loves the ocean") == 1, "kept in memory"


async def test_what_the_embedder_gets_wrong_leaves_the_full_text() -> None:
    async def broken(texts: Sequence[str]) -> list[list[float]]:
        if len(texts) == 1:
            raise OSError("no network")
        return [[float("nan")] for _ in texts]

    model = Listening(writes("Loves the ocean"))
    async with App(agents=[keeper(model)], embedder=broken) as app:
        view = await run(app, "Remember.")
        events = [one async for one in app.events(view.id, live=False)]
        await run(app, "The ocean, please.")
    assert view.state.status == "completed"
    assert [one["data"]["disposition"] for one in events if one["type"] == "memory.written"] == [
        "written"
    ]
    assert [one["data"]["error"] for one in events if one["type"] == "model.call"] == ["OSError"]
    assert "Loves the ocean" in model.text(1)


async def test_a_secret_is_masked_before_it_is_handed_over() -> None:
    model, fake = Listening(writes("The key is s3cr3t-value-1")), Fake()
    env = {"MY_TOKEN": "s3cr3t-value-1"}
    async with App(agents=[keeper(model)], embedder=fake, env=env, secrets=["MY_TOKEN"]) as app:
        await run(app, "Remember.")
        await run(app, "What is s3cr3t-value-1?")
    assert "s3cr3t" not in json.dumps(fake.asked)


def note(number: int, text: str = "x", **more: Any) -> Note:
    return Note(f"n{number}", text, "Context", Circle("a"), "user", "confirmed", 1.0, 1.0, **more)


def test_an_edited_text_loses_its_vector_and_another_model_s_does_not_count() -> None:
    kept = pack("m 1", [1.0, -0.5])
    assert unpack("m 1", kept) == [1.0, -0.5]
    assert unpack("m 2", kept) is None
    assert unpack("m", "") is None
    edited = changed(note(1, vector=kept), NoteChange(text="y"), by="ann", at=2.0)
    assert edited.vector == ""
    typed = changed(note(1, vector=kept), NoteChange(type="Preference"), by="ann", at=2.0)
    assert typed.vector == kept


def test_two_orders_become_one() -> None:
    a, b, c, d = (note(number) for number in range(4))
    assert [one.id for one in fused([a, b], [b, c])] == ["n1", "n0", "n2"]
    assert fused([a, b], []) == [a, b]
    assert fused([], [d, a]) == [d, a]
    assert cosine([1, 0], [0, 0]) == 0
    assert cosine([1, 0], [1, 0, 0]) == 0
    assert cosine([2, 0], [3, 0]) == pytest.approx(1.0)


async def test_only_so_many_notes_are_compared() -> None:
    fake = Fake()
    similar = Similar(fake, max_notes=10)
    calls: list[Json] = []
    many = [note(number, f"beach {number}") for number in range(250)]
    found = await similar.ranked("ocean", many, 0.25, calls)
    assert (len(found), len(calls)) == (250, 3), "a hundred texts at once"
    assert similar.max_notes == 10


class Server(BaseHTTPRequestHandler):
    """Speaks OpenAI's embeddings, in an order of its own."""

    heard: list[tuple[str, str, Json]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.heard.append((self.path, self.headers["authorization"] or "", body))
        data = [
            {"object": "embedding", "index": at, "embedding": vector(text)}
            for at, text in enumerate(body["input"])
        ]
        known = body["model"] == "tiny"
        usage = {"prompt_tokens": 7, "total_tokens": 7}
        told = {"data": data[::-1], "usage": usage} if known else {"error": {"message": "no model"}}
        answer = json.dumps(told).encode()
        self.send_response(200 if known else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


@contextmanager
def served() -> Iterator[tuple[str, list[tuple[str, str, Json]]]]:
    heard: list[tuple[str, str, Json]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Server,), {"heard": heard}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def test_a_server_that_speaks_openai_s_embeddings() -> None:
    model = Listening(writes(*NOTES))
    with served() as (url, heard):
        env = {"LOOPAGENT_API_KEY": "sk-embed-123456"}
        async with App(agents=[keeper(model)], embedder=f"{url}#tiny", env=env) as app:
            view = await run(app, "Remember.")
            assert view.state.usage.input_tokens >= 21, "three calls of 7 tokens are counted"
            await run(app, "Where can one swim?")
        assert "Loves the ocean" in model.text(1)
        path, key, body = heard[-1]
        assert (path, key) == ("/v1/embeddings", "Bearer sk-embed-123456")
        assert body == {
            "model": "tiny",
            "input": ["Where can one swim?"],
            "encoding_format": "float",
        }
        model = Listening(writes("Loves the ocean"))
        async with App(agents=[keeper(model)], embedder=f"{url}#other", env={}) as app:
            view = await run(app, "Remember.")
            assert view.state.status == "completed"
            assert len((await app.memory.list(Viewer()))[0]) == 1


def test_a_name_that_means_nothing_is_refused_at_once() -> None:
    for name, text in (
        ("nonsense", "written openai:NAME"),
        ("http://127.0.0.1/v1", "written openai:NAME"),
        ("openai:text-embedding-3-small", "OPENAI_API_KEY"),
        ("http://user:pw@127.0.0.1/v1#m", "no user name"),
    ):
        with pytest.raises(ConfigError, match=text):
            App(embedder=name, env={})
