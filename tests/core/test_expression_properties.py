from __future__ import annotations

import json
import operator
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from loopagent.core.expression import Failure, Value, parse
from tests.core.evaluating import outcome, value


WORDS = [
    *["payload", "item", "last", "$", "x", "null", "true", "False", "undefined", "and", "or", "not", "in", "NOT", "is"],
    *["(", ")", "[", "]", "[0]", "['a']", ".", "?.", ",", "?", ":", "??", "||", "&&", "!", "-", "+", "*", "/", "%"],
    *["==", "===", "!=", "!==", "<", "<=", ">", ">=", "1", "0", "2.5", "1e9", "'a'", '"b"', "'\\u00e9'", "0x"],
    *["size(", "has(", "default(", "contains(", "lower(", "int(", "string(", "abs(", ".size()", ".length"],
    *[".a", ".b", ".items", "{", "}", "{{", "}}", "=", ";", "`", "&", "|", "\\", "é", "\u200b", "9223372036854775807"],
    *[" ", "\n"],
]  # fmt: skip
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("ab") | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
scopes = st.fixed_dictionaries({"payload": json_values, "item": json_values, "last": json_values})


@given(
    st.text(max_size=200)
    | st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
    | st.lists(st.sampled_from(WORDS), max_size=40).map("".join),
    scopes,
)
@example("\ud800", {})
@example("'\ud800' + '\\u0041'", {})
def test_any_text_ends_in_a_value_or_a_failure(source: str, scope: dict[str, Any]) -> None:
    before = repr(scope)
    expression = parse(source)
    assert expression == parse(source)
    if isinstance(expression, Failure):
        assert 0 <= expression.position <= len(source)
        assert expression.message
        return
    first, second = expression.evaluate(scope), expression.evaluate(scope)
    assert first == second
    assert repr(scope) == before
    condition = expression.holds(scope)
    if isinstance(first, Value):
        json.dumps(first.value)
        assert condition is bool(first.value)
    else:
        assert 0 <= first.position <= len(source)
        assert condition is False or isinstance(condition, Failure)


@given(scopes, st.lists(st.sampled_from(["a", "b", 0, 1, -1]), max_size=4))
def test_paths_lead_where_python_would(scope: dict[str, Any], keys: list[str | int]) -> None:
    current: Any = scope["payload"]
    found = True
    for key in keys:
        try:
            wanted: Any = str(key) if isinstance(current, dict) else key
            current = current[wanted] if isinstance(current, dict | list) else current[None]
        except (KeyError, IndexError, TypeError):
            found = False
            break
    source = "payload" + "".join(f"[{key!r}]" for key in keys)
    expected = outcome(source, scope)
    assert isinstance(expected, Value) is found
    if keys:
        assert value(f"has({source})", scope) is found
    if isinstance(expected, Value):
        assert expected.value is current


# A second evaluator, over trees instead of text, with Python's own operators: both must agree.

Tree = tuple[Any, ...]
NUMBERS = st.integers(-50, 50) | st.sampled_from([2**53 + 1, -(2**62), 0.5, -2.25])
trees: st.SearchStrategy[Tree] = st.recursive(
    st.tuples(st.just("value"), NUMBERS | st.booleans() | st.none() | st.text("ab'\\\n é", max_size=3)),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=", "&&", "||"]), inner, inner),
        st.tuples(st.sampled_from(["!", "neg"]), inner),
        st.tuples(st.just("?"), inner, inner, inner),
        st.tuples(st.just("in"), inner, st.lists(inner, max_size=3).map(lambda members: ("list", *members))),
    ),
    max_leaves=12,
)  # fmt: skip
ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
MATH = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


class Wrong(Exception):
    """There is no value."""


def written(tree: Tree) -> str:
    sign, *parts = tree
    if sign == "value":
        return f"({json.dumps(parts[0])})"
    if sign == "list":
        return f"[{', '.join(map(written, parts))}]"
    texts = [written(part) for part in parts]
    if sign in {"!", "neg"}:
        return f"({'!' if sign == '!' else '-'}{texts[0]})"
    return (
        f"({texts[0]} ? {texts[1]} : {texts[2]})"
        if sign == "?"
        else f"({texts[0]} {sign} {texts[1]})"
    )


def is_number(one: Any) -> bool:
    return isinstance(one, int | float) and not isinstance(one, bool)


def equal(one: Any, other: Any) -> bool:
    return one == other and (is_number(one) == is_number(other))


def computed(tree: Tree) -> Any:
    sign, *parts = tree
    if sign == "value":
        return parts[0]
    if sign == "list":
        return [computed(part) for part in parts]
    first = computed(parts[0])
    if sign in {"&&", "||"}:
        return computed(parts[1]) if bool(first) == (sign == "&&") else first
    if sign == "?":
        return computed(parts[1] if first else parts[2])
    if sign == "!":
        return not first
    return arithmetic(sign, first, 0 if sign == "neg" else computed(parts[1]))


def arithmetic(sign: str, one: Any, other: Any) -> Any:
    if sign == "in":
        return any(equal(one, member) for member in other)
    if sign in {"==", "!="}:
        return equal(one, other) == (sign == "==")
    texts = isinstance(one, str) and isinstance(other, str)
    if not texts and not (is_number(one) and is_number(other)):
        raise Wrong
    if sign in ORDER:
        return ORDER[sign](one, other)
    if texts and sign != "+":
        raise Wrong
    if sign == "neg":
        return checked(-one)
    if sign == "/" and other == 0:
        raise Wrong
    if sign == "/" and isinstance(one, int) and isinstance(other, int) and one % other == 0:
        return checked(one // other)
    return checked(MATH[sign](one, other))


def checked(result: Any) -> Any:
    if isinstance(result, int) and abs(result) > 2**63:
        raise Wrong
    return result


@given(trees)
def test_the_evaluator_agrees_with_a_reference(tree: Tree) -> None:
    try:
        expected: Any = Value(computed(tree))
    except Wrong:
        expected = None
    result = outcome(written(tree))
    if expected is None:
        assert isinstance(result, Failure)
    else:
        assert isinstance(result, Value), result
        assert equal(result.value, expected.value)
        assert type(result.value) is type(expected.value)


@given(trees)
def test_brackets_that_precedence_makes_needless_change_nothing(tree: Tree) -> None:
    text = written(tree)
    assert outcome(f"(({text}))") == outcome(text) or isinstance(outcome(text), Failure)
