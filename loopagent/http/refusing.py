"""Answers to requests that are not let in: a problem, or for people a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.errors import RequestError
from loopagent.http.problems import problem_of, problem_response, store_problem


if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from loopagent.errors import LoopAgentError

UNAUTHORIZED = 401


class TooOftenError(RequestError):
    """A caller makes too many requests; `seconds` is how long to wait."""

    def __init__(self, text: str, seconds: int) -> None:
        super().__init__("too_many_requests", text, status=429, retryable=True)
        self.seconds = seconds


def refusal(request: Request, error: LoopAgentError) -> Response:
    """The answer to a request that is not let in."""
    problem = problem_of(error) if isinstance(error, RequestError) else store_problem(error)
    headers: dict[str, str] = {}
    if isinstance(error, TooOftenError):
        headers["Retry-After"] = str(error.seconds)
    if problem.status == UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    pages = getattr(request.app.state, "pages", None)
    if pages is None or not wants_page(request):
        return problem_response(problem, headers)
    name, context = "error.html", dict[str, Any](problem=problem.model_dump())
    if problem.code == "unauthorized":
        query = f"?{request.url.query}" if request.url.query else ""
        name, context = "signin.html", {"goes_to": f"{request.url.path}{query}", "error": ""}
    shown: Response = pages.page(request, name, context, status=problem.status, headers=headers)
    return shown


def wants_page(request: Request) -> bool:
    """Whether a request comes from somebody who looks at a page."""
    is_api = request.url.path.startswith("/api/")
    return not is_api and "text/html" in request.headers.get("accept", "")
