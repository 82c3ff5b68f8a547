"""Secrets of actions: named in files, kept by the operator, revealed only to the hosts they belong to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Protocol, Self

from pydantic import Field, field_validator, model_validator

from loopagent.core.spec import Spec
from loopagent.egress.policy import host_pattern, is_local_host, matches, plain_host
from loopagent.errors import ActionError, ConfigError
from loopagent.redaction import MIN_CHARS, Redactor


class Credential(Spec):
    """Where the operator keeps a secret, and which hosts may get it."""

    env: str | None = Field(default=None, min_length=1)
    """Environment variable that holds it."""
    file: str | None = Field(default=None, min_length=1)
    """File that holds it, read at each call; relative paths start from the project's folder."""
    hosts: tuple[str, ...] = Field(min_length=1, max_length=20)
    """The only hosts that it is ever sent to, like `api.example.com`."""

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(host_pattern, hosts))

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("give either env or file")
        return self


class SecretValue:
    """A secret that cannot be printed, compared, pickled or written as JSON by accident.

    Args:
        name: Its name.
        value: The secret.
        hosts: The hosts it may be sent to.
    """

    __slots__ = ("_hosts", "_value", "name")

    def __init__(self, name: str, value: str, hosts: tuple[str, ...]) -> None:
        self.name = name
        self._value = value
        self._hosts = hosts

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts it may be sent to."""
        return self._hosts

    def __repr__(self) -> str:
        """The name only."""
        return f"SecretValue({self.name!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not stored")

    def reveal(self, scheme: str, host: str) -> str:
        """The secret, for a request to a host.

        Raises:
            ActionError: It does not belong there, or the way there is not encrypted.
        """
        if not matches(plain_host(host), self._hosts):
            text = f"The secret {self.name} is not for {host}; the operator's settings bind it to other hosts."
            raise ActionError(text, code="secret_denied", fatal=True)
        if scheme != "https" and not is_local_host(host):
            text = f"The secret {self.name} is sent over https only."
            raise ActionError(text, code="secret_denied", fatal=True)
        return self._value


class SecretStore(Protocol):
    """Where secrets come from; a host may bring its own."""

    def get(self, name: str) -> SecretValue | None:
        """The secret of a name as it is now; None when there is none."""
        ...


class Credentials:
    """Secrets in the environment and in files, as the settings say.

    Args:
        known: Where each is, by name.
        env: The environment.
        folder: What relative file names start from.
    """

    def __init__(
        self, known: Mapping[str, Credential], env: Mapping[str, str], folder: Path
    ) -> None:
        self._known = known
        self._env = env
        self._folder = folder

    def get(self, name: str) -> SecretValue | None:
        """The secret of a name as it is now; None when it is not set."""
        known = self._known.get(name)
        value = None if known is None else self._read(known)
        return SecretValue(name, value, known.hosts) if known is not None and value else None

    @property
    def known(self) -> Mapping[str, Credential]:
        """Where each is, by name."""
        return self._known

    def values(self) -> list[str]:
        """All values that are set now, so that they can be masked from the start.

        Raises:
            ConfigError: One is too short to be masked.
        """
        found = {name: self._read(one) for name, one in self._known.items()}
        for name, value in found.items():
            if value and len(value) < MIN_CHARS:
                raise ConfigError(
                    f"The secret {name} has fewer than {MIN_CHARS} characters and cannot be masked; use a longer one."
                )
        return [one for one in found.values() if one]

    def _read(self, known: Credential) -> str | None:
        if known.env is not None:
            return self._env.get(known.env, "").strip() or None
        try:
            return (self._folder / str(known.file)).read_text(encoding="utf-8").strip() or None
        except (OSError, UnicodeDecodeError):
            return None


class Revealed:
    """The secrets of one call: reveals them to one place, and masks all that were revealed.

    Args:
        store: Where they come from.
    """

    def __init__(self, store: SecretStore | None) -> None:
        self._store = store
        self._values: set[str] = set()

    def to(self, scheme: str, host: str) -> Callable[[str], str]:
        """Gives secrets by name, for requests to one host.

        Raises:
            ActionError: From what it returns: there is no such secret, or it is not for this host.
        """

        def reveal(name: str) -> str:
            secret = None if self._store is None else self._store.get(name)
            if secret is None:
                text = f"The secret {name} is not set; the operator has to set it."
                raise ActionError(text, code="secret_missing", fatal=True)
            return self.kept(secret.reveal(scheme, host))

        return reveal

    def kept(self, value: str) -> str:
        """The value, which from now on is masked."""
        if len(value) < MIN_CHARS:
            text = "A secret is too short to be masked; the operator has to use a longer one."
            raise ActionError(text, code="secret_denied", fatal=True)
        self._values.add(value)
        return value

    def masked(self, value: Any) -> Any:
        """A JSON value without any of the secrets, in its keys and texts."""
        return _mapped(value, Redactor(self._values).mask) if self._values else value


def _mapped(value: Any, mask: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {mask(str(key)): _mapped(one, mask) for key, one in value.items()}
    if isinstance(value, list):
        return [_mapped(one, mask) for one in value]
    return value
