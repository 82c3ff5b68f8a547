"""The checks of `store_conformance` that concern lists of artifacts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopagent.artifact_port import ArtifactFilter, ArtifactRow
from loopagent.core.facts import Fact
from loopagent.core.state import Artifact
from loopagent.ports import LogEntry
from loopagent.testing.store_samples import CREATED_AT, SampleRun, same, stored


if TYPE_CHECKING:
    from loopagent.ports import Store


def _known(handle: str, size: int, turn: int = 0, **more: Any) -> Fact:
    data = {"handle": handle, "artifactId": handle * 64, "callId": f"{turn}:action.0"}
    return Fact("artifact.created", "engine", {**data, "chars": size, **more}, turn=turn or None)


FILE = {"kind": "csv", "name": "Größe.CSV", "version": 2, "mediaType": "text/csv"}


async def _three(store: Store) -> SampleRun:
    """One run that knows a result and a file, another of a tenant that knows a result."""
    run = await stored(store, "run-1", turns=1)
    await store.commit(
        run.next(facts=(_known("A", 10, 1, kind="json"), _known("B", 20, 2, **FILE)))
    )
    other = SampleRun("run-2", agent="other")
    other.state = replace(other.state, tenant="acme")
    await store.create(other.begin())
    await store.commit(other.next(facts=(_known("A", 30),)))
    return run


async def _found(store: Store, **wanted: Any) -> list[tuple[str, str]]:
    rows, _ = await store.artifacts(ArtifactFilter(**wanted))
    return [(one.run_id, one.handle) for one in rows]


async def check_artifact_lists(store: Store) -> None:
    """What runs know is listed, newest first, with how it came there; filters leave others out."""
    await _three(store)
    first, second, third = ("run-2", "A"), ("run-1", "B"), ("run-1", "A")
    same(await _found(store), [first, second, third], "all")
    same(await _found(store, tenant=""), [second, third], "of no tenant")
    same(await _found(store, tenant="acme"), [first], "of a tenant")
    same(await _found(store, run_id="run-1"), [second, third], "of a run")
    same(await _found(store, run_id="nobody\0"), [], "of no run")
    same(await _found(store, kind="json"), [third], "of a kind")
    same(await _found(store, name="GRÖSSE"), [second], "by a part of the name")
    same(await _found(store, name="%"), [], "by a part that no name has")
    same(await _found(store, artifact_id="B" * 64), [second], "those of a content")
    same(await _found(store, artifact_id="b" * 64), [], "those of no content")
    same(await _found(store, min_size=20), [first, second], "large ones")
    same(await _found(store, min_size=11, max_size=29), [second], "neither small nor large ones")
    rows, _ = await store.artifacts(ArtifactFilter(name="csv"))
    wanted = ArtifactRow(
        "run-1",
        "clerk",
        "B",
        "B" * 64,
        "Größe.CSV",
        "csv",
        2,
        "text/csv",
        20,
        2,
        "2:action.0",
        CREATED_AT + 2,
    )
    same(rows, [wanted], "a row")


async def check_artifact_pages(store: Store) -> None:
    """Pages follow each other; what is deleted is listed no more, and a copy knows what the original knew."""
    run = await _three(store)
    seen: list[tuple[str, str]] = []
    cursor = None
    for _ in range(3):
        rows, cursor = await store.artifacts(ArtifactFilter(), cursor=cursor, limit=1)
        seen += [(one.run_id, one.handle) for one in rows]
    same((seen, cursor), ([("run-2", "A"), ("run-1", "B"), ("run-1", "A")], None), "three pages")
    entries = [replace(one, facts=one.facts) for one in await store.log("run-1")]
    history: tuple[LogEntry, ...] = tuple(entries)
    copy = SampleRun("copy")
    copy.version = len(history)
    copy.state = replace(run.state, id="copy", root_id="copy")
    await store.create(replace(copy.turn("On."), history=history))
    same(await _found(store, run_id="copy"), [("copy", "B"), ("copy", "A")], "what a copy knows")
    await store.commit(run.end())
    await store.delete("run-1")
    same(await _found(store, tenant=""), [("copy", "B"), ("copy", "A")], "after a deletion")


async def check_many_artifacts(store: Store) -> None:
    """A run that knows hundreds still knows each of them, in order, when it is loaded."""
    run = await stored(store, "run-1", turns=1)
    known: list[Artifact] = []
    for first in range(0, 120, 8):
        new = [Artifact(f"X{one}", f"{one:064}", one) for one in range(first, first + 8)]
        new[0] = replace(new[0], media_type="text/csv", kind="csv", name="Größe.CSV", version=2)
        known += new
        facts = tuple(_of(one) for one in new)
        await store.commit(run.next(facts=facts, artifacts=tuple(known)))
        found = await store.load("run-1")
        assert found is not None
        same(found.state.artifacts, tuple(known), f"what a run knows of {len(known)} artifacts")
    await store.commit(run.turn())
    found = await store.load("run-1")
    assert found is not None
    same(found.state.artifacts, tuple(known), "what it knows after a turn that brought none")


def _of(artifact: Artifact) -> Fact:
    """The event that says that a run knows an artifact."""
    about: dict[str, Any] = {"artifactId": artifact.artifact_id, "kind": artifact.kind}
    about |= {"name": artifact.name, "mediaType": artifact.media_type, "version": artifact.version}
    return _known(artifact.handle, artifact.chars, 1, **about)
