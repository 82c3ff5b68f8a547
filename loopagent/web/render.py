"""Pages as answers: templates, the content security policy of each, and files that never change under one address."""

from __future__ import annotations

import hashlib
import json
import mimetypes
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from secrets import token_urlsafe
from typing import Any, cast

from jinja2 import Environment, PackageLoader, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from loopagent.callers import CALLER, SESSION
from loopagent.core.tokens import estimate_tokens
from loopagent.errors import RequestError
from loopagent.keys import RESERVED
from loopagent.oidc.spec import OidcProvider
from loopagent.web.markdown import Reading
from loopagent.web.markdown import render as read


STATIC = "/static"
SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types htmx"
)
MINUTE, HOUR, DAY = 60, 3_600, 86_400
KILO = 1_000
MAX_FOUND = 1_000
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
"""Control characters but for line ends and tabs, and what turns the direction of text or has no width."""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Static:
    """The files of the pages, under addresses that carry a hash of their content."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._addresses: dict[str, str] = {}
        folder = files("loopagent.web").joinpath("static")
        for name in ("app.css", "app.js", "icon.svg"):
            self._add(name, folder.joinpath(name).read_bytes())
        for name in ("htmx.min.js", "hx-csp.min.js"):
            self._add(f"vendor/{name}", folder.joinpath("vendor", name).read_bytes())

    def _add(self, name: str, content: bytes) -> None:
        key = f"{hashlib.sha256(content).hexdigest()[:16]}/{name}"
        self._files[key] = content
        self._addresses[name] = f"{STATIC}/{key}"

    def address(self, name: str) -> str:
        """Where a page finds a file."""
        return self._addresses[name]

    def answer(self, key: str) -> Response:
        """The file.

        Raises:
            RequestError: `unknown_file` (404).
        """
        content = self._files.get(key)
        if content is None:
            raise RequestError("unknown_file", "There is no such file.", status=404)
        kind = mimetypes.guess_type(key)[0] or "application/octet-stream"
        lasting = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(content, media_type=kind, headers={**SECURITY, **lasting})


class Pages:
    """Fills templates.

    Args:
        clock: Seconds since the epoch.
        providers: Where people may sign in.
    """

    def __init__(self, clock: Callable[[], float], providers: Sequence[OidcProvider] = ()) -> None:
        self.static = Static()
        self._environment = Environment(
            loader=PackageLoader("loopagent.web"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )

        def since(at: float) -> str:
            return ago(at, clock())

        filters = cast("dict[str, Any]", self._environment.filters)
        filters.update(FILTERS, ago=since)
        known = cast("dict[str, Any]", self._environment.globals)
        known.update(static=self.static.address, providers=providers)

    def page(
        self,
        request: Request,
        name: str,
        context: Mapping[str, Any],
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> HTMLResponse:
        """A page, or a part of one; `nonce` is known to the template."""
        nonce = token_urlsafe(16)
        template = self._environment.get_template(name)
        body = template.render(
            nonce=nonce,
            reading=Reading(),
            request_path=request.url.path,
            signed_in=bool(request.scope.get(SESSION)),
            caller=request.scope.get(CALLER),
            **context,
        )
        policy = {"Content-Security-Policy": POLICY.format(nonce=nonce)}
        return HTMLResponse(body, status, headers={**SECURITY, **policy, **(headers or {})})


@pass_context
def markdown(context: Context, text: str) -> Markup:
    """A text read as Markdown, as far as the page may read more."""
    return read(text, context.get("reading"))


def ago(at: float, now: float) -> str:
    """How long ago a moment is, or how far ahead, in words; seconds since the epoch."""
    seconds = now - at
    size = abs(seconds)
    if size < MINUTE:
        text = f"{int(size)} s"
    elif size < HOUR:
        text = f"{int(size / MINUTE)} min"
    elif size < DAY:
        text = f"{int(size / HOUR)} h {int(size % HOUR / MINUTE)} min"
    else:
        text = f"{int(size / DAY)} d"
    return f"in {text}" if seconds < 0 else f"{text} ago"


def iso(at: float) -> str:
    """A moment as ISO 8601 in UTC, for machines; the page's script shows it in the reader's zone."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def duration(seconds: float) -> str:
    """A length of time in words."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), MINUTE)
    return (
        f"{minutes} min {rest} s" if minutes < MINUTE else f"{minutes // 60} h {minutes % 60} min"
    )


def pretty(value: Any) -> str:
    """A JSON value as indented text."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def visible(text: str) -> Markup:
    """A text with the characters in it that nobody sees, or that turn others around, named in their place."""
    return Markup(_UNSEEN.sub(_named, str(escape(text))))  # noqa: S704 - escaped


def _named(found: re.Match[str]) -> str:
    return f'<span class="odd">U+{ord(found[0]):04X}</span>'


def found(text: str, wanted: str) -> Markup:
    """A text with what was looked for in it marked, whatever the case of letters, up to `MAX_FOUND` times."""
    looked_for = f"({re.escape(wanted)})"
    how: Any = {"maxsplit": MAX_FOUND, "flags": re.IGNORECASE}
    parts = re.split(looked_for, text, **how) if wanted else [text]
    made = (
        Markup("<mark>{}</mark>").format(visible(one)) if at % 2 else visible(one)
        for at, one in enumerate(parts)
    )
    return Markup("").join(made)


def amount(size: int, media_type: str | None = "") -> str:
    """How large something is, in words; `size` is in bytes where it has a type, else in characters."""
    number, unit = float(size), ""
    for name in ("k", "M", "G"):
        if number < KILO:
            break
        number, unit = number / KILO, name
    figure = f"{number:.3g}" if unit else str(size)
    return f"{figure} {unit}B" if media_type else f"{figure}{unit and ' '}{unit} characters"


def person(by: str) -> str:
    """How people read who did something: of somebody from a provider the name first, then the account."""
    name = by.removeprefix("human:")
    if not name.startswith(RESERVED):
        return name
    account, _, called = name.removeprefix(RESERVED).partition(" ")
    return f"{called} ({account})" if called else account


def called(by: str) -> str:
    """What people call who did something; the account where that has no name."""
    return person(by).partition(" (")[0]


def coded(text: str) -> Markup:
    """A line of help: what stands between backticks is code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(one) if at % 2 else escape(one)
        for at, one in enumerate(parts)
    )


def tidy(text: str) -> str:
    """A text that is JSON, indented; any other as it is."""
    try:
        return pretty(json.loads(text))
    except (ValueError, RecursionError):
        return text


def spelled(name: str) -> str:
    """A name of the wire in words: `maxTurns` is "Max turns"."""
    return _HUMP.sub(" ", name).capitalize().replace(" usd", " in USD")


FILTERS: dict[str, Any] = {
    "spelled": spelled,
    "visible": visible,
    "amount": amount,
    "found": found,
    "coded": coded,
    "markdown": markdown,
    "tidy": tidy,
    "iso": iso,
    "duration": duration,
    "pretty": pretty,
    "person": person,
    "called": called,
    "tokens": estimate_tokens,
}
