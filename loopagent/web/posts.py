"""What a page's form sent: read with limits, and only when it comes from a page of this server."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request

from loopagent.errors import RequestError


MAX_FIELDS = 2_000
MAX_PART_BYTES = 20_000_000
MAX_MANY_FIELDS = 10_000
Fields = Mapping[str, list[str]]


async def fields_of(request: Request) -> Fields:
    """The fields of a posted form, each with all its values.

    Raises:
        RequestError: `cross_site` (403) when another site sent it, `bad_form` (400).
    """
    check_origin(request)
    body = await request.body()
    try:
        pairs = parse_qsl(
            body.decode("utf-8"),
            keep_blank_values=True,
            max_num_fields=MAX_FIELDS,
            strict_parsing=bool(body),
        )
    except ValueError as error:
        raise RequestError("bad_form", f"The form cannot be read: {error}.", status=400) from error
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return found


async def form_of(request: Request) -> Fields:
    """The fields of a posted form that may be long or have files; a file is a field with its text.

    Raises:
        RequestError: `cross_site` (403) when another site sent it, `bad_form` (400).
    """
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        return await fields_of(request)
    check_origin(request)
    form = await request.form(max_files=1, max_fields=MAX_MANY_FIELDS, max_part_size=MAX_PART_BYTES)
    found: dict[str, list[str]] = {}
    for name, value in form.multi_items():
        text = value if isinstance(value, str) else _text(await value.read())
        found.setdefault(name, []).append(text.replace("\r\n", "\n"))
    return found


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RequestError("bad_form", "The file is no text in UTF-8.", status=400) from error


def check_origin(request: Request) -> None:
    """Refuse what another site's page sends with this browser's session.

    Browsers say where a request comes from in `Sec-Fetch-Site`; older ones at least in `Origin`.

    Raises:
        RequestError: `cross_site` (403).
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site is not None:
        fine = site in {"same-origin", "none"}
    else:
        fine = origin is None or urlsplit(origin).netloc == request.headers.get("host")
    if not fine:
        text = "This was sent by a page of another site; open it here and send it again."
        raise RequestError("cross_site", text, status=403)


def one(fields: Fields, name: str) -> str:
    """The only value of a field, empty when it was not sent."""
    return fields.get(name, [""])[-1]
