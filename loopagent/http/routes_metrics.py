"""Numbers of this process, for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Response

from loopagent.http.problems import responses
from loopagent.http.routes_runs import Host
from loopagent.telemetry.prometheus import MEDIA_TYPE


router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {
            "description": "Counters, histograms and gauges.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
        **responses(401, 404, 503),
    },
)
async def metrics(app: Host) -> Response:
    """Show the metrics of this process, and what waits in the store."""
    text = await app.telemetry.exposition(app.store, sum(1 for _ in app.engine.runs))
    return Response(text, media_type=MEDIA_TYPE)
