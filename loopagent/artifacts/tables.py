"""Tools for tables, wherever they come from: schema, rows, search, aggregates."""

from __future__ import annotations

import csv
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from loopagent.artifacts.jsons import load
from loopagent.artifacts.source import NoParams, Params, Source, ToolError, page
from loopagent.artifacts.statistics import OPERATIONS, Op
from loopagent.artifacts.texts import MAX_LINE_CHARS, Position
from loopagent.core.json_values import compact_json, is_array, is_object


SHOWN_COLUMNS = 50
"""Columns that are shown when none are named."""
SHOWN_GROUPS = 200
"""Most groups of an aggregate; they come with the largest first."""
SEPARATORS = ",;\t|"
MAX_NUMBER_CHARS = 40
MAX_NUMBER = 1e300
"""Larger ones are not computed with."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
Row = Sequence[Any]
_TESTS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "neq": operator.ne,
    "gt": operator.gt,
    "lt": operator.lt,
    "gte": operator.ge,
    "lte": operator.le,
    "contains": operator.contains,
    "startsWith": str.startswith,
}


class Condition(Params):
    """What a row must satisfy. Numbers compare as numbers, everything else as text; text in any case of letters."""

    column: str
    op: Literal["eq", "neq", "gt", "lt", "gte", "lte", "contains", "startsWith"] = "eq"
    value: Any = None


class SchemaParams(Params):
    """Which table; `start` is the position of the first column."""

    table: str | None = None
    start: Position = 0
    count: Annotated[int, Field(ge=1, le=1_000)] = 200


class RowsParams(Params):
    """Which rows, from 0, and which of their columns."""

    table: str | None = None
    start: Position = 0
    count: Annotated[int, Field(ge=1, le=1_000)] = 50
    columns: list[str] | None = None


class SearchRowsParams(Params):
    """Conditions that all hold; `start` is the row to begin at."""

    table: str | None = None
    where: tuple[Condition, ...] = Field(max_length=20)
    start: Position = 0
    limit: Annotated[int, Field(ge=1, le=500)] = 200
    columns: list[str] | None = None


class AggregateParams(Params):
    """What to compute of a column, over all rows or those that satisfy conditions, whole or by group."""

    table: str | None = None
    column: str
    op: Op
    where: tuple[Condition, ...] = Field(default=(), max_length=20)
    group_by: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name, its columns, its rows. A row may be shorter than the columns."""

    name: str
    columns: list[str]
    rows: Sequence[Row]

    def position(self, column: str) -> int:
        """Where a column stands; an exact name, or one that differs in the case of letters only.

        Raises:
            ToolError: There is none, or more than one.
        """
        if column in self.columns:
            return self.columns.index(column)
        near = [at for at, one in enumerate(self.columns) if one.lower() == column.lower()]
        if len(near) == 1:
            return near[0]
        there = ", ".join(self.columns[:SHOWN_COLUMNS])[:MAX_LINE_CHARS]
        raise ToolError(f"no column {column[:100]!r}; there are {there}")


def csv_tables(source: Source) -> list[Table]:
    """The one table of a text with separated values; its first row names the columns."""
    lines = source.text().replace("\x00", "").splitlines(keepends=True)
    separator = _separator(lines[0] if lines else "", source.name)
    rows: list[Row] = []
    try:
        for number, row in enumerate(csv.reader(lines, delimiter=separator), start=1):
            if not number % 1_000:
                source.check_time()
            if row:
                rows.append(row)
    except csv.Error as error:
        message = f"line {len(rows) + 1} cannot be read as separated values: {error}; use get_lines"
        raise ToolError(message) from None
    return [table_of("table", rows)]


def _separator(line: str, name: str) -> str:
    if name.lower().endswith(".tsv"):
        return "\t"
    return max(SEPARATORS, key=line.count)


