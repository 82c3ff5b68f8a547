"""What a loop tells the model: counts, failures and the first results; the whole stays behind a handle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loopagent.core.effects import KeepValue
from loopagent.core.facts_loop import LoopCompleted, LoopKind, LoopProgress
from loopagent.core.outcome import NOT_FAILURES
from loopagent.core.payload import PayloadChange
from loopagent.core.payload_writer import size_of
from loopagent.core.results import ALL
from loopagent.core.steps import Done


if TYPE_CHECKING:
    from loopagent.core.loops import Course
    from loopagent.core.mapping import Outputs
    from loopagent.core.outcome import Outcome
    from loopagent.core.outcomes import Outcomes
    from loopagent.core.state import RunState

KEPT: Final = "kept"
"""Key of the effect that stores the full results."""
SHOWN_RESULTS: Final = 5
"""Results of passes that the prompt shows; a loop of up to twice as many is shown whole."""
SHOWN_FAILURES: Final = 10
"""Failed passes that the prompt lists."""
SHOWN_CHARS: Final = 400
"""Longest result of one pass that the prompt shows as it is."""


def keep_results(run: RunState, course: Course) -> KeepValue | None:
    """The effect that stores the results of all passes; none for a loop that the prompt shows whole."""
    if len(course.ended) <= 2 * SHOWN_RESULTS and all(_fits(one) for one in course.ended.values()):
        return None
    every = [_entry(*one) for one in sorted(course.ended.items())]
    return KeepValue(f"{run.turn}:{KEPT}", every, always=True)


def finished(
    run: RunState,
    course: Course,
    results: Outcomes,
    kind: LoopKind,
    *,
    passes: int | None,
    **more: Any,
) -> Done:
    """The end of a loop.

    Args:
        run: The run.
        course: The loop, all of whose passes have ended.
        results: What is known of the step.
        kind: Which loop.
        passes: How many passes there were to be, when that is known.
        more: Further entries of the report.
    """
    count = len(course.ended)
    done, failed = count - course.failed, course.failed
    not_started = 0 if passes is None else passes - count
    # Where every pass was made, it makes no difference which of them would have been the last.
    stopped = course.stopped if not_started or passes is None else ""
    report: dict[str, Any] = {"done": done, "failed": failed, **more}
    if not_started:
        report["notStarted"] = not_started
    if stopped:
        report["stopped"] = stopped
    ended = sorted(course.ended.items())
    if failed:
        failures = [one for one in ended if not one[1].ok][:SHOWN_FAILURES]
        report["failures"] = [_entry(*one) for one in failures]
    kept = results.get(KEPT)
    good = [one for one in ended if one[1].ok]
    shown = good if kept is None else good[:SHOWN_RESULTS]
    report["results" if kept is None else "first"] = [_entry(*one, short=True) for one in shown]
    ok = not (failed or not_started or stopped)
    entry = {"call": 1, "action": f"{kind} {course.body.what}", "ok": ok, "result": report}
    if kept is not None and kept.ok:
        entry[ALL] = kept.value
    outputs = course.collect(run)
    told = LoopCompleted(
        kind=kind, done=done, failed=failed, not_started=not_started, stopped=stopped
    )
    return Done(
        calls=course.calls(run),
        results=(entry,),
        payload=_change(run, outputs),
        facts=((course.rule.prefix, told),),
        progress=done > 0,
        failed=_went_wrong(course),
        passes=done,
    )


def _went_wrong(course: Course) -> bool:
    """Whether a pass failed, or the loop could not even begin; what a person refused is no mistake."""
    if not course.failed:
        return bool(course.stopped and not course.ended)
    errors = [one.error for one in course.ended.values() if one.error is not None]
    return any(one.code not in NOT_FAILURES for one in errors)


def progress(course: Course | None, passes: int | None) -> LoopProgress | None:
    """How far a loop is."""
    if course is None:
        return None
    done = len(course.ended) - course.failed
    return LoopProgress(done=done, failed=course.failed, passes=passes)


def _change(run: RunState, outputs: Outputs) -> PayloadChange | None:
    """The payload change of a loop; one that would make the payload too large is left out as a whole."""
    refused = list(outputs.refused)
    if outputs.left_out:
        refused.append(f"and {outputs.left_out} more")
    if not outputs.patch and not refused:
        return None
    most = run.spec.limits.max_payload_bytes
    if outputs.patch and size_of(outputs.payload) > most:
        text = f"the output mapping: the payload would be larger than {most} bytes"
        return PayloadChange(run.payload, refused=[text, *refused])
    return PayloadChange(outputs.payload, patch=outputs.patch, refused=refused)


def _entry(index: int, outcome: Outcome, *, short: bool = False) -> dict[str, Any]:
    if outcome.error is not None:
        return {"index": index, "ok": outcome.ok, "error": outcome.error.public()}
    return {"index": index, "ok": outcome.ok, "result": _cut(outcome) if short else outcome.value}


def _fits(outcome: Outcome) -> bool:
    return not outcome.ok or len(outcome.text()) <= SHOWN_CHARS


def _cut(outcome: Outcome) -> Any:
    text = outcome.text()
    if len(text) <= SHOWN_CHARS:
        return outcome.value
    return f"{text[:SHOWN_CHARS]} … ({len(text)} characters)"
