"""Gathering an answer, streamed or whole: what is the same for all wire formats."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from loopagent.models.faults import complaint_in, kind_of
from loopagent.models.values import joined


if TYPE_CHECKING:
    from collections.abc import Callable

    from loopagent.errors import ModelError

MAX_SHOWN_CHARS = 4_000
"""How much of an event that cannot be read is shown."""


class Gathering:
    """What of an answer has come so far; see `loopagent.models.http.Collector`.

    Args:
        fail: Makes the error for a kind and a detail.
        finish_required: Whether a stream must say why it ended.
    """

    reason_field = "finish_reason"
    """Where a server says why an answer ended."""

    def __init__(self, fail: Callable[..., ModelError], *, finish_required: bool = True) -> None:
        self._fail = fail
        self._finish_required = finish_required
        self._parts: list[str] = []
        self._reasoning: list[str] = []
        self._finish: str | None = None
        self._done = False
        self._model = ""
        self._id: str | None = None

    @property
    def text(self) -> str:
        """Reply text so far."""
        return joined(self._parts)

    @property
    def complete(self) -> bool:
        """Whether the reason for the end, or the end mark, has come."""
        return self._done or self._finish is not None

    def _event(self, data: str) -> dict[str, Any]:
        """An event of a stream."""
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            shown = data[:MAX_SHOWN_CHARS]
            raise self._fail(
                "bad_response", f"an event of the stream is not JSON: {shown}"
            ) from None
        return self._checked(event)

    def _checked(self, body: Any) -> dict[str, Any]:
        """An answer, or a part of it, that is no complaint."""
        complaint = complaint_in(body)
        if complaint is not None:
            raise self._fail(kind_of(None, complaint), complaint.message)
        if not isinstance(body, dict):
            raise self._fail("bad_response", "the answer is not a JSON object")
        return cast("dict[str, Any]", body)

    def _refuse_early_end(self) -> None:
        if self._finish is None and (self._finish_required or not self._done):
            raise self._fail("truncated_stream", f"it ended without a {self.reason_field}")
