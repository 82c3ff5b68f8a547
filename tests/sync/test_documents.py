"""What the documents point at exists, and the records of decisions keep their form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loopagent.core.described import parsed


ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changelog.d/*.md")])
RECORDS = sorted(ROOT.glob("docs/adr/*.md"))
MAX_RECORD_LINES = 40
MAX_AGENTS_LINES = 60
NAMED_FILE = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|md|toml|txt|j2|sql))`")
LINK = re.compile(r"\]\((?!https?://)([^)#]+)")
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
MADE_UP = frozenset({"core/steps/NAME.py", "SHORT-NAME.KIND.md", "SKILL.md", "loopagent.toml"})


def names(document: Path) -> list[str]:
    text = document.read_text(encoding="utf-8")
    return [one for one in NAMED_FILE.findall(text) if one not in MADE_UP]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_exist(document: Path) -> None:
    places = (ROOT, ROOT / "loopagent")
    missing = [
        one for one in names(document) if not any((place / one).exists() for place in places)
    ]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    links = LINK.findall(document.read_text(encoding="utf-8"))
    assert [one for one in links if not (document.parent / one).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_in_documents_is_python(document: Path) -> None:
    for block in CODE.findall(document.read_text(encoding="utf-8")):
        parsed(block)


def test_records_are_numbered_without_gaps() -> None:
    numbers = [int(path.name[:4]) for path in RECORDS]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 6


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.name)
def test_records_keep_their_form(record: Path) -> None:
    lines = record.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith(f"# {int(record.name[:4])}. ")
    headings = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert headings == ["Context", "Decision", "Consequences", "What would change our mind"]
    assert len(lines) <= MAX_RECORD_LINES


def test_the_page_for_agents_is_a_page() -> None:
    assert len((ROOT / "AGENTS.md").read_text(encoding="utf-8").splitlines()) <= MAX_AGENTS_LINES


def test_the_measures_measure() -> None:
    assert NAMED_FILE.findall("see `core/advance.py` and `ports.py`, not `a b.py`") == [
        "core/advance.py",
        "ports.py",
    ]
    assert LINK.findall("[a](b.md#c) [d](https://e.f) [g](docs/h.md)") == ["b.md", "docs/h.md"]
