"""Errors as problem details (RFC 9457): always the same shape, whatever went wrong."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from loopagent.errors import RequestError, StoreError
from loopagent.http.models import FieldError, Problem
from loopagent.logs import log


MEDIA_TYPE = "application/problem+json"
CODES = {
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
}


UNAUTHORIZED = 401
OF_CALLERS = (403, 429)
"""Where callers are asked who they are, they may also lack a scope, or call too often."""


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI entries of the errors that a route answers with."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": schema}},
        }
        for status in sorted({*statuses, *(OF_CALLERS if UNAUTHORIZED in statuses else ())})
    }


def problem_response(problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    """A problem as a response."""
    return JSONResponse(
        problem.model_dump(exclude_none=True),
        problem.status,
        headers=headers,
        media_type=MEDIA_TYPE,
    )


def problem_of(error: RequestError) -> Problem:
    """A caller's error as a problem."""
    errors = [FieldError(pointer=one["pointer"], detail=one["detail"]) for one in error.errors]
    return Problem(
        title=HTTPStatus(error.status).phrase,
        status=error.status,
        detail=str(error),
        code=error.code,
        errors=errors,
        retryable=error.retryable,
        current=error.kept,
    )


def install(api: FastAPI) -> None:
    """Make every error of the API a problem."""
    api.add_exception_handler(RequestError, _request_error)
    api.add_exception_handler(RequestValidationError, _invalid)
    api.add_exception_handler(HTTPException, _http)
    api.add_exception_handler(StoreError, _store)
    api.add_exception_handler(Exception, _bug)


async def _request_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestError)  # registered for this class only
    return problem_response(problem_of(error))


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # registered for this class only
    found = [_field_error(one) for one in error.errors()]
    texts = (f"{one.pointer}: {one.detail}" if one.pointer else one.detail for one in found)
    detail = "; ".join(texts) or "The request is not valid."
    problem = Problem(
        title=HTTPStatus(422).phrase,
        status=422,
        detail=detail[:2_000],
        code="invalid_request",
        errors=found,
    )
    return problem_response(problem)


async def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # registered for this class only
    status = error.status_code
    problem = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=str(error.detail),
        code=CODES.get(status, "http_error"),
    )
    return problem_response(problem, dict(error.headers or {}))


async def _store(_: Request, error: Exception) -> JSONResponse:
    return problem_response(store_problem(error))


def store_problem(error: Exception) -> Problem:
    """A failure of the store as a problem; it is logged."""
    log.error("store.failed", error)
    return Problem(
        title="Service Unavailable",
        status=503,
        detail=f"The store failed, nothing was changed: {error}",
        code="store",
        retryable=True,
    )


async def _bug(request: Request, error: Exception) -> JSONResponse:
    log.error("request.failed", error, method=request.method, path=request.url.path)
    problem = Problem(
        title="Internal Server Error",
        status=500,
        detail="This is a bug of the server.",
        code="internal",
    )
    return problem_response(problem)


def _field_error(error: dict[str, Any]) -> FieldError:
    """One complaint about a request, with its place; a body that cannot be read has none."""
    loc = error["loc"]
    if error["type"] == "json_invalid":
        reason = (error.get("ctx") or {}).get("error", "it cannot be read")
        where = loc[-1] if len(loc) > 1 else 0
        return FieldError(pointer="", detail=f"the body is not JSON: {reason} (at byte {where})")
    if tuple(loc) == ("body",):
        text = "the body must be a JSON object, sent with content-type: application/json"
        return FieldError(pointer="", detail=text)
    return FieldError(pointer=_pointer(loc), detail=str(error["msg"]))


def _pointer(loc: tuple[int | str, ...] | list[int | str]) -> str:
    parts = list(loc)
    if parts and parts[0] in {"body", "query", "path", "header"}:
        where = parts.pop(0)
        prefix = "" if where == "body" else f"/{where}"
    else:
        prefix = ""
    return prefix + "".join("/" + str(one).replace("~", "~0").replace("/", "~1") for one in parts)
