"""What types alone cannot say about an action file: whether its parts fit each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from loopagent.actions.checks_approval import check_approval
from loopagent.actions.checks_http import check_http
from loopagent.actions.checks_names import NO_PARAMS, check_names
from loopagent.actions.complaints import Complaints, did_you_mean
from loopagent.actions.format import (
    HTTP_KINDS,
    OPEN_KINDS,
    ActionFile,
    McpRun,
    OpenApiRun,
    PipelineRun,
    PromptRun,
)
from loopagent.actions.format_http import HttpRun
from loopagent.actions.values import form_problem, forms
from loopagent.core.action_spec import MAX_SCHEMA_LEVELS
from loopagent.core.json_values import compact_json
from loopagent.core.params import check_params
from loopagent.core.reshape import Expression, ReshapeError, Template
from loopagent.core.schema_check import schema_problem, schema_problems, too_deep
from loopagent.matching import pattern_problems


if TYPE_CHECKING:
    from loopagent.documents import Loc

INVALID_PARAMS: Final = "invalid_params"
"""Code of a call whose parameters do not satisfy the schema."""
_MAX_SHOWN: Final = 3


def check(action: ActionFile, complaints: Complaints) -> None:
    """Complain about everything that does not fit."""
    sound = _check_schemas(action, complaints)
    _check_expressions(action, complaints)
    _check_secrets(action, complaints)
    if sound:
        check_names(action, _named_in(action), complaints)
        _check_calls(action, complaints)
    _check_ui(action, complaints)
    if action.approval is not None:
        check_approval(action, action.approval, complaints)
    if isinstance(action.run, HttpRun):
        check_http(action, action.run, complaints)
    else:
        _check_not_http(action, complaints)
    if isinstance(action.run, McpRun) and action.run.sha256 is None:
        what = "is called whatever becomes of it; `sha256`, as import-mcp writes it, holds on to what was looked at"
        complaints.add(("run", "tool"), what, warning=True)
    if isinstance(action.run, PipelineRun):
        _check_steps(action.run, complaints)
    if action.retry.attempts > 1 and not action.repeatable:
        what = "only connections that fail are tried again, since a call is neither read-only nor idempotent"
        complaints.add(("retry", "attempts"), what, warning=True)


# --- schemas ---------------------------------------------------------------------------------------


def _check_schemas(action: ActionFile, complaints: Complaints) -> bool:
    """Whether all schemas can be used."""
    found: list[tuple[Loc, dict[str, Any] | None]] = [
        (("params",), action.params),
        (("result", "schema"), action.result.schema_),
    ]
    if isinstance(action.run, PromptRun):
        found.append((("run", "outputSchema"), action.run.output_schema))
    given = [(loc, one) for loc, one in found if one is not None]
    sound = [_check_schema(loc, one, complaints) for loc, one in given]  # all of them complain
    return all(sound)


def _check_schema(loc: Loc, schema: dict[str, Any], complaints: Complaints) -> bool:
    if too_deep(schema, MAX_SCHEMA_LEVELS):
        complaints.add(loc, f"is nested more than {MAX_SCHEMA_LEVELS} levels deep")
        return False
    wrong = schema_problem(schema)
    if wrong is not None:
        complaints.add(loc, f"is no valid JSON Schema: {wrong}")
    elif loc == ("params",) and schema.get("type") != "object":
        complaints.add(loc, "must say `type: object`")
    else:
        return True
    return False


# --- expressions -----------------------------------------------------------------------------------


def _expressions(action: ActionFile) -> Iterator[tuple[Loc, str | None]]:
    """Every JMESPath expression and where it stands, forms aside."""
    yield ("result", "select"), action.result.select
    if action.approval is not None:
        yield ("approval", "when"), action.approval.when
    for index, rule in enumerate(action.errors):
        yield ("errors", index, "when"), rule.when
    run = action.run
    if isinstance(run, HttpRun):
        yield ("run", "success"), run.success
        if run.paginate is not None:
            yield ("run", "paginate", "items"), run.paginate.items
            yield ("run", "paginate", "next"), run.paginate.next
    if isinstance(run, PipelineRun):
        for index, step in enumerate(run.steps):
            yield ("run", "steps", index, "when"), step.when
            yield ("run", "steps", index, "forEach"), step.for_each


def _templates(action: ActionFile) -> Iterator[tuple[Loc, str]]:
    """Every text that is filled in, and where it stands, forms aside."""
    for index, rule in enumerate(action.errors):
        yield ("errors", index, "message"), rule.message
    if action.result.summary is not None:
        yield ("result", "summary"), action.result.summary
    if action.idempotency is not None:
        yield ("idempotency", "key"), action.idempotency.key
    if isinstance(action.run, PromptRun):
        yield ("run", "template"), action.run.template


def values(action: ActionFile) -> Iterator[tuple[Loc, Any]]:
    """Every value that may hold forms, and where it stands."""
    run = action.run
    if isinstance(run, HttpRun):
        yield ("run", "body"), run.body
        for part, one in (("query", run.query), ("headers", run.headers)):
            yield from ((("run", part, key), value) for key, value in one.items())
    if isinstance(run, (HttpRun, OpenApiRun)) and run.auth is not None:
        for name, one in run.auth.model_dump(by_alias=True).items():
            yield ("run", "auth", name), one
    if isinstance(run, PipelineRun):
        for index, step in enumerate(run.steps):
            here: Loc = ("run", "steps", index, "with")
            yield from (((*here, key), value) for key, value in step.with_.items())
        yield ("run", "output"), run.output


def _check_expressions(action: ActionFile, complaints: Complaints) -> None:
    for loc, text in _expressions(action):
        _complain_if(loc, None if text is None else _problem(Expression, text), complaints)
    for loc, text in _templates(action):
        _complain_if(loc, _problem(Template, text), complaints)
    for loc, value in values(action):
        for form in forms(value, loc):
            _complain_if(form.loc, form_problem(form), complaints)


def _problem(kind: type[Expression | Template], text: str) -> str | None:
    try:
        kind(text)
    except ReshapeError as error:
        return str(error)
    return None


def _complain_if(loc: Loc, problem: str | None, complaints: Complaints) -> None:
    if problem is not None:
        complaints.add(loc, problem)


def _named_in(action: ActionFile) -> Iterator[tuple[Loc, str, bool]]:
    """Every expression and template with its place, and whether it is a template."""
    yield from ((loc, text, False) for loc, text in _expressions(action) if text is not None)
    yield from ((loc, text, True) for loc, text in _templates(action))
    for loc, value in values(action):
        for form in forms(value, loc):
            if form.kind in {"from", "template"} and isinstance(form.content, str):
                yield form.loc, form.content, form.kind == "template"


# --- secrets ---------------------------------------------------------------------------------------


def _check_secrets(action: ActionFile, complaints: Complaints) -> None:
    used: set[str] = set()
    for loc, value in values(action):
        for form in forms(value, loc):
            if form.kind != "secret" or not isinstance(form.content, str):
                continue
            used.add(form.content)
            if action.run.kind not in HTTP_KINDS:
                complaints.add(form.loc, "only `http` actions can use secrets")
            elif form.content not in action.secrets:
                what = f"{form.content!r} is not listed under `secrets`"
                complaints.add(form.loc, what + did_you_mean(form.content, action.secrets))
    for index, name in enumerate(action.secrets):
        if name not in used:
            complaints.add(("secrets", index), f"{name!r} is not used", warning=True)


# --- examples and tests ----------------------------------------------------------------------------


def _check_calls(action: ActionFile, complaints: Complaints) -> None:
    for index, example in enumerate(action.examples):
        _check_params(action, ("examples", index, "params"), example.params, complaints)
        if "result" in example.model_fields_set:
            _check_result(action, ("examples", index, "result"), example.result, complaints)
    names: set[str] = set()
    for index, test in enumerate(action.tests):
        here: Loc = ("tests", index)
        if test.name in names:
            complaints.add((*here, "name"), f"another test is named {test.name!r} too")
        names.add(test.name)
        given = test.expect.model_fields_set & {"result", "error"}
        if len(given) != 1:
            complaints.add((*here, "expect"), "must say either `result` or `error`")
        if (test.expect.error or "").lower() != INVALID_PARAMS:
            _check_params(action, (*here, "params"), test.params, complaints)
        if given == {"result"}:
            _check_expected(action, (*here, "expect", "result"), test.expect.result, complaints)


def _check_expected(action: ActionFile, loc: Loc, result: Any, complaints: Complaints) -> None:
    """An expected result, which may hold operators like `{$matches: …}`."""
    for place, what in pattern_problems(result):
        complaints.add((*loc, *place), what)
    if '"$' not in compact_json(result):
        _check_result(action, loc, result, complaints)


def _check_params(
    action: ActionFile, loc: Loc, params: dict[str, Any], complaints: Complaints
) -> None:
    if action.params is None and action.run.kind in OPEN_KINDS:
        return  # the function's own, which are not known here
    _, problems, _ = check_params(action.params or NO_PARAMS, params, "")
    for one in problems[:_MAX_SHOWN]:
        complaints.add(loc, f"{one.path.lstrip('.')}: {one.message}" if one.path else one.message)


def _check_result(action: ActionFile, loc: Loc, result: Any, complaints: Complaints) -> None:
    if action.result.schema_ is None:
        return
    for one in schema_problems(action.result.schema_, result, "result")[:_MAX_SHOWN]:
        complaints.add(loc, f"does not satisfy result.schema: {one}")


# --- the rest --------------------------------------------------------------------------------------


def _check_ui(action: ActionFile, complaints: Complaints) -> None:
    known: dict[str, Any] = (action.params or NO_PARAMS).get("properties") or {}
    if action.params is None and action.run.kind in OPEN_KINDS:
        return
    for key in action.ui:
        if not key.startswith("ui:") and key not in known:
            what = f"there is no parameter {key!r}{did_you_mean(key, known)}"
            complaints.add(("ui", key), what, warning=True)


def _check_not_http(action: ActionFile, complaints: Complaints) -> None:
    kind = action.run.kind
    if kind in HTTP_KINDS:
        return
    if action.errors:
        complaints.add(("errors",), f"is for kind http, not {kind}")
    if action.idempotency is not None and kind != "mcp":
        complaints.add(("idempotency",), f"is for kind http, not {kind}")


def _check_steps(run: PipelineRun, complaints: Complaints) -> None:
    seen: list[str] = []
    for index, step in enumerate(run.steps):
        here: Loc = ("run", "steps", index)
        if step.id in seen:
            complaints.add((*here, "id"), f"another step is named {step.id!r} too")
        texts = [(loc, text) for loc, text in _step_texts(index, step.when, step.for_each)]
        texts += [
            (form.loc, form.content)
            for key, value in step.with_.items()
            for form in forms(value, (*here, "with", key))
        ]
        _check_earlier(texts, seen, complaints)
        seen.append(step.id)
    output = [(form.loc, form.content) for form in forms(run.output, ("run", "output"))]
    _check_earlier(output, seen, complaints)


def _step_texts(index: int, when: str | None, each: str | None) -> list[tuple[Loc, Any]]:
    return [(("run", "steps", index, "when"), when), (("run", "steps", index, "forEach"), each)]


_NAMED_STEP: Final = re.compile(r"(?<![\w.\]])steps\.([A-Za-z_]\w*)")


def _check_earlier(texts: list[tuple[Loc, Any]], seen: list[str], complaints: Complaints) -> None:
    for loc, text in texts:
        for name in _NAMED_STEP.findall(text) if isinstance(text, str) else ():
            if name not in seen:
                what = f"there is no earlier step {name!r}{did_you_mean(name, seen)}"
                complaints.add(loc, what)
