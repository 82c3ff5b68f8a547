"""Artifacts in real runs: attached, kept, read in a thread, handed down, and never anybody else's."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, Attachment, RequestError, action
from loopagent.artifacts import TOOLS
from loopagent.core.effects import ReadArtifact
from loopagent.models.scripted import ScriptedModel
from loopagent.runtime.looking import Looker
from loopagent.runview import RunView


pytestmark = pytest.mark.anyio
DONE = {"taskComplete": True, "message": "Done."}
CSV = b"city,price\nPorto,3\nFaro,5\n"
PRICES = Attachment("prices.csv", CSV)


def look(*calls: tuple[str, str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A reply that looks into artifacts."""
    entries = [{"artifactId": one, "tool": tool, "input": given} for one, tool, given in calls]
    return {"artifactToolCalls": entries, **more}


FULL = look(("A", "get_full", {}))


def agent(*script: Any, name: str = "reader", **options: Any) -> Agent[Any]:
    """An agent that says this."""
    return Agent(name, model=ScriptedModel(script), **options)


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where runs are kept."""
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/runs.db"


async def results(app: App, run_id: str) -> list[Any]:
    """What the model was told that its looks brought."""
    said = [
        json.loads(one.text) for one in await app.store.transcript(run_id) if one.kind == "results"
    ]
    return [entry for one in said for entry in one.get("artifactToolCalls", ())]


async def run(app: App, name: str = "reader", **options: Any) -> RunView:
    """A run to its end."""
    view = await app.start(name, "Look.", **options)
    return await app.wait(view.id)


async def test_attachments_are_looked_into_with_the_tools_that_fit(url: str) -> None:
    total = ("prices.csv", "aggregate", {"column": "price", "op": "sum"})
    script = (look(total, ("B", "grep", {"pattern": "Porto"})), DONE)
    async with App(agents=[agent(*script)], store=url) as app:
        view = await run(app, attachments=[PRICES, Attachment("notes", b"Porto is nice.\n")])
        entries = await results(app, view.id)
        kept = [(one.handle, one.kind, one.name, one.media_type) for one in view.state.artifacts]
    assert entries[0]["result"] == {"value": 8, "of": 2}
    assert entries[1]["result"]["matches"] == [{"line": 1, "text": "Porto is nice."}]
    assert kept == [("A", "csv", "prices.csv", "text/csv"), ("B", "text", "notes", "text/plain")]
    assert view.state.status == "completed"


async def test_a_long_result_is_kept_and_can_be_read_page_by_page(url: str) -> None:
    @action(effects="read")
    async def report() -> dict[str, Any]:
        """Report."""
        return {"rows": [{"n": one} for one in range(5_000)]}

    act = {"nextStep": {"type": "Actions", "actions": [{"name": "report", "params": {}}]}}
    page = look(("A", "json_iterate", {"arrayPath": "rows", "start": 4_998}))
    async with App(agents=[agent(act, page, DONE, actions=[report])], store=url) as app:
        view = await run(app)
        [entry] = await results(app, view.id)
    assert entry["result"]["items"] == [{"n": 4998}, {"n": 4999}]
    assert view.state.artifacts[0].kind == "json"


async def test_a_name_that_comes_again_is_a_version_and_the_same_content_is_stored_once(
    url: str,
) -> None:
    files = [PRICES, Attachment("prices.csv", b"city,price\n"), Attachment("copy.csv", CSV)]
    async with App(agents=[agent(DONE)], store=url) as app:
        view = await run(app, attachments=files)
    known = [(one.handle, one.name, one.version) for one in view.state.artifacts]
    assert known == [("A", "prices.csv", 1), ("B", "prices.csv", 2), ("C", "copy.csv", 1)]
    assert view.state.artifacts[2].artifact_id == view.state.artifacts[0].artifact_id


async def test_a_file_that_is_no_text_is_not_taken_for_one_by_its_name(url: str) -> None:
    contents = (b"\x89PNG\r\n\x1a\n", b"PK\x03\x04", b"\x00\x01\x02\x03\x04", b"abc\x00", b"")
    files = [Attachment(f"{at}.txt", one) for at, one in enumerate(contents)]
    async with App(agents=[agent(DONE)], store=url) as app:
        view = await run(app, attachments=files)
    kinds = [one.kind for one in view.state.artifacts]
    assert kinds == ["image", "binary", "binary", "text", "text"]


async def test_another_run_of_the_same_agent_sees_nothing(url: str) -> None:
    script = (FULL, DONE, FULL, DONE)
    async with App(agents=[agent(*script)], store=url) as app:
        first = await run(app, attachments=[PRICES])
        second = await run(app)
        [entry] = await results(app, second.id)
        stolen = await app.store.artifact(second.id, first.state.artifacts[0].artifact_id)
    assert entry["error"]["code"] == "no_artifact"
    assert stolen is None


@pytest.mark.parametrize("handed", ["none", "all"])
async def test_a_child_sees_only_what_was_handed_down(url: str, handed: Any) -> None:
    child = agent(FULL, DONE, name="helper")
    work = {"type": "Sub-Agent", "subAgents": [{"name": "helper", "message": "Read it."}]}
    boss = agent({"nextStep": work}, DONE, agents=[child.sub(artifacts=handed)])
    async with App(agents=[boss], store=url) as app:
        view = await run(app, attachments=[PRICES])
        below = [one.id for one in await app.store.tree(view.id) if one.id != view.id]
        [entry] = await results(app, below[0])
    assert entry["ok"] is (handed == "all")
    if handed == "all":
        assert entry["result"]["text"] == CSV.decode()


async def test_a_look_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(source: Any, params: Any) -> Any:
        time.sleep(3)

    params = TOOLS["text"]["get_full"][0]
    monkeypatch.setitem(TOOLS["text"], "get_full", (params, hang))
    monkeypatch.setattr("loopagent.runtime.looking.GRACE_SECONDS", 0.05)
    limits = {"maxArtifactSeconds": 0.05}
    async with App(agents=[agent(DONE)], store="memory://") as app:
        view = await run(app, limits=limits, attachments=[Attachment("a.txt", b"x")])
        wanted = view.state.artifacts[0]
        effect = ReadArtifact(
            "1:inline.artifact.0", "A", "get_full", {}, wanted.artifact_id, "text"
        )
        outcome = await Looker(app.store).read(view.state, effect)
    assert outcome.error is not None
    assert outcome.error.code == "timeout"


@pytest.mark.parametrize(
    ("attachments", "code"),
    [
        ([Attachment("../x", b"")], "invalid_attachments"),
        ([Attachment("", b"")], "invalid_attachments"),
        ([Attachment("..", b"")], "invalid_attachments"),
        ([Attachment("a\x7f.txt", b"")], "invalid_attachments"),
        ([Attachment("x", b"", "nonsense")], "invalid_attachments"),
        ([PRICES] * 3, "attachments_too_large"),
        ([Attachment("x", b"y" * 101)], "attachments_too_large"),
    ],
)
async def test_what_cannot_be_attached_is_refused(attachments: list[Attachment], code: str) -> None:
    limits = {"maxAttachments": 2, "maxAttachmentBytes": 100}
    async with App(agents=[agent(DONE)], store="memory://") as app:
        with pytest.raises(RequestError) as caught:
            await app.start("reader", "Look.", limits=limits, attachments=attachments)
        assert caught.value.code == code
        assert (await app.store.runs())[0] == []


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a", b"\x00\x01\x02", "binary"),
        ("a", "é".encode() * 10_000, "text"),
        ("a.json", b"{}", "json"),
        ("a.xyzzy", b"\xff\xfe\xfd" * 99, "binary"),
    ],
)
async def test_the_type_is_told_from_name_or_content(name: str, content: bytes, kind: str) -> None:
    async with App(agents=[agent(DONE)], store="memory://") as app:
        view = await run(app, attachments=[Attachment(name, content)])
    assert view.state.artifacts[0].kind == kind
