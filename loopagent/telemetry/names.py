"""The names of spans, attributes and metrics, in one place: those of OpenTelemetry for generative AI move.

Source: OpenTelemetry semantic conventions for generative AI, as in `opentelemetry-semantic-conventions` 0.66; what they
have no name for begins with `loopagent.`. `SCHEMA_URL` is sent along, so that a backend knows which names these are.
"""

from __future__ import annotations

from typing import Final


SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"
SCOPE: Final = "loopagent"

# --- operations, the first word of a span's name
CHAT: Final = "chat"
INVOKE_AGENT: Final = "invoke_agent"
EXECUTE_TOOL: Final = "execute_tool"
TURN: Final = "turn"

# --- attributes of the conventions
OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_STREAM: Final = "gen_ai.request.stream"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
RESPONSE_TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
USAGE_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
USAGE_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
USAGE_CACHE_READ_INPUT_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
USAGE_REASONING_OUTPUT_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
TOKEN_TYPE: Final = "gen_ai.token.type"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
ERROR_TYPE: Final = "error.type"

# --- content, only where it was asked for
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"
CONTENT: Final = (
    SYSTEM_INSTRUCTIONS,
    INPUT_MESSAGES,
    OUTPUT_MESSAGES,
    TOOL_CALL_ARGUMENTS,
    TOOL_CALL_RESULT,
)
CONTENT_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable with which content is asked for."""

# --- attributes of our own
RUN_ID: Final = "loopagent.run.id"
ROOT_RUN_ID: Final = "loopagent.run.root_id"
RUN_STATUS: Final = "loopagent.run.status"
TURN_NUMBER: Final = "loopagent.turn"
TURN_OUTCOME: Final = "loopagent.turn.outcome"
STEP_TYPE: Final = "loopagent.step.type"
TRIGGER_NAME: Final = "loopagent.trigger.name"
EFFECT_KIND: Final = "loopagent.effect.kind"
OUTCOME: Final = "loopagent.outcome"
REQUEST_KIND: Final = "loopagent.request.kind"
DELIVERY_STATUS: Final = "loopagent.delivery.status"
OVERFLOW: Final = "otel.metric.overflow"

# --- events of spans
REPLY_REJECTED: Final = "loopagent.reply.rejected"
MODEL_RETRY: Final = "loopagent.model.retry"
REQUEST_CREATED: Final = "loopagent.request.created"
REQUEST_RESOLVED: Final = "loopagent.request.resolved"
WAITING: Final = "loopagent.run.waiting"
RESUMED: Final = "loopagent.run.resumed"

# --- metrics
CLIENT_TOKEN_USAGE: Final = "gen_ai.client.token.usage"
CLIENT_OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
CLIENT_TIME_TO_FIRST_CHUNK: Final = "gen_ai.client.operation.time_to_first_chunk"
TURNS: Final = "loopagent.turns"
RUNS_ENDED: Final = "loopagent.runs.ended"
RUNS_STARTED: Final = "loopagent.runs.started"
EFFECTS: Final = "loopagent.effects"
EFFECT_DURATION: Final = "loopagent.effect.duration"
REQUESTS_CREATED: Final = "loopagent.requests.created"
DELIVERIES: Final = "loopagent.trigger.deliveries"
REQUESTS_WAITING: Final = "loopagent.requests.waiting"
QUEUE: Final = "loopagent.queue"
RUNS_ACTIVE: Final = "loopagent.runs.active"

PROVIDERS: Final = {"openai": "openai", "anthropic": "anthropic", "scripted": "loopagent.scripted"}
"""Beginning of a model's name → `gen_ai.provider.name`; everything else speaks OpenAI's protocol."""
OTHER_PROVIDER: Final = "openai_compatible"
