"""JMESPath: choosing and reshaping JSON. Pure, without loops or functions of a user's own.

Only `from`, `select`, `when`, `success` and the `{{ }}` of texts in action files use it; conditions that a model writes
have a language of their own, in `core/expression.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, cast

import jmespath
from jmespath import functions, visitor
from jmespath.exceptions import JMESPathError

from loopagent.core.json_values import compact_json
from loopagent.core.names import closest


MAX_CHARS: Final = 4_000
"""Longest expression."""
MAX_WORK: Final = 3_000_000
"""Steps that applying an expression may take, and values that it may make: `[@, @]` over and over doubles each time."""
_CHARS_A_STEP: Final = 4
_MAKING: Final = frozenset({"multi_select_list", "multi_select_dict", "function_expression"})
"""Parts of an expression that make values; all others only choose some."""
_BARE_NUMBER: Final = re.compile(r"[<>=!]=?\s*-?\d|-?\d\s*[<>=!]=?")
_FILLED: Final = re.compile(r"(?<!\\)\{\{(.*?)\}\}", re.DOTALL)
_ESCAPED: Final = r"\{{"
_AS_JSON: Final = re.compile(r"\|\s*json\s*$")


class ReshapeError(ValueError):
    """An expression is none, or cannot be applied to what it was given."""


class _Functions(functions.Functions):
    """JMESPath's functions and a few more for texts; nothing looks outside of the data."""

    @functions.signature({"types": ["string"]})
    def _func_lower(self, text: str) -> str:
        return text.lower()

    @functions.signature({"types": ["string"]})
    def _func_upper(self, text: str) -> str:
        return text.upper()

    @functions.signature({"types": ["string"]})
    def _func_trim(self, text: str) -> str:
        return text.strip()

    @functions.signature({"types": ["string"]}, {"types": ["string"]})
    def _func_split(self, text: str, separator: str) -> list[str]:
        return text.split(separator) if separator else list(text)

    @functions.signature({"types": ["string"]}, {"types": ["array-string"]})
    def _func_join(self, glue: str, parts: list[str]) -> str:
        if len(glue) * len(parts) > MAX_WORK * _CHARS_A_STEP:
            raise ValueError(_TOO_MUCH)
        return glue.join(parts)

    @functions.signature({"types": [], "variadic": True})
    def _func_coalesce(self, *values: Any) -> Any:
        return next((one for one in values if one is not None), None)


