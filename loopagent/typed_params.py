"""Parameters of a call as an action's types have them: by the validator of its model, without making the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel
from pydantic_core import SchemaError, SchemaValidator, core_schema


def typing_of(model: type[BaseModel], whole: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What types parameters as a model does, and gives them by their own names.

    Args:
        model: The model; its fields have aliases.
        whole: Its core schema, which spares the object in between. That is no public interface of pydantic: where it
            looks otherwise, an object is made.
    """
    try:
        return _quick_typing(model, whole)
    except (KeyError, TypeError, SchemaError):
        names = [(key, str(one.alias)) for key, one in model.model_fields.items()]

        def typed(params: dict[str, Any]) -> dict[str, Any]:
            made = model.model_validate(params)
            return {name: getattr(made, key) for key, name in names}

        return typed


def _quick_typing(model: type[BaseModel], whole: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    shared = whole["type"] == "definitions"
    own = whole["schema"] if shared else whole
    fields = {
        str(one.alias): core_schema.typed_dict_field(
            own["schema"]["fields"][key]["schema"], required=one.is_required()
        )
        for key, one in model.model_fields.items()
    }
    typed: Any = core_schema.typed_dict_schema(
        fields, extra_behavior="forbid", config=own["config"]
    )
    if shared:
        typed = core_schema.definitions_schema(typed, whole["definitions"])
    return SchemaValidator(typed).validate_python
