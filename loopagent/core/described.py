"""Models whose attribute docstrings are their JSON Schema descriptions, looked up only when a schema is made.

Pydantic has `use_attribute_docstrings` for this, which reads and parses the source of every class as it is
defined: with our few hundred classes a quarter of the time that a process needs to start.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache
from typing import TYPE_CHECKING, cast


if TYPE_CHECKING:
    from types import ModuleType

    from pydantic import BaseModel, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


class Described:
    """Put before `BaseModel` in the bases of models that say what their fields mean in docstrings below them."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> JsonSchemaValue:
        """Give the schema with the docstrings as descriptions; a field that has a description keeps it."""
        model = cast("type[BaseModel]", cls)
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in field_docs(model).items():
            field = model.model_fields.get(name)
            if field is not None and field.description is None:
                names = (field.validation_alias, field.serialization_alias, field.alias, name)
                for found in {one for one in names if isinstance(one, str)} & properties.keys():
                    properties[found]["description"] = text
        return schema


def field_docs(cls: type[BaseModel]) -> dict[str, str]:
    """Give the docstrings of a model's fields, its own and inherited ones.

    Args:
        cls: The model; nothing is found of classes that are defined inside of functions.

    Returns:
        Text by Python name.
    """
    found: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        found |= _docs_of_module(inspect.getmodule(one)).get(one.__qualname__, {})
    return found


@cache
def _docs_of_module(module: ModuleType | None) -> dict[str, dict[str, str]]:
    """Docstrings below the attributes of each top-level class of a module, by class and attribute."""
    try:
        tree = parsed(inspect.getsource(module) if module else "")
    except (OSError, TypeError, SyntaxError):  # typed in, built in, or without its source
        return {}
    return {one.name: _docs_of_class(one) for one in tree.body if isinstance(one, ast.ClassDef)}


def parsed(source: str) -> ast.Module:
    """The syntax tree of a source.

    Garbage that is collected meanwhile may be reported with its source, which is parsed for that. Some versions of
    Python 3.11 take that for a parse that went wrong; the second try is alone.
    See https://github.com/python/cpython/issues/106905.

    Raises:
        SyntaxError: It is none.
    """
    try:
        return ast.parse(source)
    except SystemError:
        return ast.parse(source)


def _docs_of_class(tree: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for above, below in zip(tree.body, tree.body[1:], strict=False):
        match above, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = inspect.cleandoc(text)
            case _:
                pass
    return found
