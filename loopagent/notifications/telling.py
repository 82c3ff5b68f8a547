"""What receivers are told, as JSON for programs and as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pydantic_core import to_json

from loopagent.notifications.outbox import REQUEST


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.notification_port import Notice
    from loopagent.notifications.spec import Format

CLOUD_PREFIX = "loopagent."
"""What the types of events begin with as CloudEvents."""
NONE: Mapping[str, Any] = MappingProxyType({})
_SUBJECTS = {
    REQUEST: "Your answer is needed",
    "run.completed": "A run is done",
    "run.failed": "A run failed",
    "run.cancelled": "A run was cancelled",
}


def link(notice: Notice, base_url: str | None) -> str | None:
    """Where people find what it is about; None when nobody said where the pages are."""
    if base_url is None:
        return None
    request = notice.data.get("requestId")
    kind, name = ("runs", notice.run_id) if request is None else ("requests", str(request))
    return f"{base_url.rstrip('/')}/{kind}/{quote(name, safe=':')}"


def body(
    notice: Notice, base_url: str | None, form: Format = "standard", more: Mapping[str, Any] = NONE
) -> tuple[str, bytes]:
    """What a program is sent, and its media type.

    Args:
        notice: What to tell.
        base_url: Where people find the pages.
        form: How it is put.
        more: What a full body holds beside.
    """
    url = link(notice, base_url)
    data: dict[str, Any] = {**notice.data, **({} if url is None else {"url": url}), **more}
    if form == "standard":
        content = {"type": notice.kind, "timestamp": _iso(notice.at), "data": data}
        return "application/json", to_json(content)
    event = {
        "specversion": "1.0",
        "id": notice.id,
        "source": f"{(base_url or '').rstrip('/')}/runs/{quote(notice.run_id, safe=':')}",
        "type": f"{CLOUD_PREFIX}{notice.kind}",
        "time": _iso(notice.at),
        "subject": str(notice.data.get("requestId", notice.run_id)),
        "datacontenttype": "application/json",
        "data": data,
    }
    return "application/cloudevents+json", to_json(event)


def mail(notice: Notice, base_url: str | None, sender: str, to: Sequence[str]) -> EmailMessage:
    """A mail. Words of models and people stand in it as text, on one line each."""
    title = _one_line(notice.data.get("title", ""))
    subject = f"{_SUBJECTS[notice.kind]}: {title or notice.agent}"
    url = link(notice, base_url)
    about = {
        "What": notice.data.get("kind", notice.kind),
        "Title": title,
        "Why": notice.data.get("reason", ""),
        "Agent": notice.agent,
        "Run": notice.run_id,
        "When": _iso(notice.at),
        "Open it": url or f"loopagent runs show {notice.run_id}",
    }
    made = EmailMessage()
    made["From"], made["To"] = sender, ", ".join(to)
    made["Subject"] = _one_line(subject)
    made["Date"] = format_datetime(datetime.fromtimestamp(notice.at, UTC))
    made["Message-ID"] = f"<{notice.id}@{sender.rpartition('@')[2]}>"
    made["Auto-Submitted"] = "auto-generated"
    lines = [f"{name}: {_one_line(value)}" for name, value in about.items() if value]
    made.set_content("\n".join(lines) + "\n")
    return made


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
