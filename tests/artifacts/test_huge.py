"""Files as large as a run takes: looked into in pages, in bounded time, never whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loopagent import Agent, App, Attachment, RequestError
from tests.runtime.hooked import Listening


pytestmark = pytest.mark.anyio
LINES = 400_000


def looks(*calls: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    listed = [{"artifactId": one, "tool": tool, "input": given} for one, tool, given in calls]
    return {"taskComplete": False, "artifactToolCalls": listed, "nextStep": {"type": "Retry"}}


async def test_a_huge_text_and_a_huge_table_come_in_pages() -> None:
    text = b"".join(b"line %08d of a huge text\n" % number for number in range(LINES))
    table = b"id,name\n" + b"".join(b"%d,name %d\n" % (one, one) for one in range(LINES))
    assert 15_000_000 < len(text) + len(table) < 20_000_000
    model = Listening(
        looks(
            ("A", "get_full", {}),
            ("A", "grep", {"pattern": "line 00399999"}),
            ("A", "get_lines", {"start": 399_999, "count": 5}),
            ("B", "get_rows", {"start": 399_990}),
            ("B", "get_schema", {}),
        )
    )
    files = [Attachment("huge.txt", text), Attachment("huge.csv", table)]
    limits = {"maxArtifactSeconds": 120}
    async with App(agents=[Agent("a", model=model)]) as app:
        view = await app.wait((await app.start("a", "Go.", attachments=files, limits=limits)).id)
    assert view.state.status == "completed", view.state.result
    said = [one.text for one in model.asked[1].messages if one.role == "user"]
    told = json.loads(next(one for one in said if one.startswith('{"artifactToolCalls"')))
    found = told["artifactToolCalls"]
    assert [one["ok"] for one in found] == [True] * 5, found
    assert "next" in json.dumps(found[0])
    assert len(json.dumps(found[0])) < 110_000
    assert "line 00399999" in json.dumps(found[1])
    assert "line 00399998" in json.dumps(found[2])
    assert "name 399995" in json.dumps(found[3])
    assert len(json.dumps(told)) < 500_000


async def test_what_is_too_large_is_refused_and_nothing_starts() -> None:
    model = Listening()
    async with App(agents=[Agent("a", model=model)]) as app:
        with pytest.raises(RequestError) as caught:
            await app.start("a", "Go.", attachments=[Attachment("x.bin", bytes(20_000_001))])
        assert (caught.value.code, caught.value.status) == ("attachments_too_large", 413)
        assert (await app.runs())[0] == []
    assert model.asked == []
