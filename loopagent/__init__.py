"""loopagent runs loop agents: one JSON reply a turn, validated whole, carried out durably."""

from loopagent.action import ActionContext, action
from loopagent.agent import Agent, Result
from loopagent.app import App
from loopagent.attachments import Attachment
from loopagent.clients import ToolAnswer
from loopagent.core.action_spec import ActionRetry
from loopagent.core.asking import Asking
from loopagent.core.client_tool_spec import ClientToolSpec
from loopagent.core.loop_fold import LoopFold, loop_state
from loopagent.core.loop_view import Ask, Button, LoopState
from loopagent.errors import ActionError, ConfigError, LoopAgentError, RequestError
from loopagent.hooks import (
    HookAnswer,
    HookCall,
    add_context,
    after_action,
    after_run,
    before_action,
    before_run,
    before_turn,
    change_params,
    deny,
    replace_result,
    stop,
)
from loopagent.triggers.spec import TriggerSpec


__all__ = [
    "ActionContext",
    "ActionError",
    "ActionRetry",
    "Agent",
    "App",
    "Ask",
    "Asking",
    "Attachment",
    "Button",
    "ClientToolSpec",
    "ConfigError",
    "HookAnswer",
    "HookCall",
    "LoopAgentError",
    "LoopFold",
    "LoopState",
    "RequestError",
    "Result",
    "ToolAnswer",
    "TriggerSpec",
    "action",
    "add_context",
    "after_action",
    "after_run",
    "before_action",
    "before_run",
    "before_turn",
    "change_params",
    "deny",
    "loop_state",
    "replace_result",
    "stop",
]
