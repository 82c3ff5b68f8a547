"""What a pipeline tells about itself besides its value: to the model in a note, to everybody in events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from loopagent.core.facts import FactData
from loopagent.core.facts_pipeline import PipelineCompleted, PipelineStarted, PipelineStep
from loopagent.core.json_values import is_array, is_object
from loopagent.core.pipeline.trace import NOT_STARTED, NOTHING, Failed, Ran, Value, calls_of
from loopagent.core.pipeline.values import describe, excerpt, is_degenerate, keys_of, rows_of
from loopagent.core.protocol.pipeline import AgentPipelineRequest
from loopagent.core.protocol.stages import LetStage, Stage, ToolStage


LABEL_STAGES: Final = 6
"""Most stages that a label names."""
SHOWN_MISSES: Final = 3
"""Most failed entries of a `map` whose reasons a note gives."""
SAMPLE_ENTRIES: Final = 20
"""Entries whose field names are looked at."""


def label_of(request: AgentPipelineRequest) -> str:
    """The stages in short: `list-orders > where > count`."""
    names = [_name(one) for one in request.steps]
    return " > ".join([*names[:LABEL_STAGES], *(["…"] if len(names) > LABEL_STAGES else [])])


def _name(stage: Stage) -> str:
    if isinstance(stage, LetStage):
        return f"let {stage.let.name}"
    return stage.tool if isinstance(stage, ToolStage) else stage.verb


def note_on(end: Value | Failed) -> str:
    """What the model has to know beside the value: lost entries, where an empty value came from, how far it got."""
    missed = [
        _misses(index, one)
        for index, one in enumerate(end.trace)
        if one.misses and one.error is None
    ]
    if isinstance(end, Failed):
        return "; ".join([*missed, *_how_far(end)])
    if not _says_nothing(end.value):
        return "; ".join(missed)
    emptied = next((text for at, one in enumerate(end.trace) if (text := _emptied(at, one))), "")
    return "; ".join([*missed, *([emptied] if emptied else []), f"stages: {_flow(end.trace)}"])


def _how_far(end: Failed) -> list[str]:
    """What was done before the failure: the model must know which calls had their effect."""
    done = [one for one in end.trace if one.error is None]
    texts = [f"before that: {_flow(done)}"] if done else []
    last = end.trace[-1] if end.trace else None
    if last is not None and last.error and last.misses and last.base:
        total = len(rows_of(last.base.value))
        texts.append(f"{len(last.value)} of {total} entries were tried, {len(last.misses)} failed")
    calls = Counter((one.action, one.outcome.ok) for one in calls_of(end.trace))
    made = [f"{name} {times} {'ok' if ok else 'failed'}" for (name, ok), times in calls.items()]
    return [*texts, f"calls: {', '.join(made)}"] if made else texts


def _says_nothing(value: Any) -> bool:
    return is_degenerate(value) or (type(value) is int and value == 0)


def _flow(trace: Sequence[Ran]) -> str:
    return ", ".join(
        f"{one.label} {'-' if one.value is NOTHING else describe(rows_of(one.value))}"
        for one in trace
    )


def _misses(index: int, ran: Ran) -> str:
    total = len(ran.value) if is_array(ran.value) else 0
    tried = [(at, one) for at, one in ran.misses if one.code != NOT_STARTED]
    shown = [f"entry {at}: {failure}" for at, failure in tried[:SHOWN_MISSES]]
    more = [f"and {len(tried) - SHOWN_MISSES} more"] if len(tried) > SHOWN_MISSES else []
    if len(tried) < len(ran.misses):
        first, why = ran.misses[len(tried)]
        more.append(f"from entry {first} on none was started: {why}")
    what = (
        f"{len(ran.misses)} of {total} entries of steps[{index}] ({ran.label}) failed and are null"
    )
    return f"{what}: " + "; ".join([*shown, *more])


def _emptied(index: int, ran: Ran) -> str:
    """What to say about a stage that made nothing out of something; "" about any other."""
    before = rows_of(ran.base.value) if ran.base else None
    if ran.bound is not None or not is_array(before) or not before or is_degenerate(before):
        return ""
    if not is_degenerate(ran.value):
        return ""
    left = "only null for" if is_array(ran.value) and ran.value else "nothing of"
    return f"steps[{index}] ({ran.label}) left {left} {describe(before)}, {_sample(before)}"


def _sample(entries: list[Any]) -> str:
    objects = [one for one in entries[:SAMPLE_ENTRIES] if is_object(one)]
    if not objects:
        return f"the first is {excerpt(entries[0], 60)}"
    fields = {key: None for one in objects for key in one}
    return f"their fields are {keys_of(fields)}"


def started(request: AgentPipelineRequest) -> PipelineStarted:
    """What is told when a pipeline begins."""
    return PipelineStarted(label=label_of(request), stages=len(request.steps))


def ended(end: Value | Failed, key: str, preview_chars: int) -> tuple[tuple[str, FactData], ...]:
    """What is told when a pipeline has ended: each stage that ran, then the whole, each with its key."""
    told: list[tuple[str, FactData]] = []
    for index, ran in enumerate(end.trace):
        step = PipelineStep(
            index=index,
            stage=ran.label,
            ok=ran.error is None,
            before=_described(ran.base.value if ran.base else NOTHING),
            after="" if ran.error else _described(ran.value),
            preview="" if ran.error else _previewed(ran.value, preview_chars),
            missed=len(ran.misses),
            error=str(ran.error) if ran.error else None,
        )
        told.append((f"{key}.{index}", step))
    ok = isinstance(end, Value)
    whole = PipelineCompleted(
        ok=ok,
        calls=sum(1 for _ in calls_of(end.trace)),
        preview=_previewed(end.value, preview_chars) if isinstance(end, Value) else "",
        error=None if isinstance(end, Value) else str(end.failure),
    )
    return (*told, (key, whole))


def _described(value: Any) -> str:
    return "" if value is NOTHING else describe(value)


def _previewed(value: Any, max_chars: int) -> str:
    return "" if value is NOTHING else excerpt(value, max_chars)
