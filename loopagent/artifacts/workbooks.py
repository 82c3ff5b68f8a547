"""Tools for Excel workbooks: sheets, cells, figures, formulas."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import Field

from loopagent.artifacts.packed import library, reading, unpackable
from loopagent.artifacts.source import NoParams, Params, Source, ToolError
from loopagent.artifacts.statistics import Op
from loopagent.artifacts.tables import (
    AggregateParams,
    Condition,
    RowsParams,
    Table,
    aggregate,
    get_rows,
    table_of,
)
from loopagent.artifacts.texts import (
    Amount,
    FullParams,
    Position,
    compiled,
    cut_line,
    full_page,
    matches,
)


WHAT = "an Excel workbook"
MAX_CELLS = 2_000_000
"""Cells of a sheet that are read; more of them are more than one look is for."""


class SheetParams(Params):
    """Which rows of which sheet; its first row names the columns, row 0 is the one after it."""

    sheet: str | None = None
    start: Position = 0
    count: Annotated[int, Field(ge=1, le=1_000)] = 50
    columns: list[str] | None = None


class CellsParams(Params):
    """What to look for, in one sheet or all; `start` is the number of a match, from 1."""

    pattern: Annotated[str, Field(min_length=1)]
    sheet: str | None = None
    flags: str = ""
    start: Amount = 1
    max_results: Annotated[int, Field(ge=1, le=500)] = 100


class ColumnParams(Params):
    """What to compute of a column of a sheet."""

    column: str
    op: Op
    sheet: str | None = None
    where: tuple[Condition, ...] = Field(default=(), max_length=20)
    group_by: str | None = None


class FormulasParams(Params):
    """Whose formulas; `start` is the number of a formula, from 1."""

    sheet: str | None = None
    start: Amount = 1
    max_results: Annotated[int, Field(ge=1, le=500)] = 100


@contextmanager
def opened(source: Source, *, formulas: bool = False) -> Iterator[Any]:
    """The workbook, with values or with the formulas they come from.

    Raises:
        ToolError: It cannot be read.
    """
    openpyxl = library("openpyxl")
    file = unpackable(source, WHAT)
    with reading(WHAT):
        book = openpyxl.load_workbook(file, read_only=True, data_only=not formulas)
        try:
            yield book
        finally:
            book.close()


def _sheets(book: Any, name: str | None) -> list[Any]:
    if name is None:
        return list(book.worksheets)
    found = [one for one in book.worksheets if str(one.title).lower() == name.lower()]
    if not found:
        there = ", ".join(str(one.title) for one in book.worksheets)[:1_000]
        raise ToolError(f"no sheet {name[:100]!r}; there are {there}")
    return found


def _rows(source: Source, sheet: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of a sheet, however large it says it is."""
    sheet.reset_dimensions()
    cells = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True)):
        cells += len(row)
        if cells > MAX_CELLS:
            raise ToolError(f"the sheet has more than {MAX_CELLS} cells; it is not read")
        if not number % 100:
            source.check_time()
        yield row


def get_sheets(source: Source, params: NoParams) -> dict[str, Any]:
    """The sheets with their sizes."""
    del params
    with opened(source) as book:
        listed: list[dict[str, Any]] = []
        for sheet in book.worksheets[:1_000]:
            lengths = [len(row) for row in _rows(source, sheet)]
            size = {"rows": len(lengths), "columns": max(lengths, default=0)}
            listed.append({"name": str(sheet.title), **size})
        return {"sheets": listed}


def _table(source: Source, name: str | None) -> Table:
    with opened(source) as book:
        sheets = _sheets(book, name)
        if not sheets:
            raise ToolError("there is no sheet in it")
        rows = [[_plain(one) for one in row] for row in _rows(source, sheets[0])]
        return table_of(str(sheets[0].title), list(rows))


def _plain(value: Any) -> Any:
    """A cell's value as JSON; dates as text."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def get_sheet_data(source: Source, params: SheetParams) -> dict[str, Any]:
    """Some rows of a sheet."""
    table = _table(source, params.sheet)
    wanted = RowsParams(start=params.start, count=params.count, columns=params.columns)
    return {"sheet": table.name, **get_rows(source, [table], wanted)}


def aggregate_column(source: Source, params: ColumnParams) -> dict[str, Any]:
    """One figure of a column, whole or by group."""
    wanted = AggregateParams(
        column=params.column, op=params.op, where=params.where, group_by=params.group_by
    )
    return aggregate(source, [_table(source, params.sheet)], wanted)


def search_cells(source: Source, params: CellsParams) -> dict[str, Any]:
    """Cells whose value, as text, has a pattern."""
    pattern = compiled(params.pattern, params.flags)
    with opened(source) as book:
        cells = _cells(source, _sheets(book, params.sheet))
        found = (one for one in cells if pattern.found_in(one["value"]))
        return _numbered(source, found, params.start, params.max_results)


def get_formulas(source: Source, params: FormulasParams) -> dict[str, Any]:
    """Cells that hold a formula."""
    with opened(source, formulas=True) as book:
        cells = _cells(source, _sheets(book, params.sheet))
        found = (one for one in cells if one["value"].startswith("="))
        return _numbered(source, found, params.start, params.max_results)


def _cells(source: Source, sheets: list[Any]) -> Iterator[dict[str, Any]]:
    letter = library("openpyxl.utils").get_column_letter
    for sheet in sheets:
        for number, row in enumerate(_rows(source, sheet), start=1):
            for at, value in enumerate(row, start=1):
                if value is not None:
                    where = {"sheet": str(sheet.title), "cell": f"{letter(at)}{number}"}
                    yield {**where, "value": str(value)}


def _numbered(
    source: Source, cells: Iterator[dict[str, Any]], start: int, most: int
) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    for number, one in enumerate(cells, start=1):
        if len(found) == most:
            return matches(source, found, number, key="match")
        if number >= start:
            found.append({"match": number, **one, "value": cut_line(one["value"])})
    return matches(source, found, None, key="match")


def get_full(source: Source, params: FullParams) -> dict[str, Any]:
    """All sheets as text with tabulators, a stretch of it."""
    lines: list[str] = []
    with opened(source) as book:
        for sheet in book.worksheets:
            lines.append(f"# {sheet.title}")
            rows = _rows(source, sheet)
            lines += ["\t".join("" if one is None else str(one) for one in row) for row in rows]
    return full_page(source, "\n".join(lines), params)
