"""From words to parts: operator precedence, paths, calls.

From loosest to tightest: `? :`, `??`, `||`, `&&`, `not`, comparisons and `in`, `+ -`, `* / %`, `! -`, paths and calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loopagent.core.expression_functions import ALIASES as CALLED
from loopagent.core.expression_functions import FUNCTIONS, OPERATORS, negative
from loopagent.core.expression_lexer import ALIASES, CONSTANTS, SyntaxHalt, Token, tokens
from loopagent.core.expression_nodes import (
    Both,
    Call,
    Choice,
    Default,
    Either,
    Has,
    Index,
    Items,
    Literal,
    Name,
    Node,
    Not,
    Pair,
    Path,
)
from loopagent.core.names import closest


if TYPE_CHECKING:
    from collections.abc import Callable

    from loopagent.core.expression_values import ExpressionLimits

_COMPARE: Final = 50
_NOT: Final = 45
_SIGN: Final = 80
_POWERS: Final[dict[str, int]] = {
    "?": 10,
    "??": 20,
    "||": 30,
    "&&": 40,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in", "not in"), _COMPARE),
    "+": 60,
    "-": 60,
    "*": 70,
    "/": 70,
    "%": 70,
}
"""How tightly an operator binds; all but `?` group from the left."""
_LAZY: Final[dict[str, Callable[[Node, Node], Node]]] = {"??": Default, "||": Either, "&&": Both}
_HINTS: Final[dict[str, str]] = {
    "is": "write == for is, != for is not",
    "if": "write condition ? a : b",
    "for": "there are no loops",
    "lambda": "there are no functions to define",
    "typeof": "there are no types to ask for",
}
_RESERVED: Final = frozenset({*ALIASES, *CONSTANTS, "in", "not"})


class Parser:
    """Reads one expression.

    Args:
        source: The text.
        start: Where the expression starts in it, in characters.
        end: Where it ends.
        limits: How large it may be.

    Raises:
        SyntaxHalt: While reading.
    """

    def __init__(self, source: str, start: int, end: int, limits: ExpressionLimits) -> None:
        self._tokens = tokens(source, start, end, limits)
        self._at = 0
        self._limits = limits
        self._nodes = 0
        self._depth = 0
        self.names: list[str] = []
        """Root names that were read, each time again."""

    def read(self) -> Node:
        """Read everything."""
        node = self._expression(0)
        if self._next.kind != "end":
            raise self._unexpected("expected an operator")
        return node

    # --- words -------------------------------------------------------------------------------------

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += token.kind != "end"
        return token

    def _skip(self, kind: str) -> bool:
        found = self._next.kind == kind
        self._at += found
        return found

    def _expect(self, kind: str) -> None:
        if not self._skip(kind):
            raise self._unexpected(f"expected {kind}")

    def _unexpected(self, wanted: str) -> SyntaxHalt:
        token = self._next
        hint = f"; {_HINTS[token.value]}" if token.kind == "name" and token.value in _HINTS else ""
        return SyntaxHalt(f"{wanted}, got {str(token.value)[:40]}{hint}", token.position)

    def _count(self) -> None:
        self._nodes += 1
        if self._nodes > self._limits.max_nodes:
            raise SyntaxHalt(f"has more than {self._limits.max_nodes} parts", self._next.position)

    # --- operators ---------------------------------------------------------------------------------

    def _expression(self, power: int) -> Node:
        self._depth += 1
        if self._depth > self._limits.max_depth:
            raise SyntaxHalt(
                f"nested deeper than {self._limits.max_depth} levels", self._next.position
            )
        left = self._prefix()
        while (sign := self._infix()) and _POWERS[sign] > power:
            left = self._operation(left, sign)
        self._depth -= 1
        return left

    def _infix(self) -> str | None:
        """The operator that comes next, as it is called here."""
        token = self._next
        sign = ALIASES.get(token.value, token.value) if token.kind == "name" else token.kind
        if sign == "not" and self._tokens[self._at + 1].value in {"in", "IN"}:
            return "not in"
        return sign if sign in _POWERS else None

    def _operation(self, left: Node, sign: str) -> Node:
        token = self._take()
        self._at += sign == "not in"
        self._count()
        power = _POWERS[sign]
        if sign == "?":
            yes = self._expression(0)
            self._expect(":")
            return Choice(left, yes, self._expression(power - 1))
        right = self._expression(power)
        if power == _COMPARE and (more := self._infix()) and _POWERS[more] == _COMPARE:
            raise SyntaxHalt(
                "comparisons cannot be chained; write a < b && b < c", self._next.position
            )
        if sign in _LAZY:
            return _LAZY[sign](left, right)
        return Pair(OPERATORS[sign], left, right, token.position)

    def _prefix(self) -> Node:
        token = self._next
        self._count()
        word = ALIASES.get(token.value, token.value) if token.kind == "name" else token.kind
        if word in {"!", "not"}:
            self._take()
            return Not(self._expression(_SIGN if word == "!" else _NOT))
        if word == "-":
            self._take()
            return Call(negative, (self._expression(_SIGN),), token.position)
        return self._postfix(self._atom())

    # --- values ------------------------------------------------------------------------------------

    def _atom(self) -> Node:
        token = self._take()
        if token.kind == "value":
            return Literal(token.value)
        if token.kind == "name":
            return self._named(token)
        if token.kind == "(":
            inner = self._expression(0)
            self._expect(")")
            return inner
        if token.kind == "[":
            return Items(tuple(self._list("]")))
        self._at -= token.kind != "end"
        raise self._unexpected("expected a value")

    def _named(self, token: Token) -> Node:
        if token.value in CONSTANTS:
            return Literal(CONSTANTS[token.value])
        if token.value in _RESERVED:
            self._at -= 1
            raise self._unexpected("expected a value")
        if self._skip("("):
            return self._call(token, self._list(")"))
        self.names.append(token.value)
        return Name(token.value, token.position)

    def _postfix(self, node: Node) -> Node:
        while self._next.kind in {".", "?.", "["}:
            opening = self._take()
            if opening.kind == "[" or (opening.kind == "?." and self._skip("[")):
                node = self._subscript(node, opening)
                continue
            name = self._take()
            if name.kind != "name":
                self._at -= name.kind != "end"
                raise self._unexpected("expected a name after the dot, or [0] for a position")
            self._count()
            if self._skip("("):
                node = self._call(name, [node, *self._list(")")])
            else:
                node = _below(node, name.value, name.position)
        return node

    def _subscript(self, node: Node, opening: Token) -> Node:
        negative_sign = self._next.kind == "-" and self._tokens[self._at + 1].kind == "value"
        at = self._at + negative_sign
        key, closing = self._tokens[at], self._tokens[min(at + 1, len(self._tokens) - 1)]
        self._count()
        if closing.kind == "]" and key.kind == "value" and _is_key(key.value, negative_sign):
            self._at = at + 2
            return _below(node, -key.value if negative_sign else key.value, opening.position)
        inner = self._expression(0)
        self._expect("]")
        return Index(node, inner, opening.position)

    def _list(self, closing: str) -> list[Node]:
        found: list[Node] = []
        while not self._skip(closing):
            if found:
                self._expect(",")
                if self._skip(closing):
                    break
            found.append(self._expression(0))
        return found

    def _call(self, token: Token, arguments: list[Node]) -> Node:
        written: str = token.value
        name = CALLED.get(written, written)
        if name in _SPECIAL:
            return _SPECIAL[name](token, arguments)
        function = FUNCTIONS.get(name)
        if function is None:
            raise SyntaxHalt(_no_function(written), token.position)
        if len(arguments) != function.arity:
            raise _wrong_count(token, function.arity, arguments)
        return Call(function.compute, tuple(arguments), token.position)


def _below(node: Node, key: Any, position: int) -> Node:
    if isinstance(node, Path):
        return Path(node.base, (*node.keys, key), position)
    return Path(node, (key,), position)


def _is_key(value: Any, negative_sign: bool) -> bool:
    return type(value) is int or (type(value) is str and not negative_sign)


def _has(token: Token, arguments: list[Node]) -> Node:
    if len(arguments) == 2:  # noqa: PLR2004 - an object and a key
        contains = FUNCTIONS["contains"]
        return Call(contains.compute, tuple(arguments), token.position)
    if len(arguments) != 1:
        raise _wrong_count(token, 1, arguments)
    if not isinstance(arguments[0], Path | Index):
        raise SyntaxHalt("has() needs a path such as payload.items", token.position)
    return Has(arguments[0])


def _default(token: Token, arguments: list[Node]) -> Node:
    if len(arguments) != 2:  # noqa: PLR2004 - a value and its fallback
        raise _wrong_count(token, 2, arguments)
    return Default(arguments[0], arguments[1])


_SPECIAL: Final[dict[str, Callable[[Token, list[Node]], Node]]] = {
    "has": _has,
    "default": _default,
}
"""Functions that do not compute all their arguments."""


def _wrong_count(token: Token, wanted: int, arguments: list[Node]) -> SyntaxHalt:
    message = f"{token.value}() needs {wanted} values (the one before the dot included)"
    return SyntaxHalt(f"{message}, got {len(arguments)}", token.position)


def _no_function(name: str) -> str:
    names = sorted({*FUNCTIONS, *_SPECIAL})
    near = closest(name, names)
    hint = f"did you mean {near[0]}()? " if near else ""
    return f"there is no function {name[:40]}(); {hint}there are {', '.join(names)}"
