"""What drafts say in lists: read once, as far as they can be read, in the API as in the page."""

from __future__ import annotations

import pytest

from loopagent.library.drafts import said_by
from loopagent.library.listing import library_rows
from loopagent.library_port import Built, text_hash
from loopagent.web.action_list import list_rows
from tests.library.making import PIPELINE, opened, text


pytestmark = pytest.mark.anyio
FAULTY = """\
name: mail.two
title: Two letters
description: Sends two.
effects: destructive
run: {kind: pipeline, steps: [{id: first, action: mail.send}], colour: red}
"""


def drafted(said: str) -> Built:
    return Built("acme", "mail.two", said, text_hash(said, {}))


def test_a_draft_is_read_once_as_long_as_it_says_the_same() -> None:
    first = said_by(drafted(text("mail.once")))
    assert said_by(drafted(text("mail.once"))) is first
    assert said_by(drafted(text("mail.once", path="v2"))) is not first


def test_the_row_of_a_draft_is_ones_own() -> None:
    row = said_by(drafted(text())).row()
    row["kind"] = "changed"
    assert said_by(drafted(text())).row()["kind"] == "http"


@pytest.mark.parametrize("said", ["", "# nothing yet", "name: [", "- a list", "a: 1\n---\nb: 2\n"])
def test_nothing_is_said_of_what_cannot_be_read(said: str) -> None:
    row = said_by(drafted(said)).row()
    assert (row["kind"], row["title"], row["effects"], row["enabled"]) == ("", "", "write", False)


def test_a_faulty_draft_says_what_can_be_read_of_it() -> None:
    said = said_by(drafted(FAULTY))
    assert (said.title, said.kind, said.effects) == ("Two letters", "pipeline", "irreversible")
    assert said.steps == ("mail.send",)
    assert said.row()["effects"] == "irreversible"
    assert said.row()["enabled"] is False


def test_odd_values_in_a_faulty_draft_are_left_out() -> None:
    said = said_by(drafted("name: x\ntitle: [1]\neffects: loud\nrun: {kind: 3, steps: [4]}"))
    assert (said.title, said.kind, said.effects, said.steps) == ("", "", None, ())


async def test_the_api_and_the_page_say_the_same_of_drafts() -> None:
    async with opened() as app:
        drafts = {"mail.two": FAULTY, "mail.pair": PIPELINE.format(name="mail.pair", step="mail.a")}
        for name, said in drafts.items():
            await app.library.save("acme", name, said, expected_hash=None, by="ann")
        page = list_rows({}, {}, await app.library.list("acme"), {})
        api = await library_rows(app.library, "acme")
        shown = [
            (one.name, one.facts.description, one.facts.kind, one.facts.effects) for one in page
        ]
        assert shown == [
            (one["name"], one["description"], one["kind"], one["effects"]) for one in api
        ]
        assert shown[0] == ("mail.pair", "Two letters.", "pipeline", "external")
