"""Which addresses lie outside: an explicit list, because the standard library's idea of "global" has holes.

`is_global` of some Python versions is true for translated, mapped and multicast addresses that lead inside.

Source:
    IANA special-purpose address registries (RFC 6890 and its updates).
"""

from __future__ import annotations

import re
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TYPE_CHECKING, Final, TypeAlias


if TYPE_CHECKING:
    from collections.abc import Iterable

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_V4_INSIDE: Final = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this host
            "10.0.0.0/8",
            "100.64.0.0/10",  # shared by carriers; a cloud's metadata service too
            "127.0.0.0/8",
            "168.63.129.16/32",  # a cloud's host agent, at an address that looks public
            "169.254.0.0/16",  # link-local, with the metadata services of most clouds
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
_V6_OUTSIDE: Final = IPv6Network("2000::/3")
"""The only range of which public addresses are given out."""
_V6_INSIDE: Final = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, Teredo among them
            "2001:db8::/32",
            "2002::/16",  # 6to4: leads to the IPv4 address inside it
            "3fff::/20",
        ),
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_V4_BITS: Final = 32
_SIX_TO_FOUR_SHIFT: Final = 80
LOCAL_NETWORKS: Final[tuple[Network, ...]] = tuple(
    map(
        ip_network,
        (
            "127.0.0.0/8",
            "10.0.0.0/8",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "100.64.0.0/10",
            "::1/128",
            "fc00::/7",
        ),
    )
)
"""Where people run servers of their own; link-local addresses, and so metadata services, are not among them."""
_NUMERIC_LABEL: Final = re.compile(r"\d+|0x[0-9a-f]*")


def parse_address(host: str) -> Address | None:
    """The address that a host is, in its one usual notation; None for a name or anything else."""
    try:
        found = ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None
    return None if getattr(found, "scope_id", None) else found


def odd_number(host: str) -> bool:
    """Whether a host is an address in a notation that resolvers read in different ways: `127.1`, `0x7f000001`."""
    last = host.rstrip(".").rpartition(".")[2].lower()
    return bool(_NUMERIC_LABEL.fullmatch(last)) and parse_address(host) is None


def is_inside(address: Address, allowed: Iterable[Network] = ()) -> bool:
    """Whether an address must not be dialled: it is not public, and in none of the networks that are allowed.

    Args:
        address: The address that would be dialled.
        allowed: Networks that an operator opened.
    """
    forms: list[Address] = [address, *_embedded(address)]
    plain = forms[-1]
    if any(one.version == net.version and one in net for one in forms for net in allowed):
        return False
    if isinstance(plain, IPv4Address):
        tunnelled = isinstance(address, IPv6Address) and not _translated(address)
        return tunnelled or any(plain in net for net in _V4_INSIDE)
    return plain not in _V6_OUTSIDE or any(plain in net for net in _V6_INSIDE)


def _translated(address: IPv6Address) -> bool:
    """Whether a network translates this address to IPv4 by design; other embeddings are only tricks."""
    return address.ipv4_mapped is not None or address in _NAT64


def _embedded(address: Address) -> tuple[IPv4Address, ...]:
    """The IPv4 address inside an IPv6 one: mapped, translated, 6to4, or merely compatible."""
    if isinstance(address, IPv4Address):
        return ()
    number = int(address)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address.sixtofour is not None:
        return (IPv4Address(number >> _SIX_TO_FOUR_SHIFT & 0xFFFFFFFF),)
    if address in _NAT64 or (number >> _V4_BITS == 0 and number > 1):
        return (IPv4Address(number & 0xFFFFFFFF),)
    return ()
