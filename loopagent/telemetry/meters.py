"""Metrics for a meter of OpenTelemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopagent.telemetry import names
from loopagent.telemetry.measures import COUNTED


if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.metrics import Meter, MeterProvider

    from loopagent.telemetry.prometheus import Instrument


class OtelSink:
    """Hands what was measured to a meter provider."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter(names.SCOPE, schema_url=names.SCHEMA_URL)
        self._made: dict[Instrument, Any] = {one: _made(meter, one) for one in COUNTED}

    def add(self, instrument: Instrument, value: float, attributes: Mapping[str, str]) -> None:
        """Count; see `Sink.add`."""
        made = self._made[instrument]
        if instrument.kind == "histogram":
            made.record(value, attributes)
        else:
            made.add(value, attributes)


def _made(meter: Meter, one: Instrument) -> Any:
    if one.kind == "histogram":
        return meter.create_histogram(
            one.name, one.unit, one.help, explicit_bucket_boundaries_advisory=one.bounds
        )
    return meter.create_counter(one.name, one.unit, one.help)
