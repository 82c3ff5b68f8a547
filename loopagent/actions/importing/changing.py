"""What an import does to one action: it is new, stays, changes, or cannot be made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from loopagent.actions.importing.merging import merged
from loopagent.actions.importing.texts import difference, edited_text, yaml_text
from loopagent.actions.reading import read_actions


if TYPE_CHECKING:
    from pathlib import Path

    from loopagent.actions.importing.operations import Draft

SENSITIVE: Final = ("run", "egress", "secrets", "effects", "approval")
"""When the document changes one of these, a person has to look again."""
DISABLED: Final = "what it does has changed, so it is disabled until you have looked at it"
LOOK: Final = "what it does has changed; look at it again before you publish it"
What = Literal["new", "same", "changed", "gone", "removed", "refused"]


@dataclass(slots=True)
class Change:
    """What an import does to one action; `lines` is the difference of its file."""

    name: str
    what: What
    lines: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    text: str = ""

    def public(self) -> dict[str, Any]:
        """As JSON."""
        return {"name": self.name, "what": self.what, "lines": self.lines, "notes": self.notes}


def change_of(
    draft: Draft,
    text: str | None,
    base: dict[str, Any] | None,
    *,
    where: Path,
    explicit: bool,
) -> Change:
    """What becomes of one action.

    Args:
        draft: As it would be imported now.
        text: As it is written; None when it is not there.
        base: As it was imported before; None when it was not.
        where: What to call the place where it is written.
        explicit: Whether it was asked for by name, so that it comes back when it was removed.
    """
    if draft.problems:
        return Change(draft.name, "refused", notes=draft.problems)
    if text is None:
        if base is not None and not explicit:
            return Change(
                draft.name, "removed", notes=["its file was removed; --pick brings it back"]
            )
        return Change(draft.name, "new", notes=draft.notes, text=yaml_text(draft.action))
    if base is None:
        what = f"{where.name} exists and is of no earlier import; choose another --name"
        return Change(draft.name, "refused", notes=[what])
    return update_of(draft, text, base, where=where)


def update_of(
    draft: Draft, text: str, base: dict[str, Any], *, where: Path, disables: bool = True
) -> Change:
    """What becomes of an action that was imported before.

    Args:
        draft: As it would be imported now.
        text: As it is written.
        base: As it was imported before.
        where: What to call the place where it is written.
        disables: Whether one whose effects on the world change is disabled until somebody has looked; otherwise only
            a note tells.
    """
    reading = read_actions(text, where)
    if len(reading.written) != 1:
        what = f"{where.name} cannot be read as one action; mend it and import again"
        return Change(draft.name, "refused", notes=[what])
    mine = reading.written[0].complaints.document.value
    conflicts: list[str] = []
    value = merged(base, mine, draft.action, conflicts)
    notes = [f"{one}: changed here and in the document; yours stays" for one in conflicts]
    if value == mine:
        return Change(draft.name, "same", notes=notes)
    if mine.get("enabled", True) and any(value.get(key) != mine.get(key) for key in SENSITIVE):
        notes.append(DISABLED if disables else LOOK)
        if disables:
            value["enabled"] = False
    after = edited_text(text, value)
    return Change(draft.name, "changed", difference(text, after), notes, after)
