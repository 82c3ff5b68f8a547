"""What kinds of artifacts there are, and which tools look into each: what the prompt says and what calls may name."""

from __future__ import annotations

from typing import Final


TEXT_TOOLS: Final = {
    "grep": "pattern, flags?, start?, maxResults?",
    "get_lines": "start?, count?",
}
TABLE_TOOLS: Final = {
    "get_tables": "",
    "get_schema": "table?",
    "get_rows": "table?, start?, count?, columns?",
    "search_rows": "table?, where: {column, op, value}[], start?, limit?, columns?",
    "aggregate": "table?, column, op, where?, groupBy?",
}
JSON_TOOLS: Final = {
    "json_path": "path, start?",
    "json_keys": "path?, start?",
    "json_search": "key?, pattern?, start?, maxResults?",
    "json_iterate": "arrayPath, start?, count?",
}
PDF_TOOLS: Final = {
    "get_page_count": "",
    "get_text": "firstPage?, lastPage?, start?",
    "search_text": "pattern, flags?, start?, maxResults?",
    "get_metadata": "",
}
DOCX_TOOLS: Final = {
    "get_outline": "start?, count?",
    "grep": TEXT_TOOLS["grep"],
    "get_lines": TEXT_TOOLS["get_lines"],
    "get_tables": "",
    "get_rows": TABLE_TOOLS["get_rows"],
    "get_metadata": "",
}
XLSX_TOOLS: Final = {
    "get_sheets": "",
    "get_sheet_data": "sheet?, start?, count?, columns?",
    "search_cells": "pattern, sheet?, flags?, start?, maxResults?",
    "aggregate_column": "column, op, sheet?, where?, groupBy?",
    "get_formulas": "sheet?, start?, maxResults?",
}
FULL: Final = {"get_full": "start?, count?"}
TOOLS: Final[dict[str, dict[str, str]]] = {
    "text": {**TEXT_TOOLS, **FULL},
    "json": {**JSON_TOOLS, **TEXT_TOOLS, **FULL},
    "csv": {**TABLE_TOOLS, **TEXT_TOOLS, **FULL},
    "tables": {**TABLE_TOOLS, **JSON_TOOLS, **FULL},
    "pdf": {**PDF_TOOLS, **FULL},
    "docx": {**DOCX_TOOLS, **FULL},
    "xlsx": {**XLSX_TOOLS, **FULL},
    "image": {"get_metadata": "", **FULL},
    "binary": {"get_metadata": "", **FULL},
}
"""Kind of artifact → its tools, each with its parameters as the prompt names them."""
OFFICE: Final = "application/vnd.openxmlformats-officedocument."
KINDS: Final = {
    "application/json": "json",
    "application/geo+json": "json",
    "application/ld+json": "json",
    "application/x-loopagent-tables": "tables",
    "text/csv": "csv",
    "text/tab-separated-values": "csv",
    "application/csv": "csv",
    "application/pdf": "pdf",
    f"{OFFICE}wordprocessingml.document": "docx",
    f"{OFFICE}spreadsheetml.sheet": "xlsx",
    "application/xml": "text",
    "application/yaml": "text",
    "application/x-yaml": "text",
    "application/toml": "text",
    "application/javascript": "text",
    "application/sql": "text",
    "": "text",
}
"""Media type → kind."""
ENDINGS: Final = {
    "json": "json",
    "csv": "csv",
    "tsv": "csv",
    "pdf": "pdf",
    "docx": "docx",
    "xlsx": "xlsx",
    **dict.fromkeys(
        ("txt", "md", "log", "xml", "yaml", "yml", "toml", "py", "html", "sql"), "text"
    ),
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp", "bmp"), "image"),
}
"""Ending of a file name → kind, for files whose media type says nothing."""
UNTOLD: Final = frozenset({"application/octet-stream", "binary/octet-stream"})
"""Media types that say nothing."""


def kind_of(media_type: str, name: str = "") -> str:
    """The kind of an artifact.

    Args:
        media_type: As it was given; parameters (`; charset=…`) do not count. Empty: a text of the engine.
        name: File name, looked at when the media type says nothing.
    """
    plain = media_type.partition(";")[0].strip().lower()
    if plain in UNTOLD or (plain == "text/plain" and name):
        ending = name.rpartition(".")[2].lower() if "." in name else ""
        return ENDINGS.get(ending, "text" if plain == "text/plain" else "binary")
    if plain in KINDS:
        return KINDS[plain]
    family = plain.partition("/")[0]
    if plain.endswith("+json"):
        return "json"
    return family if family in {"text", "image"} else "binary"
