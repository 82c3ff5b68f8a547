"""Keeping secrets out of everything that is stored, shown or sent: their values, and the usual codings of them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from html import escape
from typing import Final
from urllib.parse import quote, quote_plus

from loopagent.errors import ConfigError


KNOWN: Final = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "LOOPAGENT_API_KEY",
    "LOOPAGENT_API_TOKEN",
)
"""Environment variables that always hold secrets."""
KEY_ENDING: Final = "_API_KEY"
"""Variables whose name ends like this hold secrets too, whatever they are for."""
MIN_CHARS: Final = 6
"""Shortest value that is masked; a shorter one would tear up ordinary text."""
REDACTED: Final = "[redacted]"
_ESCAPE: Final = re.compile(r"%[0-9A-F]{2}")
_MIN_CODED_CHARS = 8
_BITS_PER_BYTE, _BITS_PER_SIGN = 8, 6


class Redactor:
    """Replaces secrets in texts.

    Found are the values themselves and their JSON, URL, HTML and base64 forms, base64 also in the middle of
    something longer, as in the header of a basic authorisation.

    Args:
        values: The secrets; those under `MIN_CHARS` are not looked for.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = {form for value in values if len(value) >= MIN_CHARS for form in _forms(value)}
        longest_first = sorted(forms, key=lambda one: (-len(one), one))
        self._forms = longest_first
        self._first_signs = {form[0] for form in forms}
        found = re.compile("|".join(map(re.escape, longest_first)))
        self.mask: Callable[[str], str] = partial(found.sub, REDACTED) if forms else str
        """Gives a text with every secret replaced."""

    def open_end(self, text: str) -> int:
        """Where in a text that goes on a secret may have begun that is not complete yet; its length if nowhere."""
        if not self._forms:
            return len(text)
        for at in range(max(0, len(text) - len(self._forms[0]) + 1), len(text)):
            if text[at] in self._first_signs and self._begins(text[at:]):
                return at
        return len(text)

    def _begins(self, text: str) -> bool:
        return any(form.startswith(text) for form in self._forms)


class StreamRedactor:
    """Replaces secrets in texts that come in pieces; what may be the beginning of one is held back."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held: dict[str, str] = {}

    def feed(self, name: str, piece: str) -> str:
        """The part of the named text that can be shown, now that a piece of it has come."""
        text = self._redactor.mask(self._held.get(name, "") + piece)
        end = self._redactor.open_end(text)
        self._held[name] = text[end:]
        return text[:end]

    def end(self, name: str) -> str:
        """What was held back of the named text, as nothing more of it comes."""
        return self._held.pop(name, "")


def secrets_of(env: Mapping[str, str], declared: Iterable[str] = ()) -> list[str]:
    """The values that must not be seen.

    Args:
        env: The environment.
        declared: Names of further variables that hold secrets; one that is not set hides nothing.

    Raises:
        ConfigError: The value of a declared one is too short to be found without doing harm.
    """
    for name in declared:
        if env.get(name) and len(env[name].strip()) < MIN_CHARS:
            raise ConfigError(
                f"The secret {name} has fewer than {MIN_CHARS} characters and cannot be masked; use a longer one."
            )
    names = {*KNOWN, *declared, *(name for name in env if name.endswith(KEY_ENDING))}
    return [env[name].strip() for name in sorted(names) if env.get(name, "").strip()]


def _forms(value: str) -> Iterator[str]:
    yield value
    for ascii_only in (True, False):
        yield json.dumps(value, ensure_ascii=ascii_only)[1:-1]
    for coded in (quote(value, safe=""), quote(value), quote_plus(value)):
        yield coded
        yield _ESCAPE.sub(lambda found: found[0].lower(), coded)  # as some servers write it
    yield escape(value)
    yield escape(value, quote=False)
    data = value.encode("utf-8", "surrogatepass")
    for offset in range(3):
        coded = base64.b64encode(bytes(offset) + data).decode()
        # Only signs that depend on the value alone: its neighbours share the first and the last one.
        first = -(-offset * _BITS_PER_BYTE // _BITS_PER_SIGN)
        last = (offset + len(data)) * _BITS_PER_BYTE // _BITS_PER_SIGN
        core = coded[first:last]
        if len(core) >= _MIN_CODED_CHARS:
            yield core
            yield core.replace("+", "-").replace("/", "_")
