"""Files that a caller hands to a run: checked, and brought into the form in which they are stored."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from loopagent.artifacts.encodings import binary_type
from loopagent.core.agent_spec import Limits
from loopagent.core.artifact_kinds import kind_of
from loopagent.core.text import clean_text
from loopagent.errors import RequestError
from loopagent.ports import Handed, StoredArtifact


MEDIA_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}")
MAX_NAME_CHARS = 255
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that a file name cannot have: those that control something or break lines."""
PROBE_BYTES = 8_000
_TEXTS = frozenset({"text", "csv", "json"})
"""Kinds of artifacts that are read as text."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file for a run.

    Args:
        name: File name, without folders.
        content: Its bytes.
        media_type: Its type; empty to tell it from the name, or from the content.
    """

    name: str
    content: bytes
    media_type: str = ""


def checked_attachments(attachments: Iterable[Attachment], limits: Limits) -> Handed:
    """Attachments that a run can be given.

    Raises:
        RequestError: `invalid_attachments` (422), `attachments_too_large` (413).
    """
    given = list(attachments)
    if len(given) > limits.max_attachments:
        text = f"A run takes {limits.max_attachments} attachments, not {len(given)}."
        raise RequestError("attachments_too_large", text, status=413)
    size = sum(len(one.content) for one in given)
    if size > limits.max_attachment_bytes:
        text = f"Attachments may have {limits.max_attachment_bytes} bytes together, not {size}."
        raise RequestError("attachments_too_large", text, status=413)
    errors = [
        {"pointer": f"/attachments/{at}/{field}", "detail": detail}
        for at, one in enumerate(given)
        for field, detail in _wrong(one)
    ]
    if errors:
        listed = "; ".join(f"{one['pointer']}: {one['detail']}" for one in errors)
        raise RequestError("invalid_attachments", f"{listed}.", errors=errors)
    stored = tuple(_stored(one) for one in given)
    pairs = zip(given, stored, strict=True)
    return Handed(stored, tuple(_described(one, file) for one, file in pairs))


def _wrong(one: Attachment) -> Iterable[tuple[str, str]]:
    odd = UNPRINTABLE.search(one.name) or set(one.name) & set("/\\")
    if odd or not one.name.strip(" .") or len(one.name) > MAX_NAME_CHARS:
        what = f"a file name of at most {MAX_NAME_CHARS} printable characters, without folders"
        yield "name", f"must be {what}"
    if one.media_type and not MEDIA_TYPE.fullmatch(one.media_type.partition(";")[0].strip()):
        yield "mediaType", "must be like text/csv"


def _stored(one: Attachment) -> StoredArtifact:
    kind = one.media_type.partition(";")[0].strip().lower() or _guessed(one)
    if kind_of(kind, one.name) in _TEXTS:
        kind = binary_type(one.content) or kind
    return StoredArtifact(sha256(one.content).hexdigest(), kind, len(one.content), one.content)


def _guessed(one: Attachment) -> str:
    """The media type by the name's ending, else text if it looks like one."""
    guessed = mimetypes.guess_type(one.name)[0]
    if guessed:
        return guessed
    try:
        text = one.content[:PROBE_BYTES].decode("utf-8", "strict")
    except UnicodeDecodeError as error:
        if error.start < min(len(one.content), PROBE_BYTES) - 3:  # not just cut in the middle
            return "application/octet-stream"
        text = ""
    return "application/octet-stream" if "\0" in text else "text/plain"


def _described(one: Attachment, file: StoredArtifact) -> dict[str, Any]:
    about: dict[str, Any] = {"artifactId": file.artifact_id, "mediaType": file.media_type}
    if kind_of(file.media_type, one.name) in _TEXTS and binary_type(one.content):
        about["kind"] = "binary"  # the name alone says otherwise
    return {**about, "bytes": file.size_bytes, "name": clean_text(one.name.strip())}
