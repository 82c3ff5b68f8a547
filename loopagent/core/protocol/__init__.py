"""The wire types of the reply protocol, one file a subject."""

from loopagent.core.protocol.base import NonBlank, Number, Params, Whole, Wire
from loopagent.core.protocol.commands import ActionableCommand, AutomaticCommand
from loopagent.core.protocol.forms import AgentResponseForm, FormQuestion
from loopagent.core.protocol.loops import ForEachOperation, WhileOperation
from loopagent.core.protocol.payload_change import AgentPayloadChangeRequest
from loopagent.core.protocol.pipeline import AgentPipelineRequest, pipeline_problems
from loopagent.core.protocol.scratchpad import AgentScratchpad
from loopagent.core.protocol.tools import (
    ArtifactToolCall,
    ConversationToolCall,
    MemoryWriteRequest,
)


__all__ = [
    "ActionableCommand",
    "AgentPayloadChangeRequest",
    "AgentPipelineRequest",
    "AgentResponseForm",
    "AgentScratchpad",
    "ArtifactToolCall",
    "AutomaticCommand",
    "ConversationToolCall",
    "ForEachOperation",
    "FormQuestion",
    "MemoryWriteRequest",
    "NonBlank",
    "Number",
    "Params",
    "WhileOperation",
    "Whole",
    "Wire",
    "pipeline_problems",
]
