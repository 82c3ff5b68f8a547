"""`artifactToolCalls`: looking into stored texts and files without loading them whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from loopagent.core.artifact_kinds import TOOLS
from loopagent.core.effects import ReadArtifact
from loopagent.core.facts_artifacts import ArtifactRead
from loopagent.core.inline_operation import Entry, Operation
from loopagent.core.outcome import Outcome
from loopagent.core.payload_view import HANDLE as PAYLOAD
from loopagent.core.payload_view import KIND as PAYLOAD_KIND
from loopagent.core.payload_view import is_long
from loopagent.core.problems import Problem, quoted


if TYPE_CHECKING:
    from collections.abc import Sequence

    from loopagent.core.agent_spec import AgentSpec
    from loopagent.core.state import Artifact, RunState


_HASH: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
MAX_LISTED = 30
"""Most handles that an error names."""


class ArtifactCalls(Operation[ReadArtifact]):
    """Calls of the tools that fit an artifact's type. A call that names no artifact fails alone."""

    field = "artifactToolCalls"
    key = "artifact"

    def offered(self, spec: AgentSpec) -> bool:
        """The agent's setting `artifactTools`."""
        return spec.artifact_tools

    def check(
        self, run: RunState, entries: Sequence[Entry], path: str
    ) -> tuple[list[Entry], list[Problem], list[str]]:
        """Only their number can be wrong; everything else is an outcome of its own."""
        most = run.spec.limits.max_artifact_calls
        if len(entries) > most:
            return [], [Problem(path, f"at most {most} calls in one reply", str(len(entries)))], []
        warnings = [
            f"{path}[{number}].artifactId: {quoted(one['artifactId'])} read as {found.handle}"
            for number, one in enumerate(entries)
            if not _is_payload(run, one["artifactId"])
            and (found := find(run.artifacts, one["artifactId"]))
            and found.handle != one["artifactId"]
        ]
        return list(entries), [], warnings

    def effects(self, run: RunState, entries: Sequence[Entry]) -> tuple[ReadArtifact, ...]:
        """One read for each call."""
        return tuple(self._effect(run, number, one) for number, one in enumerate(entries))

    def _effect(self, run: RunState, number: int, entry: Entry) -> ReadArtifact:
        wanted, inline_id = entry["artifactId"], self.inline_id(run, number)
        tool, params = entry["tool"], entry.get("input") or {}
        if _is_payload(run, wanted):
            return ReadArtifact(inline_id, PAYLOAD, tool, params, PAYLOAD, PAYLOAD_KIND)
        if (found := find(run.artifacts, wanted)) is not None:
            about = found.artifact_id, found.kind, found.name
            return ReadArtifact(inline_id, found.handle, tool, params, *about)
        stored = str(wanted) if is_hash(wanted) else ""
        return ReadArtifact(inline_id, str(wanted), tool, params, stored, stored and "text")

    def answered(self, run: RunState, effect: ReadArtifact) -> Outcome | None:
        """An unknown artifact, or a tool that does not fit it, needs no reading."""
        if not effect.artifact_id:
            there = ", ".join(one.handle for one in run.artifacts[-MAX_LISTED:])
            what = f"there are {there}" if there else "there are none in this run"
            return Outcome.failed("no_artifact", f"No artifact {quoted(effect.handle)}; {what}.")
        tools = TOOLS[effect.artifact_kind]
        if effect.tool in tools:
            return None
        fitting = ", ".join(tools)
        text = f"No tool {quoted(effect.tool)} for {effect.handle}; it has {fitting}."
        return Outcome.failed("no_tool", text)

    def entry(self, effect: ReadArtifact, outcome: Outcome) -> Entry:
        """Which artifact and tool, and what was found."""
        told: Entry = {"artifact": effect.handle, "tool": effect.tool, "ok": outcome.ok}
        if outcome.ok:
            return {**told, "result": outcome.value}
        return {**told, "error": outcome.error.public() if outcome.error else None}

    def fact(self, effect: ReadArtifact, outcome: Outcome) -> ArtifactRead:
        """That it was looked into; never what was found."""
        error = outcome.error.public() if outcome.error else None
        return ArtifactRead(handle=effect.handle, tool=effect.tool, ok=outcome.ok, error=error)


def artifact_list(run: RunState, payload: str) -> dict[str, Any]:
    """What the prompt says of the artifacts: name, type and size of each, and the tools of the kinds there are.

    Args:
        run: The run.
        payload: Its payload as JSON; one that is too long to be shown is looked into like an artifact.
    """
    shown = _listed(run.artifacts, run.spec.context.listed_artifacts)
    described = {one.handle: _described(one) for one in shown}
    kinds = [one.kind for one in run.artifacts]
    if is_long(run, payload):
        described[PAYLOAD] = f"{PAYLOAD_KIND}, {len(payload)} chars"
        kinds.append(PAYLOAD_KIND)
    listed: dict[str, Any] = {"artifacts": described}
    if left := len(run.artifacts) - len(shown):
        last = run.artifacts[-1].handle
        listed["artifactsNotListed"] = f"{left} older ones, among A to {last}"
    if run.spec.artifact_tools:
        listed["artifactTools"] = {
            kind: " ".join(f"{name}({params})" for name, params in TOOLS[kind].items())
            for kind in dict.fromkeys(kinds)
        }
    return listed


def _listed(artifacts: Sequence[Artifact], most: int) -> Sequence[Artifact]:
    """As many as are listed, in order: those with a name before results, the latest before older ones."""
    if len(artifacts) <= most:
        return artifacts
    newest = reversed(range(len(artifacts)))
    chosen = sorted(newest, key=lambda one: not artifacts[one].name)[:most]
    return [artifacts[one] for one in sorted(chosen)]


def _described(artifact: Artifact) -> str:
    size = f"{artifact.chars} {'bytes' if artifact.media_type else 'chars'}"
    version = f"version {artifact.version}" if artifact.version > 1 else ""
    parts = (artifact.name, version, artifact.media_type or artifact.kind, size)
    return ", ".join(one for one in parts if one)


def _is_payload(run: RunState, wanted: Any) -> bool:
    """Whether the payload itself is meant, and no artifact of that name."""
    name = str(wanted).strip().lower()
    return name == PAYLOAD and all(one.name.lower() != name for one in run.artifacts)


def is_hash(wanted: Any) -> bool:
    """Whether a result inside of another one is meant, by the hash it is stored under: it is looked into as text."""
    return _HASH.fullmatch(str(wanted)) is not None


def find(artifacts: Sequence[Artifact], wanted: Any) -> Artifact | None:
    """The artifact of a handle or hash, else the newest of a name, else the only one there is.

    Source: order of the look-up from protocol reference, section 10.2.
    """
    text = str(wanted).strip()
    for one in artifacts:
        if text.upper() == one.handle or text == one.artifact_id:
            return one
    if is_hash(text):
        return None
    named = [one for one in artifacts if one.name and one.name.lower() == text.lower()]
    if named:
        return named[-1]
    return artifacts[0] if len(artifacts) == 1 else None
