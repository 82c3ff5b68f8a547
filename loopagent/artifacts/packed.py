"""What all readers of packed files share: libraries that are optional, files that lie, archives that explode."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any

from loopagent.artifacts.source import ToolError


if TYPE_CHECKING:
    from loopagent.artifacts.source import Source


MAX_PARTS = 10_000
"""Files in an archive."""
MAX_TAGS = 1_000_000
"""Tags in the XML of an archive that is read as a tree: each takes far more memory than it has characters."""
PIECE_BYTES = 1_000_000
MAX_REASON_CHARS = 200


def library(name: str) -> Any:
    """A library that is only there when it was asked for.

    Raises:
        ToolError: It is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        text = "this server cannot read such files (it needs `pip install loopagent[files]`)"
        raise ToolError(text) from None


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Whatever a library raises over a broken file is a sentence for the model."""
    try:
        yield
    except (ToolError, MemoryError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"[:MAX_REASON_CHARS]
        raise ToolError(f"this cannot be read as {what} ({reason})") from None


def unpackable(source: Source, what: str) -> BytesIO:
    """The content of an archive that does not unpack to more than allowed.

    The size that an archive states is the most that is ever unpacked of it: a part that holds more breaks off.

    Raises:
        ToolError: It does, or it is no archive.
    """
    with reading(what), zipfile.ZipFile(BytesIO(source.content)) as archive:
        parts = archive.infolist()
        size = sum(one.file_size for one in parts)
        if len(parts) > MAX_PARTS or size > source.max_bytes:
            text = f"it unpacks to {size} bytes in {len(parts)} parts"
            raise ToolError(f"{text}; at most {source.max_bytes} in {MAX_PARTS} are read")
    return BytesIO(source.content)


def check_tags(source: Source, what: str) -> None:
    """Refuse an archive whose XML would make too large a tree.

    Raises:
        ToolError: It would, or it is no archive.
    """
    tags = 0
    with reading(what), zipfile.ZipFile(BytesIO(source.content)) as archive:
        for part in archive.infolist():
            with archive.open(part) as file:
                while piece := file.read(PIECE_BYTES):
                    source.check_time()
                    tags += piece.count(b"<")
                    if tags > MAX_TAGS:
                        raise ToolError(f"it has more than {MAX_TAGS} tags; that many are not read")
