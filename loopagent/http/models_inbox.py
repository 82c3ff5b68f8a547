"""What goes over the wire about work with requests beside deciding them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from loopagent.http.body import Body, View
from loopagent.inbox import MAX_AT_ONCE, MAX_NAME_CHARS


class Take(Body):
    """Whether to do so also where somebody else takes care of the request."""

    take_over: bool = False


class Assign(Take):
    """Who is to take care of a request."""

    to: str = Field(min_length=1, max_length=MAX_NAME_CHARS)
    """That person's name as the log has it: the user of the key, or its name."""


class Snooze(Body):
    """Until when a request is put off, in seconds since the epoch."""

    until: float


class Snoozed(View):
    """A request that the caller does not want to see for a while; it comes back by itself."""

    request_id: str
    until: float
    """Seconds since the epoch."""


class SnoozedPage(View):
    """What the caller has put off."""

    snoozed: list[Snoozed]


class InboxSummary(View):
    """How much waits."""

    open: int
    """Requests that wait for somebody."""


class KeepView(Body):
    """A view to keep: the filters of the inbox as in its address, such as `holder=mine&sort=age`."""

    query: str = Field(max_length=2_000)


class ViewDetail(View):
    """A view that the caller keeps."""

    name: str
    query: str
    """Its filters, as in the address of the inbox; what is no filter was left out."""


class ViewPage(View):
    """The views that the caller keeps, by name."""

    views: list[ViewDetail]


class SeenRequest(Body):
    """A request as it was shown."""

    request_id: str = Field(max_length=300)
    revision: int
    content_hash: str = Field(max_length=200)


class ApproveAlike(Body):
    """Calls of one action that reads, each as it was shown."""

    requests: list[SeenRequest] = Field(min_length=1, max_length=MAX_AT_ONCE)


class ApprovedOne(View):
    """What became of one of them."""

    request_id: str
    status: Literal["approved", "refused"]
    code: str | None = None
    """Why it was refused, as in a problem."""
    detail: str | None = None
    """The same in words."""


class ApprovedAll(View):
    """What became of each, in the order they were named."""

    requests: list[ApprovedOne]
