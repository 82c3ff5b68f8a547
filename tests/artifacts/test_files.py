"""PDF, Word, Excel and images: real files, broken files, files that explode."""

from __future__ import annotations

import sys
import zipfile
from io import BytesIO
from typing import Any

import docx
import openpyxl
import pypdf
import pytest
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from loopagent.artifacts import look
from loopagent.artifacts.source import Source
from tests.artifacts.test_texts_and_json import fails, use


def pdf(*pages: str, password: str = "") -> bytes:
    """A PDF with a line of text on each page."""
    writer = pypdf.PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(width=300, height=300)
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode())
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        page[NameObject("/Contents")] = writer._add_object(stream)
    writer.add_metadata({"/Title": "Report"})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    return _saved(writer.write)


def word() -> bytes:
    """A Word document with headings, a paragraph and a table."""
    document = docx.Document()
    document.core_properties.title = "Minutes"
    document.add_heading("Minutes", 1)
    document.add_paragraph("We met in Porto.")
    document.add_heading("Costs", 2)
    table = document.add_table(rows=2, cols=2)
    for at, text in enumerate(["item", "price", "tram", "3"]):
        table.cell(at // 2, at % 2).text = text
    return _saved(document.save)


def workbook() -> bytes:
    """A workbook with two sheets and a formula."""
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.title = "Costs"
    sheet.append(["item", "price"])
    for number in range(120):
        sheet.append([f"i{number}", number])
    other: Any = book.create_sheet("Notes")
    other["B2"] = "=1+1"
    other["A1"] = "see Porto"
    return _saved(book.save)


def _saved(save: Any) -> bytes:
    file = BytesIO()
    save(file)
    return file.getvalue()


PDF = pdf("Hello Porto", "Second page", "Third Porto")


def test_pdf_pages_text_and_metadata() -> None:
    assert use(PDF, "get_page_count", "pdf") == {"pages": 3}
    assert "Second page" in use(PDF, "get_text", "pdf", firstPage=2, lastPage=2)["text"]
    assert "Porto" not in use(PDF, "get_text", "pdf", firstPage=2, lastPage=2)["text"]
    assert use(PDF, "get_metadata", "pdf")["metadata"]["Title"] == "Report"
    full = use(PDF, "get_full", "pdf")["text"]
    assert full.index("Hello") < full.index("Third")
    assert "no page 4" in fails(PDF, "get_text", "pdf", firstPage=4)


def test_pdf_search_gives_pages_and_goes_on() -> None:
    first = use(PDF, "search_text", "pdf", pattern="porto", flags="i", maxResults=1)
    assert first["matches"] == [{"match": 1, "page": 1, "text": "Hello Porto"}]
    rest = use(PDF, "search_text", "pdf", pattern="Porto", start=first["next"])
    assert [one["page"] for one in rest["matches"]] == [3]
    assert "next" not in rest


def test_a_locked_pdf_is_said_to_be_locked() -> None:
    assert "password" in fails(pdf("x", password="secret"), "get_full", "pdf")


def test_word_outline_text_and_tables() -> None:
    content = word()
    headings = use(content, "get_outline", "docx")["headings"]
    assert headings == [{"level": 1, "text": "Minutes"}, {"level": 2, "text": "Costs"}]
    assert use(content, "grep", "docx", pattern="Porto")["matches"][0]["line"] == 2
    assert use(content, "get_lines", "docx", start=4)["lines"] == ["item\tprice", "tram\t3"]
    assert use(content, "get_rows", "docx")["rows"] == [["tram", "3"]]
    assert use(content, "get_metadata", "docx")["metadata"]["title"] == "Minutes"
    assert use(content, "get_full", "docx")["text"].startswith("Minutes\nWe met")
    assert use(content, "get_outline", "docx", count=1)["next"] == 2


def test_workbooks() -> None:
    content = workbook()
    sheets = use(content, "get_sheets", "xlsx")["sheets"]
    assert sheets[0] == {"name": "Costs", "rows": 121, "columns": 2}
    data = use(content, "get_sheet_data", "xlsx")
    assert (data["sheet"], len(data["rows"]), data["next"]) == ("Costs", 50, 50)
    assert data["rows"][3] == ["i3", 3]
    total = use(content, "aggregate_column", "xlsx", column="price", op="sum")
    assert total["value"] == sum(range(120))
    found = use(content, "search_cells", "xlsx", pattern="porto", flags="i")
    assert found["matches"] == [{"match": 1, "sheet": "Notes", "cell": "A1", "value": "see Porto"}]
    many = use(content, "search_cells", "xlsx", pattern="^i", sheet="costs")
    assert (len(many["matches"]), many["next"]) == (100, 101)
    formulas = use(content, "get_formulas", "xlsx")["matches"]
    assert formulas == [{"match": 1, "sheet": "Notes", "cell": "B2", "value": "=1+1"}]
    assert "# Notes" in use(content, "get_full", "xlsx", count=100_000)["text"]
    assert "no sheet" in fails(content, "get_sheet_data", "xlsx", sheet="Other")


@pytest.mark.parametrize(("kind", "tool"), [("docx", "get_full"), ("xlsx", "get_sheets")])
def test_an_archive_that_would_unpack_to_too_much_is_not_unpacked(kind: str, tool: str) -> None:
    bomb = BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b"0" * 5_000_000)
    outcome = look(Source(bomb.getvalue(), kind=kind, max_bytes=1_000_000), tool, {})
    assert len(bomb.getvalue()) < 20_000
    assert outcome.error is not None
    assert "unpacks to 5000000 bytes" in outcome.error.message


def test_broken_files_are_said_to_be_broken() -> None:
    for content, kind, tool in (
        (PDF[:200], "pdf", "get_full"),
        (word()[:900], "docx", "get_full"),
        (workbook()[:900], "xlsx", "get_sheets"),
        (word(), "xlsx", "get_sheets"),
    ):
        assert "cannot be read as" in fails(content, tool, kind)


def test_without_the_library_the_model_hears_that_it_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    assert "loopagent[files]" in fails(PDF, "get_full", "pdf")


@pytest.mark.parametrize(
    ("content", "about"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x04", ("png", 3, 4)),
        (b"GIF89a\x05\0\x06\0", ("gif", 5, 6)),
        (b"BM" + bytes(16) + b"\x07\0\0\0\x08\0\0\0", ("bmp", 7, 8)),
        (b"\xff\xd8\xff\xe0\0\x04\0\0\xff\xc0\0\x11\x08\0\x02\0\x01\0\0", ("jpeg", 1, 2)),
        (b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\x09\0\0\x0a\0\0", ("webp", 10, 11)),
    ],
)
def test_images_are_known_by_their_size(content: bytes, about: tuple[str, int, int]) -> None:
    got = use(content, "get_metadata", "image")
    assert (got["format"], got["width"], got["height"]) == about


def test_bytes_come_as_base64_in_pages() -> None:
    content = bytes(range(256)) * 4
    first = use(content, "get_full", "binary", count=1_000)
    assert (first["bytes"], first["next"]) == (1_024, 1_000)
    assert "next" not in use(content, "get_full", "binary", start=1_000)
    assert "width" not in use(b"\x89PNG\r\n\x1a\n", "get_metadata", "image")


def test_a_document_of_very_many_parts_is_not_made_a_tree() -> None:
    bomb = BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"<w:p/>" * 1_000_001)
    outcome = look(Source(bomb.getvalue(), kind="docx"), "get_outline", {})
    assert len(bomb.getvalue()) < 20_000
    assert outcome.error is not None
    assert "more than 1000000 tags" in outcome.error.message
