"""People and programs are told when a request opens or a run ends: signed webhooks and mail.

What sends (`service.Notifications`, `senders.Senders`) is not imported here: naming receivers needs no more than this.
"""

from loopagent.notifications.spec import MailReceiver, NotificationSettings, WebhookReceiver


TELLS_NOBODY = NotificationSettings()
"""What holds where nobody is named: only addresses that runs are started with are called."""

__all__ = ["TELLS_NOBODY", "MailReceiver", "NotificationSettings", "WebhookReceiver"]
