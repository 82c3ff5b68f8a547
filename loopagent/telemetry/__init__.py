"""Telemetry: traces and metrics of runs. Nothing of it is loaded or called where there is none.

`names` has all names, `spans` makes traces, `measures` says what is counted, `prometheus` shows it, `watching` stands
between the engine and its models and performer.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loopagent.errors import RequestError
from loopagent.telemetry import names
from loopagent.telemetry.measures import QUEUE, REQUESTS_WAITING, RUNS_ACTIVE, Measures, Sink
from loopagent.telemetry.prometheus import Registry
from loopagent.telemetry.watching import WatchedPerformer, watched_models


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from loopagent.core.state import RunState
    from loopagent.ports import Model, Store
    from loopagent.runtime.bus import Bus
    from loopagent.runtime.performs import Performs
    from loopagent.telemetry.spans import Tracing

__all__ = ["Telemetry", "found", "wants_content"]


class Telemetry:
    """What one app tells about its runs; with nothing to tell to, nothing is watched.

    Args:
        metrics: Count for `/metrics`.
        tracer_provider: Where traces go; None for nowhere.
        meter_provider: Where metrics go beside `/metrics`; None for nowhere.
        content: Tell prompts, replies, parameters and results too, without secrets.
        at_end: Called when the app ends, each in a thread: sends what is left.
    """

    def __init__(
        self,
        *,
        metrics: bool = True,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        content: bool = False,
        at_end: Sequence[Callable[[], object]] = (),
    ) -> None:
        self.registry = Registry() if metrics else None
        self._tracer_provider = tracer_provider
        self._content = content
        self._at_end = at_end
        sinks: list[Sink] = [] if self.registry is None else [self.registry]
        if meter_provider is not None:
            from loopagent.telemetry.meters import OtelSink  # noqa: PLC0415 - only who needs it

            sinks.append(OtelSink(meter_provider))
        self.measures = Measures(*sinks) if sinks else None
        self.tracing: Tracing | None = None

    def connect(self, bus: Bus, mask: Callable[[str], str]) -> Telemetry:
        """Begin to tell.

        Args:
            bus: Tells of commits.
            mask: Takes secrets out of content.

        Returns:
            Itself.
        """
        if self._tracer_provider is not None:
            from loopagent.telemetry.spans import Tracing  # noqa: PLC0415 - only who traces needs it

            tracer = self._tracer_provider.get_tracer(names.SCOPE, schema_url=names.SCHEMA_URL)
            self.tracing = Tracing(tracer, mask if self._content else None)
            bus.taps.append(self.tracing.committed)
        if self.measures is not None:
            bus.taps.append(self.measures.committed)
        return self

    @property
    def watches(self) -> bool:
        """Whether there is anything to tell to."""
        return self.tracing is not None or self.measures is not None

    def models(self, open_model: Callable[[str], Model]) -> Callable[[str], Model]:
        """Opens models as another function does, watched."""
        if not self.watches:
            return open_model
        return watched_models(open_model, self.tracing, self.measures)

    def performer(self, inner: Performs) -> Performs:
        """A performer, watched."""
        if not self.watches:
            return inner
        return WatchedPerformer(inner, self.tracing, self.measures)

    @contextmanager
    def starting(self, state: RunState) -> Iterator[None]:
        """Open the trace of a run that is about to be created, and have the run remember it."""
        if self.tracing is None:
            yield
            return
        state.trace = self.tracing.begin(state)
        try:
            yield
        except BaseException:
            self.tracing.abandon(state.id)
            raise

    def delivery(self, trigger: str, status: str) -> None:
        """Count an event that reached a trigger, or that got on."""
        if self.measures is not None:
            self.measures.delivery(trigger, status)

    async def exposition(self, store: Store, active: int) -> str:
        """The metrics in the text format of Prometheus.

        Args:
            store: Where requests and work wait.
            active: Runs that this process works on.

        Raises:
            RequestError: `metrics_off` (404).
        """
        if self.registry is None:
            text = "Metrics are off; set `metrics` to true, or give the app a `Telemetry`."
            raise RequestError("metrics_off", text, status=404)
        waiting, work = await store.open_requests(), len(await store.unfinished())
        queue = max(0, work - active)
        return self.registry.text({REQUESTS_WAITING: waiting, QUEUE: queue, RUNS_ACTIVE: active})

    async def aclose(self) -> None:
        """End what is open, and send what is left."""
        if self.tracing is not None:
            self.tracing.close()
        for one in self._at_end:
            await asyncio.to_thread(one)


def found(env: Mapping[str, str]) -> Telemetry:
    """Telemetry for a host that has set OpenTelemetry up before; when it has not, for nobody.

    Args:
        env: `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says whether content is told.
    """
    trace: Any = sys.modules.get("opentelemetry.sdk.trace")
    if trace is None:
        return Telemetry(metrics=False)
    from opentelemetry import metrics as meters  # noqa: PLC0415 - only where it is loaded anyway
    from opentelemetry import trace as tracers  # noqa: PLC0415 - as above

    tracer_provider, meter_provider = tracers.get_tracer_provider(), meters.get_meter_provider()
    traces = isinstance(tracer_provider, trace.TracerProvider)
    sdk: Any = sys.modules.get("opentelemetry.sdk.metrics")
    measures = sdk is not None and isinstance(meter_provider, sdk.MeterProvider)
    return Telemetry(
        metrics=False,
        tracer_provider=tracer_provider if traces else None,
        meter_provider=meter_provider if measures else None,
        content=wants_content(env),
    )


def wants_content(env: Mapping[str, str]) -> bool:
    """Whether the environment asks for content."""
    return env.get(names.CONTENT_VARIABLE, "").strip().lower() in ("1", "true")
