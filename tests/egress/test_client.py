"""The guarded client against real servers; nothing outside of the loopback is ever dialled."""

from __future__ import annotations

import logging
import ssl
import zlib
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import httpcore2
import httpx2
import pytest

from loopagent.egress import EgressDeniedError, EgressPolicy
from loopagent.egress.client import Answer, Bounds, GuardedClient, opened, operator_policy
from loopagent.egress.decoding import TooLongError
from loopagent.errors import ConfigError
from tests.fakes.web import Got, Reply, Web, packed


pytestmark = pytest.mark.anyio
LOOPBACK = (ip_network("127.0.0.0/8"),)
BOUNDS = Bounds(connect_seconds=10, total_seconds=20, max_bytes=1_000_000)


def answer(got: Got) -> Reply:
    path = got.target.partition("?")[0]
    if path == "/slow":
        return Reply(body=b"x" * 200, drip=0.2)
    if path == "/redirect":
        return Reply(302, headers={"location": "http://169.254.169.254/latest"})
    if path == "/cookie":
        return Reply(headers={"set-cookie": "id=1; Path=/"})
    made = {
        "/gzip": packed(b"hello " * 10),
        "/bomb": packed(b"\0" * 50_000_000),
        "/deflate": Reply(body=zlib.compress(b"squeezed"), headers={"content-encoding": "deflate"}),
        "/raw-deflate": Reply(
            body=zlib.compress(b"squeezed", wbits=-15), headers={"content-encoding": "deflate"}
        ),
        "/half-gzip": Reply(
            body=packed(b"hello " * 1000).body[:-20], headers={"content-encoding": "gzip"}
        ),
        "/not-gzip": Reply(body=b"plain", headers={"content-encoding": "gzip"}),
        "/brotli": Reply(body=b"??", headers={"content-encoding": "br"}),
        "/twice": Reply(body=b"??", headers={"content-encoding": "gzip, gzip"}),
        "/half": Reply(body=b"only this", claimed=500),
        "/big": Reply(body=b"x" * 1_000_001),
    }
    return made.get(path, Reply(body=f"{got.method} {got.target}".encode()))


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with Web(answer) as running:
        yield running


class Recording(httpcore2.AsyncNetworkBackend):
    """Remembers what was to be dialled, and dials nothing."""

    def __init__(self) -> None:
        self.dialled: list[str] = []

    async def connect_tcp(
        self, host: str, port: int, *options: object, **more: object
    ) -> httpcore2.AsyncNetworkStream:
        self.dialled.append(f"{host}:{port}")
        raise httpcore2.ConnectError("nothing is there")


def resolver(*answers: list[str]):
    left = list(answers)

    async def resolve(host: str, port: int) -> list[str]:
        return left.pop(0)

    return resolve


async def get(url: str, policy: EgressPolicy, **options: object) -> Answer:
    async with opened(GuardedClient(policy, **options)) as client:
        return await client.fetch("GET", url, bounds=BOUNDS)


def local(web: Web) -> EgressPolicy:
    return EgressPolicy(("127.0.0.1", "test.example"), (web.port,), LOOPBACK)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f000001",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::7f00:1]",
        "0.0.0.0",  # noqa: S104 - it is to be refused
        "169.254.169.254",
        "metadata.google.internal",
        "\uff11\uff12\uff17.0.0.1",
        "127\u30020\u30020\u30021",
    ],
)
async def test_addresses_inside_are_refused_by_default(host: str) -> None:
    network = Recording()
    with pytest.raises((EgressDeniedError, httpx2.InvalidURL)):
        await get(f"http://{host}/", EgressPolicy(), network=network)
    assert network.dialled == []


async def test_the_checked_address_is_dialled_and_the_name_is_resolved_once() -> None:
    network = Recording()
    with pytest.raises(httpx2.ConnectError):
        await get(
            "https://api.example.com/",
            EgressPolicy(),
            resolver=resolver(["8.8.8.8", "8.8.4.4"]),
            network=network,
        )
    assert network.dialled == ["8.8.8.8:443", "8.8.4.4:443"]


