"""loopagent runs loop agents: one JSON reply a turn, validated whole, carried out durably."""

from loopagent.action import ActionContext, action
from loopagent.agent import Agent, Result
from loopagent.app import App
from loopagent.core.action_spec import ActionRetry
from loopagent.errors import ActionError, ConfigError, LoopAgentError, RequestError


__all__ = [
    "ActionContext",
    "ActionError",
    "ActionRetry",
    "Agent",
    "App",
    "ConfigError",
    "LoopAgentError",
    "RequestError",
    "Result",
    "action",
]
