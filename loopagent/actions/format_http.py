"""The `http` part of an action file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from loopagent.actions.durations import Seconds
from loopagent.core.spec import Spec


class BearerAuth(Spec):
    """A token in the `Authorization` header."""

    type: Literal["bearer"]
    token: Any
    """The token, `{secret: NAME}`."""


class BasicAuth(Spec):
    """User name and password in the `Authorization` header."""

    type: Literal["basic"]
    username: Any
    """The user name; a text or `{secret: NAME}`."""
    password: Any
    """The password, `{secret: NAME}`."""


class ApiKeyAuth(Spec):
    """A key in a header, or in the query where a server takes it nowhere else."""

    type: Literal["api_key"]
    name: str = Field(pattern=r"^[A-Za-z0-9_.-]+$")
    """Name of the header or of the query parameter."""
    value: Any
    """The key, `{secret: NAME}`."""
    in_: Literal["header", "query"] = Field(default="header", alias="in")
    """Where it is put."""


class OAuth2Auth(Spec):
    """A token that is fetched with the client's credentials, kept until it expires, and renewed."""

    type: Literal["oauth2"]
    token_url: str = Field(min_length=1)
    """Where tokens are given out; its host must be among the hosts of the action."""
    client_id: Any
    """The client; a text or `{secret: NAME}`."""
    client_secret: Any
    """Its secret, `{secret: NAME}`."""
    scopes: tuple[str, ...] = ()
    """What to ask for."""
    audience: str | None = None
    """For whom, where the server wants to know."""
    client_auth: Literal["basic", "body"] = "basic"
    """Whether client and secret go into a header or into the body."""


Auth = Annotated[
    BearerAuth | BasicAuth | ApiKeyAuth | OAuth2Auth,
    Field(discriminator="type"),
]


class Pagination(Spec):
    """Collecting the items of several pages."""

    by: Literal["cursor", "page", "offset", "link"]
    """How the next page is asked for: a value of the last one, counting, or the address that it names."""
    items: str
    """JMESPath over `status`, `headers` and `body` that gives the items of a page."""
    next: str | None = None
    """JMESPath that gives the cursor or address of the next page; for `link` it may be the `Link` header instead."""
    query: str = "cursor"
    """Query parameter that is set, not for `link`."""
    start: int = Field(default=1, ge=0)
    """Number of the first page, or the first offset."""
    max_pages: int = Field(default=10, ge=1, le=1_000)
    """Most pages that are fetched."""
    max_items: int = Field(default=1_000, ge=1, le=100_000)
    """Most items that are kept."""


class HttpRun(Spec):
    """One HTTP request, or one for each page."""

    kind: Literal["http"]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    """HTTP method."""
    url: str = Field(min_length=1, max_length=2_000)
    """Address; `{name}` in its path is a parameter, always one segment of the path."""
    query: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Parameters of the query; values or forms."""
    arrays: Literal["repeat", "comma", "brackets"] = "repeat"
    """How lists stand in the query: `a=1&a=2`, `a=1,2` or `a[]=1&a[]=2`."""
    headers: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Headers; values or forms."""
    body: Any = None
    """The body, a value or forms; left out, none."""
    body_type: Literal["json", "form", "text"] = "json"
    """How the body is written."""
    auth: Auth | None = None
    """How the action shows who it is."""
    success: str | None = None
    """JMESPath over `status`, `headers` and `body`; left out, a status from 200 to 299."""
    redirects: Literal["refuse", "same_origin"] = "refuse"
    """Whether a `GET` follows redirects within the same scheme, host and port."""
    paginate: Pagination | None = None
    """Collecting the items of several pages."""
    timeout: Seconds | None = Field(default=None, gt=0, le=3_600)
    """Time for one attempt; left out, that of the call."""
    max_bytes: int = Field(default=5_000_000, ge=1, le=100_000_000)
    """Largest answer, unpacked."""
