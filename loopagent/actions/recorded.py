"""A call that was made as an example or a test of its file: what was answered stands in from then on."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from loopagent.actions.format import HTTP_KINDS, ActionFile
from loopagent.actions.format_http import HttpRun
from loopagent.actions.request import Request, make_request
from loopagent.actions.secrets import Revealed, SecretValue
from loopagent.actions.shaping import shape
from loopagent.core.json_values import is_object
from loopagent.errors import ActionError


TEST_SECRET: Final = "secret-{name}-of-the-test"  # noqa: S105 - it opens nothing
"""What every secret is while the tests of a file run."""
TEST_RUN: Final = "test"
TEST_STEP: Final = "1:action.0"
"""The run and the step of a call in a test, as expressions see them."""
MAX_CHARS: Final = 100_000
"""Longest answer that is kept in a file."""
_BINARY: Final = frozenset({"contentType", "bytes"})
_JSON: Final = re.compile(r"(?i).*[/+]json")


class NotKeptError(Exception):
    """A call cannot be kept as what was wished; the message says why."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A call as it was made, without secrets.

    `answers` are those of the server, in order, each `{status, headers, body}` as expressions see it; `error` is the
    code that the call failed with.
    """

    params: dict[str, Any]
    answers: list[dict[str, Any]]
    result: Any = None
    error: str | None = None


def outcome_of(file: ActionFile, scope: dict[str, Any]) -> tuple[Any, str | None]:
    """What an action as it is written now makes of an answer: the result, or the code of an error.

    Args:
        file: The action.
        scope: What `result.select` sees of the answer.
    """
    whole = scope.get("items", scope.get("body"))
    try:
        return shape(file, scope, whole), None
    except ActionError as error:
        return None, error.code


class TestSecrets:
    """Stands in for every secret of an action."""

    __test__ = False  # nothing that pytest should collect

    def __init__(self, hosts: tuple[str, ...]) -> None:
        self._hosts = hosts

    def get(self, name: str) -> SecretValue | None:
        """The secret of a name."""
        return SecretValue(name, TEST_SECRET.format(name=name), self._hosts)


def as_example(name: str, call: Recorded) -> dict[str, Any]:
    """An entry of `examples`.

    Args:
        name: What it shows.
        call: The call.

    Raises:
        NotKeptError: It failed.
    """
    if call.error is not None:
        raise NotKeptError("The call failed, so there is no result to show; keep it as a test.")
    _check_size(call.result, "result")
    made: dict[str, Any] = {"name": name, "params": call.params}
    return made if call.result is None else {**made, "result": call.result}


def as_test(name: str, call: Recorded, file: ActionFile, sent: ActionFile) -> dict[str, Any]:
    """An entry of `tests`, with what was answered as its mock.

    Args:
        name: What it shows.
        call: The call.
        file: The action as it is written.
        sent: The same with the request that is sent, which for kind `openapi` comes from a document.

    Raises:
        NotKeptError: Nothing can stand in for what was answered.
    """
    if file.run.kind not in HTTP_KINDS or not isinstance(sent.run, HttpRun):
        text = f"Nothing can stand in for an action of kind {file.run.kind}; keep it as an example."
        raise NotKeptError(text)
    if not call.answers:
        raise NotKeptError("Nothing was answered, so nothing can stand in for the answer.")
    wanted = _names(sent)
    request = _request(sent, sent.run, call.params)
    mocks = [{"request": request, "response": _response(call.answers[0], wanted)}]
    for one in call.answers[1:]:
        again = {key: request[key] for key in ("method", "path")}
        mocks.append({"request": again, "response": _response(one, wanted)})
    expect = {"error": call.error} if call.error is not None else {"result": call.result}
    return {"name": name, "params": call.params, "mock": mocks, "expect": expect}


def _request(sent: ActionFile, run: HttpRun, params: dict[str, Any]) -> dict[str, Any]:
    """What the test expects to come: the request as the test itself will make it."""
    secrets = Revealed(TestSecrets(sent.egress.hosts))
    scope = {
        "params": params,
        "run": {"id": TEST_RUN},
        "step": {"id": TEST_STEP},
        "call": {"key": f"{TEST_RUN}/{TEST_STEP}"},
    }
    try:
        made = make_request(sent, run, scope, secrets)
    except ActionError as error:
        raise NotKeptError(str(error)) from error
    target = urlsplit(made.url)
    wanted: dict[str, Any] = {"method": made.method, "path": target.path}
    query = parse_qs(target.query, keep_blank_values=True)
    if query:
        wanted["query"] = {key: one[0] if len(one) == 1 else one for key, one in query.items()}
    return wanted | _body(made)


def _body(made: Request) -> dict[str, Any]:
    if not made.content:
        return {}
    text = made.content.decode("utf-8", "replace")
    try:
        return {"json": json.loads(text)}
    except (ValueError, RecursionError):
        return {"text": text}


def _names(sent: ActionFile) -> str:
    """The expressions of a file, to see which headers of an answer they may look at; pages may go by `link`."""
    kept = {"result", "errors"}
    looks = sent.model_dump(mode="json", by_alias=True, include=kept)
    run = sent.run.model_dump(mode="json", by_alias=True, include={"success", "paginate"})
    return json.dumps([looks, run]).lower()


def _response(answer: dict[str, Any], wanted: str) -> dict[str, Any]:
    """What the stand-in answers: status, body, and the headers that count."""
    body, headers = answer["body"], dict(answer.get("headers") or {})
    if is_object(body) and body.keys() == _BINARY:
        raise NotKeptError("The answer is no text, so it cannot be kept in a file.")
    _check_size(body, "answer")
    made: dict[str, Any] = {"status": answer["status"]}
    if isinstance(body, str):
        made["text"] = body
    elif body is not None:
        made["json"] = body
    kept = {key: one for key, one in headers.items() if key in wanted}
    kind = headers.get("content-type", "").partition(";")[0].strip()
    if isinstance(body, str) and kind and not _JSON.fullmatch(kind):
        kept["content-type"] = kind
    return {**made, "headers": kept} if kept else made


def _check_size(value: Any, what: str) -> None:
    if len(json.dumps(value, ensure_ascii=False)) > MAX_CHARS:
        raise NotKeptError(f"The {what} has more than {MAX_CHARS} characters, too many for a file.")