def table_of(name: str, rows: list[Row]) -> Table:
    """A table whose first row names the columns; blank and repeated names are made distinct."""
    widest = max((len(one) for one in rows), default=0)
    head = list(rows[0]) if rows else []
    columns: list[str] = []
    taken: set[str] = set()
    for at in range(widest):
        wanted = str(head[at]).strip() if at < len(head) and head[at] is not None else ""
        column = wanted or f"column_{at + 1}"
        column = column if column not in taken else f"{column}_{at + 1}"
        taken.add(column)
        columns.append(column)
    return Table(name, columns, rows[1:])


def snapshot_tables(source: Source) -> list[Table]:
    """The tables of a data snapshot: `{tables: [{name, columns, rows}]}`, rows as lists or objects."""
    value = load(source)
    listed = value.get("tables") if is_object(value) else value
    if not is_array(listed):
        raise ToolError("this is no snapshot of tables; look at it with json_keys")
    return [
        _snapshot(f"table_{number}", one)
        for number, one in enumerate(listed, start=1)
        if is_object(one)
    ]


def _snapshot(name: str, one: dict[str, Any]) -> Table:
    rows: list[Any] = one["rows"] if is_array(one.get("rows")) else []
    given = one.get("columns")
    if is_array(given):
        columns = [_column(each) for each in given]
    else:
        objects = [row for row in rows if is_object(row)]
        columns = list(dict.fromkeys(str(key) for row in objects for key in row))
    made = [[row.get(column) for column in columns] if is_object(row) else row for row in rows]
    return Table(str(one.get("name") or name), columns, [r for r in made if is_array(r)])


def _column(given: Any) -> str:
    return str(given.get("name")) if is_object(given) else str(given)


def chosen(tables: list[Table], name: str | None) -> Table:
    """The table of a name, or the first one.

    Raises:
        ToolError: There is none.
    """
    if not tables:
        raise ToolError("there is no table in it")
    if name is None:
        return tables[0]
    for one in tables:
        if one.name.lower() == name.lower():
            return one
    there = ", ".join(one.name for one in tables)[:MAX_LINE_CHARS]
    raise ToolError(f"no table {name[:100]!r}; there are {there}")


def get_tables(source: Source, tables: list[Table], params: NoParams) -> dict[str, Any]:
    """Name and size of every table."""
    del params
    listed = [
        {"name": one.name, "columns": len(one.columns), "rows": len(one.rows)} for one in tables
    ]
    return page(source, listed, 0, len(listed)).told("tables")


def get_schema(source: Source, tables: list[Table], params: SchemaParams) -> dict[str, Any]:
    """The columns of a table, each with its type and an example."""
    table = chosen(tables, params.table)
    wanted = range(params.start, min(len(table.columns), params.start + params.count))
    described: list[Any] = [None] * len(table.columns)
    for at in wanted:
        source.check_time()
        described[at] = _column_about(table, at)
    found = page(source, described, params.start, params.count)
    size = {"table": table.name, "rows": len(table.rows), "totalColumns": len(table.columns)}
    return found.told("columns", **size)


def _column_about(table: Table, at: int) -> dict[str, Any]:
    values = [cell(row, at) for row in table.rows[:100]]
    filled = [one for one in values if one not in {None, ""}] if _plain(values) else values
    numeric = bool(filled) and all(number(one) is not None for one in filled)
    about: dict[str, Any] = {"name": table.columns[at], "type": "number" if numeric else "text"}
    return {**about, "example": short_cell(filled[0])} if filled else about


def _plain(values: list[Any]) -> bool:
    return not any(isinstance(one, list | dict) for one in values)


def get_rows(source: Source, tables: list[Table], params: RowsParams) -> dict[str, Any]:
    """Some rows."""
    table = chosen(tables, params.table)
    positions, about = _columns(table, params.columns)
    shown = _Rows(table.rows, positions)
    room = len(compact_json(about))
    found = page(source, shown, params.start, params.count, room=room)
    return found.told("rows", **about, totalRows=len(table.rows))


class _Rows(Sequence[Any]):
    """Rows as they are shown, made one by one."""

    def __init__(self, rows: Sequence[Row], positions: list[int]) -> None:
        self._rows = rows
        self._positions = positions

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, at: Any) -> Any:
        row = self._rows[at]
        return [short_cell(cell(row, one)) for one in self._positions]


