"""The one way out: every HTTP request of the package goes through here, and only where it may.

`EgressPolicy` says which schemes, hosts, ports and networks may be reached; `GuardedClient` holds every connection
to it, at the address that is really dialled. Nothing else in the package opens a connection.
"""

from loopagent.egress.client import Answer, Bounds, GuardedClient, opened, operator_policy
from loopagent.egress.decoding import TooLongError, decoded
from loopagent.egress.policy import EgressDeniedError, EgressPolicy, EgressSettings


__all__ = [
    "Answer",
    "Bounds",
    "EgressDeniedError",
    "EgressPolicy",
    "EgressSettings",
    "GuardedClient",
    "TooLongError",
    "decoded",
    "opened",
    "operator_policy",
]
