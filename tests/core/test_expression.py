from __future__ import annotations

from typing import Any

import pytest

from loopagent.core.expression import Failure, parse
from tests.core.evaluating import SCOPE, failure, outcome, read, value


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("payload.status != 'done' && size(payload.items) < 50 && payload.count + 1 <= 5", True),
        ("payload.users[0].name", "Ann"),
        ("payload['users'][-1]['name']", "Bob"),
        ("payload.users[payload.count - 1].name", "Bob"),
        ("payload.keys['odd key']", 1),
        ("payload.keys[item.id]", "seven"),
        ("payload.keys[7]", "seven"),
        ("payload.items.length", 3),
        ("payload.status.length == 4", True),
        ("payload . users [ 0 ] . name", "Ann"),
        ("[10, 20][1]", 20),
        ("'abc'.size()", 3),
        ("$[1]", 20),
        ("größe * 2", 6),
        ("payload.null", None),
        ("  1  ", 1),
        ("(1)", 1),
        ("[]", []),
        ("[1, 'a', [true],]", [1, "a", [True]]),
        ('\'it\\\'s\' + " \\"q\\" \\u00e9\\x41\\n"', 'it\'s "q" éA\n'),
        ("'\\ud83d\\ude00'", "😀"),
        ("0x1F", 31),
        ("1.5e3", 1500.0),
        ("007", 7),
    ],
)
def test_values_paths_and_literals(source: str, expected: Any) -> None:
    assert value(source) == expected
    assert type(value(source)) is type(expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("7 / 2", 3.5),
        ("6 / 2", 3),
        ("-7 / 2", -3.5),
        ("1 / 4.0", 0.25),
        ("int(7 / 2)", 3),
        ("7 % 3", 1),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("-payload.count", -2),
        ("- -1", 1),
        ("1 - -1", 2),
        ("0.5 + 1", 1.5),
        ("'a' + 'b'", "ab"),
        ("[1] + [2]", [1, 2]),
        ("1 < 2", True),
        ("2 <= 2.0", True),
        ("'a' < 'b'", True),
        ("3 > 4 || 3 >= 3", True),
        ("true ? 1 : 2", 1),
        ("false ? 1 : true ? 2 : 3", 2),
        ("1 == 1 ? 'y' : 'n'", "y"),
        ("payload.count == 2 && payload.status == 'open'", True),
        ("1 == 2 || 2 == 2 && 3 == 4", False),
        ("!true || true", True),
        ("!(1 == 2)", True),
        ("2 in payload.items", True),
        ("5 in payload.items", False),
        ("'status' in payload", True),
        ("'pe' in payload.status", True),
        ("7 in [1, 7.0]", True),
        ("payload in []", False),
        ("payload.nope ?? 4", 4),
        ("payload.null ?? 4", 4),
        ("payload.count ?? 4", 2),
        ("payload.nope || 'none'", "none"),
        ("payload.count && 'some'", "some"),
    ],
)
def test_operators(source: str, expected: Any) -> None:
    assert value(source) == expected
    assert type(value(source)) is type(expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("size('äöü')", 3),
        ("size(payload.keys)", 2),
        ("size([])", 0),
        ("payload.items.size()", 3),
        ("contains(payload.items, 3)", True),
        ("payload.status.contains('pen')", True),
        ("payload.status.startsWith('op')", True),
        ("endsWith(payload.status, 'x')", False),
        ("lower('ÄB')", "äb"),
        ("'ab'.upper()", "AB"),
        ("trim(' a ')", "a"),
        ("int('42')", 42),
        ("int(' -3 ')", -3),
        ("int(-3.9)", -3),
        ("int(5)", 5),
        ("double(1)", 1.0),
        ("double('2.5e1')", 25.0),
        ("string(1)", "1"),
        ("string(null)", ""),
        ("string(true)", "true"),
        ("string('a')", "a"),
        ("string([1, 'a', null])", '[1,"a",null]'),
        ("abs(-2)", 2),
        ("has(payload.items)", True),
        ("has(payload.null)", True),
        ("has(payload.nope)", False),
        ("has(payload.nope.more[3])", False),
        ("has(payload.items[3])", False),
        ("has(payload.items[payload.count])", True),
        ("has(payload, 'status')", True),
        ("payload.has('nope')", False),
        ("default(payload.nope, 3)", 3),
        ("payload.nope.default([]).size()", 0),
        ("default(payload.count, 1 / 0)", 2),
    ],
)
def test_functions(source: str, expected: Any) -> None:
    assert value(source) == expected
    assert type(value(source)) is type(expected)


