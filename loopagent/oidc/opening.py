"""Signing in, for whoever serves: loads what an extra brings only where there is a provider."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from loopagent.errors import ConfigError


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loopagent.egress import EgressSettings
    from loopagent.keys import Keys
    from loopagent.oidc.signing_in import SigningIn
    from loopagent.oidc.spec import OidcSettings

PACKAGES = ("jwt", "cryptography")


def signing_in(
    settings: OidcSettings | None,
    *,
    keys: Keys,
    env: Mapping[str, str],
    clock: Callable[[], float],
    session_seconds: float,
    egress: EgressSettings | None = None,
) -> SigningIn | None:
    """What signs people in; None where no provider is named. The arguments are those of `SigningIn`.

    Raises:
        ConfigError: The extra is not installed.
    """
    if settings is None or not settings.providers:
        return None
    if any(find_spec(one) is None for one in PACKAGES):
        raise ConfigError("[oidc] needs more packages: pip install 'loopagent[oidc]'")
    from loopagent.oidc.signing_in import SigningIn  # noqa: PLC0415 - an extra: only who uses it

    return SigningIn(
        settings,
        keys=keys,
        env=env,
        clock=clock,
        session_seconds=session_seconds,
        egress=egress,
    )
