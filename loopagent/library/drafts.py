"""What the draft of an action says, as far as it can be read; read once, for all lists."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from loopagent.actions.build import spec_of
from loopagent.actions.format import CLASSES, ActionFile, OpenApiRun
from loopagent.actions.listing import file_row, spec_row
from loopagent.actions.openapi_kind import as_http
from loopagent.core.action_spec import ActionSpec, EffectClass
from loopagent.core.json_values import is_array, is_object
from loopagent.errors import ConfigError
from loopagent.library.definitions import steps_of
from loopagent.library.texts import read_text


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopagent.library_port import Built

KEPT: Final = 2_000
"""Drafts of which is remembered what they say: those that were asked for last."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a draft says of an action; of one that cannot be used, what can be read of it."""

    title: str = ""
    description: str = ""
    kind: str = ""
    effects: EffectClass | None = None
    """None where it does not say, or nothing that there is."""
    steps: tuple[str, ...] = ()
    """Actions that it calls."""
    whole: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """All of it, as `row` gives it; empty for one that cannot be used."""

    def row(self) -> dict[str, Any]:
        """As JSON in the shape of `actions.listing.action_row`.

        Returns:
            A draft that cannot be used is not enabled; when it does not say what a call does, that is `write`.
        """
        if self.whole:
            return dict(self.whole)
        spec = ActionSpec(
            name="draft", effects=self.effects or "write", parameters={"type": "object"}
        )
        said = {"kind": self.kind, "title": self.title, "description": self.description}
        return spec_row(spec) | said | {"enabled": False}


_known: OrderedDict[str, Said] = OrderedDict()


def said_by(row: Built) -> Said:
    """What the draft of an action says.

    It depends on nothing but the draft, so that is read again only after somebody changed it.

    Args:
        row: The action.
    """
    known = _known.get(row.draft_hash)
    if known is None:
        known = _known[row.draft_hash] = _read(row.draft, row.files)
    _known.move_to_end(row.draft_hash)
    if len(_known) > KEPT:
        _known.popitem(last=False)
    return known


def _read(text: str, files: Mapping[str, str]) -> Said:
    written = read_text(text).written
    if len(written) != 1:
        return Said()
    [one] = written
    return (
        _loosely(one.complaints.document.value)
        if one.action is None
        else _all_of(one.action, files)
    )


def _all_of(file: ActionFile, files: Mapping[str, str]) -> Said:
    whole = spec_row(spec_of(file, _described(file, files))) | file_row(file)
    steps = tuple(steps_of(file))
    return Said(file.title, file.description, file.run.kind, file.effect_class, steps, whole)


def _described(file: ActionFile, files: Mapping[str, str]) -> dict[str, Any] | None:
    """The schema of the parameters, for kinds that leave it to a document."""
    if not isinstance(file.run, OpenApiRun):
        return None
    try:
        return as_http(file, file.run, None, files).params
    except ConfigError:
        return None


def _loosely(value: Mapping[str, Any]) -> Said:
    run = value.get("run")
    run = run if is_object(run) else {}
    steps = run.get("steps")
    called = [one.get("action") for one in steps if is_object(one)] if is_array(steps) else []
    return Said(
        _text(value.get("title")),
        _text(value.get("description")),
        _text(run.get("kind")),
        CLASSES.get(_text(value.get("effects"))),
        tuple(one for one in called if isinstance(one, str)),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