@pytest.mark.parametrize(
    ("habit", "plain"),
    [
        ("payload.status === 'open'", "payload.status == 'open'"),
        ("payload.status !== 'done'", "payload.status != 'done'"),
        ("payload.count <> 3", "payload.count != 3"),
        ("payload.count == 2 and payload.status == 'open'", "true && true"),
        ("payload.count == 1 or not payload.empty", "false || !false"),
        ("payload.count == 1 OR NOT payload.empty AND true", "true"),
        ("not payload.count == 3", "!(payload.count == 3)"),
        ("5 not in payload.items", "!(5 in payload.items)"),
        ("True", "true"),
        ("False", "false"),
        ("payload.null == None", "payload.null == null"),
        ("payload.nope === undefined", "payload.nope == null"),
        ("len(payload.items) + length(payload.items)", "3 + 3"),
        ("payload.items.includes(2)", "payload.items.contains(2)"),
        ("'A'.toLowerCase() + 'a'.toUpperCase()", "'aA'"),
        ("' a '.strip() + str(1) + (2).toString()", "'a12'"),
        ("float('1') == 1", "true"),
        ("'ab'.startswith('a') && 'ab'.endswith('b')", "true"),
        ("payload?.users?.[0]?.name", "payload.users[0].name"),
        ("last?.nope ?? 'x'", "'x'"),
        ("{{ payload.count < 3 }}", "payload.count < 3"),
        (" {{payload.count}} ", "payload.count"),
        ('payload["status"] == "open"', "payload.status == 'open'"),
        ("payload.count\n  == 2", "payload.count == 2"),
    ],
)
def test_habits_of_models_are_read(habit: str, plain: str) -> None:
    assert value(habit) == value(plain)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("payload.nope", False),
        ("!payload.nope", True),
        ("payload.nope.deeper[0]", False),
        ("payload.nope == null", True),
        ("null == payload.nope", True),
        ("payload.nope == payload.missing", True),
        ("payload.nope != 'done'", True),
        ("payload.nope == false", False),
        ("payload.nope in ['a']", False),
        ("payload.nope in [null]", True),
        ("payload.nope && payload.count", False),
        ("last.status == 'x'", False),
        ("payload.status.nope", False),
        ("payload.items.nope", False),
        ("payload.items[9]", False),
        ("payload.items['0']", False),
        ("payload.empty", False),
        ("''", False),
        ("0", False),
        ("payload.items", True),
    ],
)
def test_conditions_take_what_is_missing_as_false(source: str, expected: bool) -> None:
    assert read(source).holds(SCOPE) is expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("payload.statsu", "payload.statsu is missing; payload is an object with status, items"),
        ("payload.statsu", "did you mean status?"),
        ("payload.users[5].name", "payload.users[5] is missing; payload.users is a list of 2"),
        ("payload.users[0].mail", "an object with name, tags"),
        ("payload.keys['no key']", 'payload.keys["no key"] is missing'),
        ("payload.items[item.id]", "payload.items[7] is missing"),
        ("payload.users[payload.count - 1].mail", "payload.users[…].mail is missing"),
        ("payload.nope[item.id]", "payload.nope is missing"),
        ("payload.nope < 3", "payload.nope is missing"),
        ("payload.nope + 1", "payload.nope is missing"),
        ("-payload.nope", "payload.nope is missing"),
        ("size(payload.nope)", "payload.nope is missing"),
        ("'a' in payload.nope", "payload.nope is missing"),
        ("[payload.nope]", "payload.nope is missing"),
        ("payload.items[payload.nope]", "payload.nope is missing"),
        ("payload.nope && true", "payload.nope is missing"),
        ("paylod.count", "unknown name paylod; did you mean payload?"),
        ("zzz", "unknown name zzz; there are $, attempt, größe, item, last, payload"),
        ("has(zzz.a)", "unknown name zzz"),
    ],
)
def test_a_value_that_is_missing_is_a_failure(source: str, message: str) -> None:
    assert message in failure(source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("payload.count < 'x'", 'cannot order number 2 and text "x"; expected two numbers or two'),
        ("payload.items > 1", "cannot order a list of 3 and number 1"),
        ("null < 1", "cannot order null and number 1"),
        ("true < 2", "cannot order true and number 2"),
        ("1 + 'a'", "write string(…) to join with text"),
        ("'a' * 3", 'cannot compute text "a" and number 3 with *; expected two numbers'),
        ("true + 1", "cannot compute true and number 1 with +"),
        ("[1] + 'a'", "expected two numbers, two texts or two lists"),
        ("-'a'", 'expected a number, got text "a"'),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("1.5 % 2", "% needs whole numbers"),
        ("size(3)", "expected a list, an object or text to measure, got number 3"),
        ("1 in 2", "expected a list, an object or text to look in, got number 2"),
        ("1 in 'a1'", "expected text to look for in text, got number 1"),
        ("lower(1)", "expected text, got number 1"),
        ("startsWith('a', 1)", "expected text, got number 1"),
        ("int('4.5')", "text that is a whole number"),
        ("int('٣')", "text that is a whole number"),
        ("int(true)", "expected a number"),
        ("int([])", "expected a number"),
        ("double('nan')", "text that is one"),
        ("double('inf')", "text that is one"),
        ("double('1e999')", "too large"),
        ("double(false)", "text that is one"),
        ("payload[true]", "expected a key or a position in [ ], got true"),
        ("payload[1.5]", "expected a key or a position"),
        ("payload[null]", "expected a key or a position"),
    ],
)
def test_kinds_that_do_not_fit_are_a_failure(source: str, message: str) -> None:
    assert message in failure(source)


