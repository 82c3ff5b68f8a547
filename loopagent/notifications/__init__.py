"""People and programs are told when a request opens or a run ends: signed webhooks and mail."""

from loopagent.notifications.senders import Senders
from loopagent.notifications.service import Notifications
from loopagent.notifications.spec import MailReceiver, NotificationSettings, WebhookReceiver


TELLS_NOBODY = NotificationSettings()
"""What holds where nobody is named: only addresses that runs are started with are called."""

__all__ = [
    "TELLS_NOBODY",
    "MailReceiver",
    "NotificationSettings",
    "Notifications",
    "Senders",
    "WebhookReceiver",
]
