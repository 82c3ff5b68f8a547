"""`docs/settings.md` lists every setting as the classes have it: name, default, environment variable, meaning.

Written again by `python -m tests.sync.test_settings`.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from inspect import isclass
from typing import get_args

from pydantic.fields import FieldInfo

from loopagent.core.described import parsed
from loopagent.core.spec import Spec
from loopagent.models import SETTINGS
from loopagent.project.environment import variables
from loopagent.settings import Settings
from tests.sync.test_documents import ROOT


DOCUMENT = ROOT / "docs" / "settings.md"
HEAD = "| setting | default | environment | |\n|---|---|---|---|\n"
FIRST = re.compile(r"(?<=[a-z0-9)`])[.;:] ")
BY_ENVIRONMENT = {".".join(one.path): one.name for one in variables()}


def meanings(model: type[Spec]) -> dict[str, str]:
    """The first sentence under each field, those of the classes above included."""
    found: dict[str, str] = {}
    for each in reversed([one for one in model.__mro__ if issubclass(one, Spec)]):
        body = parsed(textwrap.dedent(inspect.getsource(each))).body[0]
        assert isinstance(body, ast.ClassDef)
        for one, text in zip(body.body, body.body[1:], strict=False):
            if isinstance(one, ast.AnnAssign) and isinstance(text, ast.Expr):
                said = " ".join(str(ast.literal_eval(text.value)).split())
                found[ast.unparse(one.target)] = FIRST.split(said)[0].rstrip(".")
    return found


def inner(annotation: object) -> type[Spec] | None:
    """The class of a table, of the tables in a list, or of one that may be left out."""
    if isclass(annotation) and issubclass(annotation, Spec):
        return annotation
    return next((one for part in get_args(annotation) if (one := inner(part))), None)


def rows(model: type[Spec], path: str = "") -> Iterator[str]:
    """A row for every setting, those of tables in lists and with free names included."""
    said = meanings(model)
    for name, one in model.model_fields.items():
        where, below = f"{path}.{one.alias}".removeprefix("."), inner(one.annotation)
        if below is not None:
            kind = str(one.annotation)
            yield from rows(below, where + ("[]" * ("tuple" in kind) or ".NAME" * ("dict" in kind)))
            continue
        variable = BY_ENVIRONMENT.get(where, "")
        cells = [f"`{cell}`" if cell else "" for cell in (where, default(one), variable)]
        yield "| " + " | ".join([*cells, said[name].replace("|", "\\|")]) + " |"


def default(field: FieldInfo) -> str:
    """What counts where nothing is said; empty for nothing."""
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, tuple):
        return ", ".join(str(one) for one in value)
    return (
        ""
        if value is None or value == {}
        else str(value).lower()
        if value in (True, False)
        else str(value)
    )


def table() -> str:
    """The table of the document."""
    return HEAD + "\n".join(rows(Settings)) + "\n"


def test_every_setting_is_in_the_document_as_it_is() -> None:
    assert table() in DOCUMENT.read_text(encoding="utf-8")


def test_every_variable_for_models_is_in_the_document() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [one for one, _, _ in SETTINGS.values() if f"`{one}`" not in text] == []


if __name__ == "__main__":
    text = DOCUMENT.read_text(encoding="utf-8")
    start = text.index(HEAD)
    end = text.index("\n\n", start) + 1
    DOCUMENT.write_text(text[:start] + table() + text[end:], encoding="utf-8")
