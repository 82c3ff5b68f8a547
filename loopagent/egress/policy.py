"""Where requests may go: schemes, hosts, ports and networks. Pure; what is dialled is held to it elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from loopagent.core.spec import Spec
from loopagent.egress.addresses import Network, is_inside, odd_number, parse_address
from loopagent.errors import EffectError


if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
MAX_HOST_CHARS: Final = 253
METADATA_NAMES: Final = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data"}
)
"""Names under which clouds hand out credentials."""
LOCAL_SUFFIXES: Final = ("localhost", "local", "internal", "localdomain", "arpa")
"""Names that lead inside wherever they are resolved."""


class EgressDeniedError(EffectError):
    """A request went nowhere, because it may not go there. Its message names only the host.

    Args:
        host: The host that was to be called.
        reason: Why not, for the operator's log; not for the model, since it may tell of the inside.
    """

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(f"calls to {host[:MAX_HOST_CHARS] or 'this address'} are not allowed here")
        self.host = host
        self.reason = reason


class EgressSettings(Spec):
    """What the operator allows for all actions; an action can only narrow it."""

    hosts: tuple[str, ...] = ()
    """Hosts that actions may call at all, like `api.example.com` or `*.example.com`; empty for those they name."""
    ports: tuple[Annotated[int, Field(ge=1, le=65_535)], ...] = Field(default=(), max_length=100)
    """Ports that actions may call at all; empty for those they name."""
    private_networks: tuple[str, ...] = ()
    """Networks that are not public and may be reached all the same, like `127.0.0.0/8`."""
    proxy: str | None = None
    """Proxy for all calls of actions, `http://HOST:PORT`; it then resolves names and is the boundary."""

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(host_pattern, hosts))

    @field_validator("private_networks")
    @classmethod
    def _are_networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(network(one)) for one in networks)

    @field_validator("proxy")
    @classmethod
    def _is_proxy(cls, proxy: str | None) -> str | None:
        return None if proxy is None else checked_proxy(proxy)


def network(text: str) -> Network:
    """A network in the notation `10.0.0.0/8`.

    Raises:
        ValueError: It is none; the message says what is wanted.
    """
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"{text[:60]!r} is no network; write it like 10.0.0.0/8") from None


def host_pattern(text: str) -> str:
    """A host, or `*.` and a domain, in lower case.

    Raises:
        ValueError: It is neither.
    """
    host = text.strip().lower().rstrip(".")
    name = host.removeprefix("*.")
    fits = name and len(name) <= MAX_HOST_CHARS and not set(name) & set("/@?#*\\ :%")
    if not fits and parse_address(name) is None:
        hint = "write a host like api.example.com, or *.example.com for all below it"
        raise ValueError(f"{text[:60]!r} is no host; {hint}")
    return host.removeprefix("[").removesuffix("]")


def checked_proxy(text: str) -> str:
    """The address of a proxy.

    Raises:
        ValueError: It is none.
    """
    try:
        parts = urlsplit(text)
        fits = parts.scheme in {"http", "https"} and parts.hostname and parts.port
    except ValueError:
        fits = False
    if not fits:
        raise ValueError("is no proxy; write http://HOST:PORT")
    return text


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """Where requests may go.

    `hosts` are exact names or `*.` and a domain; None for any. `ports` are the allowed ports; None for any.
    `networks` are networks that are not public and may be reached. `proxy` dials instead of us when it is set.
    """

    hosts: tuple[str, ...] | None = None
    ports: tuple[int, ...] | None = tuple(DEFAULT_PORTS.values())
    networks: tuple[Network, ...] = ()
    schemes: tuple[str, ...] = tuple(DEFAULT_PORTS)
    proxy: str | None = None

    @classmethod
    def for_action(
        cls,
        operator: EgressSettings,
        *,
        hosts: Iterable[str],
        ports: Iterable[int] = (),
        networks: Iterable[str] | None = None,
    ) -> EgressPolicy:
        """For one action: what it names, as far as the operator allows it.

        Args:
            operator: The bounds.
            hosts: Hosts that the action names.
            ports: Ports that it names beside 80 and 443.
            networks: Of the operator's networks, those that it needs; None for all of them.
        """
        named = tuple(map(host_pattern, hosts))
        if operator.hosts:
            named = tuple(one for one in named if matches(one, operator.hosts))
        wanted = {*DEFAULT_PORTS.values(), *ports}
        open_ports = wanted & set(operator.ports) if operator.ports else wanted
        opened = tuple(map(network, operator.private_networks))
        if networks is not None:
            needed = list(map(network, networks))
            opened = tuple(one for one in needed if _within(one, opened))
        return cls(named, tuple(sorted(open_ports)), opened, proxy=operator.proxy)

    def check(self, scheme: str, host: str, port: int | None) -> None:
        """Refuse an address that may not be called, as far as can be told without resolving it.

        Raises:
            EgressDeniedError: It may not.
        """
        if scheme not in self.schemes:
            raise EgressDeniedError(host, f"the scheme {scheme[:20]!r} is not allowed")
        number = port or DEFAULT_PORTS.get(scheme, 0)
        if self.ports is not None and number not in self.ports:
            raise EgressDeniedError(host, f"the port {number} is not allowed")
        self.check_host(host)

    def check_host(self, host: str) -> None:
        """Refuse a host that is not allowed, is written oddly, or leads inside by its very name."""
        plain = plain_host(host)
        if not plain or len(plain) > MAX_HOST_CHARS:
            raise EgressDeniedError(host, "there is no host")
        if odd_number(plain) or "%" in plain:
            raise EgressDeniedError(host, "the address is in an unusual notation")
        if self.hosts is not None and not matches(plain, self.hosts):
            raise EgressDeniedError(host, "the host is not among those that may be called")
        address = parse_address(plain)
        if address is not None and is_inside(address, self.networks):
            raise EgressDeniedError(host, "the address is not public")
        if address is None and self._leads_inside(plain):
            raise EgressDeniedError(host, "the name leads inside")

    def check_addresses(self, host: str, addresses: Iterable[str]) -> list[str]:
        """The addresses of a host, if every one of them may be dialled.

        One that may not is enough to refuse: whoever mixes them hopes that the other one gets dialled.

        Raises:
            EgressDeniedError: One of them may not, or there is none.
        """
        found = list(dict.fromkeys(addresses))
        parsed = [parse_address(one) for one in found]
        if not found or any(one is None or is_inside(one, self.networks) for one in parsed):
            raise EgressDeniedError(host, "the name resolves to an address that is not public")
        return found

    def _leads_inside(self, name: str) -> bool:
        if name in METADATA_NAMES:
            return True
        return name.rpartition(".")[2] in LOCAL_SUFFIXES and not self.networks


def plain_host(host: str) -> str:
    """A host as it is compared: lower case, without a final dot or brackets."""
    return host.lower().rstrip(".").removeprefix("[").removesuffix("]")


def is_local_host(host: str) -> bool:
    """Whether a host is on this machine or network by its very name or address."""
    plain = plain_host(host)
    address = parse_address(plain)
    if address is not None:
        return is_inside(address)
    return plain.rpartition(".")[2] in LOCAL_SUFFIXES


def matches(host: str, patterns: Iterable[str]) -> bool:
    """Whether a host is one of the patterns or lies below one that begins with `*.`; `*.x` lies below `*.x`."""
    return any(
        host == one or (one.startswith("*.") and host.endswith(one[1:]) and host != one[1:])
        for one in patterns
    )


def _within(inner: Network, outers: Iterable[Network]) -> bool:
    return any(
        inner.version == one.version
        and int(one.network_address) <= int(inner.network_address)
        and int(inner.broadcast_address) <= int(one.broadcast_address)
        for one in outers
    )