@pytest.mark.parametrize(
    "source",
    [
        "1 == true",
        "0 == false",
        "'1' == 1",
        "'' == null",
        "false == null",
        "[1] == [true]",
        "payload.empty == false",
        "payload.keys == 'x'",
        "[[1, [0]]] == [[1, [false]]]",
        "[1] == [1, 2]",
        "1 in [true]",
        "true in [1]",
        "'1' in [1]",
        "1 in payload.keys",
    ],
)
def test_values_of_different_kinds_are_never_equal(source: str) -> None:
    assert value(source) is False


def test_objects_and_lists_are_equal_by_their_members() -> None:
    scope = {"a": {"x": [1, {"y": None}]}, "b": {"x": [1.0, {"y": None}]}, "c": {"z": 1, "x": 2}}
    assert value("a == b", scope) is True
    assert value("a == a", scope) is True
    assert value("a != c", scope) is True
    assert value("a in [c, b]", scope) is True
    assert value("a.x[1] == b.x[1] && a.x != c.x", scope) is True
    assert value("[a.x] == [a.x]", scope) is True
    assert value("a.x[1] == z", {**scope, "z": {"other": None}}) is False


def test_whole_numbers_are_exact() -> None:
    assert value("payload.big + 1") == 2**60 + 2
    assert value("9007199254740993 - 1") == 2**53
    assert value("9007199254740993 == 9007199254740992.0") is False
    assert value("9007199254740993 * 3 / 3") == 2**53 + 1
    assert value("-9223372036854775808") == -(2**63)
    huge = {"n": 10**40, "m": 10**40 + 1}
    assert value("n < m && n != m", huge) is True
    assert value("n", huge) == 10**40
    assert "too large to calculate with" in failure("n + 1", huge)


