"""The carrier of the example: a little HTTP API on this machine, with a token and three parcels."""

from __future__ import annotations

import json
import os
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


TOKEN = os.environ.get("CARRIER_TOKEN", "")
PARCELS: dict[str, dict[str, Any]] = {
    "P-7": {"state": "on its way", "due": "2026-12-02", "stops": ["Coimbra", "Lisbon"]},
    "P-8": {"state": "delivered", "due": None, "stops": ["Braga", "Porto", "Porto"]},
    "P-9": {"state": "waiting", "due": "2026-12-05", "stops": []},
}


class Carrier(BaseHTTPRequestHandler):
    """Tells where parcels are, and takes other addresses."""

    def do_GET(self) -> None:
        """Tell where a parcel is."""
        self._answer(lambda parcel: parcel)

    def do_POST(self) -> None:
        """Send a parcel elsewhere."""
        self._answer(lambda parcel: {**parcel, "state": "redirected"})

    def _answer(self, change: Any) -> None:
        found = re.match(r"/v1/parcels/([^/]+)", self.path)
        parcel = PARCELS.get(found[1]) if found else None
        status, body = (200, change(parcel)) if parcel else (404, {"detail": "no such parcel"})
        if not TOKEN or self.headers.get("Authorization") != f"Bearer {TOKEN}":
            status, body = 401, {"detail": "who are you?"}
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", 8099), Carrier).serve_forever()
