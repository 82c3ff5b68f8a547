"""Which database it is and how it is used: the URL of a store, taken apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from loopagent.errors import ConfigError


_NAME = re.compile(r"[a-z_][a-z0-9_]{0,50}")
MAX_CONNECTIONS = 1000


@dataclass(frozen=True, slots=True)
class Address:
    """A database and how it is used; see `PostgresStore`.

    `dsn` is what the driver is given: it may hold a password, so it is never shown.
    """

    dsn: str
    schema: str = "loopagent"
    connections: int = 8
    patience_seconds: float = 30.0
    timeout_seconds: float = 60.0

    def check(self) -> None:
        """Refuse settings that cannot work.

        Raises:
            ConfigError: One of them cannot.
        """
        if not _NAME.fullmatch(self.schema) or self.schema.startswith("pg_"):
            raise ConfigError(
                f"schema {self.schema!r} cannot be used: take lower-case letters, digits and _, at most 51 of them."
            )
        if not 1 <= self.connections <= MAX_CONNECTIONS:
            raise ConfigError(f"connections must be between 1 and {MAX_CONNECTIONS}.")
        if not 0 <= self.patience_seconds <= 86_400:  # noqa: PLR2004 - a day
            raise ConfigError("patience_seconds must be between 0 and 86400.")
        if not 0 < self.timeout_seconds <= 86_400:  # noqa: PLR2004 - a day
            raise ConfigError("timeout_seconds must be more than 0 and at most 86400.")


def parse(url: str) -> Address:
    """Take the URL of a store apart: our options are ours, everything else is the driver's.

    Raises:
        ConfigError: An option has a value that cannot be used.
    """
    before, _, query = url.partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    ours = {name: value for name, value in given if name in _OPTIONS}
    rest = urlencode([(name, value) for name, value in given if name not in _OPTIONS])
    dsn = f"{before}?{rest}" if rest else before
    try:
        options: dict[str, Any] = {name: _OPTIONS[name](value) for name, value in ours.items()}
    except ValueError as error:
        raise ConfigError(f"A PostgreSQL option has a wrong value: {error}.") from error
    made = Address(dsn, **options)
    made.check()
    return made


_OPTIONS: dict[str, Callable[[str], Any]] = {
    "schema": str,
    "connections": int,
    "patience_seconds": float,
    "timeout_seconds": float,
}
"""Our options of a PostgreSQL URL, with what reads their values."""
