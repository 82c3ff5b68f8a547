"""What a curl command says: its words, by the rules of the shell, and its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from loopagent.errors import ConfigError


MAX_COMMAND_CHARS: Final = 200_000
_IGNORED: Final = frozenset(
    {"-s", "--silent", "-S", "--show-error", "-v", "--verbose", "-i", "--include", "-f", "--fail"}
    | {"--fail-with-body", "-g", "--globoff", "-#", "--progress-bar", "-N", "--no-buffer"}
    | {"--http1.1", "--http2", "--http2-prior-knowledge", "--compressed", "--basic"}
)
"""What changes how curl talks to a person, and not what is sent."""
_IGNORED_WITH_VALUE: Final = frozenset(
    {"-o", "--output", "-w", "--write-out", "-m", "--max-time", "--connect-timeout"}
    | {"--retry", "--retry-delay", "-A", "--user-agent"}
)
_REFUSED: Final = {
    "-F": "sends files or a multipart form, which actions cannot",
    "-T": "sends a file, which actions cannot",
    "-k": "switches the check of certificates off, which actions never do",
    "-x": "names a proxy; that is for `egress.proxy` in loopagent.toml",
    "-K": "reads options from a file; paste them instead",
    "--unix-socket": "calls a file, which actions cannot",
    "--resolve": "makes a name lead elsewhere; actions dial what the name says",
    "--connect-to": "makes a name lead elsewhere; actions dial what the name says",
    "--cert": "shows a certificate, which actions cannot",
    "--aws-sigv4": "signs the request, which actions cannot",
    "--digest": "uses digest authorisation, which actions cannot",
}
_LONG: Final = {
    "--request": "-X",
    "--header": "-H",
    "--data": "-d",
    "--data-ascii": "-d",
    "--user": "-u",
    "--head": "-I",
    "--get": "-G",
    "--location": "-L",
    "--form": "-F",
    "--form-string": "-F",
    "--upload-file": "-T",
    "--insecure": "-k",
    "--proxy": "-x",
    "--config": "-K",
    "--cookie": "-b",
    "--referer": "-e",
    "-E": "--cert",
}


@dataclass(slots=True)
class Command:
    """What the options of a command say."""

    url: str = ""
    method: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    data: list[str] = field(default_factory=list[str])
    json: bool = False
    raw: bool = False
    get: bool = False
    head: bool = False
    follow: bool = False
    user: str = ""
    bearer: str = ""
    notes: list[str] = field(default_factory=list[str])


def _words(command: str) -> list[str]:
    if len(command) > MAX_COMMAND_CHARS:
        raise ConfigError(f"the command has more than {MAX_COMMAND_CHARS} characters")
    text = re.sub(r"[\\^]\r?\n", " ", command.strip().removeprefix("$ "))
    try:
        words = shlex.split(re.sub(r"\$'((?:[^'\\]|\\.)*)'", _ansi, text, flags=re.DOTALL))
    except ValueError as error:
        raise ConfigError(f"the quotes of the command do not fit: {error}") from None
    if not words or words[0].rpartition("/")[2] not in {"curl", "curl.exe"}:
        raise ConfigError("this is no curl command; it has to begin with curl")
    if any(one in {"|", ";", "&&", "||", ">", "<"} for one in words):
        raise ConfigError("only one curl command can be imported, without pipes or redirection")
    return words[1:]


_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


def _ansi(found: re.Match[str]) -> str:
    """Text in `$'…'`, as browsers copy it, in plain quotes."""

    def plain(one: re.Match[str]) -> str:
        text = one[1]
        return chr(int(text[1:], 16)) if len(text) > 1 else _ESCAPES.get(text, text)

    return shlex.quote(
        re.sub(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", plain, found[1], flags=re.DOTALL)
    )


# --- options ---------------------------------------------------------------------------------------


def _set(name: str) -> Callable[[Command, str], None]:
    return lambda made, value: setattr(made, name, value)


def _flag(name: str) -> Callable[[Command], None]:
    return lambda made: setattr(made, name, True)


def _ignore(made: Command, value: str) -> None:
    """What changes nothing that is sent."""


def _header(made: Command, value: str) -> None:
    if value.startswith("@"):
        raise ConfigError("-H @FILE reads headers from a file; paste them instead")
    name, separator, text = value.partition(":")
    if separator and text.strip():
        made.headers.append((name.strip(), text.strip()))


def _data(made: Command, value: str) -> None:
    if value.startswith("@"):
        raise ConfigError("-d @FILE sends a file; paste its content instead")
    made.data.append(value)


def _raw(made: Command, value: str) -> None:
    made.data.append(value)


def _encoded(made: Command, value: str) -> None:
    name, separator, text = value.partition("=")
    if "@" in (value if not separator else name):
        raise ConfigError("--data-urlencode with @ sends a file; paste its content instead")
    made.data.append(
        f"{name}={quote(text, safe='')}" if separator and name else quote(text or value, safe="")
    )


def _json(made: Command, value: str) -> None:
    _data(made, value)
    made.json = True


def _cookie(made: Command, value: str) -> None:
    if "=" not in value:
        raise ConfigError("-b FILE reads cookies from a file; paste them as name=value")
    made.headers.append(("Cookie", value))


_VALUES: Final[dict[str, Callable[[Command, str], None]]] = {
    "-X": _set("method"),
    "--url": _set("url"),
    "-u": _set("user"),
    "--oauth2-bearer": _set("bearer"),
    "-H": _header,
    "-d": _data,
    "--data-raw": _raw,
    "--data-binary": _data,
    "--data-urlencode": _encoded,
    "--json": _json,
    "-b": _cookie,
    "-e": lambda made, value: made.headers.append(("Referer", value)),
}
_FLAGS: Final[dict[str, Callable[[Command], None]]] = {
    "-G": _flag("get"),
    "-I": _flag("head"),
    "-L": _flag("follow"),
    "--location-trusted": _flag("follow"),
}


def read_command(command: str) -> Command:
    """What a command says.

    Args:
        command: The command, as one would type it into a shell.

    Raises:
        ConfigError: It is no curl command, or does what actions cannot.
    """
    words = _words(command)
    made = Command()
    left = _parted(words)
    while left:
        word = left.pop(0)
        option = _LONG.get(word, word)
        if option in _REFUSED:
            raise ConfigError(f"the option {word} {_REFUSED[option]}")
        if option in _IGNORED:
            continue
        if option in _FLAGS:
            _FLAGS[option](made)
        elif option in _VALUES or option in _IGNORED_WITH_VALUE:
            if not left:
                raise ConfigError(f"the option {word} lacks its value")
            _VALUES.get(option, _ignore)(made, left.pop(0))
        elif word.startswith("-"):
            raise ConfigError(
                f"the option {word[:40]} is not known here; leave it out if it is not needed"
            )
        elif made.url:
            raise ConfigError("the command names several addresses; import them one by one")
        else:
            made.url = word
    return made


def _parted(words: list[str]) -> list[str]:
    """Words with `-XPOST`, `-sSL` and `--option=value` taken apart."""
    made: list[str] = []
    for index, word in enumerate(words):
        before = words[index - 1] if index else ""
        if _LONG.get(before, before) in _VALUES or before in _IGNORED_WITH_VALUE:
            made.append(word)
        elif word.startswith("--") and "=" in word:
            made += word.split("=", 1)
        elif re.match(r"-[A-Za-z#].", word):
            made += _short(word[1:])
        else:
            made.append(word)
    return made


def _short(letters: str) -> list[str]:
    made: list[str] = []
    for index, letter in enumerate(letters):
        option = f"-{letter}"
        made.append(option)
        rest = letters[index + 1 :]
        if rest and (option in _VALUES or option in _IGNORED_WITH_VALUE or option in _REFUSED):
            return [*made, rest]
    return made