class _Interpreter(visitor.TreeInterpreter):
    """Applies an expression, and gives up where that would take too long or make too much."""

    def __init__(self, max_work: int, *, strict: bool) -> None:
        super().__init__(_OPTIONS)
        self._left = max_work
        self._strict = strict

    def visit(self, node: Any, *args: Any, **more: Any) -> Any:
        self._spend(1)
        made: Any = super().visit(node, *args, **more)
        if node["type"] in _MAKING:
            self._weigh(made)
        if made is None and self._strict and node["type"] == "comparator":
            raise ValueError(
                "one side of the comparison is missing, or neither a number nor a text"
            )
        return made

    def _weigh(self, made: Any) -> None:
        """Spend as much as a value would be written out, however often parts of it are the same."""
        left: list[Any] = [made]
        while left:
            one = left.pop()
            if isinstance(one, (dict, list)):
                parts = cast("list[Any]", list(one.values()) if isinstance(one, dict) else one)
                self._spend(1 + len(parts))
                left += [part for part in parts if isinstance(part, (dict, list, str))]
            elif isinstance(one, str):
                self._spend(len(one) // _CHARS_A_STEP)

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise ValueError(_TOO_MUCH)


_TOO_MUCH: Final = "it takes too long or makes too much"
_OPTIONS: Final = jmespath.Options(custom_functions=_Functions())


_KNOWN: Final = frozenset(_Functions.FUNCTION_TABLE)


def _called(tree: Any) -> Iterator[str]:
    """Names of the functions that a parsed expression calls."""
    left = [tree]
    while left:
        one = left.pop()
        if one.get("type") == "function_expression":
            yield str(one["value"])
        left += [child for child in one.get("children", ()) if isinstance(child, dict)]


def _looked_up(tree: Any) -> Iterator[str]:
    """Names that a parsed expression looks up in what it is applied to, at the top."""
    left = [tree]
    while left:
        one = left.pop()
        if one["type"] == "field":
            yield str(one["value"])
        if one["type"] not in _APART:
            children = [child for child in one["children"] if isinstance(child, dict)]
            left += children[:1] if one["type"] in _FIRST else children


_FIRST: Final = frozenset(
    [
        "subexpression",
        "index_expression",
        "projection",
        "value_projection",
        "filter_projection",
        "flatten",
        "pipe",
    ]
)
"""Parts of an expression of which only the first child sees what the whole is applied to."""
_APART: Final = frozenset({"field", "expref", "literal"})


class Expression:
    """A compiled expression.

    Args:
        text: The expression.

    Raises:
        ReshapeError: It is none.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARS:
            raise ReshapeError(f"the expression has more than {MAX_CHARS} characters")
        try:
            self._parsed = jmespath.compile(text)
        except JMESPathError as error:
            raise ReshapeError(_complaint(text, error)) from error
        except RecursionError as error:
            raise ReshapeError("the expression is nested too deeply") from error
        for name in _called(self._parsed.parsed):
            if name not in _KNOWN:
                near = closest(name, sorted(_KNOWN))
                hint = f"; did you mean {' or '.join(near)}?" if near else ""
                raise ReshapeError(f"there is no function {name!r}{hint}")
        self.text = text

    @property
    def roots(self) -> frozenset[str]:
        """Names that it looks up at the top of what it is applied to."""
        return frozenset(_looked_up(self._parsed.parsed))

    def __repr__(self) -> str:
        """The text."""
        return f"Expression({self.text!r})"

    def of(self, data: Any, *, max_work: int = MAX_WORK, strict: bool = False) -> Any:
        """What the expression finds in some JSON; null when it finds nothing.

        Args:
            data: The JSON.
            max_work: Steps that this may take, and values that it may make.
            strict: Whether `<` and the like must find what can be ordered; else they give null for anything else.

        Raises:
            ReshapeError: A function of it does not take what it finds, or it takes too long or makes too much.
        """
        try:
            return _Interpreter(max_work, strict=strict).visit(self._parsed.parsed, data)
        except (JMESPathError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            said = str(error).partition("\n")[0]
            raise ReshapeError(f"{self.text[:200]!r} cannot be applied: {said[:300]}") from error
        except RecursionError as error:
            raise ReshapeError(f"{self.text[:200]!r} goes too deep") from error

    def holds(self, data: Any, *, strict: bool = False) -> bool:
        """Whether the expression finds `true`; anything else, and null, is false.

        Args:
            data: The JSON.
            strict: As for `of`.

        Raises:
            ReshapeError: As for `of`.
        """
        return self.of(data, strict=strict) is True


class Template:
    r"""Text with expressions between `{{` and `}}`; one that ends in `| json` is written as JSON.

    A text is put in as it is, null as nothing, anything else as JSON. `\{{` are two braces as text, and so is a `}}`
    that closes nothing.

    Raises:
        ReshapeError: An expression is none, or a `{{` is not closed.
    """

    def __init__(self, text: str) -> None:
        pieces = _FILLED.split(text)
        plain = [one.split(_ESCAPED) for one in pieces[::2]]
        if any("{{" in part for parts in plain for part in parts):
            raise ReshapeError(
                r"a {{ has no }} after it; write \{{ for braces that are meant as text"
            )
        self._texts = ["{{".join(parts) for parts in plain]
        sources = pieces[1::2]
        self._json = [bool(_AS_JSON.search(one)) for one in sources]
        self.expressions = [Expression(_AS_JSON.sub("", one).strip()) for one in sources]

    @property
    def roots(self) -> frozenset[str]:
        """Names that its expressions look up at the top of what it is filled from."""
        return frozenset().union(*(one.roots for one in self.expressions))

    def fill(self, data: Any) -> str:
        """The text, with what the expressions find in some JSON.

        Raises:
            ReshapeError: As for `Expression.of`.
        """
        made = [self._texts[0]]
        parts = zip(self.expressions, self._json, self._texts[1:], strict=True)
        for expression, as_json, text in parts:
            value = expression.of(data)
            made += [compact_json(value) if as_json else shown(value), text]
        return "".join(made)


def shown(value: Any) -> str:
    """A JSON value as text: null as nothing, a text as it is, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else compact_json(value)


def _complaint(text: str, error: Exception) -> str:
    said = str(error).partition("\n")[0].rstrip(":, ")
    hint = ""
    if not text.strip():
        said = "the expression is empty"
    elif _BARE_NUMBER.search(text) and "`" not in text:
        hint = "; numbers stand in backticks, like status < `300`"
    return f"{text[:100]!r} is no JMESPath expression: {said[:200]}{hint}"