def test_names_and_paths_are_known_before_anything_runs() -> None:
    expression = read("payload.a[0] + item.b + size(payload.c) ?? x")
    assert expression.names == {"payload", "item", "x"}
    assert expression.path is None
    assert read("payload.a[0]['b c'][-1]").path == ("payload", "a", 0, "b c", -1)
    assert read("item").path == ("item",)
    assert read("item[i]").path is None
    assert read("'a'.length").path is None


@pytest.mark.parametrize(
    ("source", "message", "position"),
    [
        ("", "expected a value, got the end", 0),
        ("   ", "expected a value", 3),
        ("{{}}", "unexpected {", 0),
        ("{{ }}", "expected a value", 3),
        ("(1", "expected ), got the end", 2),
        ("1)", "expected an operator, got )", 1),
        ("1 2", "expected an operator, got 2", 2),
        ("a b", "expected an operator, got b", 2),
        ("a &&", "expected a value", 4),
        ("&& a", "expected a value, got &&", 0),
        ("in", "expected a value, got in", 0),
        ("a = 1", "compare with ==", 2),
        ("a & b", "write && for and", 2),
        ("a | b", "write || for or", 2),
        ("a => b", "no functions to define", 2),
        ("2 ** 3", "there is no power", 2),
        ("7 // 2", "write int(a / b)", 2),
        ("{'a': 1}", "no objects to write", 0),
        ("`a`", "put text into", 0),
        ("“a”", "straight quotes", 0),
        ("a; b", "write a single expression", 1),
        ("'abc", "no closing '", 0),
        ('a == "', 'no closing "', 5),
        ("'\\d'", "unknown escape \\d", 0),
        ("'\\ud800'", "half a character", 0),
        ("5abc", "a name cannot start with a digit", 0),
        ("1_000", "a name cannot start with a digit", 0),
        ("1e999", "too large", 0),
        ("9223372036854775809", "too large", 0),
        ("a.0", "[0] for a position", 2),
        ("a.", "expected a name after the dot", 2),
        ("a[]", "expected a value, got ]", 2),
        ("a[1", "expected ], got the end", 3),
        ("a[1,2]", "expected ], got ,", 3),
        ("f(1", "expected ,", 3),
        ("1 < 2 < 3", "cannot be chained", 6),
        ("a == b == c", "cannot be chained", 7),
        ("a ? b", "expected :", 5),
        ("a is None", "write == for is", 2),
        ("1 if a else 2", "write condition ? a : b", 2),
        ("\u200bpayload", "unexpected U+200B", 0),
        ("a\x00", "unexpected U+0000", 1),
        ("clear(payload)", "there is no function clear()", 0),
        ("payload.clear()", "there is no function clear()", 8),
        ("payload.containz(1)", "did you mean contains()?", 8),
        ("size()", "size() needs 1 values", 0),
        ("size(1, 2)", "got 2", 0),
        ("has(1)", "has() needs a path", 0),
        ("has(a)", "has() needs a path", 0),
        ("has()", "has() needs 1", 0),
        ("default(1)", "default() needs 2", 0),
        ("(a)(1)", "expected an operator, got (", 3),
        ("a[0](1)", "expected an operator, got (", 4),
    ],
)
def test_what_is_no_expression_is_a_failure_with_its_place(
    source: str, message: str, position: int
) -> None:
    found = parse(source)
    assert isinstance(found, Failure)
    assert message in found.message
    assert found.position == position
    assert str(found).endswith(f"(at character {position + 1})")


def test_failures_of_an_evaluation_tell_the_place() -> None:
    found = outcome("payload.count == 2 && payload.items > 3")
    assert isinstance(found, Failure)
    assert found.position == 36
    condition = read("1 == 1 && zzz").holds(SCOPE)
    assert isinstance(condition, Failure)
    assert condition.position == 10
