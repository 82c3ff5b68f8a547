"""Tools for PDF: `get_page_count`, `get_text`, `search_text`, `get_metadata`, `get_full`."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from loopagent.artifacts.packed import library, reading
from loopagent.artifacts.source import NoParams, Params, Source, ToolError
from loopagent.artifacts.texts import (
    Amount,
    FullParams,
    GrepParams,
    Position,
    compiled,
    cut_line,
    full_page,
    lines_of,
    matches,
)


WHAT = "a PDF"


class TextParams(Params):
    """Which pages, the first has number 1; `start` is where in their text to begin, in characters."""

    first_page: Amount = 1
    last_page: Amount | None = None
    start: Position = 0


def opened(source: Source) -> Any:
    """The document.

    Raises:
        ToolError: It cannot be read.
    """
    library_of_pdf = library("pypdf")
    with reading(WHAT):
        document = library_of_pdf.PdfReader(BytesIO(source.content))
        if document.is_encrypted and not document.decrypt(""):
            raise ToolError("this PDF is locked with a password")
        return document


def get_page_count(source: Source, params: NoParams) -> dict[str, Any]:
    """How many pages there are."""
    del params
    document = opened(source)
    with reading(WHAT):
        return {"pages": len(document.pages)}


def get_text(source: Source, params: TextParams) -> dict[str, Any]:
    """The text of some pages."""
    document = opened(source)
    with reading(WHAT):
        total = len(document.pages)
        if params.first_page > total:
            raise ToolError(f"there is no page {params.first_page}; it has {total}")
        last = min(params.last_page or total, total)
        text = "\n\n".join(_pages(source, document, params.first_page, last))
    wanted = FullParams(start=params.start, count=source.max_chars)
    return {"pages": total, **full_page(source, text, wanted)}


def get_full(source: Source, params: FullParams) -> dict[str, Any]:
    """The text of all pages, a stretch of it."""
    document = opened(source)
    with reading(WHAT):
        text = "\n\n".join(_pages(source, document, 1, len(document.pages)))
    return full_page(source, text, params)


def _pages(source: Source, document: Any, first: int, last: int) -> list[str]:
    texts: list[str] = []
    for number in range(first, last + 1):
        source.check_time()
        texts.append(str(document.pages[number - 1].extract_text()))
    return texts


def search_text(source: Source, params: GrepParams) -> dict[str, Any]:
    """Lines in which a pattern is found, each with its page; `start` is the number of a match, from 1."""
    pattern = compiled(params.pattern, params.flags)
    document = opened(source)
    found: list[dict[str, Any]] = []
    number = 0
    with reading(WHAT):
        for page_number in range(1, len(document.pages) + 1):
            source.check_time()
            for line in lines_of(str(document.pages[page_number - 1].extract_text())):
                if not pattern.found_in(line):
                    continue
                number += 1
                if len(found) == params.max_results:
                    return matches(source, found, number, key="match")
                if number >= params.start:
                    found.append({"match": number, "page": page_number, "text": cut_line(line)})
    return matches(source, found, None, key="match")


def get_metadata(source: Source, params: NoParams) -> dict[str, Any]:
    """Title, author and the like, as the file says."""
    del params
    document = opened(source)
    with reading(WHAT):
        about = {
            str(key).lstrip("/"): cut_line(str(one))
            for key, one in (document.metadata or {}).items()
        }
        return {"name": source.name, "pages": len(document.pages), "metadata": about}
