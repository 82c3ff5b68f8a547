"""Whatever is asked for by text is a value in a query, never part of it; part of the conformance suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loopagent.artifact_port import ArtifactFilter
from loopagent.audit_port import Wanted
from loopagent.core.notes import Circle, Note, NoteFilter, NoteRules
from loopagent.desk_port import DeskRow
from loopagent.testing.store_samples import CREATED_AT, same, stored


if TYPE_CHECKING:
    from loopagent.ports import Store


HOSTILE: Final = (
    "x' OR '1'='1",
    "'; DROP TABLE run; --",
    '" OR 1=1 --',
    "%",
    "_",
    "\\",
    "$1",
    "?1",
    "NEAR(a b)",
    '"unclosed',
    "a AND (b OR",
    "col:umn*",
    "{a b}: ^",
)
"""Quotes, ends of statements, wildcards, placeholders, and the words of full-text queries."""


async def check_filters_are_values(store: Store) -> None:
    """No text that is asked for finds what is not called so, or breaks anything."""
    await stored(store, "run-1")
    for text in HOSTILE:
        same(await store.runs(agent=text), ([], None), f"runs of the agent {text}")
        same(await store.runs(status=text), ([], None), f"runs with the status {text}")
        same(await store.runs(tenant=text), ([], None), f"runs of the tenant {text}")
        same(await store.requests(run_id=text), ([], None), f"requests of the run {text}")
        same(await store.requests(tenant=text), ([], None), f"requests of the tenant {text}")
        same(await store.decided(Wanted(tenant=text)), ([], None), f"decisions of {text}")
        same(await store.artifacts(ArtifactFilter(name=text)), ([], None), f"artifacts {text}")
        same(await store.load(text), None, f"the run {text}")
        same(await store.request(text), None, f"the request {text}")
        same(await store.delete(text), False, f"deleting the run {text}")
        same(await store.published(text), [], f"actions of the tenant {text}")
    found, _ = await store.runs()
    same([one.id for one in found], ["run-1"], "the runs after all that")


async def check_searches_are_values(store: Store) -> None:
    """A text that notes are looked for by is words, not a query: it raises nothing and finds only one's own."""
    ann, bob = Circle("clerk", "ann"), Circle("clerk", "bob' OR '1'='1")
    for number, circle in enumerate((ann, bob)):
        note = Note(
            id=f"n{number}",
            text="The column a near b ends at 1.",
            type="Context",
            circle=circle,
            scope="user",
            status="confirmed",
            created_at=CREATED_AT,
            updated_at=CREATED_AT,
            expires_at=None,
            run_id="run-1",
            turn=1,
            model="scripted:sample",
        )
        await store.put_note(note, NoteRules())
    for text in HOSTILE:
        for circle, own in ((ann, "n0"), (bob, "n1"), (Circle("clerk", text), "")):
            notes = await store.notes_for(circle, text, now=CREATED_AT, limit=50)
            same({one.id for one in notes} - {own}, set(), f"notes of {circle.user} by {text}")
        same(await store.notes(NoteFilter(user=text)), ([], None), f"notes of the user {text}")


async def check_names_are_kept_as_they_are(store: Store) -> None:
    """What is called by a hostile text is found by that very text, and only it is removed."""
    for text in HOSTILE:
        await store.put_desk(DeskRow("ann", "view", text, body=text), at=CREATED_AT)
    same({one.name for one in await store.desk("ann", "view")}, set(HOSTILE), "names of views")
    for number, text in enumerate(HOSTILE, start=1):
        same(await store.delete_desk("ann", "view", text), True, f"deleting the view {text}")
        left = await store.desk("ann", "view")
        same({one.name for one in left}, set(HOSTILE[number:]), "names of views that are left")
