"""Setting OpenTelemetry up for a process that has no host, as its `OTEL_*` variables say."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from loopagent.errors import ConfigError
from loopagent.telemetry import Telemetry, wants_content


if TYPE_CHECKING:
    from collections.abc import Mapping

_OTLP: Final = "otlp_proto_http"
_GROUPS: Final = {
    "OTEL_TRACES_EXPORTER": "opentelemetry_traces_exporter",
    "OTEL_METRICS_EXPORTER": "opentelemetry_metrics_exporter",
}
"""Variable that names an exporter, and the entry points that exporters register at."""


def exporting(env: Mapping[str, str], *, metrics: bool) -> Telemetry:
    """Telemetry that is sent away.

    Args:
        env: `OTEL_TRACES_EXPORTER` and `OTEL_METRICS_EXPORTER` (`otlp`, `console`, `none`), `OTEL_SERVICE_NAME`; the
            exporters themselves read `OTEL_EXPORTER_OTLP_ENDPOINT` and the like from the process.
        metrics: Count for `/metrics` too.

    Raises:
        ConfigError: What is needed is not installed.
    """
    try:
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415 - an extra
            PeriodicExportingMetricReader,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - an extra
    except ImportError as error:
        text = "`otel` needs an extra: pip install 'loopagent[otel]'"
        raise ConfigError(f"{text} ({error})") from error
    spans, counts = (_exporter(env, variable) for variable in _GROUPS)
    resource = Resource.create({"service.name": env.get("OTEL_SERVICE_NAME", "loopagent")})
    tracers = TracerProvider(resource=resource)
    if spans is not None:
        tracers.add_span_processor(BatchSpanProcessor(spans))
    readers = [] if counts is None else [PeriodicExportingMetricReader(counts)]
    meters = MeterProvider(readers, resource)
    return Telemetry(
        metrics=metrics,
        tracer_provider=None if spans is None else tracers,
        meter_provider=None if counts is None else meters,
        content=wants_content(env),
        at_end=(tracers.shutdown, meters.shutdown),
    )


def _exporter(env: Mapping[str, str], variable: str) -> Any:
    """The exporter that a variable names, None for none.

    Raises:
        ConfigError: It is not installed.
    """
    name = env.get(variable, "").strip() or "otlp"
    if name == "none":
        return None
    entry = _OTLP if name == "otlp" else name
    for found in entry_points(group=_GROUPS[variable], name=entry):
        return found.load()()
    package = f"opentelemetry-exporter-{entry.replace('_', '-')}"
    text = f"there is no exporter {name!r}: pip install {package}, or set {variable} to console or none"
    raise ConfigError(text)
