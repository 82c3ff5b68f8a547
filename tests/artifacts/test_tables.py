"""Tables: schema, rows, search and figures, whatever their shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopagent.artifacts import look
from loopagent.artifacts.source import Source
from tests.artifacts.test_texts_and_json import fails, use


ROWS = [f"r{one},{one % 3},{one * 1.5}" for one in range(600)]
CSV = "\n".join(["name,group,price", *ROWS])


def csv(tool: str, content: str = CSV, **params: Any) -> Any:
    """What a tool brings of separated values."""
    return use(content, tool, "csv", **params)


def test_the_schema_names_columns_and_types() -> None:
    got = csv("get_schema")
    assert got["rows"] == 600
    assert got["columns"][0] == {"name": "name", "type": "text", "example": "r0"}
    assert got["columns"][2]["type"] == "number"
    assert csv("get_tables")["tables"] == [{"name": "table", "columns": 3, "rows": 600}]


@pytest.mark.parametrize(
    ("start", "count", "following"), [(0, 10, 10), (590, 10, None), (590, 9, 599), (600, 1, None)]
)
def test_rows_come_in_exact_pages(start: int, count: int, following: int | None) -> None:
    got = csv("get_rows", start=start, count=count, columns=["price", "NAME"])
    assert got["columns"] == ["price", "name"]
    assert len(got["rows"]) == min(count, 600 - start)
    assert got.get("next") == following
    if got["rows"]:
        assert got["rows"][0] == [str(start * 1.5), f"r{start}"]


@pytest.mark.parametrize(
    ("op", "value", "rows"),
    [
        ("eq", 3, [2]),
        ("eq", "3.0", [2]),
        ("neq", 3, [0, 1, 3]),
        ("gt", 1.5, [2, 3]),
        ("gte", "1.5", [1, 2, 3]),
        ("lt", 3, [0, 1]),
        ("lte", 3, [0, 1, 2]),
        ("contains", ".5", [1, 3]),
        ("startsWith", "4", [3]),
    ],
)
def test_rows_are_searched_by_value(op: str, value: Any, rows: list[int]) -> None:
    content = "\n".join(CSV.splitlines()[:5])
    got = csv("search_rows", content, where=[{"column": "price", "op": op, "value": value}])
    assert [one["row"] for one in got["matches"]] == rows


def test_a_search_says_where_to_go_on_and_holds_its_limit() -> None:
    where = [{"column": "group", "value": 0}]
    assert len(csv("search_rows", where=where)["matches"]) == 200
    got = csv("search_rows", where=where, limit=3)
    assert [one["row"] for one in got["matches"]] == [0, 3, 6]
    assert got["next"] == 9
    last = csv("search_rows", where=where, limit=3, start=591)
    assert [one["row"] for one in last["matches"]] == [591, 594, 597]
    assert "next" not in last
    assert "limit" in fails(CSV, "search_rows", "csv", where=where, limit=501)


@pytest.mark.parametrize(
    ("op", "value"),
    [
        ("sum", 269550),
        ("avg", 449.25),
        ("mean", 449.25),
        ("count", 600),
        ("min", 0),
        ("max", 898.5),
        ("distinct_count", 600),
        ("median", 449.25),
        ("mode", "0.0"),
        ("stdev", 260.0240373504),
        ("variance", 67612.5),
    ],
)
def test_figures_of_a_column(op: str, value: Any) -> None:
    assert csv("aggregate", column="price", op=op)["value"] == value


def test_figures_by_group_and_of_columns_without_numbers() -> None:
    got = csv("aggregate", column="price", op="count", groupBy="group")
    assert got["totalGroups"] == 3
    assert {one["group"]: one["value"] for one in got["groups"]} == {"0": 200, "1": 200, "2": 200}
    assert csv("aggregate", column="name", op="sum") == {"value": None, "of": 0, "notNumbers": 600}
    assert csv("aggregate", column="name", op="min")["value"] == "r0"
    assert csv("aggregate", "a\n1\n", column="a", op="stdev")["value"] is None


def test_a_column_that_is_not_there_is_answered_with_those_that_are() -> None:
    assert "there are name, group, price" in fails(CSV, "aggregate", "csv", column="cost", op="sum")
    assert "no table" in fails(CSV, "get_rows", "csv", table="other")


def test_100_000_columns_are_read_in_pages() -> None:
    wide = ",".join(f"c{one}" for one in range(100_000))
    values = ",".join(str(one) for one in range(100_000))
    source = f"{wide}\n{values}\n"
    got = csv("get_rows", source)
    assert (len(got["columns"]), got["columnsNotShown"]) == (50, 99_950)
    assert csv("get_rows", source, columns=["c99999"])["rows"] == [["99999"]]
    schema = csv("get_schema", source, start=99_900)
    assert (schema["totalColumns"], len(schema["columns"])) == (100_000, 100)
    assert csv("get_schema", source)["next"] == 200


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_seen_in_the_first_line(separator: str) -> None:
    got = csv("get_rows", f'a{separator}b\n1{separator}"x{separator}y"\n')
    assert got["rows"] == [["1", f"x{separator}y"]]


def test_ragged_blank_and_repeated_columns_get_names_and_nothing_is_lost() -> None:
    got = csv("get_rows", "a,,a\n1,2,3,4\n5\n")
    assert got["columns"] == ["a", "column_2", "a_3", "column_4"]
    assert got["rows"] == [["1", "2", "3", "4"], ["5", None, None, None]]


def test_a_field_that_is_too_large_is_said_in_words() -> None:
    assert "use get_lines" in fails("a,b\n" + "x" * 200_000 + ",1\n", "get_rows", "csv")


def test_snapshots_of_tables_have_rows_as_lists_or_objects() -> None:
    snapshot = {
        "tables": [
            {"name": "one", "columns": ["a", {"name": "b"}], "rows": [[1, 2], {"b": 4, "a": 3}]},
            {"rows": [{"x": 1}, {"x": 2, "y": [1]}]},
            "nonsense",
        ]
    }
    text = json.dumps(snapshot)
    assert use(text, "get_rows", "tables", table="ONE")["rows"] == [[1, 2], [3, 4]]
    assert use(text, "get_rows", "tables", table="table_2")["rows"] == [[1, None], [2, [1]]]
    assert use(text, "get_schema", "tables", table="table_2")["columns"][1]["name"] == "y"
    assert use(text, "aggregate", "tables", column="a", op="sum")["value"] == 4
    assert "no snapshot" in fails("{}", "get_tables", "tables")


@settings(max_examples=80, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from(["csv", "json", "tables", "pdf", "docx", "xlsx", "image", "text"]),
)
def test_no_bytes_make_a_tool_raise(content: bytes, kind: str) -> None:
    for tool, params in (
        ("get_tables", {}),
        ("get_full", {}),
        ("json_keys", {}),
        ("get_metadata", {}),
        ("get_sheets", {}),
    ):
        outcome = look(Source(content, kind=kind), tool, params)
        assert outcome.ok or outcome.error is not None
