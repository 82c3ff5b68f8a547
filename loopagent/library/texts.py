"""What is typed in the page to an action: everything that an action file may say, within what the page may do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loopagent.actions.build import FileAction, make_action
from loopagent.actions.checks_secrets import check_known
from loopagent.actions.complaints import Complaint, did_you_mean
from loopagent.actions.format import PipelineRun, PromptRun
from loopagent.actions.reading import Reading, Written, read_action, read_actions
from loopagent.actions.together import check_together
from loopagent.egress.policy import matches
from loopagent.errors import ConfigError


if TYPE_CHECKING:
    from collections.abc import Mapping

    from loopagent.actions.format import ActionFile
    from loopagent.actions.means import Means
    from loopagent.library.surroundings import Surroundings

WHERE: Final = Path("action.yaml")
"""Stands for the file in complaints, of which there is none."""
_LINE: Final = re.compile(r"[^:]*:(\d+):(\d+): (?:(\S+): )?(.*)", re.DOTALL)
OF_FILES: Final = {
    "python": "runs code of the server, so it is for files of the project; use another kind here"
}
"""Kinds that only files may have, and why."""


class Checked:
    """A text that was read.

    Attributes:
        complaints: What is wrong or odd, in the order of the text.
        file: What it says; None when it cannot be used.
        action: What carries test calls out; None when it cannot be used here. It may not be fit to be published.
    """

    def __init__(self) -> None:
        self.complaints: list[Complaint] = []
        self.file: ActionFile | None = None
        self.action: FileAction | None = None

    @property
    def wrong(self) -> list[Complaint]:
        """The complaints that keep it from being published."""
        return [one for one in self.complaints if not one.warning]


def read_text(text: str) -> Reading:
    """Read a text, by itself."""
    return read_actions(text, WHERE)


def check_text(
    text: str,
    files: Mapping[str, str],
    around: Surroundings,
    *,
    tenant: str = "",
    name: str | None = None,
    built: Mapping[str, FileAction] | None = None,
) -> Checked:
    """Read a text and check it against all that is around it.

    Args:
        text: The text.
        files: Its OpenAPI documents, by name.
        around: What it is checked against.
        tenant: Whose it is.
        name: The name it has in the library; None for that of the text.
        built: What is published in the library, by name.
    """
    checked = Checked()
    reading = read_text(text)
    checked.complaints += map(_unreadable, reading.unreadable)
    if not reading.written:
        return checked
    written, *more = reading.written
    if more:
        written.complaints.add((), "holds several actions; save each under its own name")
    built = {known: one for known, one in (built or {}).items() if known != written.name}
    _check_together(written, built, around)
    action = written.action
    if action is not None:
        _check_bounds(written, action, around)
        if not written.complaints.wrong:
            checked.file = action
            checked.action = _made(written, action, around.means_for(tenant, built), files)
        _check_ready(written, action, around)
    _check_name(written, name, around)
    checked.complaints += sorted(written.complaints.found)
    return checked


def _check_together(
    written: Written, built: Mapping[str, FileAction], around: Surroundings
) -> None:
    code, open_code = around.code(), around.open_code()
    specs = {known: one.spec for known, one in {**built, **code}.items()}
    check_together([written, *map(_as_written, _pipelines(built))], specs)
    run = written.action.run if written.action is not None else None
    for index, step in enumerate(run.steps if isinstance(run, PipelineRun) else ()):
        if step.action in code and step.action not in open_code:
            what = f"{step.action} is code of the server; [library] actions in loopagent.toml would have to list it"
            written.complaints.add(("run", "steps", index, "action"), what)


def _pipelines(built: Mapping[str, FileAction]) -> list[FileAction]:
    return [one for one in built.values() if one.file.run.kind == "pipeline"]


def _as_written(action: FileAction) -> Written:
    """A pipeline that was published: what is checked may lead back to itself through it."""
    return read_action(action.file.model_dump(mode="json", by_alias=True, exclude_unset=True))


def _unreadable(problem: str) -> Complaint:
    """A complaint about a text of which nothing can be read."""
    found = _LINE.fullmatch(problem)
    if found is None:
        return Complaint(1, 1, "(file)", problem)
    return Complaint(int(found[1]), int(found[2]), found[3] or "(file)", found[4])


def _check_name(written: Written, name: str | None, around: Surroundings) -> None:
    if not written.name:
        return  # that there is none was said
    if name is not None and written.name != name:
        what = f"is {written.name[:100]!r}, and the action is called {name!r}; rename one of them"
        written.complaints.add(("name",), what)
    if written.name in around.code():
        what = f"an action of the project's files is called {written.name!r}; choose another name"
        written.complaints.add(("name",), what)


def _check_bounds(written: Written, action: ActionFile, around: Surroundings) -> None:
    """What a file may do and the page may not: with any of it, not even a test call is made."""
    complain = written.complaints.add
    kind = action.run.kind
    if kind in OF_FILES:
        complain(("run", "kind"), f"{kind} {OF_FILES[kind]}")
    if action.egress.private_networks is not None:
        what = "which private networks can be reached is said in loopagent.toml; remove it"
        complain(("egress", "privateNetworks"), what)
    if isinstance(action.run, PromptRun) and action.run.model is not None:
        _check_model(written, action.run.model, around)


def _check_ready(written: Written, action: ActionFile, around: Surroundings) -> None:
    """What has to be put right before it is published; a test call shows it too."""
    complain, allowed = written.complaints.add, around.means.egress.hosts
    for index, host in enumerate(action.egress.hosts):
        if allowed and not matches(host, allowed):
            what = f"{host} is not among the hosts that loopagent.toml allows"
            complain(("egress", "hosts", index), what)
    if not action.enabled:
        complain(("enabled",), "is disabled; look at all of it, then say `enabled: true`")
    _check_secrets(written, action, around)


def _check_model(written: Written, model: str, around: Surroundings) -> None:
    known = around.models()
    if model not in known:
        what = f"{model[:100]!r} is none of the models that may be named here"
        written.complaints.add(("run", "model"), what + did_you_mean(model, known))


def _check_secrets(written: Written, action: ActionFile, around: Surroundings) -> None:
    known = around.secrets
    if known is not None:
        check_known(written, known)
        return
    store = around.means.secrets
    for index, name in enumerate(action.secrets):
        if store is None or store.get(name) is None:
            written.complaints.add(("secrets", index), f"there is no secret {name!r}")


def _made(
    written: Written, action: ActionFile, means: Means, files: Mapping[str, str]
) -> FileAction | None:
    try:
        return make_action(action, means, None, files)
    except ConfigError as error:
        written.complaints.add(("run",), str(error))
        return None
