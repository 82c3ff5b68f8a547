"""What the page of an artifact draws: which views fit its kind, and what each shows of it, a page at a time."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loopagent.artifacts.changes import KINDS as COMPARED
from loopagent.errors import RequestError
from loopagent.viewing import changes_of, look_into, tree_of
from loopagent.web.shared import whole


if TYPE_CHECKING:
    from loopagent.app import App
    from loopagent.core.state import Artifact

Asked = Mapping[str, str]
VIEWS: Final[dict[str, tuple[str, ...]]] = {
    "text": ("lines",),
    "json": ("tree", "lines"),
    "csv": ("table", "lines"),
    "tables": ("table",),
    "xlsx": ("sheet",),
    "docx": ("lines",),
    "pdf": ("pages",),
    "image": ("about",),
    "binary": ("about",),
}
"""Kind of artifact → its views, the first one is shown unless another is asked for."""
LABELS: Final = {
    "read": "Rendered",
    "lines": "Lines",
    "tree": "Tree",
    "table": "Table",
    "sheet": "Sheet",
    "pages": "Pages",
    "about": "About",
    "changes": "Changes",
}
LINES, ROWS, MATCHES = 500, 50, 100
"""How much a page shows."""
MAX_PIXELS: Final = 40_000_000
"""Larger images are not shown: a small file may unpack to very much."""
PICTURES: Final = frozenset({"image/png", "image/gif", "image/jpeg", "image/webp", "image/bmp"})
"""Types that a browser may show: none of them can hold a script."""
_SIGNS: Final = re.compile(r"[\\^$.*+?()\[\]{}|/]")


@dataclass(slots=True)
class Shown:
    """One view of an artifact."""

    artifact: Artifact
    view: str
    views: list[tuple[str, str]]
    """Names and labels of all that fit."""
    body: Any = None
    """What its template draws."""
    error: str = ""
    """Why there is nothing to draw."""
    find: str = ""
    path: str = ""
    table: str = ""
    against: str = ""
    versions: list[Artifact] = field(default_factory=list["Artifact"])
    """Those of its name, or of its kind where it has none, that it may be compared with."""


async def shown(app: App, run_id: str, known: list[Artifact], one: Artifact, asked: Asked) -> Shown:
    """An artifact as it is asked for.

    Args:
        app: The app.
        run_id: The run.
        known: All artifacts of the run.
        one: The artifact.
        asked: The page's query: `view`, `start`, `find`, `path`, `table`, `against`.
    """
    others = [
        it
        for it in known
        if it.name and it.name == one.name and it is not one and it.kind in COMPARED
    ]
    views = [*(["read"] if _is_markdown(one) else []), *VIEWS.get(one.kind, ("about",))]
    views += ["changes"] if others else []
    view = asked.get("view") or views[0]
    made = Shown(one, view if view in views else views[0], [(it, LABELS[it]) for it in views])
    made.versions = others
    made.find, made.path = asked.get("find", "")[:500], asked.get("path", "")[:1_000]
    made.table = asked.get("table", "")[:200]
    earlier = [it for it in others if it.version < one.version]
    made.against = asked.get("against") or (earlier or others or [one])[-1].handle
    try:
        made.body = await DRAW[made.view](app, run_id, made, whole(asked.get("start")))
    except RequestError as error:
        made.error = str(error)
    return made


def _is_markdown(one: Artifact) -> bool:
    named = one.name.lower().endswith((".md", ".markdown"))
    return one.kind == "text" and (named or one.media_type.startswith("text/markdown"))


async def _read(app: App, run_id: str, made: Shown, start: int | None) -> Any:
    params = {"start": start or 0, "count": 50_000}
    return await look_into(app, run_id, made.artifact.handle, "get_full", params)


async def _lines(app: App, run_id: str, made: Shown, start: int | None) -> Any:
    where = (app, run_id, made.artifact.handle)
    first = max(1, start or 1)
    if made.find:
        params = {"pattern": literally(made.find), "flags": "i", "start": first}
        return await look_into(*where, "grep", {**params, "maxResults": MATCHES})
    found = await look_into(*where, "get_lines", {"start": first, "count": LINES})
    lines = enumerate(found.pop("lines"), first)
    return {**found, "matches": [{"line": at, "text": _plain(text)} for at, text in lines]}


def literally(text: str) -> str:
    """A pattern that finds exactly this text."""
    return _SIGNS.sub(r"\\\g<0>", text)


def _plain(line: Any) -> str:
    """A line; of one that is too long for a look only the beginning is there."""
    return line if isinstance(line, str) else f"{line['cut']}… ({line['chars']} characters)"


async def _tree(app: App, run_id: str, made: Shown, start: int | None) -> Any:
    return await tree_of(app, run_id, made.artifact.handle, made.path, start or 0)


async def _table(app: App, run_id: str, made: Shown, start: int | None) -> Any:
    where = (app, run_id, made.artifact.handle)
    tables = (await look_into(*where, "get_tables", {}))["tables"]
    wanted = made.table or (tables[0]["name"] if tables else None)
    params = {"table": wanted, "start": start or 0, "count": ROWS}
    return {**await look_into(*where, "get_rows", params), "tables": tables, "name": wanted}


async def _sheet(app: App, run_id: str, made: Shown, start: int | None) -> Any:
    where = (app, run_id, made.artifact.handle)
    sheets = (await look_into(*where, "get_sheets", {}))["sheets"]
    params = {"sheet": made.table or None, "start": start or 0, "count": ROWS}
    found = await look_into(*where, "get_sheet_data", params)
    return {**found, "tables": sheets, "name": found["sheet"]}


async def _pages(app: App, run_id: str, made: Shown, start: int | None) -> Any:
    where = (app, run_id, made.artifact.handle)
    if made.find:
        params = {"pattern": literally(made.find), "flags": "i", "maxResults": MATCHES}
        return await look_into(*where, "search_text", {**params, "start": max(1, start or 1)})
    page = max(1, start or 1)
    found = await look_into(*where, "get_text", {"firstPage": page, "lastPage": page})
    return {**found, "page": page, "cut": "next" in found}


async def _about(app: App, run_id: str, made: Shown, start: int | None) -> Any:
    del start
    found = await look_into(app, run_id, made.artifact.handle, "get_metadata", {})
    pixels = found.get("width", 0) * found.get("height", 0)
    safe = made.artifact.media_type.partition(";")[0].strip().lower() in PICTURES
    return {"facts": found, "picture": safe and 0 < pixels <= MAX_PIXELS}


async def _changes(app: App, run_id: str, made: Shown, start: int | None) -> Any:
    del start
    return await changes_of(app, run_id, made.against, made.artifact.handle)


DRAW: Final[dict[str, Callable[[App, str, Shown, int | None], Awaitable[Any]]]] = {
    "read": _read,
    "lines": _lines,
    "tree": _tree,
    "table": _table,
    "sheet": _sheet,
    "pages": _pages,
    "about": _about,
    "changes": _changes,
}