@pytest.mark.parametrize(
    "answers", [["8.8.8.8", "127.0.0.1"], ["10.0.0.1"], ["::ffff:169.254.169.254"]]
)
async def test_one_address_inside_refuses_all(answers: list[str]) -> None:
    network = Recording()
    with pytest.raises(EgressDeniedError):
        await get(
            "https://api.example.com/", EgressPolicy(), resolver=resolver(answers), network=network
        )
    assert network.dialled == []


async def test_a_name_that_turns_inside_is_refused_at_its_next_connection(web: Web) -> None:
    network = Recording()
    policy = EgressPolicy()
    client = GuardedClient(policy, resolver=resolver(["8.8.8.8"], ["127.0.0.1"]), network=network)
    async with opened(client):
        with pytest.raises(httpx2.ConnectError):
            await client.fetch("GET", "http://rebind.example/", bounds=BOUNDS)
        with pytest.raises(EgressDeniedError):
            await client.fetch("GET", "http://rebind.example/", bounds=BOUNDS)
    assert network.dialled == ["8.8.8.8:80"]


async def test_an_allowed_network_and_host_work_and_keep_their_name(web: Web) -> None:
    found = await get(
        f"http://test.example:{web.port}/x?y=1", local(web), resolver=resolver(["127.0.0.1"])
    )
    assert found.body == b"GET /x?y=1"
    assert web.seen[-1].headers["host"] == f"test.example:{web.port}"


async def test_other_hosts_and_ports_are_refused_though_the_network_is_open(web: Web) -> None:
    for url in (
        f"http://other.example:{web.port}/",
        "http://127.0.0.1:1/",
        f"https://user:pw@127.0.0.1:{web.port}/",
    ):
        with pytest.raises(EgressDeniedError):
            await get(url, local(web), resolver=resolver(["127.0.0.1"]))


async def test_a_kept_connection_is_checked_too(web: Web) -> None:
    async with opened(GuardedClient(local(web), resolver=resolver(["127.0.0.1"]))) as client:
        await client.fetch("GET", web.url, bounds=BOUNDS)
        with pytest.raises(EgressDeniedError):
            await client.fetch("GET", f"http://evil.example:{web.port}", bounds=BOUNDS)


async def test_a_redirect_is_an_answer_and_not_followed(web: Web) -> None:
    found = await get(f"{web.url}/redirect", local(web))
    assert (found.status, found.headers["location"]) == (302, "http://169.254.169.254/latest")


@pytest.mark.parametrize("scheme", ["file", "gopher", "ftp"])
async def test_other_schemes(scheme: str) -> None:
    with pytest.raises(EgressDeniedError):
        await get(f"{scheme}://example.com/etc/passwd", EgressPolicy())


@pytest.mark.parametrize(
    "url",
    [
        "http://exa mple.com",
        "http://x\r\nhost: y/",
        "http://x\\@y/",
        "/relative",
        "x" * 9000,
        "http://x:99999/",
    ],
)
async def test_what_is_no_address(url: str) -> None:
    with pytest.raises((httpx2.InvalidURL, EgressDeniedError)):
        await get(url, EgressPolicy(), network=Recording())


@pytest.mark.parametrize(
    "header",
    [
        ("x-a", "b\r\nx-c: d"),
        ("x-a\r\nx-b", "c"),
        ("host", "other.example"),
        ("Content-Length", "0"),
        ("transfer-encoding", "chunked"),
        ("proxy-authorization", "x"),
        ("x-a", "nul\0"),
        ("x-a", "snow ☃"),
        ("", "x"),
    ],
)
async def test_headers_that_are_not_ours_to_set(web: Web, header: tuple[str, str]) -> None:
    before = len(web.seen)
    async with opened(GuardedClient(local(web))) as client:
        with pytest.raises(ValueError, match=r"cannot be set|cannot hold"):
            await client.fetch("GET", web.url, headers=[header], bounds=BOUNDS)
    assert len(web.seen) == before


@pytest.mark.parametrize(
    ("path", "body"),
    [("/gzip", b"hello " * 10), ("/deflate", b"squeezed"), ("/raw-deflate", b"squeezed")],
)
async def test_packed_answers(web: Web, path: str, body: bytes) -> None:
    assert (await get(web.url + path, local(web))).body == body


