"""One sign-in on its way: all that binds it together follows from a random text that only the browser holds.

Nothing is stored before somebody comes back from the provider, so strangers cannot fill the database.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import Final


SECRET_BYTES: Final = 32
MAX_TEXT_CHARS: Final = 3_000
MAX_PATH_CHARS: Final = 1_500
_PARTS: Final = 4


@dataclass(frozen=True, slots=True)
class Flow:
    """A sign-in that was begun. `began_at` is in seconds since the epoch; `goes_to` is a path of this server."""

    secret: str
    provider: str
    began_at: int
    goes_to: str

    @classmethod
    def begin(cls, provider: str, goes_to: str, now: float) -> Flow:
        """A new one."""
        path = goes_to if len(goes_to) <= MAX_PATH_CHARS else "/"
        return cls(token_urlsafe(SECRET_BYTES), provider, int(now), path)

    @classmethod
    def read(cls, text: str) -> Flow | None:
        """The one that a browser holds; None for what is none."""
        parts = text.split(".") if len(text) <= MAX_TEXT_CHARS else []
        if len(parts) != _PARTS or not (parts[2].isascii() and parts[2].isdigit()):
            return None
        try:
            goes_to = urlsafe_b64decode(parts[3]).decode("utf-8")
        except ValueError:
            return None
        return cls(parts[0], parts[1], int(parts[2][:15]), goes_to)

    @property
    def text(self) -> str:
        """What the browser holds."""
        path = urlsafe_b64encode(self.goes_to.encode("utf-8", "replace")).decode()
        return f"{self.secret}.{self.provider}.{self.began_at}.{path}"

    @property
    def state(self) -> str:
        """Comes back from the provider unchanged."""
        return self._derived("state")

    @property
    def nonce(self) -> str:
        """Stands in the ID token."""
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        """The secret of PKCE."""
        return self._derived("verifier")

    @property
    def challenge(self) -> str:
        """What the provider is told of it (S256)."""
        return _b64(hashlib.sha256(self.verifier.encode()).digest())

    def is_answered_by(self, state: str) -> bool:
        """Whether this is the state of this sign-in."""
        return hmac.compare_digest(state.encode("utf-8", "replace"), self.state.encode())

    def _derived(self, what: str) -> str:
        made = hmac.new(self.text.encode(), f"loopagent {what}".encode(), hashlib.sha256)
        return _b64(made.digest())


def _b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
