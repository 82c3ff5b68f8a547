"""The words of an expression."""

from __future__ import annotations

import math
import re
import sys
from typing import Any, Final, NamedTuple

from loopagent.core.expression_values import ExpressionLimits, Halt


class Token(NamedTuple):
    """One word.

    Args:
        kind: `name`, `value`, `end`, or the operator itself.
        value: The name, or the number or text.
        position: Where it starts, in characters.
    """

    kind: str
    value: Any
    position: int


class SyntaxHalt(Halt):
    """Ends a parse.

    Args:
        message: What is wrong.
        position: Where, in characters.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


ALIASES: Final[dict[str, str]] = {
    "===": "==",
    "!==": "!=",
    "<>": "!=",
    "and": "&&",
    "AND": "&&",
    "or": "||",
    "OR": "||",
    "NOT": "not",
    "IN": "in",
}
"""Ways to write an operator, and the operator. `not` binds looser than `!`, as in Python."""
CONSTANTS: Final[dict[str, Any]] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
    "undefined": None,
}
"""Words that are values."""

_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<name>(?:[^\W\d]|\$)[\w$]*)
    | (?P<number>(?:0[xX][0-9a-fA-F]+|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w$]))
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<wrong>\*\*|//|=>)
    | (?P<operator>===|!==|==|!=|<=|>=|<>|&&|\|\||\?\?|\?\.|[-+*/%<>!?:.,()\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
_HINTS: Final[dict[str, str]] = {
    "=": "nothing can be assigned; compare with ==",
    "=>": "there are no functions to define",
    "**": "there is no power",
    "//": "there is no whole division; write int(a / b)",
    "{": "there are no objects to write, and no {{ }} inside an expression",
    "}": "there are no objects to write, and no {{ }} inside an expression",
    "`": "put text into ' or \"",
    "\u201c": "put text into straight quotes",
    "\u201d": "put text into straight quotes",
    "\u2018": "put text into straight quotes",
    "\u2019": "put text into straight quotes",
    ";": "write a single expression",
    "&": "write && for and",
    "|": "write || for or",
}
_MAX_DIGITS: Final = 1_000
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED: Final[dict[str, str]] = {
    **{char: char for char in "\\'\"/`"},
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
}


def tokens(source: str, start: int, end: int, limits: ExpressionLimits) -> list[Token]:
    """Split a source into words.

    Args:
        source: The text.
        start: Where the expression starts in it, in characters.
        end: Where it ends.
        limits: How large numbers may be.

    Returns:
        The words, with an `end` behind the last.

    Raises:
        SyntaxHalt: There is something that belongs to no expression.
    """
    found: list[Token] = []
    at = start
    while at < end:
        match = _TOKEN.match(source, at, end)
        if match is None or match.lastgroup == "wrong":
            raise SyntaxHalt(_wrong(source, at, match), at)
        if match.lastgroup != "space":
            found.append(_token(match, limits))
        at = match.end()
    found.append(Token("end", "the end", end))
    return found


def _token(match: re.Match[str], limits: ExpressionLimits) -> Token:
    text, at = match[0], match.start()
    if match.lastgroup == "number":
        return Token("value", _number(text, at, limits), at)
    if match.lastgroup == "text":
        return Token("value", _unescape(text[1:-1], at), at)
    if match.lastgroup == "name":
        return Token("name", text, at)
    return Token(ALIASES.get(text, text), text, at)


def _number(text: str, at: int, limits: ExpressionLimits) -> int | float:
    if text.isdigit() or text[:2] in {"0x", "0X"}:
        base = 16 if text[:2] in {"0x", "0X"} else 10
        value: float = int(text, base) if len(text) <= _MAX_DIGITS else math.inf
        largest: float = limits.max_integer
    else:
        value, largest = float(text), sys.float_info.max
    if value > largest:
        raise SyntaxHalt(f"the number {text[:40]} is too large", at)
    return value


def _unescape(text: str, at: int) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(lambda match: _escaped(match, at), text)
    try:  # joins the halves of a character outside the first 65,536
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise SyntaxHalt("the text has half a character (\\ud800 to \\udfff alone)", at) from None


def _escaped(match: re.Match[str], at: int) -> str:
    code = match[1] or match[2]
    if code:
        return chr(int(code, 16))
    if match[3] not in _ESCAPED:
        raise SyntaxHalt(f"the text has an unknown escape \\{match[3]}; write \\\\ for \\", at)
    return _ESCAPED[match[3]]


def _wrong(source: str, at: int, match: re.Match[str] | None) -> str:
    char = source[at]
    if match is None and char in {"'", '"'}:
        return f"no closing {char}"
    if match is None and char.isdigit():
        return "a name cannot start with a digit"
    text = match[0] if match else char
    shown = text if text.isprintable() else f"U+{ord(char):04X}"
    hint = _HINTS.get(text)
    return f"unexpected {shown}; {hint}" if hint else f"unexpected {shown}"
