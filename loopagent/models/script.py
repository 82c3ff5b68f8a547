"""What a scripted model plays: entries, and the files that hold them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, cast, get_args

from loopagent.documents import DocumentError, read_list
from loopagent.errors import ConfigError, ModelErrorKind
from loopagent.models.values import is_list
from loopagent.ports import Finish, ModelReply, Usage


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


MAX_FILE_BYTES = 16 * 1024 * 1024
"""Largest script file that is read."""
KEYS = ("raw", "finishReason", "refusal", "usage", "delayMs", "chunks", "error", "when", "agent")
"""Keys of an entry that speak to the scripted model; all others are the reply itself."""
_USAGE = {
    "inputTokens": "input_tokens",
    "cachedTokens": "cached_tokens",
    "outputTokens": "output_tokens",
    "reasoningTokens": "reasoning_tokens",
    "costUsd": "cost_usd",
}
_ERROR = ("status", "kind", "message", "retryAfter")


@dataclass(frozen=True, slots=True)
class ScriptError:
    """A failure to play: an HTTP status, or a kind for failures that have none."""

    status: int | None = None
    kind: ModelErrorKind | None = None
    message: str = ""
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ScriptEntry:
    """One answer of a scripted model.

    `chunks`: the pieces that a listener gets, or their size in characters. `contains`: only for
    prompts with this text. `agent`: only for the agent of this name. `where`: `file:line:column` it
    was read from.
    """

    text: str = ""
    finish: Finish = "stop"
    refusal: str | None = None
    usage: Usage = field(default_factory=Usage)
    delay_ms: float = 0.0
    chunks: tuple[str, ...] | int | None = None
    error: ScriptError | None = None
    contains: str | None = None
    agent: str | None = None
    where: str = ""

    @property
    def pieces(self) -> tuple[str, ...]:
        """The text as a listener gets it."""
        if isinstance(self.chunks, tuple):
            return self.chunks
        size = self.chunks or len(self.text) or 1
        return tuple(self.text[start : start + size] for start in range(0, len(self.text), size))

    @property
    def answers(self) -> bool:
        """Whether playing it leaves a reply in the conversation."""
        return self.error is None and self.finish in {"stop", "unknown"} and bool(self.text.strip())


class BadEntryError(ValueError):
    """An entry that cannot be played; the message says which field is wrong and why."""


def entry_of(value: Any, where: str = "") -> ScriptEntry:
    """One entry from its JSON form, a text, or a reply.

    Args:
        value: A reply object with or without script keys, a text, a `ModelReply` or a
            `ScriptEntry`.
        where: `file:line:column` it comes from.

    Raises:
        BadEntryError: It cannot be played.
    """
    if isinstance(value, ScriptEntry):
        return value
    if isinstance(value, ModelReply):
        reply = value
        return ScriptEntry(reply.text, reply.finish, reply.refusal, reply.usage, where=where)
    if isinstance(value, str):
        return ScriptEntry(value, where=where)
    if not isinstance(value, dict):
        raise BadEntryError(f"an entry is a reply object or a text, not {_kind(value)}")
    entry = cast("dict[str, Any]", value)
    chunks = _chunks(entry.get("chunks"))
    return ScriptEntry(
        text=_text(entry, chunks),
        finish=_choice(entry.get("finishReason", "stop"), "finishReason", get_args(Finish)),
        refusal=_string(entry.get("refusal"), "refusal"),
        usage=_usage(entry.get("usage")),
        delay_ms=_amount(entry.get("delayMs", 0), "delayMs"),
        chunks=chunks,
        error=_error(entry.get("error")),
        contains=_condition(entry.get("when")),
        agent=_string(entry.get("agent"), "agent"),
        where=where,
    )


def _kind(value: Any) -> str:
    names: dict[type, str] = {
        type(None): "null",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        list: "a list",
    }
    kind = cast("type[object]", type(value))
    return names.get(kind, f"a {kind.__name__}")


def _text(entry: dict[str, Any], chunks: tuple[str, ...] | int | None) -> str:
    reply = {key: value for key, value in entry.items() if key not in KEYS}
    raw = entry.get("raw")
    if raw is not None and not isinstance(raw, str):
        raise BadEntryError("raw: must be a text")
    if raw is not None and reply:
        raise BadEntryError(f"raw: stands for the whole reply; leave out {', '.join(reply)}")
    if raw is None and reply:
        raw = _json(reply)
    if isinstance(chunks, tuple):
        joined = "".join(chunks)
        if raw is not None and joined != raw:
            raise BadEntryError("chunks: joined they must give the reply's text")
        raw = joined
    if raw is None and "error" not in entry and "finishReason" not in entry:
        raise BadEntryError("an entry needs a reply, raw, chunks, error or finishReason")
    return raw or ""


def _json(reply: dict[str, Any]) -> str:
    try:
        return json.dumps(reply, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadEntryError(f"the reply cannot be written as JSON: {error}") from None


def _string(value: Any, path: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise BadEntryError(f"{path}: must be a text, not {_kind(value)}")


def _amount(value: Any, path: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15:  # noqa: PLR2004
        return float(value)
    raise BadEntryError(f"{path}: must be a number of at least 0")


def _choice(value: Any, path: str, allowed: tuple[Any, ...]) -> Any:
    if value in allowed:
        return value
    raise BadEntryError(f"{path}: must be one of {', '.join(map(str, allowed))}")


def _keys(value: Any, path: str, allowed: Mapping[str, Any] | tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadEntryError(f"{path}: must be an object with {', '.join(allowed)}")
    fields = cast("dict[str, Any]", value)
    for key in fields:
        if key not in allowed:
            near = get_close_matches(str(key), list(allowed), n=1)
            hint = f"; did you mean {near[0]}" if near else f"; known are {', '.join(allowed)}"
            raise BadEntryError(f"{path}.{key}: unknown{hint}")
    return fields


def _usage(value: Any) -> Usage:
    fields = _keys(value or {}, "usage", _USAGE)
    amounts = {key: _amount(amount, f"usage.{key}") for key, amount in fields.items()}
    cost = amounts.pop("costUsd", None)
    return Usage(**{_USAGE[key]: int(amount) for key, amount in amounts.items()}, cost_usd=cost)


def _chunks(value: Any) -> tuple[str, ...] | int | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return int(value)
    if is_list(value) and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise BadEntryError("chunks: must be a list of texts, or their size as a number above 0")


def _error(value: Any) -> ScriptError | None:
    if value is None:
        return None
    fields = _keys(value, "error", _ERROR)
    status = fields.get("status")
    wait = fields.get("retryAfter")
    kind = fields.get("kind")
    return ScriptError(
        status=None if status is None else int(_amount(status, "error.status")),
        kind=None if kind is None else _choice(kind, "error.kind", get_args(ModelErrorKind)),
        message=_string(fields.get("message"), "error.message") or "",
        retry_after_seconds=None if wait is None else _amount(wait, "error.retryAfter"),
    )


def _condition(value: Any) -> str | None:
    if value is None:
        return None
    return _string(_keys(value, "when", ("contains",)).get("contains"), "when.contains")


def read_script(path: Path) -> list[ScriptEntry]:
    """The entries of a file: JSON Lines (`.jsonl`, `.ndjson`), else a YAML or JSON list.

    Raises:
        ConfigError: The file cannot be read, or entries cannot be played; every complaint is
            `file:line:column: what is wrong`.
    """
    try:
        size = path.stat().st_size
        text = path.read_text("utf-8-sig") if size <= MAX_FILE_BYTES else ""
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the script: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: the script is not UTF-8 text (byte {error.start})") from error
    if size > MAX_FILE_BYTES:
        raise ConfigError(f"{path}: the script is larger than {MAX_FILE_BYTES} bytes")
    reader: Callable[[Path, str], list[tuple[str, Any]]] = _list
    if path.suffix.lower() in {".jsonl", ".ndjson"}:
        reader = _json_lines
    return _entries(path, reader(path, text))


def _entries(path: Path, found: list[tuple[str, Any]]) -> list[ScriptEntry]:
    entries: list[ScriptEntry] = []
    problems: list[str] = []
    for where, value in found:
        try:
            entries.append(entry_of(value, where))
        except BadEntryError as error:
            problems.append(f"{where}: {error}")
    if problems:
        raise ConfigError("\n".join(problems), problems)
    if not entries:
        raise ConfigError(f"{path}:1:1: the script has no entries")
    return entries


def _json_lines(path: Path, text: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    problems: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(
                (f"{path}:{number}:{1 + len(line) - len(line.lstrip())}", json.loads(line))
            )
        except json.JSONDecodeError as error:
            problems.append(f"{path}:{number}:{error.colno}: not JSON: {error.msg}")
        except RecursionError:
            problems.append(f"{path}:{number}:1: nested too deeply")
    if problems:
        raise ConfigError("\n".join(problems), problems)
    return found


def _list(path: Path, text: str) -> list[tuple[str, Any]]:
    try:
        items = read_list(text, path)
    except DocumentError as error:
        raise ConfigError(str(error)) from error
    return [(f"{path}:{line}:{column}", value) for (line, column), value in items]
