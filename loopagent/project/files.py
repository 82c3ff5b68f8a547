"""Reading the files of a project: what keeps one from being read is a complaint with its place, never a crash."""

from __future__ import annotations

import re
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, Union, get_args, get_origin

from loopagent.core.names import closest
from loopagent.core.problems import path_text, problems_of
from loopagent.documents import Document, DocumentError, read_document


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic import BaseModel, ValidationError

Loc = tuple[int | str, ...]
_FRONT_MATTER: Final = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)


class Files:
    """The files of one project, and the complaints about them.

    Args:
        folder: The project's folder.
        max_bytes: Size up to which a file is read.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.broken_actions: set[str] = set()
        """Names of actions that have complaints of their own: no need to say that they are missing."""
        self._max_bytes = max_bytes

    def listed(self, *patterns: str) -> list[Path]:
        """Files that match any of the patterns, sorted by name; folders are left out."""
        found = {path for pattern in patterns for path in self.folder.glob(pattern)}
        return sorted(path for path in found if not path.is_dir())

    def listed_folders(self, name: str) -> list[Path]:
        """Folders inside a folder of the project, sorted by name; hidden ones are left out."""
        root = self.folder / name
        found = root.iterdir() if root.is_dir() else ()
        return sorted(one for one in found if one.is_dir() and not one.name.startswith("."))

    def complain(
        self, path: Path, what: str, *, at: tuple[int, int] = (1, 1), where: str = "(file)"
    ) -> None:
        """Keep a complaint.

        Args:
            path: The file.
            what: What is wrong, and what to do about it.
            at: Line and column, from 1.
            where: The place in the file's content.
        """
        self.problems.append(f"{path}:{at[0]}:{at[1]}: {where}: {what}")

    def warn(
        self, path: Path, what: str, *, at: tuple[int, int] = (1, 1), where: str = "(file)"
    ) -> None:
        """Keep a warning: the project works, but perhaps not as meant."""
        self.warnings.append(f"{path}:{at[0]}:{at[1]}: {where}: {what}")

    def complain_in(self, document: Document, loc: Loc, what: str) -> None:
        """Keep a complaint about a place in a document."""
        where = path_text(loc) or "(file)"
        self.complain(document.path, what, at=document.position(loc), where=where)

    def text(self, path: Path) -> str | None:
        """The text of a file; None, with a complaint, when there is none that can be used."""
        data = self.data(path, self._max_bytes)
        return None if data is None else self._decoded(path, data)

    def data(self, path: Path, max_bytes: int) -> bytes | None:
        """The content of a file; None, with a complaint, when it is none or too large."""
        try:
            if not path.is_file():
                self.complain(path, "is not a regular file")
                return None
            size = path.stat().st_size
            if size > max_bytes:
                self.complain(path, f"has {size} bytes, {max_bytes} are allowed; split it")
                return None
            return path.read_bytes()
        except OSError as error:
            self.complain(path, f"cannot be read: {error.strerror or error}")
            return None

    def document(self, path: Path) -> Document | None:
        """A YAML or JSON file whose root is an object; None, with complaints, when it cannot be read."""
        text = self.text(path)
        if text is None:
            return None
        try:
            return read_document(text, path)
        except DocumentError as error:
            self.problems.extend(error.problems)
            return None

    def front_matter(self, path: Path, text: str) -> tuple[Document, str] | None:
        """The YAML between two `---` lines at the start of a text, and the rest.

        Returns:
            An empty document when there is none; None, with complaints, when it cannot be read.
        """
        found = _FRONT_MATTER.match(text)
        if found is None or not found.group(1).strip():
            return Document(path, {}), text[found.end() :] if found else text
        try:
            # An empty first line stands for the `---`, so that lines are counted as in the file.
            return read_document("\n" + found.group(1), path), text[found.end() :]
        except DocumentError as error:
            self.problems.extend(error.problems)
            return None

    def _decoded(self, path: Path, data: bytes) -> str | None:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            before = data[: error.start]
            at = (before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
            self.complain(path, f"is not UTF-8 (byte {error.start}); save it as UTF-8", at=at)
            return None
        return text.replace("\r\n", "\n").replace("\r", "\n")


def explain(
    error: ValidationError,
    data: object,
    model: type[BaseModel],
    more: Iterable[str],
    place: Callable[[Loc], tuple[int, int]],
) -> list[tuple[tuple[int, int], str, str]]:
    """What pydantic found, in plain words.

    Args:
        error: What validation raised.
        data: The value that was validated.
        model: The class it was validated against.
        more: Further keys that the root may have.
        place: Line and column of a place in the value.

    Returns:
        Line and column, place, and complaint, sorted by where they stand.
    """
    details = error.errors(include_url=False, include_context=False)
    locs = {path_text(one["loc"]): one["loc"] for one in details}
    unknown = {path_text(one["loc"]) for one in details if one["type"] == "extra_forbidden"}
    found: list[tuple[tuple[int, int], str, str]] = []
    for problem in problems_of(error, data):
        loc = locs.get(problem.path, ())
        what = _unknown(loc, model, more) if problem.path in unknown else problem.message
        found.append((place(loc), problem.path or "(file)", what))
    return sorted(found)


def _unknown(loc: Loc, model: type[BaseModel], more: Iterable[str]) -> str:
    known = [*known_keys(model, loc[:-1]), *(more if len(loc) == 1 else ())]
    near = closest(str(loc[-1]), known)
    if near:
        return f"unknown key; did you mean {' or '.join(near)}?"
    return f"unknown key (known: {', '.join(sorted(known))})"


def known_keys(model: Any, loc: Loc) -> list[str]:
    """The keys that an object at a place may have."""
    for part in loc:
        model = _without_null(model)
        if get_origin(model) in {list, tuple, dict}:
            model = next((one for one in reversed(get_args(model)) if one is not ...), None)
            continue
        fields: dict[str, Any] = getattr(model, "model_fields", {})
        field = next((one for name, one in fields.items() if part in {name, one.alias}), None)
        model = None if field is None else field.annotation
    fields = getattr(_without_null(model), "model_fields", {})
    return [one.alias or name for name, one in fields.items()]


def _without_null(annotation: Any) -> Any:
    """The type that something may have besides null."""
    if get_origin(annotation) not in {Union, UnionType}:
        return annotation
    return next((one for one in get_args(annotation) if one is not type(None)), None)
