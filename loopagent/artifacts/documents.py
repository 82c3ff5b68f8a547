"""Tools for Word documents: outline, text, tables, metadata."""

from __future__ import annotations

from typing import Any

from loopagent.artifacts.packed import check_tags, library, reading, unpackable
from loopagent.artifacts.source import NoParams, Source, page
from loopagent.artifacts.tables import Table, table_of
from loopagent.artifacts.texts import (
    FullParams,
    GrepParams,
    LinesParams,
    cut_line,
    full_page,
    grep_lines,
    lines_page,
)


WHAT = "a Word document"
ABOUT = ("title", "author", "subject", "keywords", "created", "modified", "last_modified_by")


def opened(source: Source) -> Any:
    """The document.

    Raises:
        ToolError: It cannot be read.
    """
    docx = library("docx")
    file = unpackable(source, WHAT)
    check_tags(source, WHAT)
    with reading(WHAT):
        return docx.Document(file)


def paragraphs(source: Source) -> list[str]:
    """The text, one line a paragraph, tables as lines with tabulators."""
    lines: list[str] = []
    with reading(WHAT):
        for block in opened(source).iter_inner_content():
            source.check_time()
            if hasattr(block, "rows"):
                lines += ["\t".join(row) for row in _rows(block)]
            else:
                lines.append(str(block.text))
    return lines


def _rows(table: Any) -> list[list[str]]:
    return [[str(cell.text) for cell in row.cells] for row in table.rows]


def get_full(source: Source, params: FullParams) -> dict[str, Any]:
    """The text, a stretch of it."""
    return full_page(source, "\n".join(paragraphs(source)), params)


def get_lines(source: Source, params: LinesParams) -> dict[str, Any]:
    """Some paragraphs."""
    return lines_page(source, paragraphs(source), params)


def grep(source: Source, params: GrepParams) -> dict[str, Any]:
    """Paragraphs in which a pattern is found."""
    return grep_lines(source, paragraphs(source), params)


def get_outline(source: Source, params: LinesParams) -> dict[str, Any]:
    """The headings, each with its level."""
    with reading(WHAT):
        headings = [
            {"level": _level(str(one.style.name)), "text": cut_line(str(one.text))}
            for one in opened(source).paragraphs
            if one.style is not None and str(one.style.name).startswith(("Heading ", "Title"))
        ]
    found = page(source, headings, params.start - 1, params.count)
    body: dict[str, Any] = {"start": params.start, "headings": found.entries}
    return body if found.next is None else {**body, "next": found.next + 1}


def _level(style: str) -> int:
    number = style.rpartition(" ")[2]
    return int(number) if number.isdecimal() else 0


def tables(source: Source) -> list[Table]:
    """The tables of the document; the first row of each names its columns."""
    with reading(WHAT):
        return [
            table_of(f"table_{number}", list(_rows(one)))
            for number, one in enumerate(opened(source).tables, start=1)
        ]


def get_metadata(source: Source, params: NoParams) -> dict[str, Any]:
    """Title, author and the like, as the file says."""
    del params
    with reading(WHAT):
        known = opened(source).core_properties
        about = {key: cut_line(str(one)) for key in ABOUT if (one := getattr(known, key))}
    return {"name": source.name, "bytes": len(source.content), "metadata": about}
