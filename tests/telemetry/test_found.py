"""Where telemetry goes: to what the host has set up, to what `OTEL_*` says, or nowhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from loopagent import Agent, App, ConfigError, TriggerSpec
from loopagent.models.scripted import ScriptedModel
from loopagent.telemetry import Telemetry, names, wants_content
from loopagent.telemetry.exporting import exporting


HOST = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from loopagent import Agent
from loopagent.models.scripted import ScriptedModel

told = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(told))
trace.set_tracer_provider(provider)
Agent("clerk", model=ScriptedModel([{"taskComplete": True, "message": "Done."}])).run_sync("Go.")
print([one.name for one in told.get_finished_spans()])
"""
ALONE = """
import sys
from loopagent import Agent
from loopagent.models.scripted import ScriptedModel

Agent("clerk", model=ScriptedModel([{"taskComplete": True, "message": "Done."}])).run_sync("Go.")
print([one for one in sys.modules if one.startswith(("opentelemetry.sdk", "loopagent.telemetry.spans"))])
"""


def _printed(script: str) -> str:
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_what_the_host_has_set_up_is_told() -> None:
    assert _printed(HOST) == "['chat python', 'turn 1', 'invoke_agent clerk']"


def test_without_a_host_nothing_is_loaded() -> None:
    assert _printed(ALONE) == "[]"


def test_exporters_are_chosen_by_name() -> None:
    with pytest.raises(ConfigError, match="pip install opentelemetry-exporter-nowhere-at-all"):
        exporting({"OTEL_TRACES_EXPORTER": "nowhere_at_all"}, metrics=True)
    off = {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}
    assert exporting(off, metrics=False).measures is None


@pytest.mark.parametrize(("value", "wanted"), [("true", True), (" 1 ", True), ("", False), ("no", False)])  # fmt: skip
def test_content_is_asked_for(value: str, wanted: bool) -> None:
    assert wants_content({names.CONTENT_VARIABLE: value}) is wanted


@pytest.mark.anyio
async def test_what_triggers_do_is_counted() -> None:
    hook = {"webhook": {"auth": {"type": "none"}}, "match": {"body": [1]}}
    spec = TriggerSpec.model_validate({"name": "t", "agent": "clerk", "message": "Go.", **hook})
    model = ScriptedModel([{"taskComplete": True, "message": "Done."}])
    telemetry = Telemetry()
    agents = [Agent("clerk", model=model)]
    async with App(agents=agents, triggers=[spec], telemetry=telemetry, env={}) as app:
        await app.triggers.fire("t", 1)
        await app.triggers.fire("t", 2)
        text = await telemetry.exposition(app.store, 0)
    labels = '{{loopagent_delivery_status="{}",loopagent_trigger_name="t"}}'
    for status in ("starting", "fired", "filtered"):
        assert f"loopagent_trigger_deliveries_total{labels.format(status)} 1" in text