@pytest.mark.parametrize("path", ["/bomb", "/big"])
async def test_no_more_is_unpacked_than_is_taken(web: Web, path: str) -> None:
    with pytest.raises(TooLongError, match="longer than 1000000 bytes"):
        await get(web.url + path, local(web))


@pytest.mark.parametrize("path", ["/half-gzip", "/not-gzip", "/brotli", "/twice"])
async def test_answers_that_are_not_packed_as_they_say(web: Web, path: str) -> None:
    with pytest.raises(httpx2.DecodingError):
        await get(web.url + path, local(web))


async def test_half_an_answer_is_an_error(web: Web) -> None:
    with pytest.raises(httpx2.HTTPError):
        await get(f"{web.url}/half", local(web))


async def test_dripping_bytes_do_not_stretch_the_time(web: Web) -> None:
    async with opened(GuardedClient(local(web))) as client:
        with pytest.raises(TimeoutError):
            await client.fetch("GET", f"{web.url}/slow", bounds=Bounds(total_seconds=0.5))


async def test_cookies_are_not_kept(web: Web) -> None:
    async with opened(GuardedClient(local(web))) as client:
        await client.fetch("GET", f"{web.url}/cookie", bounds=BOUNDS)
        await client.fetch("GET", f"{web.url}/next", bounds=BOUNDS)
    assert "cookie" not in web.seen[-1].headers


async def test_proxies_of_the_environment_are_ignored(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert (await get(f"{web.url}/direct", local(web))).body == b"GET /direct"


async def test_a_configured_proxy_is_used_and_hosts_are_still_checked(web: Web) -> None:
    policy = EgressPolicy(("api.example.com",), (80,), proxy=web.url)
    found = await get("http://api.example.com/x", policy, resolver=resolver())
    assert found.body == b"GET http://api.example.com/x"
    for url in ("http://other.example/", "http://127.0.0.1/"):
        with pytest.raises(EgressDeniedError):
            await get(url, policy)


async def test_an_unknown_name_is_a_connection_error() -> None:
    async def nothing(host: str, port: int) -> list[str]:
        raise OSError("unknown")

    with pytest.raises(httpx2.ConnectError, match=r"api\.example\.com cannot be resolved"):
        await get("https://api.example.com", EgressPolicy(), resolver=nothing)


async def test_refusals_are_logged_with_their_reason_but_without_the_query(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(EgressDeniedError) as denied:
        await get("http://10.0.0.1/x?token=hush", EgressPolicy())
    assert "10.0.0.1" in str(denied.value)
    assert "the address is not public" in caplog.text
    assert "hush" not in caplog.text


async def test_requests_leave_no_address_in_the_log(
    web: Web, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await get(f"{web.url}/x?token=hush", local(web))
    assert "hush" not in caplog.text


def test_what_the_operator_configured_may_be_local_but_no_metadata_service() -> None:
    operator_policy("http://localhost:11434/v1").check("http", "localhost", 11434)
    for url in ("http://169.254.169.254/", "http://metadata.google.internal/"):
        policy = operator_policy(url)
        with pytest.raises(EgressDeniedError):
            policy.check("http", url.split("/")[2], None)
    with pytest.raises(ConfigError):
        operator_policy("localhost")


CERTIFICATE = Path(__file__).with_name("localhost.pem")


class TlsWeb(Web):
    def __init__(self) -> None:
        super().__init__(answer)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        setattr(self._server, "handle_error", lambda *_: None)  # noqa: B010 - failing handshakes are tested
        self.url = f"https://test.example:{self.port}"


async def test_certificates_are_verified_against_the_name() -> None:
    trust = ssl.create_default_context(cafile=str(CERTIFICATE))
    with TlsWeb() as web:
        good = {"resolver": resolver(["127.0.0.1"]), "trust": trust}
        assert (await get(web.url, local(web), **good)).body == b"GET /"
        with pytest.raises(httpx2.ConnectError):
            await get(web.url, local(web), resolver=resolver(["127.0.0.1"]))
        with pytest.raises(httpx2.ConnectError):
            await get(f"https://127.0.0.1:{web.port}", local(web), trust=trust)
