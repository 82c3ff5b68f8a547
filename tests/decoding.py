"""Constrained decoding for tests: what a schema lets a model write, and how a model has to write a reply by it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema_rs
import llguidance

from loopagent.core.dialects import Dialect


Json = dict[str, Any]


class Bytes:
    """A tokenizer with one token a byte."""

    eos_token_id = 256
    bos_token_id = None
    tokens = [bytes([one]) for one in range(256)] + [b"<eos>"]
    special_token_ids = [256]

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


TOKENIZER = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()))


@cache
def grammar(schema: str) -> str:
    made = llguidance.LLMatcher.grammar_from_json_schema(schema)
    assert not llguidance.LLMatcher.validate_grammar(made, TOKENIZER)
    return made


def accepts(schema: Json, text: str) -> bool:
    """Whether decoding by the schema could write the text."""
    matcher = llguidance.LLMatcher(TOKENIZER, grammar(json.dumps(schema)))
    return all(matcher.consume_token(one) for one in text.encode()) and matcher.is_accepting()


class CannotBeWrittenError(Exception):
    """A value does not fit a schema, however it is written."""


def written(value: Any, schema: Json, root: Json) -> Any:
    """A value as a model that is held to the schema has to write it."""
    if "$ref" in schema:
        return written(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "anyOf" in schema:
        return _first(value, schema["anyOf"], root)
    if schema.get("properties") and isinstance(value, dict):
        if value.keys() - schema["properties"].keys():
            raise CannotBeWrittenError
        return {
            key: written(value.get(key), one, root)
            for key, one in schema["properties"].items()
            if key in value or key in schema["required"]
        }
    if schema.get("type") == "array" and isinstance(value, list):
        return [written(one, schema["items"], root) for one in value]
    if isinstance(value, dict | list) and "written as text" in schema.get("description", ""):
        return json.dumps(value)
    if not jsonschema_rs.is_valid({**schema, "$defs": root.get("$defs", {})}, value):
        raise CannotBeWrittenError
    return value


def _first(value: Any, options: list[Json], root: Json) -> Any:
    for one in options:
        try:
            return written(value, one, root)
        except CannotBeWrittenError:
            continue
    raise CannotBeWrittenError


def text_of(reply: Json, dialect: Dialect, schema: Json) -> str:
    value = {"turn": reply} if dialect == "openai" else reply
    return json.dumps(written(value, schema, schema))
