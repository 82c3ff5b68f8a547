"""What callers hand in from Python: brought into one form as JSON, or refused with the place that has none."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, RequestError
from loopagent.testing import ScriptedModel


pytestmark = pytest.mark.anyio
ASK: dict[str, Any] = {
    "taskComplete": False,
    "message": "When?",
    "nextStep": {"type": "Chat"},
    "responseForm": {"questions": [{"id": "day", "label": "Day", "type": "text"}]},
}
GIVEN = {"on": dt.date(2026, 1, 2), "price": Decimal("1.10"), "tags": {"b", "a"}}
KEPT = {"on": "2026-01-02", "price": "1.10", "tags": ["a", "b"]}


def host(store: str = "memory://") -> App:
    model = ScriptedModel([ASK, {"taskComplete": True, "message": "Noted."}])
    return App(agents=[Agent("desk", model=model)], store=store)


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_values_of_python_have_one_form_wherever_they_come_in(
    store: str, tmp_path: Path
) -> None:
    async with host("memory://" if store == "memory" else f"sqlite:///{tmp_path}/r.db") as app:
        run = await app.start("desk", "Go.", payload=GIVEN, metadata=GIVEN)
        run = await app.wait(run.id)
        rows, _ = await app.store.runs()
        assert (run.state.payload, rows[0].metadata) == (KEPT, KEPT)
        copy = await app.fork(run.id, metadata=GIVEN)
        rows, _ = await app.store.runs()
        assert {one.id: one.metadata for one in rows}[copy.id] == KEPT


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (
            {"metadata": {"a": [object()]}},
            "invalid_metadata",
            r"metadata\.a\[0\] is not JSON: object has",
        ),
        ({"metadata": {"a": float("nan")}}, "invalid_metadata", r"metadata\.a is not JSON: nan"),
        ({"payload": {"a": 10**5000}}, "invalid_payload", r"payload\.a is not JSON: the number"),
        ({"metadata": {"a": "x" * 60_000}}, "invalid_metadata", "too large: .* at most 50000"),
        ({"payload": {"a": "x" * 2000}}, "invalid_payload", "too large: .* at most 1000"),
    ],
)
async def test_what_has_no_form_or_is_too_large_is_refused(
    given: dict[str, Any], code: str, said: str
) -> None:
    async with host() as app:
        with pytest.raises(RequestError, match=said) as refused:
            await app.start("desk", "Go.", limits={"maxPayloadBytes": 1000}, **given)
        assert (refused.value.code, (await app.store.runs())[0]) == (code, [])


async def test_an_answer_without_a_form_leaves_the_request_open() -> None:
    async with host() as app:
        run = await app.wait((await app.start("desk", "Go.")).id)
        request = run.asks[0]["requestId"]
        with pytest.raises(RequestError, match=r"values\.day is not JSON: object has"):
            await app.answer(request, decision="answer", values={"day": object()})
        await app.answer(request, decision="answer", values={"day": dt.date(2026, 1, 2)})
        run = await app.wait(run.id)
        assert run.state.status == "completed"
