"""What every store must do with the library of actions; part of the conformance suite."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loopagent.errors import ConflictError, RequestError
from loopagent.library_port import Built, ChangeKind, LibraryChange, Published, Version
from loopagent.testing.store_samples import CREATED_AT, SampleRun, refused, same


if TYPE_CHECKING:
    from loopagent.ports import Store


HASH = "a" * 64
FIRST = Version(1, "name: mail.send\n", "h1", "ann", CREATED_AT, "the first", {"api.json": "{}"})
SECOND = Version(2, "name: mail.send # 🙂\n", "h2", "bob", CREATED_AT + 1)


def _built(name: str = "mail.send", tenant: str = "acme", **about: Any) -> Built:
    row = Built(tenant, name, "name: ü\n\\u0000", "h1", {"api.json": "{}"}, updated_by="ann")
    return replace(row, updated_at=CREATED_AT, **about)


def _change(row: Built, number: int, what: ChangeKind = "saved") -> LibraryChange:
    detail = {"hash": row.draft_hash, "agents": ["clerk"]}
    return LibraryChange(f"chg_{number}", row.tenant, row.name, what, "ann", CREATED_AT, detail)


async def check_built_actions(store: Store) -> None:
    """Actions are found by tenant and name, changed one after the other, and removed."""
    same(await store.built("acme", "mail.send"), None, "an action that nobody built")
    same(await store.built_actions("acme"), [], "an empty library")
    first, other = _built(), _built("a-first")
    for number, one in enumerate((first, other, _built(tenant=""))):
        await store.save_built(one, _change(one, number))
    same(await store.built("acme", "mail.send"), first, "an action")
    same(await store.built_actions("acme"), [other, first], "the actions of a tenant")
    same(await store.built_actions("other"), [], "the actions of another tenant")
    taken = store.save_built(_built(draft_hash="h9"), _change(first, 10))
    await refused(taken, ConflictError, "a second action of one name")
    after = replace(first, draft="text", draft_hash="h5", revision=2, agents=("a", "b"))
    await store.save_built(after, _change(after, 11))
    late = store.save_built(replace(after, draft_hash="h7"), _change(after, 12))
    await refused(late, ConflictError, "a change of what was changed meanwhile")
    same(await store.built("acme", "mail.send"), after, "an action that was changed")
    await refused(store.delete_built(first, _change(first, 13)), ConflictError, "a late removal")
    await store.delete_built(after, _change(after, 14, "deleted"))
    same(await store.built("acme", "mail.send"), None, "an action that was removed")
    same(len(await store.built_actions("")), 1, "the actions of the tenant without a name")


async def check_built_names(store: Store) -> None:
    """An action gets another name, unless that is taken."""
    first, other = _built(), _built("other")
    for number, one in enumerate((first, other)):
        await store.save_built(one, _change(one, number))
    taken = replace(first, name="other", revision=2)
    clash = store.save_built(taken, _change(taken, 5), former="mail.send")
    await refused(clash, ConflictError, "a name that is taken")
    same(await store.built("acme", "other"), other, "the action whose name was wanted")
    moved = replace(first, name="mail.post", revision=2)
    await store.save_built(moved, _change(moved, 6, "renamed"), former="mail.send")
    same(await store.built_actions("acme"), [moved, other], "the actions after one was renamed")


async def check_built_versions(store: Store) -> None:
    """Versions come newest first and go with their action; what is live says who gets it."""
    row = _built()
    await store.save_built(row, _change(row, 0))
    same(await store.versions("acme", "mail.send"), [], "versions of a draft")
    same(await store.published("acme"), [], "what is live of a draft")
    given = replace(row, agents=("clerk",), published_hash="h1")
    one = replace(given, published=1, latest=1, revision=2)
    await store.save_built(one, _change(one, 1, "published"), version=FIRST)
    two = replace(one, published=2, latest=2, revision=3, published_hash="h2")
    await store.save_built(two, _change(two, 2, "published"), version=SECOND)
    same(await store.versions("acme", "mail.send"), [SECOND, FIRST], "the versions")
    same(await store.version("acme", "mail.send", 1), FIRST, "one version")
    same(await store.version("acme", "mail.send", 3), None, "a version that is not there")
    same(await store.version("", "mail.send", 1), None, "a version for another tenant")
    live = [Published("mail.send", 2, "h2", ("clerk",))]
    same(await store.published("acme"), live, "what is live")
    same(await store.published(""), [], "what is live for another tenant")
    retired = replace(two, published=None, published_hash="", revision=4)
    await store.save_built(retired, _change(retired, 3, "retired"))
    same(await store.published("acme"), [], "what is live of what was retired")
    await store.delete_built(retired, _change(retired, 4, "deleted"))
    same(await store.version("acme", "mail.send", 1), None, "a version of what was removed")


async def check_definitions(store: Store) -> None:
    """What runs are started with stays, for its tenant; open runs that have it are found."""
    same(await store.definition("acme", HASH), None, "a definition that is not there")
    for _ in range(2):
        await store.put_definition("acme", "mail.send", HASH, '{"text":"x"}', at=CREATED_AT)
    same(await store.definition("acme", HASH), '{"text":"x"}', "a definition")
    same(await store.definition("", HASH), None, "a definition for another tenant")
    run = await _given(store, "run-1", HASH)
    same(list(await store.runs_with("acme", "mail.send")), ["run-1"], "runs that have it")
    same(list(await store.runs_with("acme", "mail.post")), [], "runs that have another one")
    same(list(await store.runs_with("", "mail.send")), [], "runs of another tenant")
    await store.commit(run.end())
    same(list(await store.runs_with("acme", "mail.send")), [], "runs that have ended")


async def _given(store: Store, run_id: str, digest: str) -> SampleRun:
    """A run of the tenant acme that was given a definition."""
    run = SampleRun(run_id)
    begun = run.begin()
    spec = begun.state.spec
    given = {"name": "mail.send", "definition": digest}
    actions = [*(one.model_dump(by_alias=True) for one in spec.actions), given]
    spec = spec.model_validate({**spec.model_dump(by_alias=True), "actions": actions})
    run.state = replace(begun.state, spec=spec, tenant="acme")
    await store.create(replace(begun, state=run.state))
    return run


async def check_pruned_definitions(store: Store) -> None:
    """A definition goes when no run has it, no other uses it and it was not given lately; never another tenant's."""
    step, late, before = "b" * 64, "c" * 64, CREATED_AT + 10
    uses = f'{{"uses":{{"mail.step":"{step}"}}}}'
    same(await store.prune_definitions(before=before), 0, "definitions that went of an empty store")
    run = await _given(store, "run-1", HASH)
    for whose in ("acme", ""):
        await store.put_definition(whose, "mail.send", HASH, uses, at=CREATED_AT)
        await store.put_definition(whose, "mail.step", step, '{"uses":{}}', at=CREATED_AT)
    for at in (CREATED_AT, before, CREATED_AT + 1):
        await store.put_definition("", "mail.late", late, '{"uses":{}}', at=at)
    same(await store.prune_definitions(before=CREATED_AT), 0, "definitions that are spared")
    same(await store.prune_definitions(before=before), 1, "definitions that nothing has")
    same(await store.definition("", HASH), None, "a definition that went")
    same(await store.prune_definitions(before=before), 1, "what only that one used")
    same(await store.prune_definitions(before=before), 0, "definitions that go once more")
    same(await store.definition("acme", step), '{"uses":{}}', "what the definition of a run uses")
    same(await store.definition("", late), '{"uses":{}}', "a definition that was given again")
    await store.commit(run.end())
    same(await store.prune_definitions(before=before), 0, "those of a run that has ended")
    await store.delete("run-1")
    same(await store.prune_definitions(before=before), 1, "those of a run that is gone")
    await store.put_definition("acme", "mail.send", HASH, uses, at=CREATED_AT)
    both = [await store.prune_definitions(before=before + 1, limit=1) for _ in range(4)]
    same(both, [1, 1, 1, 0], "definitions that go one at a time")


async def check_library_changes(store: Store) -> None:
    """Who did what is listed newest first, for a tenant or one action, also of those that are gone."""
    row = _built()
    changes = [_change(row, number, "tested") for number in range(5)]
    for one in (*changes, changes[0]):
        await store.put_change(one)
    other = _change(_built("other"), 7)
    await store.put_change(other)
    await store.put_change(_change(_built(tenant=""), 8))
    newest_first = [other, *changes[::-1]]
    same(await store.library_changes("acme"), (newest_first, None), "all changes")
    same((await store.library_changes("acme", "other"))[0], [other], "those of one action")
    page, cursor = await store.library_changes("acme", limit=4)
    rest, end = await store.library_changes("acme", limit=4, cursor=cursor)
    same((page + rest, end), (newest_first, None), "two pages")
    await refused(store.library_changes("acme", cursor="x"), RequestError, "a cursor that is none")
