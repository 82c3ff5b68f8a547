"""Triggers: schedules and webhooks that start runs.

`spec` is what people write, `moments` says when a schedule is due, `incoming` makes an event of what a webhook
sends, `judging` decides what becomes of an event, and `service` does it, with a store that remembers.
"""

from loopagent.triggers.service import Triggers
from loopagent.triggers.spec import TriggerSpec


__all__ = ["TriggerSpec", "Triggers"]
