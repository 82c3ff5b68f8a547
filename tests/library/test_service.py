"""Drafts, versions, grants: what the library keeps, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopagent import Agent, App
from loopagent.errors import RequestError
from loopagent.library.faults import StaleError
from loopagent.library.settings import LibrarySettings
from loopagent.models.scripted import ScriptedModel
from loopagent.runtime.retention import DAY_SECONDS, Removed, Retention, remove_old
from tests.library.making import PIPELINE, code_of, opened, published, text
from tests.runtime.hooked import DONE


pytestmark = pytest.mark.anyio


async def test_a_faulty_draft_is_kept_as_it_was_typed() -> None:
    async with opened() as app:
        said = "# half of it\nname: mail.send\n  run: [\n"
        row = await app.library.save("acme", "mail.send", said, expected_hash=None, by="ann")
        assert (row.draft, row.state, row.updated_by) == (said, "draft", "ann")
        assert [one.line for one in await app.library.lint("acme", said)] != []
        refused = app.library.publish(
            "acme", "mail.send", draft_hash=row.draft_hash, by="ann", agents=["clerk"]
        )
        assert await code_of(refused) == "invalid_action"
        assert (await app.library.get("acme", "mail.send")).published is None


async def test_the_second_of_two_who_save_sees_what_the_first_saved() -> None:
    async with opened() as app:
        library = app.library
        row = await library.save("acme", "mail.send", "one", expected_hash="", by="ann")
        await library.save("acme", "mail.send", "two", expected_hash=row.draft_hash, by="bob")
        with pytest.raises(StaleError) as refused:
            await library.save("acme", "mail.send", "three", expected_hash=row.draft_hash, by="ann")
        assert refused.value.status == 409
        assert refused.value.current is not None
        assert (refused.value.current.draft, refused.value.current.updated_by) == ("two", "bob")
        with pytest.raises(StaleError, match="changed by bob"):
            await library.save("acme", "mail.send", "new", expected_hash=None, by="cat")


async def test_publishing_rolling_back_and_retiring() -> None:
    async with opened() as app:
        library = app.library
        await published(app, said=text(path="v1"))
        one = await library.get("acme", "mail.send")
        assert (one.state, one.published, one.agents) == ("published", 1, ("clerk",))
        await library.save(
            "acme", "mail.send", text(path="v2"), expected_hash=one.draft_hash, by="bob"
        )
        assert (await library.get("acme", "mail.send")).state == "changed"
        stale = library.publish("acme", "mail.send", draft_hash=one.draft_hash, by="bob")
        assert await code_of(stale) == "stale"
        await published(app, said=text(path="v2"), note="moved")
        back = await library.rollback("acme", "mail.send", 1, by="cat")
        assert (back.published, back.draft, back.state) == (3, text(path="v1"), "published")
        found = [
            (one.number, one.by, one.note) for one in await library.versions("acme", "mail.send")
        ]
        assert found == [(3, "cat", "Version 1 again."), (2, "ann", "moved"), (1, "ann", "")]
        gone = await library.retire("acme", "mail.send", by="cat")
        assert (gone.state, gone.published) == ("retired", None)
        assert await code_of(library.delete("acme", "mail.send", by="cat")) == "done"
        assert await library.list("acme") == []
        done = [one.what for one in (await library.changes("acme"))[0]]
        first = ["saved", "published", "saved", "published", "rolled_back", "retired", "deleted"]
        assert done[::-1] == first


async def test_what_cannot_be_done_is_refused_with_a_reason() -> None:
    async with opened(library=LibrarySettings(max_actions=2, max_text_bytes=1_000)) as app:
        library = app.library
        await published(app)
        row = await library.get("acme", "mail.send")
        assert await code_of(library.delete("acme", "mail.send", by="ann")) == "published"
        assert await code_of(library.get("acme", "nothing")) == "unknown_action"
        assert await code_of(library.version("acme", "mail.send", 7)) == "unknown_version"
        assert await code_of(library.rename("acme", "mail.send", "x", by="ann")) == "published"
        nobody = library.grant("acme", "mail.send", ["nobody"], by="ann")
        assert await code_of(nobody) == "unknown_agent"
        stubborn = library.grant("acme", "mail.send", ["stubborn"], by="ann")
        assert await code_of(stubborn) == "refuses_actions"
        for name in ("", "Mail", "a b", "a" * 101, "../x"):
            bad = library.save("acme", name, "x", expected_hash=None, by="ann")
            assert await code_of(bad) == "invalid_name"
        long = library.save("acme", "mail.send", "ü" * 501, expected_hash=row.draft_hash, by="ann")
        assert await code_of(long) == "too_large"
        odd = library.save("acme", "b", "x", expected_hash=None, by="ann", files={"../x": "{}"})
        assert await code_of(odd) == "invalid_files"
        await library.save("acme", "b", "x", expected_hash=None, by="ann")
        more = library.save("acme", "c", "x", expected_hash=None, by="ann")
        assert await code_of(more) == "too_many"


async def test_a_draft_gets_another_name_in_its_text_too() -> None:
    async with opened() as app:
        library = app.library
        await library.save("acme", "mail.send", text(), expected_hash=None, by="ann")
        await library.save("acme", "taken", "x", expected_hash=None, by="ann")
        assert await code_of(library.rename("acme", "mail.send", "taken", by="ann")) == "taken"
        row = await library.rename("acme", "mail.send", "mail.post", by="ann")
        assert row.draft == text("mail.post")
        assert [one.name for one in await library.list("acme")] == ["mail.post", "taken"]


async def test_a_tenant_never_sees_what_another_one_built() -> None:
    async with opened() as app:
        library = app.library
        await published(app)
        assert await library.list("other") == []
        assert await code_of(library.get("other", "mail.send")) == "unknown_action"
        assert await code_of(library.versions("other", "mail.send")) == "unknown_action"
        assert (await library.changes("other"))[0] == []
        spec = app.agents["clerk"].spec
        assert await library.definitions.granted(spec, "other") is spec
        given = await library.definitions.granted(spec, "acme")
        digest = given.actions[-1].definition
        assert await library.definitions.action("acme", digest) is not None
        assert await library.definitions.action("other", digest) is None


async def test_what_is_wrong_is_said_with_its_place() -> None:
    async with opened() as app:
        library = app.library

        async def complaints(said: str, name: str | None = None) -> list[tuple[str, str]]:
            return [(one.where, one.what) for one in await library.lint("acme", said, name)]

        assert await complaints(text()) == []
        assert [one for one, _ in await complaints(text(), "other")] == ["name"]
        assert "project's files" in (await complaints(text("look")))[0][1]
        python = (
            "name: x\ndescription: d\neffects: read\nrun: {kind: python, callable: 'os:system'}\n"
        )
        assert "runs code of the server" in (await complaints(python))[0][1]
        private = text().replace("]}", "], privateNetworks: [10.0.0.0/8]}", 1)
        assert (await complaints(private))[0][0] == "egress.privateNetworks"
        prompt = "name: x\ndescription: d\neffects: read\nrun: {kind: prompt, template: t, model: 'http://x/v1#m'}"
        assert (await complaints(prompt))[0][0] == "run.model"
        secret = text() + "secrets: [nothing]\n"
        assert "secrets[0]" in [one for one, _ in await complaints(secret)]
        assert "enabled" in [one for one, _ in await complaints(text() + "enabled: false\n")]
        assert "several actions" in (await complaints(text() + "---\n" + text("b")))[0][1]
        step = PIPELINE.format(name="two", step="mail.send")
        assert "there is no action 'mail.send'" in (await complaints(step))[0][1]
        await published(app)
        assert await complaints(step) == []
        await published(app, "two", step)
        circle = PIPELINE.format(name="mail.send", step="two").replace(
            "with: {to: ann}", "with: {}"
        )
        assert "a circle" in (await complaints(circle))[0][1]


async def test_a_preview_sends_nothing_and_tests_run_against_a_stand_in() -> None:
    async with opened() as app:
        shown = await app.library.preview("acme", text(), {"to": "ann"})
        assert shown == {
            "kind": "http",
            "method": "POST",
            "url": "https://api.example.com/v1/letters",
            "headers": {"content-type": "application/json"},
            "body": '{"to":"ann"}',
        }
        with pytest.raises(RequestError) as refused:
            await app.library.preview("acme", text(), {})
        assert refused.value.code == "invalid_params"
        results = await app.library.run_tests("acme", text())
        assert [(one.test, one.problems) for one in results] == [("sends", [])]


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    async with opened(url) as app:
        await published(app)
        row = await app.library.get("acme", "mail.send")
        await app.library.save(
            "acme", "mail.send", "half", expected_hash=row.draft_hash, by="bob", files={"a": "{}"}
        )
        before = await app.library.get("acme", "mail.send")
    async with opened(url) as app:
        assert await app.library.get("acme", "mail.send") == before
        assert (before.draft, before.files, before.state) == ("half", {"a": "{}"}, "changed")
        assert (await app.library.version("acme", "mail.send", 1)).text == text()
        given = await app.library.definitions.granted(app.agents["clerk"].spec, "acme")
        assert [one.name for one in given.actions] == ["look", "mail.send"]


async def test_definitions_go_with_the_last_run_that_was_given_them(tmp_path: Path) -> None:
    now = [1_000_000.0]
    rules = Retention(run_days=5)

    async def started(app: App) -> tuple[str, str]:
        begun = await app.start("clerk", "Write.", tenant="acme")
        await app.wait(begun.id, timeout_seconds=60)
        state = (await app.get(begun.id)).state
        return state.id, state.spec.actions[-1].definition

    url, agents = f"sqlite:///{tmp_path}/runs.db", [Agent("clerk", model=ScriptedModel([DONE] * 9))]
    async with opened(url, agents=agents, clock=lambda: now[0]) as app:
        await published(app)
        run, first = await started(app)
        assert (await started(app))[1] == first
        await published(app, said=text(path="v2"))
        now[0] += 2 * DAY_SECONDS
        _, second = await started(app)
        now[0] += 2 * DAY_SECONDS
        assert (await remove_old(app.store, rules, now[0])).definitions == 0
        now[0] += 2 * DAY_SECONDS
        assert await remove_old(app.store, rules, now[0]) == Removed(runs=2, definitions=1)
        assert await app.store.definition("acme", first) is None
        assert await app.store.definition("acme", second) is not None
        assert await app.store.load(run) is None

        # What this process knows to be kept may have gone meanwhile, and is written again.
        await app.library.rollback("acme", "mail.send", 1, by="ann")
        assert (await started(app))[1] == first
        assert await app.store.definition("acme", first) is not None
        assert (await remove_old(app.store, rules, now[0])).definitions == 0
