"""The test panel of an action: its parameters as a form, what was sent and answered, and what becomes of that.

Nothing is kept on the server: the last call, without its secrets, goes along in the page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from loopagent.actions.format import HTTP_KINDS
from loopagent.actions.recorded import NotKeptError, Recorded, as_example, as_test, outcome_of
from loopagent.core.json_values import is_object
from loopagent.core.reshape import Expression, ReshapeError
from loopagent.errors import RequestError
from loopagent.web.drafts import rewritten_text, said
from loopagent.web.params_form import params_form
from loopagent.web.posts import Fields, one
from loopagent.web.questions import Question, questions_of


if TYPE_CHECKING:
    from loopagent.actions.build import FileAction
    from loopagent.actions.complaints import Complaint
    from loopagent.actions.format import ActionFile
    from loopagent.library.service import Library
    from loopagent.library.trying import Tried
    from loopagent.library_port import Built
    from loopagent.trials.action_tests import ActionTestResult

MAX_CARRIED_CHARS: Final = 1_500_000
"""Longest call that goes along in the page."""
MAX_SHOWN_CHARS: Final = 100_000
"""Longest value that is shown."""


class Call(BaseModel):
    """A call as the page carries it."""

    params: dict[str, Any]
    sent: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    scope: Any = None
    result: Any = None
    error: dict[str, Any] | None = None
    milliseconds: float = 0.0
    size: int = 0
    cut: bool = False
    """Whether it is too long to go along, so that nothing more can be made of it."""

    @property
    def recorded(self) -> Recorded:
        """The same as it is kept in a file."""
        code = None if self.error is None else str(self.error.get("code"))
        return Recorded(self.params, self.answers, self.result, code)


@dataclass(slots=True)
class Panel:
    """What the page shows.

    `errors` are what is wrong with what was filled in, by parameter; the empty one is about all of them.
    """

    built: Built
    action: FileAction | None
    complaints: Sequence[Complaint]
    sent: Fields
    schema: dict[str, Any] = field(default_factory=dict[str, Any])
    form: dict[str, Any] = field(default_factory=dict[str, Any])
    errors: dict[str, str] = field(default_factory=dict[str, str])
    request: dict[str, Any] | None = None
    confirms: str = ""
    """Digest of the call that is to be confirmed; empty when none is."""
    call: Call | None = None
    error: str = ""
    notice: str = ""
    tests: Sequence[ActionTestResult] = ()

    @property
    def file(self) -> ActionFile | None:
        """What the draft says; None when it cannot be used."""
        return None if self.action is None else self.action.file

    @property
    def questions(self) -> list[Question]:
        """The form as it is drawn."""
        filled = any(name.startswith("q.") for name in self.sent)
        return questions_of(self.form, self.sent if filled else None, self.errors)

    @property
    def expression(self) -> str:
        """What is in the playground: what was typed, or what the draft selects."""
        if "expression" in self.sent:
            return one(self.sent, "expression")
        return (self.file.result.select or "") if self.file else ""

    @property
    def testable(self) -> bool:
        """Whether a call can be kept as a test."""
        return self.file is not None and self.file.run.kind in HTTP_KINDS

    def typed(self, name: str) -> str:
        """What was typed into a field."""
        return one(self.sent, name)

    @property
    def typed_whole(self) -> bool:
        """Whether the parameters were typed as JSON."""
        return one(self.sent, "as_json") == "yes"

    def result_of(self, name: str) -> ActionTestResult | None:
        """How a test ended; None when it was not run."""
        return next((each for each in self.tests if each.test == name), None)

    def carrying(self) -> str:
        """The call, for the page to send back."""
        return "" if self.call is None else self.call.model_dump_json()


async def panel_of(library: Library, tenant: str, name: str, sent: Fields) -> Panel:
    """The panel of a draft.

    Args:
        library: Where it is.
        tenant: Whose it is.
        name: Its name.
        sent: The fields of the page; empty when it is looked at first.

    Raises:
        RequestError: `unknown_action` (404).
    """
    built = await library.get(tenant, name)
    checked = await library.check(tenant, built.draft, name=name, files=built.files)
    panel = Panel(built, checked.action, checked.complaints, sent, call=carried(sent))
    if panel.action is not None and panel.file is not None:
        panel.schema = panel.action.spec.parameters
        given = _given(panel.file, one(sent, "example"))
        panel.form = params_form(panel.schema, panel.file.ui, given)
    return panel


def _given(file: ActionFile, named: str) -> Mapping[str, Any]:
    """What the form is filled in with: the example that was chosen, or the first."""
    known: dict[str, Mapping[str, Any]] = {each.name: each.params for each in reversed(file.tests)}
    known |= {each.name: each.params for each in reversed(file.examples)}
    first: Mapping[str, Any] = file.examples[0].params if file.examples else {}
    return known.get(named, first)


def carried(sent: Fields) -> Call | None:
    """The last call, as the page sent it back; None without one.

    Raises:
        RequestError: `bad_form` (400): it is none.
    """
    text = one(sent, "recorded")
    try:
        return Call.model_validate_json(text) if text else None
    except ValidationError as error:
        message = "The call that came with the page cannot be read; send it again."
        raise RequestError("bad_form", message, status=400) from error


async def send(
    library: Library, tenant: str, panel: Panel, params: dict[str, Any], by: str
) -> Call:
    """Call the draft for real, once.

    Args:
        library: Carries it out.
        tenant: Whose it is.
        panel: Has the draft.
        params: Parameters that satisfy its schema.
        by: Who does.
    """
    started = perf_counter()
    built = panel.built
    tried = await library.try_out(tenant, built.draft, params, by=by, files=built.files)
    return _call(tried, params, (perf_counter() - started) * 1_000)


def _call(tried: Tried, params: dict[str, Any], milliseconds: float) -> Call:
    outcome = tried.outcome
    answers = [one["response"] for one in tried.exchanges]
    scope = tried.scope
    if scope is None and outcome.error is None:
        scope = {"result": outcome.value, "params": params}
    if scope is None and answers:
        scope = {**answers[-1], "params": params}
    made = Call(
        params=params,
        sent=[one["request"] for one in tried.exchanges],
        answers=answers,
        scope=scope,
        result=outcome.value,
        error=None if outcome.error is None else outcome.error.public(),
        milliseconds=milliseconds,
        size=_size(answers[-1]["body"] if answers else outcome.value),
    )
    if len(made.model_dump_json()) > MAX_CARRIED_CHARS:
        made = made.model_copy(update={"scope": None, "cut": True, "sent": [], "answers": []})
    return made


def _size(value: Any) -> int:
    """Bytes of a body; of JSON, as short as it can be written."""
    if value is None:
        return 0
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(text.encode("utf-8", "replace"))


def selected(expression: str, call: Call | None) -> dict[str, Any]:
    """What an expression finds in the last call, as `{value}` or `{problem}`; nothing without either."""
    if call is None or call.scope is None or not expression.strip():
        return {}
    try:
        value = Expression(expression).of(call.scope)
    except ReshapeError as error:
        return {"problem": str(error)}
    text = json.dumps(value, indent=2, ensure_ascii=False)
    cut = len(text) > MAX_SHOWN_CHARS
    return {"value": text[:MAX_SHOWN_CHARS] + ("\n…" if cut else ""), "nothing": value is None}


def with_select(text: str, expression: str) -> str:
    """A draft that selects this of its answers.

    Raises:
        RequestError: `bad_expression`, or `bad_yaml`: the text cannot be changed.
    """
    value = said(text)
    if expression.strip():
        try:
            Expression(expression)
        except ReshapeError as error:
            raise RequestError("bad_expression", f"{error}.") from error
        value["result"] = {**(value.get("result") or {}), "select": expression.strip()}
    else:
        value.get("result", {}).pop("select", None)
        if not value.get("result"):
            value.pop("result", None)
    return rewritten_text(text, value)


def with_call(panel: Panel, name: str, kind: str) -> str:
    """A draft with the last call as one of its examples or tests.

    Args:
        panel: Has the draft and the call.
        name: What it shows.
        kind: `examples` or `tests`.

    Raises:
        RequestError: `no_call`, `no_name`, `taken`, or `cannot_keep`: why it cannot be kept.
    """
    call, action = panel.call, panel.action
    if call is None or action is None or call.cut:
        raise RequestError("no_call", "There is no call to save; send one first.")
    name = name.strip()
    if not name:
        raise RequestError("no_name", "Say in a few words what it shows.")
    value = said(panel.built.draft)
    entries: list[Any] = value.get(kind) or []
    if any(is_object(each) and each.get("name") == name for each in entries):
        raise RequestError("taken", f"There is one of the name {name!r}; choose another.")
    value[kind] = [*entries, _entry(action, call, name, kind)]
    return rewritten_text(panel.built.draft, value)


def _entry(action: FileAction, call: Call, name: str, kind: str) -> dict[str, Any]:
    recorded = call.recorded
    if call.answers and call.scope is not None and _fine(call):
        # What the draft makes of the answer now, which may not be what it made when the call was sent.
        result, error = outcome_of(action.file, call.scope)
        recorded = Recorded(call.params, call.answers, result, error)
    try:
        if kind == "examples":
            return as_example(name, recorded)
        return as_test(name, recorded, action.file, action.sent)
    except NotKeptError as error:
        raise RequestError("cannot_keep", str(error)) from error


def _fine(call: Call) -> bool:
    """Whether the server's answer was taken; what was made of it may have failed."""
    return call.error is None or call.error.get("code") == "bad_answer"
