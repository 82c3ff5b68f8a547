"""An OpenAPI document as data: read within limits, with references that lead nowhere but into itself."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from loopagent.core.json_values import is_array, is_object
from loopagent.core.schema_check import too_deep
from loopagent.documents import DocumentError, read_document
from loopagent.errors import ConfigError


MAX_DOCUMENT_BYTES: Final = 20_000_000
MAX_LEVELS: Final = 100
MAX_HOPS: Final = 30
"""References that lead to references."""
VERSIONS: Final = ("3.0", "3.1")


class UnusableError(Exception):
    """A part of a document cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class ApiDocument:
    """A document and where it came from.

    `source` is a file name or address, `sha256` the digest of its text.
    """

    value: dict[str, Any]
    source: str
    sha256: str

    @property
    def title(self) -> str:
        """What the document calls itself."""
        info = self.value.get("info")
        return str(info.get("title") or "") if is_object(info) else ""

    @property
    def old(self) -> bool:
        """Whether it is version 3.0, whose schemas are not yet JSON Schema."""
        return str(self.value.get("openapi")).startswith("3.0")

    def found(self, value: Any) -> Any:
        """What a value stands for: itself, or what its reference leads to.

        Raises:
            UnusableError: The reference leads out of the document, to nothing, or in a circle.
        """
        for _ in range(MAX_HOPS):
            if not is_object(value) or "$ref" not in value:
                return value
            value = self.at(str(value["$ref"]))
        raise UnusableError(f"references lead on and on, more than {MAX_HOPS} times")

    def object(self, value: Any) -> dict[str, Any]:
        """The same, where only an object is of use; anything else gives an empty one."""
        found = self.found(value)
        return found if is_object(found) else {}

    def at(self, reference: str) -> Any:
        """What a reference names, itself perhaps a reference.

        Raises:
            UnusableError: It leads out of the document, or to nothing.
        """
        if not reference.startswith("#"):
            text = f"the reference {reference[:100]!r} leads to another document, which is never fetched"
            raise UnusableError(f"{text}; put it into this one, for example with a bundler")
        current: Any = self.value
        for raw in reference[1:].split("/")[1:]:
            part = unquote(raw).replace("~1", "/").replace("~0", "~")
            if is_object(current) and part in current:
                current = current[part]
            elif is_array(current) and part.isdecimal() and int(part) < len(current):
                current = current[int(part)]
            else:
                raise UnusableError(f"the reference {reference[:100]!r} leads to nothing")
        return current


def read_api(text: str, source: str, *, max_bytes: int = MAX_DOCUMENT_BYTES) -> ApiDocument:
    """Read an OpenAPI document, in JSON or YAML.

    Args:
        text: The document.
        source: Where it came from, a file name or address.
        max_bytes: Longest text that is taken.

    Raises:
        ConfigError: It cannot be read, or is of a version that is not supported.
    """
    raw = text.encode("utf-8", "replace")
    if len(raw) > max_bytes:
        raise ConfigError(f"{source}: has more than {max_bytes} bytes")
    value = _parsed(text.removeprefix("\ufeff"), source)
    if "swagger" in value:
        hint = (
            "convert it first, for example with `npx swagger2openapi`, and import what comes of it"
        )
        raise ConfigError(f"{source}: is Swagger {str(value['swagger'])[:10]}; {hint}")
    version = str(value.get("openapi") or "")
    if version[:3] not in VERSIONS:
        said = f"OpenAPI {version[:20]}" if version else "no OpenAPI document: it has no `openapi`"
        raise ConfigError(f"{source}: is {said}; versions 3.0 and 3.1 can be imported")
    return ApiDocument(value, source, hashlib.sha256(raw).hexdigest())


def _parsed(text: str, source: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text.lstrip()[:1] == "{" else _from_yaml(text, source)
    except RecursionError:
        raise ConfigError(f"{source}: is nested more than {MAX_LEVELS} levels deep") from None
    except ValueError as error:
        raise ConfigError(f"{source}: is no JSON: {error}") from None
    if not is_object(found):
        raise ConfigError(f"{source}: holds no object")
    if too_deep(found, MAX_LEVELS):
        raise ConfigError(f"{source}: is nested more than {MAX_LEVELS} levels deep")
    return found


def _from_yaml(text: str, source: str) -> Any:
    try:
        # Whatever the file is named: what is no JSON is read as YAML.
        return read_document(text, Path(source.removesuffix(".json"))).value
    except DocumentError as error:
        raise ConfigError(f"{source}: cannot be read as YAML", error.problems) from None
