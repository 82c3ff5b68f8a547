"""Take the screenshots of the main pages anew: `python scripts/screenshots.py`, with Chromium on the machine.

A server plays the demo, a browser looks at it, and each picture is written to `docs/screenshots` with at most 256
colours, which text and lines need no more of.
"""

from __future__ import annotations

import struct
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any


ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.http.server import serving  # noqa: E402 - the tests are found by the path above
from tests.web.browser import PHONE, launched, watched  # noqa: E402


if TYPE_CHECKING:
    import httpx2
    from playwright.sync_api import Page

PLACE = ROOT / "docs" / "screenshots"
LAPTOP = {"width": 1100, "height": 720}
MAX_COLOURS = 256
TASK = "Which orders are late, and in which region?"
SIGNATURE = b"\x89PNG\r\n\x1a\n"


# ---------------------------------------------------------------------- pictures


def smaller(png: bytes) -> bytes:
    """A picture of Chromium's (eight bits a channel) with a palette instead of three bytes a pixel."""
    width, height, pixels = decoded(png)
    common = [colour for colour, _ in Counter(pixels).most_common()]
    palette = common[:MAX_COLOURS]
    place = {colour: at for at, colour in enumerate(palette)}
    for colour in common[MAX_COLOURS:]:
        place[colour] = min(range(len(palette)), key=lambda at: distance(palette[at], colour))
    rows = bytearray()
    for start in range(0, width * height, width):
        rows += bytes((0, *(place[one] for one in pixels[start : start + width])))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", header), (b"PLTE", b"".join(palette)))
    data = zlib.compress(bytes(rows), 9)
    return SIGNATURE + b"".join(chunk(*one) for one in (*parts, (b"IDAT", data), (b"IEND", b"")))


def decoded(png: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height, and the colour of each pixel as three bytes."""
    chunks = dict[bytes, bytes]()
    for name, body in chunks_of(png):
        chunks[name] = chunks.get(name, b"") + body
    width, height, _, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    size = {2: 3, 6: 4}[kind]
    raw, stride = zlib.decompress(chunks[b"IDAT"]), width * size
    above = bytes(stride)
    pixels: list[bytes] = []
    for start in range(0, len(raw), stride + 1):
        above = unfiltered(raw[start], raw[start + 1 : start + 1 + stride], above, size)
        pixels += [above[at : at + 3] for at in range(0, stride, size)]
    return width, height, pixels


def chunks_of(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The chunks of a PNG file: names and bodies."""
    at = len(SIGNATURE)
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        at += size + 12


def unfiltered(kind: int, line: bytes, above: bytes, size: int) -> bytes:
    """One line of pixels; each byte was stored as the difference from its neighbours."""
    found = bytearray(line)
    for at, value in enumerate(line):
        left = found[at - size] if at >= size else 0
        corner = above[at - size] if at >= size else 0
        guess = (0, left, above[at], (left + above[at]) // 2, nearest(left, above[at], corner))
        found[at] = (value + guess[kind]) & 0xFF
    return bytes(found)


def nearest(left: int, above: int, corner: int) -> int:
    """Which of three neighbours is nearest to where they lead."""
    goal = left + above - corner
    return min((left, above, corner), key=lambda one: abs(goal - one))


def distance(one: bytes, other: bytes) -> int:
    """How much two colours differ."""
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def chunk(name: bytes, body: bytes) -> bytes:
    """A chunk of a PNG file."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


# ---------------------------------------------------------------------- pages


def take(page: Page, name: str) -> None:
    """Write a picture of what is in view."""
    png = smaller(page.screenshot(animations="disabled", caret="hide"))
    (PLACE / f"{name}.png").write_bytes(png)
    print(f"{name}.png: {len(png) / 1024:.0f} KiB")


def waiting(client: httpx2.Client) -> dict[str, Any]:
    """A run of the demo whose plan waits."""
    body = {"agent": "order-analyst", "message": TASK}
    run: dict[str, Any] = client.post("/runs", params={"wait": 60}, json=body).json()
    return run


def approved(client: httpx2.Client, run: dict[str, Any]) -> dict[str, Any]:
    """The same once its plan was approved and its form waits."""
    request = run["requests"][0]["requestId"]
    client.post(f"/requests/{request}/answer", json={"decision": "approve"})
    found: dict[str, Any] = client.get(f"/runs/{run['id']}", params={"wait": 60}).json()
    return found


def laptop(page: Page, client: httpx2.Client) -> None:
    """The main pages."""
    plan, form, done = waiting(client), approved(client, waiting(client)), waiting(client)
    request = form["requests"][0]["requestId"]
    client.post(f"/requests/{request}/assign", json={"to": "Mia"})
    page.goto("/")
    take(page, "inbox")
    page.goto(f"/requests/{plan['requests'][0]['requestId']}")
    take(page, "plan")
    page.goto(f"/requests/{request}")
    take(page, "form")
    done = approved(client, done)
    page.goto(f"/requests/{done['requests'][0]['requestId']}")
    page.locator("button[value=answer]").click()
    client.get(f"/runs/{done['id']}", params={"wait": 60})
    page.goto(f"/runs/{done['id']}")
    take(page, "run")
    page.goto(f"/runs/{done['id']}/turns/2")
    take(page, "turn")
    page.goto("/agents/order-analyst")
    take(page, "agent")


def phone(page: Page, client: httpx2.Client) -> None:
    """A decision on the way."""
    page.goto(f"/requests/{waiting(client)['requests'][0]['requestId']}")
    take(page, "phone")


def main() -> None:
    """Take all of them."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        served = serving(ROOT / "examples" / "demo", Path(folder) / "runs.db")
        with served as (client, _), launched() as browser:
            site = str(client.base_url).partition("/api")[0]
            with watched(browser, site, viewport=LAPTOP) as seen:
                laptop(seen.page, client)
            with watched(browser, site, viewport=PHONE, color_scheme="dark") as seen:
                phone(seen.page, client)


if __name__ == "__main__":
    main()
