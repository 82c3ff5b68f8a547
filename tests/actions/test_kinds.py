"""Actions of the kinds `python`, `prompt` and `pipeline`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loopagent import Agent, App, action
from loopagent.action import Action, ActionContext
from loopagent.actions.build import make_action
from loopagent.actions.means import Means
from loopagent.errors import ActionError, ConfigError
from loopagent.testing import ScriptedModel
from tests.actions.making import HEAD, call, code, means, message, read


pytestmark = pytest.mark.anyio


def made(
    kind: str, rest: str, given: Means | None = None, effects: str = "read"
) -> Action[..., Any]:
    text = HEAD.format(name="it", effects=effects) + f"run:\n  kind: {kind}\n{rest.lstrip(chr(10))}"
    return make_action(read(text), given or means())


# --- python ----------------------------------------------------------------------------------------

MODULE = '''
from loopagent import ActionContext, ActionError

def area(width: float, height: float = 2.0) -> dict:
    """The area of something.

    Args:
        width: How wide it is.
    """
    if width < 0:
        raise ActionError("too narrow", code="narrow")
    return {"area": width * height}

async def key(context: ActionContext) -> str:
    return context.idempotency_key
'''


@pytest.fixture
def shapes(tmp_path: Path) -> Iterator[Means]:
    folder = tmp_path / "lowcode_shapes"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "flat.py").write_text(MODULE)
    sys.path.insert(0, str(tmp_path))
    yield means(allowed_modules=("lowcode_shapes",))
    sys.path.remove(str(tmp_path))
    for name in [one for one in sys.modules if one.startswith("lowcode_shapes")]:
        del sys.modules[name]


async def test_a_function_with_its_own_schema(shapes: Means) -> None:
    it = made(
        "python", '  callable: "lowcode_shapes.flat:area"\nresult: {select: result.area}\n', shapes
    )
    assert it.spec.parameters["properties"]["width"]["description"] == "How wide it is."
    assert it.spec.parameters["required"] == ["width"]
    assert (await call(it, {"width": 3})).value == 6.0
    assert code(await call(it, {"width": -1})) == "narrow"
    assert code(await call(it, {"width": "wide"})) == "bad_params"


async def test_an_async_function_gets_the_context(shapes: Means) -> None:
    it = made("python", '  callable: "lowcode_shapes.flat:key"\n', shapes)
    assert (await call(it)).value == "run-1/1:action.0/function"


@pytest.mark.parametrize(
    ("allowed", "target", "told"),
    [
        ((), "os:system", "the module os is not among allowedModules of the settings (none)"),
        (
            ("lowcode",),
            "lowcode_shapes.flat:area",
            "is not among allowedModules of the settings (lowcode)",
        ),
        (("os.path",), "os:system", "is not among"),
        (("lowcode_shapes",), "lowcode_shapes.flat:volume", "has no function 'volume'"),
        (
            ("lowcode_shapes",),
            "lowcode_shapes.round:area",
            "cannot be imported: ModuleNotFoundError",
        ),
    ],
)
def test_only_allowed_modules(
    shapes: Means, allowed: tuple[str, ...], target: str, told: str
) -> None:
    with pytest.raises(ConfigError) as error:
        made("python", f'  callable: "{target}"\n', means(allowed_modules=allowed))
    assert told in str(error.value)


# --- prompt ----------------------------------------------------------------------------------------

PROMPT = """
  template: "Rate: {{ params.text }}"
  outputSchema: {type: object, required: [stars], properties: {stars: {type: integer, minimum: 1}}}
