"""Documents to import, from a file or an address; addresses go through the guard like every other request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from loopagent.actions.importing.document import MAX_DOCUMENT_BYTES, ApiDocument, read_api
from loopagent.egress import EgressDeniedError, EgressPolicy
from loopagent.egress.client import Bounds, checked_url, opened
from loopagent.egress.decoding import TooLongError
from loopagent.egress.policy import plain_host
from loopagent.errors import ConfigError


if TYPE_CHECKING:
    from loopagent.actions.means import Means

_OK = 200
_FAILURES = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    EgressDeniedError,
    TooLongError,
    TimeoutError,
    ValueError,
)
_PREFIXES = ("http://", "https://")


async def fetch_api(address: str, means: Means) -> ApiDocument:
    """The document at an address.

    Args:
        address: Where it is; redirects are not followed.
        means: Says what may be called, and how.

    Raises:
        ConfigError: It may not be called, fails, or gives no document.
    """
    try:
        target = checked_url(address)
        ports = () if target.port is None else (target.port,)
        host = plain_host(target.raw_host.decode("ascii"))
        policy = EgressPolicy.for_action(means.egress, hosts=(host,), ports=ports)
        bounds = Bounds(total_seconds=60.0, max_bytes=MAX_DOCUMENT_BYTES)
        async with opened(means.client(policy)) as client:
            answer = await client.fetch("GET", address, bounds=bounds)
    except _FAILURES as error:
        said = str(error) or type(error).__name__
        raise ConfigError(f"{address}: cannot be fetched: {said}") from error
    if answer.status != _OK:
        raise ConfigError(f"{address}: the server answered with status {answer.status}")
    return read_api(answer.body.decode("utf-8", "replace"), address)


def read_api_file(path: Path) -> ApiDocument:
    """The document in a file.

    Args:
        path: Where it is.

    Raises:
        ConfigError: It cannot be read, or is no document.
    """
    try:
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            raise ConfigError(f"{path}: has more than {MAX_DOCUMENT_BYTES} bytes")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    return read_api(text, str(path))


def is_address(source: str) -> bool:
    """Whether a source is an address, and no file."""
    return source.lower().startswith(_PREFIXES)
