"""Texts and JSON: pages that miss nothing, encodings, patterns, paths."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from loopagent.artifacts import TOOLS, look
from loopagent.artifacts.encodings import decoded
from loopagent.artifacts.source import Source
from loopagent.core.artifact_kinds import TOOLS as NAMED
from loopagent.core.artifact_kinds import kind_of
from loopagent.core.json_values import compact_json


def use(content: bytes | str, tool: str, kind: str = "text", **params: Any) -> Any:
    """What a tool brings."""
    cap = params.pop("cap", 100_000)
    raw = content.encode() if isinstance(content, str) else content
    outcome = look(Source(raw, kind=kind, max_chars=cap), tool, params)
    assert outcome.ok, outcome.error
    assert len(compact_json(outcome.value)) <= cap
    return outcome.value


def fails(content: bytes | str, tool: str, kind: str = "text", **params: Any) -> str:
    """What is said of a call that brings nothing."""
    raw = content.encode() if isinstance(content, str) else content
    outcome = look(Source(raw, kind=kind), tool, params)
    assert outcome.error is not None
    return f"{outcome.error.code}: {outcome.error.message}"


def test_the_prompt_names_exactly_the_tools_and_parameters_there_are() -> None:
    for kind, tools in TOOLS.items():
        assert list(NAMED[kind]) == list(tools)
        for name, (model, _) in tools.items():
            fields = {one.alias or key for key, one in model.model_fields.items()}
            said = NAMED[kind][name].replace("{column, op, value}[]", "")
            named = {one.partition(":")[0].strip(" ?") for one in said.split(",") if one}
            assert named <= fields, (kind, name)
            needed = {one.alias for one in model.model_fields.values() if one.is_required()}
            assert needed <= named, (kind, name)
    assert set(NAMED) == set(TOOLS)


@pytest.mark.parametrize(
    ("media_type", "name", "kind"),
    [
        ("", "", "text"),
        ("text/plain", "", "text"),
        ("text/plain", "rows.csv", "csv"),
        ("text/markdown", "a.csv", "text"),
        ("application/json; charset=utf-8", "", "json"),
        ("application/vnd.api+json", "", "json"),
        ("application/octet-stream", "report.PDF", "pdf"),
        ("application/octet-stream", "noending", "binary"),
        ("image/png", "x.pdf", "image"),
        ("video/mp4", "", "binary"),
    ],
)
def test_the_kind_follows_from_the_media_type_else_from_the_name(
    media_type: str, name: str, kind: str
) -> None:
    assert kind_of(media_type, name) == kind


@settings(max_examples=100, deadline=None)
@example("0\0", 200)
@given(st.text(max_size=3_000), st.integers(200, 900))
def test_pages_of_a_text_put_together_are_the_text(text: str, cap: int) -> None:
    pieces, start = [], 0
    while True:
        got = use(text, "get_full", start=start, cap=cap)
        pieces.append(got["text"])
        if "next" not in got:
            break
        assert got["next"] > start
        start = got["next"]
    assert "".join(pieces) == text


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text('ab"\\é', max_size=90), max_size=60), st.integers(400, 900))
def test_pages_of_lines_put_together_are_the_lines(lines: list[str], cap: int) -> None:
    text = "".join(f"{one}\n" for one in lines)
    seen, start = [], 1
    while True:
        got = use(text, "get_lines", start=start, count=10, cap=cap)
        seen += got["lines"]
        if "next" not in got:
            break
        assert got["next"] == start + len(got["lines"])
        start = got["next"]
    assert seen == lines
    assert got["totalLines"] == len(lines)


@pytest.mark.parametrize(("count", "following"), [(9, 10), (10, None), (11, None)])
def test_the_last_page_has_no_next(count: int, following: int | None) -> None:
    got = use("\n".join("abcdefghij"), "get_lines", count=count)
    assert got.get("next") == following
    full = use("abcdefghij", "get_full", count=count)
    assert full.get("next") == (following and following - 1)


@pytest.mark.parametrize(
    ("kind", "tool", "start", "note"),
    [
        ("text", "get_lines", 4, "3 lines"),
        ("text", "get_lines", 3, ""),
        ("text", "get_full", 8, "8 characters"),
        ("csv", "get_rows", 2, "2 rows"),
        ("csv", "get_rows", 1, ""),
        ("json", "json_iterate", 0, ""),
        ("json", "json_iterate", 5, "1 items"),
        ("binary", "get_full", 99, "8 bytes"),
    ],
)
def test_an_empty_page_behind_the_end_says_so(kind: str, tool: str, start: int, note: str) -> None:
    text = '["12345"]' if kind == "json" else "a,b\n1\n2\n"
    found = look(Source(text.encode(), kind=kind), tool, {"start": start})
    assert found.ok, found
    assert found.value.get("note", "") == (note and f"This is the end: {note} in all.")


def test_grep_gives_lines_with_numbers_and_goes_on_where_it_stopped() -> None:
    text = "\n".join(f"line {one}" for one in range(1, 31))
    first = use(text, "grep", pattern="line .*[05]$", maxResults=3)
    assert [one["line"] for one in first["matches"]] == [5, 10, 15]
    assert first["next"] == 20
    rest = use(text, "grep", pattern="LINE .*[05]$", flags="i", maxResults=3, start=20)
    assert [one["line"] for one in rest["matches"]] == [20, 25, 30]
    assert "next" not in rest


def test_fix_24_a_hostile_pattern_takes_linear_time() -> None:
    assert use("a" * 50_000, "grep", pattern="(a+)+$")["matches"]
    assert "matches" in use("a" * 50_000 + "b", "grep", pattern="(a+)+$")
    assert "not a pattern" in fails("x", "grep", pattern="(")
    assert "flags" in fails("x", "grep", pattern="x", flags="q")


def test_a_line_that_is_too_long_is_cut_and_says_how_long_it_is() -> None:
    got = use("x" * 5_000, "get_lines")
    assert got["lines"][0].endswith("… (5000 characters)")
    assert len(use("x" * 5_000, "get_full")["text"]) == 5_000


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_texts_are_read_in_the_encoding_they_are_in(encoding: str) -> None:
    text = "Grüße, plain text with some letters" if encoding != "utf-16-be" else "Plain words"
    assert decoded(text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("text", "encoding", "said"),
    [
        ("Größe;10 €\n", "windows-1252", "windows-1252, a guess"),
        ("ÄÖÜß: Übergrößen, déjà vu à l'été, ÉTÉ", "windows-1252", "windows-1252, a guess"),
        ("你好世界。内容是中文。\n第二行,1", "gb18030", "gb18030, a guess"),
        ("こんにちは世界。テストです。", "shift_jis", "shift_jis, a guess"),
        ("Größe", "utf-16", "utf-16"),
        ("Größe", "utf-8", None),
    ],
)
def test_the_encoding_is_said_where_it_is_unusual(text: str, encoding: str, said: str) -> None:
    found = look(Source(text.encode(encoding), name="a.txt"), "get_full", {})
    assert found.value["text"] == text
    assert found.value.get("encoding") == said


def test_broken_encodings_and_lone_surrogates_are_replaced() -> None:
    assert decoded(b"caf\xe9") == "café"
    assert decoded("é".encode() + b"\xff!") == "é\ufffd!"
    assert "\ufffd" in decoded(b"\xff\xfe\x00\xd8a\x00")
    lone = use('{"a": "\\ud800"}', "json_path", "json", path="a")
    assert json.dumps(lone)
    assert use(b"\xc3\xa9\xed\xa0\x80", "get_full")["text"] == "é\ufffd\ufffd\ufffd"


@pytest.mark.parametrize("kind", list(TOOLS))
def test_an_empty_file_is_no_mishap(kind: str) -> None:
    for tool in TOOLS[kind]:
        params = {"pattern": "x"} if "pattern" in NAMED[kind][tool] else {}
        outcome = look(Source(b"", kind=kind), tool, params)
        assert outcome.ok or outcome.error is not None


@pytest.mark.parametrize("kind", ["json", "tables", "pdf", "docx", "xlsx"])
def test_the_wrong_ending_is_said_in_words(kind: str) -> None:
    tools = {
        "json": "json_keys",
        "tables": "get_tables",
        "pdf": "get_page_count",
        "docx": "get_outline",
    }
    said = fails("just words", tools.get(kind, "get_sheets"), kind)
    assert said.startswith("no_result: this ")


def test_wrong_parameters_are_named() -> None:
    assert fails("x", "get_lines", start=0).startswith("bad_params: start:")
    assert "colour" in fails("x", "get_lines", colour=1)
    assert "pattern" in fails("x", "grep")
    assert fails("x", "sing").startswith("no_tool")
    assert use("x", "get_lines", count=None)["lines"] == ["x"]


def test_a_look_ends_with_its_time() -> None:
    times = iter(range(100))
    source = Source(b"a\n" * 5_000, ends_at=2, clock=lambda: next(times))
    outcome = look(source, "grep", {"pattern": "z"})
    assert outcome.error is not None
    assert outcome.error.code == "timeout"


DATA = json.dumps(
    {
        "items": [{"name": f"n{one}", "price": one, "tags": ["x", "y"]} for one in range(30)],
        "a.b": {"deep": True},
        "long": "z" * 900,
    }
)


def test_json_paths() -> None:
    assert use(DATA, "json_path", "json", path="items[3].name") == {"value": "n3"}
    assert use(DATA, "json_path", "json", path="$.items[-1].price") == {"value": 29}
    assert use(DATA, "json_path", "json", path='["a.b"].deep') == {"value": True}
    assert use(DATA, "json_path", "json", path="items[*].price")["value"] == list(range(30))
    page = use(DATA, "json_path", "json", path="items", cap=400)
    assert page["length"] == 30
    assert page["next"] == len(page["items"])
    assert use(DATA, "json_path", "json", cap=400)["tooLong"] is True
    assert "nothing at" in fails(DATA, "json_path", "json", path="items[30]")
    assert "not a path" in fails(DATA, "json_path", "json", path="items[")


def test_a_long_text_in_json_comes_in_pages() -> None:
    first = use(DATA, "json_path", "json", path="long", cap=500)
    rest = use(DATA, "json_path", "json", path="long", cap=900, start=first["next"])
    assert first["text"] + rest["text"] == "z" * 900


def test_json_keys_and_items() -> None:
    keys = use(DATA, "json_keys", "json")
    assert keys["keys"][0] == {"key": "items", "type": "list", "length": 30}
    items = use(DATA, "json_keys", "json", path="items")
    assert items["length"] == 30
    assert [one["key"] for one in items["firstItem"]["keys"]] == ["name", "price", "tags"]
    some = use(DATA, "json_iterate", "json", arrayPath="items", start=28, count=2)
    assert [one["price"] for one in some["items"]] == [28, 29]
    assert "next" not in some
    assert use(DATA, "json_iterate", "json", arrayPath="items", count=29)["next"] == 29
    assert "no list" in fails(DATA, "json_iterate", "json", arrayPath="long")


def test_json_search_by_key_and_pattern() -> None:
    got = use(DATA, "json_search", "json", key="name", pattern="^n1", maxResults=10)
    assert [one["value"] for one in got["matches"]][:2] == ["n1", "n10"]
    assert got["matches"][1]["path"] == "items[10].name"
    assert got["next"] == 10
    rest = use(DATA, "json_search", "json", key="name", pattern="^n1", start=10)
    assert [one["value"] for one in rest["matches"]] == ["n19"]
    assert use(DATA, "json_search", "json", key="deep")["matches"][0]["path"] == '["a.b"].deep'
    assert "give a `key`" in fails(DATA, "json_search", "json")


def test_json_that_is_nested_without_end_is_refused_in_words() -> None:
    outcome = look(Source(b"[" * 200_000, kind="json"), "json_keys", {})
    assert outcome.error is not None
    huge = look(Source(b"9" * 10_000, kind="json"), "json_path", {})
    assert huge.error is not None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=400), max_size=40), st.integers(500, 1_000))
def test_pages_of_items_put_together_are_the_list(items: list[str], cap: int) -> None:
    seen: list[Any] = []
    start: int | None = 0
    while start is not None:
        got = use(json.dumps(items), "json_iterate", "json", start=start, count=7, cap=cap)
        seen += got["items"]
        start = got.get("next")
    assert len(seen) == len(items)
    assert [one if isinstance(one, str) else one["chars"] for one in seen] == [
        one if isinstance(got, str) else len(one) if isinstance(got, dict) else one
        for one, got in zip(items, seen, strict=True)
    ]
