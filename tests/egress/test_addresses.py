"""Which addresses and names may be called, row by row."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopagent.egress.addresses import is_inside, odd_number, parse_address
from loopagent.egress.policy import EgressDeniedError, EgressPolicy, EgressSettings


INSIDE = [
    "0.0.0.0",  # noqa: S104 - it is to be refused
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:a9fe:a9fe",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:808:808::",
    "2001::1",
    "2001:db8::1",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "100::1",
    "5f00::1",
]
OUTSIDE = [
    "8.8.8.8",
    "1.1.1.1",
    "172.15.255.255",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700::1111",
    "2a00:1450::8a",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
]


@pytest.mark.parametrize("text", INSIDE)
def test_inside(text: str) -> None:
    assert is_inside(ip_address(text))


@pytest.mark.parametrize("text", OUTSIDE)
def test_outside(text: str) -> None:
    assert not is_inside(ip_address(text))


@pytest.mark.parametrize("text", ["127.0.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "127.9.9.9"])
def test_an_operator_opens_a_network(text: str) -> None:
    assert not is_inside(ip_address(text), [ip_network("127.0.0.0/8")])
    assert is_inside(ip_address("10.0.0.1"), [ip_network("127.0.0.0/8")])


@given(st.ip_addresses(v=4))
def test_a_mapped_address_is_as_the_one_inside_it(address: object) -> None:
    mapped = ip_address(f"::ffff:{address}")
    assert is_inside(mapped) == is_inside(ip_address(str(address)))


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "127.1",
        "0177.0.0.1",
        "127.0.0.0x1",
        "1.2.3.4.5",
        "256.1.1.1",
        "127.0.0.01",
        "0",
    ],
)
def test_odd_notations(host: str) -> None:
    assert odd_number(host)
    assert refused("http", host)


@pytest.mark.parametrize(
    "host", ["example.com", "1password.com", "a1.b2", "0xabc.example.org", "8.8.8.8", "::1"]
)
def test_usual_notations(host: str) -> None:
    assert not odd_number(host)


def refused(
    scheme: str, host: str, port: int | None = None, policy: EgressPolicy | None = None
) -> str:
    try:
        (policy or EgressPolicy()).check(scheme, host, port)
    except EgressDeniedError as denied:
        return denied.reason
    return ""


NAMES = [
    "localhost",
    "LOCALHOST.",
    "app.localhost",
    "metadata.google.internal",
    "metadata",
    "instance-data",
    "db.internal",
    "printer.local",
    "router.home.arpa",
    "",
    "a" * 254,
    "fe80::1%eth0",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_lead_inside(name: str) -> None:
    assert refused("https", name)


@pytest.mark.parametrize("scheme", ["file", "gopher", "ftp", "ws", "dict", "data", ""])
def test_schemes(scheme: str) -> None:
    assert "scheme" in refused(scheme, "example.com")


def test_ports() -> None:
    assert not refused("https", "example.com", 443)
    assert "22" in refused("https", "example.com", 22)
    assert not refused("https", "example.com", 8443, EgressPolicy(ports=(8443,)))


@pytest.mark.parametrize(
    ("host", "fits"),
    [
        ("api.example.com", True),
        ("API.EXAMPLE.COM.", True),
        ("a.b.example.org", True),
        ("example.org", False),
        ("badexample.org", False),
        ("api.example.com.evil.net", False),
        ("xapi.example.com", False),
    ],
)
def test_hosts(host: str, *, fits: bool) -> None:
    policy = EgressPolicy(hosts=("api.example.com", "*.example.org"))
    assert bool(refused("https", host, None, policy)) is not fits


def test_metadata_stays_closed_even_where_private_networks_are_open() -> None:
    policy = EgressPolicy(networks=(ip_network("10.0.0.0/8"),))
    assert refused("http", "metadata.google.internal", None, policy)
    assert refused("http", "169.254.169.254", None, policy)
    assert not refused("http", "db.internal", None, policy)


@pytest.mark.parametrize(
    "answers",
    [
        ["127.0.0.1"],
        ["8.8.8.8", "127.0.0.1"],
        ["::ffff:10.0.0.1"],
        [],
        ["fe80::1%eth0"],
        ["nonsense"],
    ],
)
def test_every_resolved_address_must_be_outside(answers: list[str]) -> None:
    with pytest.raises(EgressDeniedError) as denied:
        EgressPolicy().check_addresses("example.com", answers)
    assert str(denied.value) == "calls to example.com are not allowed here"


def test_an_action_only_narrows_what_the_operator_allows() -> None:
    operator = EgressSettings(
        hosts=("*.example.com",), ports=(443, 8443), private_networks=("10.0.0.0/8",)
    )
    policy = EgressPolicy.for_action(
        operator,
        hosts=["api.example.com", "evil.net"],
        ports=[8443, 22],
        networks=["10.1.0.0/16", "127.0.0.0/8"],
    )
    assert policy.hosts == ("api.example.com",)
    assert policy.ports == (443, 8443)
    assert [str(one) for one in policy.networks] == ["10.1.0.0/16"]


def test_an_action_without_hosts_reaches_none() -> None:
    assert refused(
        "https", "example.com", None, EgressPolicy.for_action(EgressSettings(), hosts=[])
    )


@pytest.mark.parametrize("text", ["10.0.0.0/33", "inside", "10.0.0.0/8/8"])
def test_settings_say_what_is_no_network(text: str) -> None:
    with pytest.raises(ValueError, match="is no network; write it like"):
        EgressSettings(private_networks=(text,))


@pytest.mark.parametrize(
    "text", ["https://x.com", "a b", "*", "user@host", "", "x.com/y", "*.*.com"]
)
def test_settings_say_what_is_no_host(text: str) -> None:
    with pytest.raises(ValueError, match="is no host"):
        EgressSettings(hosts=(text,))


def test_an_address_has_one_notation() -> None:
    assert parse_address("[::1]") == ip_address("::1")
    assert parse_address("fe80::1%eth0") is None
