"""The HTTP API: the app's verbs as JSON over HTTP, events as a server-sent stream."""

from loopagent.http.api import create_api


__all__ = ["create_api"]
