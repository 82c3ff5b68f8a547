"""The one way out: every HTTP request of the package goes through here, and only where it may.

`EgressPolicy` says which schemes, hosts, ports and networks may be reached; `client.GuardedClient` holds every
connection to it, at the address that is really dialled. Nothing else in the package opens a connection. A program that
calls nobody need not load the client: it is not imported here.
"""

from loopagent.egress.policy import EgressDeniedError, EgressPolicy, EgressSettings


__all__ = ["EgressDeniedError", "EgressPolicy", "EgressSettings"]