params: {type: object, required: [text], properties: {text: {type: string}}}
result: {select: result.stars}
"""


CUT = {"raw": '{"stars": 5', "finishReason": "length"}


def asking(*replies: str | dict[str, Any]) -> tuple[ScriptedModel, Any]:
    model = ScriptedModel([{"raw": one} if isinstance(one, str) else one for one in replies])

    async def ask(request: Any, name: str | None) -> Any:
        return await model.generate(request)

    return model, ask


async def prompted(
    it: Action[..., Any], params: dict[str, Any], *replies: str | dict[str, Any]
) -> Any:
    model, ask = asking(*replies)
    context = ActionContext("run-1", "1:action.0", ask=ask)
    arguments = it.arguments(params, context)
    try:
        return await it.fn(**arguments), model
    finally:
        assert len(model.requests) <= 2


async def test_an_answer_is_held_to_its_schema() -> None:
    value, model = await prompted(
        made("prompt", PROMPT), {"text": "Nice {{ params.x }}"}, '```json\n{"stars": 4}\n```'
    )
    assert value == 4
    assert model.requests[0].messages[0].text == "Rate: Nice {{ params.x }}"
    assert '"minimum":1' in model.requests[0].system


async def test_a_wrong_answer_is_asked_again_with_the_complaint() -> None:
    value, model = await prompted(
        made("prompt", PROMPT), {"text": "x"}, '{"stars": 0}', '{"stars": 2}'
    )
    assert value == 2
    assert "stars" in model.requests[1].messages[-1].text


async def test_an_answer_that_stays_wrong_is_an_error() -> None:
    with pytest.raises(ActionError, match="no usable answer"):
        await prompted(made("prompt", PROMPT), {"text": "x"}, "I like it", '{"stars": "many"}')


async def test_an_answer_that_was_cut_off_does_not_count() -> None:
    """Neither a value whose last brace could be added, nor the first half of a text."""
    value, model = await prompted(made("prompt", PROMPT), {"text": "x"}, CUT, '{"stars": 2}')
    assert value == 2
    assert "cut off" in model.requests[1].messages[-1].text
    with pytest.raises(ActionError, match="cut off at the output limit"):
        await prompted(made("prompt", '  template: "Say hi."\n'), {}, CUT, CUT)


async def test_without_a_schema_the_answer_is_text() -> None:
    value, _ = await prompted(made("prompt", '  template: "Say hi."\n'), {}, "Hi.")
    assert value == "Hi."


async def test_without_a_model_it_says_so() -> None:
    assert code(await call(made("prompt", '  template: "Say hi."\n'))) == "no_model"


async def test_what_a_prompt_costs_counts_towards_the_run() -> None:
    step = {"type": "Actions", "actions": [{"name": "it", "params": {"text": "x"}}]}
    model = ScriptedModel(
        [
            {"taskComplete": False, "nextStep": step},
            {"raw": '{"stars": 5}', "usage": {"inputTokens": 1000, "outputTokens": 500}},
            {"taskComplete": True, "message": "Five."},
        ]
    )
    agent = Agent("rater", model=model, actions=[made("prompt", PROMPT)])
    async with App(agents=[agent]) as app:
        run = await app.start("rater", "Rate it.")
        run = await app.wait(run.id, timeout_seconds=30)
        events = [one async for one in app.events(run.id)]
    assert run.state.status == "completed"
    (asked,) = [one for one in events if one["type"] == "model.call"]
    assert asked["data"]["purpose"] == "action"
    assert asked["data"]["usage"]["inputTokens"] == 1000
    assert run.state.usage.public()["outputTokens"] == 500


# --- pipeline --------------------------------------------------------------------------------------

CALLS: list[Any] = []


@action(effects="read")
def find(city: str) -> list[dict[str, Any]]:
    """Find people of a city."""
    return [{"name": one, "city": city} for one in ("Ann", "Bob", "Cid")]


@action(effects="external")
def greet(name: str, context: ActionContext, loud: bool = False) -> str:
    """Greet a person."""
    CALLS.append((name, context.idempotency_key))
    if name == "Bob":
        raise ActionError("Bob is away", code="away")
    return f"Hello {name}{'!' if loud else ''}"


def pipe(steps: str, more: str = "") -> Action[..., Any]:
    given = means(actions={"find": find, "greet": greet})
    rest = f"""
  steps:
{steps}{more}
params: {{type: object, properties: {{city: {{type: string}}, loud: {{type: boolean}}}}}}
"""
    CALLS.clear()
    return made("pipeline", rest, given, "external")


FIND = "  - {id: people, action: find, with: {city: {from: params.city}}}\n"
GREET = "  - {id: all, action: greet, forEach: steps.people, with: {name: {from: item.name}, loud: {from: params.loud}}%s}\n"


async def test_steps_feed_each_other() -> None:
    it = pipe(
        FIND + GREET % ", when: \"item.name != 'Bob'\"",
        "  output: {n: {from: length(steps.people)}, said: {from: steps.all}}",
    )
    outcome = await call(it, {"city": "Porto", "loud": True})
    assert outcome.value == {"n": 3, "said": ["Hello Ann!", None, "Hello Cid!"]}
    assert sorted(CALLS) == [("Ann", "run-1/1:action.0/all.0"), ("Cid", "run-1/1:action.0/all.2")]


async def test_a_failed_step_ends_the_pipeline_and_names_itself() -> None:
    outcome = await call(pipe(FIND + GREET % ""), {"city": "Porto"})
    assert (code(outcome), message(outcome)) == ("away", "Step all.1 (greet): Bob is away")
    assert len(CALLS) == 3, "those under way come to their end"


async def test_a_failed_step_may_give_nothing() -> None:
    outcome = await call(pipe(FIND + GREET % ", onError: 'null'"), {"city": "Porto"})
    assert outcome.value == ["Hello Ann", None, "Hello Cid"]


@pytest.mark.parametrize(
    ("steps", "what", "told"),
    [
        ("  - {id: a, action: find, with: {}}\n", "invalid_params", "Step a (find): params.city"),
        (
            "  - {id: a, action: greet, forEach: params.city, with: {name: x}}\n",
            "invalid_request",
            "gives no list",
        ),
        ("  - {id: a, action: gone, with: {}}\n", "unknown_action", "there is no action 'gone'"),
        (
            "  - {id: a, action: find, with: {city: {from: 'sum(params.city)'}}}\n",
            "invalid_request",
            "cannot be applied",
        ),
    ],
)
async def test_steps_that_cannot_be_made(steps: str, what: str, told: str) -> None:
    outcome = await call(pipe(steps), {"city": "Porto"})
    assert code(outcome) == what
    assert told in message(outcome)


async def test_lists_are_bounded() -> None:
    outcome = await call(pipe(FIND + GREET % "", "  maxItems: 2"), {"city": "Porto"})
    assert "3 items, 2 are allowed" in message(outcome)


def test_a_server_that_the_operator_did_not_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no MCP server 'a'"):
        made("mcp", "  server: a\n  tool: b\n")


def test_an_action_is_found_by_its_words() -> None:
    assert json.dumps(made("prompt", '  template: "x"\n').spec.parameters) == (
        '{"type": "object", "properties": {}, "additionalProperties": false}'
    )
