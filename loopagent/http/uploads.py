"""Files as people send them: `multipart/form-data`, read as a stream, kept on disk where they are large, let go after.

A form has the fields of the JSON body beside its files, so that everything behind it is the same for both. Nothing of a
form is stored before the whole of it was read and found good.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.exceptions import HTTPException

from loopagent.attachments import MAX_NAME_CHARS, UNPRINTABLE, Attachment
from loopagent.errors import RequestError
from loopagent.http.bodies import replaying


MULTIPART: Final = "multipart/form-data"
FILES: Final = "attachments"
"""Name of the parts that hold files; several parts may have it."""
MAX_FILES: Final = 1_000
MAX_FIELDS: Final = 100
MAX_FIELD_BYTES: Final = 4_000_000
"""Largest part that is no file."""
TEXTS: Final = frozenset(
    {"agent", "message", "model", "conversationId", "user", "tenant", "onBusy", "runId"}
)
"""Fields that are taken as they are; every other one is JSON."""
_SCOPE_KEY: Final = "loopagent.files"

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class UploadRoute(APIRoute):
    """A route that takes its JSON body also as a form with files."""

    def get_route_handler(self) -> Handler:
        """The route, behind the reading of forms; other kinds of bodies are refused."""
        plain = super().get_route_handler()

        async def handler(request: Request) -> Response:
            kind = media_type(request.headers)
            if kind == MULTIPART and self.body_field is not None:
                request = await _as_json(request)
            elif kind not in {"", MULTIPART} and not kind.endswith(("/json", "+json")):
                text = (
                    f"Send application/json, or {MULTIPART} with files; {kind} is not understood."
                )
                raise RequestError("unsupported_media_type", text, status=415)
            return await plain(request)

        return handler


def form(*required: str) -> dict[str, Any]:
    """What OpenAPI has to say of a body that is also taken as a form, with these texts in it."""
    files = {"type": "array", "items": {"type": "string", "format": "binary"}}
    texts = {name: {"type": "string", "minLength": 1} for name in required}
    told = "Files; the other fields are those of the JSON body."
    properties: dict[str, Any] = {**texts, FILES: {**files, "description": told}}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"requestBody": {"content": {MULTIPART: {"schema": schema}}}}


def media_type(headers: Headers) -> str:
    """The media type of a body, without its parameters."""
    kind, _ = parse_options_header(headers.get("content-type", ""))
    return kind.decode("latin-1").strip().lower()


def uploaded(request: Request) -> list[Attachment]:
    """The files that came with a form; none with JSON."""
    files: list[Attachment] = request.scope.get(_SCOPE_KEY, [])
    return files


def clean_name(name: str | None) -> str:
    """A file name without folders and control characters; some programs send where the file was."""
    last = re.split(r"[/\\]", name or "")[-1]
    kept = UNPRINTABLE.sub("", last).strip()
    if len(kept) > MAX_NAME_CHARS:
        stem, dot, ending = kept.rpartition(".")
        room = MAX_NAME_CHARS - len(dot + ending)
        kept = stem[:room] + dot + ending if stem and room > 0 else kept[:MAX_NAME_CHARS]
    return kept if kept.strip(". ") else "file"


async def _as_json(request: Request) -> Request:
    """The request as if its fields had come as JSON, with the files beside."""
    try:
        form = await request.form(
            max_files=MAX_FILES, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD_BYTES
        )
    except HTTPException as error:
        raise _refused(error) from error
    try:
        body, files = _fields(form), [await _file(one) for one in _uploads(form)]
    finally:
        await form.close()
    headers = [one for one in request.scope["headers"] if one[0] != b"content-type"]
    headers.append((b"content-type", b"application/json"))
    scope = {**request.scope, "headers": headers, _SCOPE_KEY: files}
    return Request(scope, replaying(json.dumps(body).encode(), request.receive))


def _refused(error: HTTPException) -> RequestError | HTTPException:
    """Why a form cannot be read; a body that is too large is so as before."""
    text = str(error.detail)
    if error.status_code != 400:  # noqa: PLR2004 - what the parser says of a bad form
        return error
    if text.startswith(("Too many", "Part exceeded")):
        return RequestError("too_large", text, status=413)
    return RequestError("invalid_form", f"The form cannot be read: {text}", status=400)


def _uploads(form: FormData) -> list[UploadFile]:
    wrong = sorted(
        {name for name, one in form.multi_items() if isinstance(one, UploadFile)} - {FILES}
    )
    if wrong:
        errors = [{"pointer": f"/{name}", "detail": f"send files as `{FILES}`"} for name in wrong]
        listed = ", ".join(wrong)
        text = f"Files go into parts named `{FILES}`, not {listed}."
        raise RequestError("invalid_attachments", text, errors=errors)
    return [one for one in form.getlist(FILES) if isinstance(one, UploadFile)]


async def _file(one: UploadFile) -> Attachment:
    kind = (one.content_type or "").partition(";")[0].strip().lower()
    generic = kind in {"", "application/octet-stream"}  # what programs send that do not know
    return Attachment(clean_name(one.filename), await one.read(), "" if generic else kind)


def _fields(form: FormData) -> dict[str, Any]:
    """The fields of a form as a JSON object."""
    body: dict[str, Any] = {}
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            continue
        if name in body:
            raise _bad_field(name, "comes twice")
        body[name] = value if name in TEXTS else _json(name, value)
    return body


def _json(name: str, value: str) -> Any:
    if name == FILES:
        raise _bad_field(name, "must be a file, not a text; with curl, write -F attachments=@FILE")
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise _bad_field(name, "must be JSON") from None


def _bad_field(name: str, detail: str) -> RequestError:
    errors = [{"pointer": f"/{name}", "detail": detail}]
    return RequestError("invalid_request", f"/{name}: {detail}", errors=errors)
