"""Looking into stored texts and files: one module a type, one table of tools. Pure: bytes and parameters in, JSON out.

Nothing here reads a file, the network or the store. Whoever calls it sees to it that a stuck look does not
matter, by doing it in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from loopagent.artifacts import binaries, documents, jsons, pdfs, tables, texts, workbooks
from loopagent.artifacts.source import NoParams, OutOfTimeError, Params, Source, ToolError
from loopagent.core.jsonable import storable
from loopagent.core.outcome import Outcome
from loopagent.core.problems import problems_of


Tool = tuple[type[Params], Callable[[Source, Any], Any]]


def _of(tables_of: Callable[[Source], list[tables.Table]], model: type[Params], use: Any) -> Tool:
    """A tool for tables, for files that `tables_of` finds them in."""
    return model, lambda source, params: use(source, tables_of(source), params)


def _table_tools(tables_of: Callable[[Source], list[tables.Table]]) -> dict[str, Tool]:
    return {
        "get_tables": _of(tables_of, NoParams, tables.get_tables),
        "get_schema": _of(tables_of, tables.SchemaParams, tables.get_schema),
        "get_rows": _of(tables_of, tables.RowsParams, tables.get_rows),
        "search_rows": _of(tables_of, tables.SearchRowsParams, tables.search_rows),
        "aggregate": _of(tables_of, tables.AggregateParams, tables.aggregate),
    }


FULL: dict[str, Tool] = {"get_full": (texts.FullParams, texts.get_full)}
LINES: dict[str, Tool] = {
    "grep": (texts.GrepParams, texts.grep),
    "get_lines": (texts.LinesParams, texts.get_lines),
}
JSON: dict[str, Tool] = {
    "json_path": (jsons.PathParams, jsons.json_path),
    "json_keys": (jsons.KeysParams, jsons.json_keys),
    "json_search": (jsons.SearchParams, jsons.json_search),
    "json_iterate": (jsons.IterateParams, jsons.json_iterate),
}
PDF: dict[str, Tool] = {
    "get_page_count": (NoParams, pdfs.get_page_count),
    "get_text": (pdfs.TextParams, pdfs.get_text),
    "search_text": (texts.GrepParams, pdfs.search_text),
    "get_metadata": (NoParams, pdfs.get_metadata),
    "get_full": (texts.FullParams, pdfs.get_full),
}
DOCX: dict[str, Tool] = {
    "get_outline": (texts.LinesParams, documents.get_outline),
    "grep": (texts.GrepParams, documents.grep),
    "get_lines": (texts.LinesParams, documents.get_lines),
    "get_tables": _of(documents.tables, NoParams, tables.get_tables),
    "get_rows": _of(documents.tables, tables.RowsParams, tables.get_rows),
    "get_metadata": (NoParams, documents.get_metadata),
    "get_full": (texts.FullParams, documents.get_full),
}
XLSX: dict[str, Tool] = {
    "get_sheets": (NoParams, workbooks.get_sheets),
    "get_sheet_data": (workbooks.SheetParams, workbooks.get_sheet_data),
    "search_cells": (workbooks.CellsParams, workbooks.search_cells),
    "aggregate_column": (workbooks.ColumnParams, workbooks.aggregate_column),
    "get_formulas": (workbooks.FormulasParams, workbooks.get_formulas),
    "get_full": (texts.FullParams, workbooks.get_full),
}
BINARY: dict[str, Tool] = {
    "get_metadata": (NoParams, binaries.get_metadata),
    "get_full": (texts.FullParams, binaries.get_full),
}
TOOLS: Mapping[str, Mapping[str, Tool]] = {
    "text": {**LINES, **FULL},
    "json": {**JSON, **LINES, **FULL},
    "csv": {**_table_tools(tables.csv_tables), **LINES, **FULL},
    "tables": {**_table_tools(tables.snapshot_tables), **JSON, **FULL},
    "pdf": PDF,
    "docx": DOCX,
    "xlsx": XLSX,
    "image": BINARY,
    "binary": BINARY,
}
"""Kind of artifact → tool → its parameters and its function."""


def look(source: Source, tool: str, params: Mapping[str, Any]) -> Outcome:
    """Use a tool on an artifact. Whatever is wrong with the file or the call is an outcome.

    Args:
        source: What to look into.
        tool: Name of the tool.
        params: Its parameters as the model gave them.
    """
    found = TOOLS[source.kind].get(tool)
    if found is None:
        fitting = ", ".join(TOOLS[source.kind])
        return Outcome.failed("no_tool", f"There is no such tool; there are {fitting}.")
    model, function = found
    given = {key: one for key, one in params.items() if one is not None}
    try:
        wanted = model.model_validate(given)
    except ValidationError as error:
        return Outcome.failed("bad_params", _told(error, given))
    return attempt(lambda: _with_encoding(_with_end(function(source, wanted)), source))


_TEXTS = frozenset({"text", "csv", "json"})


def _with_encoding(result: dict[str, Any], source: Source) -> dict[str, Any]:
    """What was read as text, with the encoding where that is not the usual one."""
    name, guessed = source.encoding if source.kind in _TEXTS else ("utf-8", False)
    if name.startswith("utf-8"):
        return result
    return {**result, "encoding": f"{name}, a guess" if guessed else name}


_WHOLES: Mapping[str, tuple[str, int]] = {
    "totalLines": ("lines", 1),
    "totalRows": ("rows", 0),
    "length": ("items", 0),
    "chars": ("characters", 0),
    "bytes": ("bytes", 0),
}
"""What says how much there is: of what, and the number of the first."""


def _with_end(result: dict[str, Any]) -> dict[str, Any]:
    """A stretch, with a note if it is empty because it begins behind the end."""
    start = result.get("start")
    for key, (what, first) in _WHOLES.items():
        if start is not None and key in result and start - first >= result[key]:
            return {**result, "note": f"This is the end: {result[key]} {what} in all."}
    return result


def attempt(call: Callable[[], Any]) -> Outcome:
    """What a look brings, or why it cannot be had."""
    try:
        return Outcome.done(call())
    except OutOfTimeError as error:
        return Outcome.failed("timeout", str(error))
    except ToolError as error:
        return Outcome.failed("no_result", storable(str(error)))
    except (RecursionError, MemoryError):
        return Outcome.failed(
            "unreadable", "The content is nested too deeply or too large to be read."
        )


def _told(error: ValidationError, given: Mapping[str, Any]) -> str:
    return "; ".join(f"{one.path}: {one.message}" for one in problems_of(error, given))
