"""People and programs are told when a request opens or a run ends: signed webhooks and mail."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from loopagent.notifications.spec import MailReceiver, NotificationSettings, WebhookReceiver


if TYPE_CHECKING:
    from loopagent.notifications.full import Shown
    from loopagent.notifications.senders import Senders
    from loopagent.notifications.service import Notifications


TELLS_NOBODY = NotificationSettings()
"""What holds where nobody is named: only addresses that runs are started with are called."""

__all__ = [
    "TELLS_NOBODY",
    "MailReceiver",
    "NotificationSettings",
    "Notifications",
    "Senders",
    "Shown",
    "WebhookReceiver",
]
_WHERE = {"Senders": "senders", "Notifications": "service", "Shown": "full"}


def __getattr__(name: str) -> Any:
    """Load what sends when it is first asked for."""
    if name not in _WHERE:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
