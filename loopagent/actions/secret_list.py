"""Which secrets there are: by name, whether they are set, which hosts get them, who uses them; never a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loopagent.actions.secrets import Credentials


if TYPE_CHECKING:
    from collections.abc import Iterable

    from loopagent.actions.secrets import Credential, SecretStore


@dataclass(frozen=True, slots=True)
class SecretState:
    """A secret as people may see it.

    `known` says whether the operator has set it up, `is_set` whether it has a value now; `source` is the environment
    variable or file that it is read from, empty when a host brings its own secrets. `used_by` are names of actions.
    """

    name: str
    known: bool
    is_set: bool
    hosts: tuple[str, ...]
    source: str
    used_by: tuple[str, ...]

    @property
    def state(self) -> str:
        """`set`, `missing` when it has no value, or `unknown` when nobody has set it up."""
        return ("set" if self.is_set else "missing") if self.known else "unknown"


def secret_states(
    store: SecretStore | None, uses: Iterable[tuple[str, Iterable[str]]]
) -> list[SecretState]:
    """Every secret that is set up or used, sorted by name.

    Args:
        store: Where secrets come from.
        uses: Names of actions, each with the names of the secrets that it uses.
    """
    users: dict[str, set[str]] = {}
    for action, names in uses:
        for one in names:
            users.setdefault(one, set()).add(action)
    known = store.known if isinstance(store, Credentials) else {}
    return [
        _state(store, name, known.get(name), tuple(sorted(users.get(name, ()))))
        for name in sorted({*users, *known})
    ]


def _state(
    store: SecretStore | None, name: str, known: Credential | None, used: tuple[str, ...]
) -> SecretState:
    value = None if store is None else store.get(name)
    hosts = value.hosts if value is not None else known.hosts if known is not None else ()
    there = known is not None or value is not None
    return SecretState(name, there, value is not None, hosts, _source(known), used)


def _source(known: Credential | None) -> str:
    if known is None:
        return ""
    return f"variable {known.env}" if known.env is not None else f"file {known.file}"