def _columns(table: Table, wanted: list[str] | None) -> tuple[list[int], dict[str, Any]]:
    """Which columns are shown, and what the result says about that."""
    if wanted is not None:
        positions = [table.position(one) for one in wanted[:SHOWN_COLUMNS]]
    else:
        positions = list(range(min(SHOWN_COLUMNS, len(table.columns))))
    about: dict[str, Any] = {"columns": [short_cell(table.columns[one]) for one in positions]}
    if wanted is None and len(table.columns) > SHOWN_COLUMNS:
        about["columnsNotShown"] = len(table.columns) - SHOWN_COLUMNS
    return positions, about


def cell(row: Row, at: int) -> Any:
    """A value of a row; None where the row is too short."""
    return row[at] if at < len(row) else None


def short_cell(value: Any) -> Any:
    """A value as it is shown in a row."""
    if isinstance(value, str) and len(value) > MAX_LINE_CHARS:
        return f"{value[:MAX_LINE_CHARS]}… ({len(value)} characters)"
    return value


def search_rows(source: Source, tables: list[Table], params: SearchRowsParams) -> dict[str, Any]:
    """Rows that satisfy all conditions, each with its number."""
    table = chosen(tables, params.table)
    positions, about = _columns(table, params.columns)
    found: list[Any] = []
    after: int | None = None
    for at, row in matching(source, table, params.where, params.start):
        if len(found) == params.limit:
            after = at
            break
        found.append({"row": at, "values": [short_cell(cell(row, one)) for one in positions]})
    shown = page(source, found, 0, len(found), room=len(compact_json(about)))
    after = found[shown.next]["row"] if shown.next is not None else after
    body = {**about, "totalRows": len(table.rows), "matches": shown.entries}
    return body if after is None else {**body, "next": after}


def matching(
    source: Source, table: Table, where: Sequence[Condition], start: int = 0
) -> Iterator[tuple[int, Row]]:
    """Rows from `start` on that satisfy all conditions, each with its position."""
    tests = [(table.position(one.column), one) for one in where]
    for at in range(start, len(table.rows)):
        if not at % 1_000:
            source.check_time()
        row = table.rows[at]
        if all(satisfies(cell(row, position), one) for position, one in tests):
            yield at, row


def satisfies(value: Any, condition: Condition) -> bool:
    """Whether a value satisfies a condition."""
    left, right = number(value), number(condition.value)
    if left is not None and right is not None and condition.op not in {"contains", "startsWith"}:
        return _compare(left, right, condition.op)
    return _compare(_text(value), _text(condition.value), condition.op)


def _compare(left: Any, right: Any, op: str) -> bool:
    return bool(_TESTS[op](left, right))


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value.casefold() if isinstance(value, str) else compact_json(value).casefold()


def number(value: Any) -> float | None:
    """A value as a number: one itself, or a text that is nothing but one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) <= MAX_NUMBER else None
    if (
        isinstance(value, str)
        and len(value) <= MAX_NUMBER_CHARS
        and _NUMBER.fullmatch(value.strip())
    ):
        return float(value)
    return None


def aggregate(source: Source, tables: list[Table], params: AggregateParams) -> dict[str, Any]:
    """One figure of a column, whole or by group; values that are no numbers are counted and left out."""
    table = chosen(tables, params.table)
    at = table.position(params.column)
    rows = (row for _, row in matching(source, table, params.where))
    if params.group_by is None:
        return OPERATIONS[params.op]([cell(row, at) for row in rows], number)
    by = table.position(params.group_by)
    groups: dict[str, list[Any]] = {}
    for row in rows:
        value = cell(row, by)
        name = value if isinstance(value, str) else compact_json(value)
        groups.setdefault(name, []).append(cell(row, at))
    ordered = sorted(groups.items(), key=lambda one: -len(one[1]))
    listed = [
        {"group": short_cell(name), **OPERATIONS[params.op](values, number)}
        for name, values in ordered[:SHOWN_GROUPS]
    ]
    shown = page(source, listed, 0, len(listed))
    return {"totalGroups": len(groups), "groups": shown.entries}
