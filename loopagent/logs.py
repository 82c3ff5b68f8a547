"""What the process says about itself: events with fields, as plain lines or as JSON.

Event names are dotted (`effect.complete`), fields are words and numbers (`run_id`, `effect_id`, `turn`). The records
go through the standard library, so a host decides where they end up; `set_up` is for processes that have no host.

What is written while an effect is performed says of which run, turn and effect it is, also what an action or another
library writes; and in which trace it stands, while one is recorded.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO

from loopagent.tracecontext import current


NAME: Final = "loopagent"
LogFormat = Literal["auto", "json", "plain"]
LEVELS: Final = ("debug", "info", "warning", "error")


_EFFECT: ContextVar[tuple[str, str] | None] = ContextVar("effect", default=None)


performing: Final = _EFFECT.set
"""Says which effect of which run this task performs from now on; tasks and threads that it starts take that over."""


def place(run_id: object = None) -> dict[str, Any]:
    """Where this task stands: run, turn and effect, and the trace that is recorded.

    Args:
        run_id: The run that is spoken of, if it is known; the effect of another run is not named then.
    """
    found: dict[str, Any] = {}
    effect = _EFFECT.get()
    if effect is not None and run_id in (None, effect[0]):
        turn = effect[1].partition(":")[0]
        found = {"run_id": effect[0], "turn": int(turn) if turn.isdecimal() else None}
        found["effect_id"] = effect[1]
    trace = current()
    if trace is not None:
        found |= {"trace_id": trace[0], "span_id": trace[1]}
    return found


class Log:
    """Writes events with fields to the `loopagent` logger; texts in fields are data, never format strings."""

    def __init__(self) -> None:
        self._logger = logging.getLogger(NAME)
        self.hears = self._logger.isEnabledFor
        """Whether anybody wants events of a level (of the standard library); saves making fields for nobody."""

    def debug(self, event: str, **fields: object) -> None:
        """Something that only matters to whoever looks for a fault."""
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Something that happens as it should."""
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Something that somebody should know of."""
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, error: BaseException | None = None, **fields: object) -> None:
        """Something that failed.

        Args:
            event: Its name.
            error: What was raised; its traceback is written with the event.
            fields: What it is about.
        """
        self._write(logging.ERROR, event, fields, error)

    def _write(
        self,
        level: int,
        event: str,
        fields: dict[str, object],
        error: BaseException | None = None,
    ) -> None:
        if self.hears(level):
            fields = {**place(fields.get("run_id")), **fields}
            said = " ".join([event, *(f"{key}={_plain(one)}" for key, one in fields.items())])
            extra = {"event": event, "fields": fields}
            self._logger.log(level, "%s", said, exc_info=error, extra=extra)


log: Final = Log()
"""The one log of the process."""


def _plain(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return (
        text if text and not any(one.isspace() or one == '"' for one in text) else json.dumps(text)
    )


class _Formatter(logging.Formatter):
    """Formats a record as one line of JSON or as plain text, without secrets."""

    def __init__(self, mask: Callable[[str], str], *, as_json: bool) -> None:
        super().__init__()
        self._mask = mask
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        line = self._json(record) if self._as_json else self._text(record)
        return self._mask(line)

    def _text(self, record: logging.LogRecord) -> str:
        here = (
            ""
            if hasattr(record, "fields")
            else "".join(f" {key}={_plain(one)}" for key, one in place().items())
        )
        head = f"{_time(record)} {record.levelname.lower():<7} {record.getMessage()}{here}"
        trace = self._trace(record)
        return f"{head}\n{trace}" if trace else head

    def _json(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, "fields", None) or place()
        made = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": getattr(record, "event", None) or record.getMessage(),
            **fields,
        }
        trace = self._trace(record)
        if trace:
            made["exception"] = trace
        return json.dumps(made, ensure_ascii=False, default=str)

    def _trace(self, record: logging.LogRecord) -> str:
        return self.formatException(record.exc_info) if record.exc_info else ""


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def set_up(
    *,
    mask: Callable[[str], str],
    level: str = "warning",
    form: LogFormat = "auto",
    stream: TextIO | None = None,
) -> logging.Handler:
    """Write the log of this process to a stream; for programs, not for libraries.

    Other libraries are heard from `warning` on: some of them write whole addresses at `info`.

    Args:
        mask: Takes secrets out of a finished line.
        level: Least level of our own events, from `LEVELS`.
        form: `auto` is plain in a terminal and JSON elsewhere.
        stream: Where to; default: standard error.

    Returns:
        The handler, which may be removed again.
    """
    target = sys.stderr if stream is None else stream
    as_json = not target.isatty() if form == "auto" else form == "json"
    handler = logging.StreamHandler(target)
    handler.setFormatter(_Formatter(mask, as_json=as_json))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger(NAME).setLevel(level.upper())
    return handler
