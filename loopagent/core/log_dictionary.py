"""Texts that log entries hold again and again, for the compressor to refer to.

Part of the stored format: `FORMAT_1` must never change, because what was compressed with it can only be read with
it. A better dictionary is a new format with a new version byte.
"""

from __future__ import annotations


_TEXTS = (
    # Seldom: guards, requests, artifacts, endings. What is frequent comes last, where references are shortest.
    '["guard.limit","policy",{"limit":"maxTurns","value":50.0,"maximum":50.0},',
    '["guard.nudged","engine",{"reason":"["guard.mistake","engine",{"count":["guard.repeated","engine",{"count":',
    '["run.cancelled","client",{"reason":"","by":"client","usage":{["run.failed","engine",{"reason":"limit",',
    '["cancel_requested",null,"","client"]["message_posted","",null,"queue","client",""]"steer","human","interrupted',
    '["run.message_queued","client",{"text":"","delivery":"queue","merged":false}',
    '["scratchpad.changed","model",{"notes":"","tasks":[{"id":"","title":"","status":"completed"',
    '["artifact.created","engine",{"handle":"A","artifactId":"","callId":"","chars":{"$artifact":{"head":"","tail":"',
    '["command.issued","model",{"command":{"type":"","automatic":false}',
    '["action.rejected","policy",{"callId":"","action":"","reason":"","code":"blocked"},"code":"rejected"},',
    '["model.retry","engine",{"attempt":1,"kind":"rate_limit","message":"","delayMs":1000,"model":"openai:',
    '["reported","model_retry",{"effect":"timeout","server","connection"["reported","started",{"effects":["',
    '["reply.truncated","engine",{"raw":"["reply.rejected","engine",{"raw":"","problems":[{"path":"nextStep.',
    '","message":"must be ","got":"","error":{"code":"failed","message":"","mayHaveRun":true}',
    '["run.resumed","human",{}["run.waiting","engine",{"requests":["',
    '["run.state","engine",{"state":"interactive","ask":{"requestId":"","kind":"approval","title":"',
    '"primary":{"decision":"approve","label":"Approve"},"secondary":{"decision":"reject","label":"Reject"},',
    '"enabled":true},"followup","question","answer","label":"Answer","terminate","label":"Stop the run"',
    '["request.created","engine",{"requestId":"","kind":"approval","title":"","text":"","subject":{"action":"',
    '"params":{"effects":"write","schema":{"type":"object","properties":{"type":"string","description":"',
    '"additionalProperties":false,"required":["decisions":["approve","reject"],"revision":1,"contentHash":"',
    '["request.resolved","human",{"requestId":"","decision":"approve","by":"client","feedback":"","values":{},',
    '"edited":false,"edited":null["request.cancelled","engine",',
    '["started","","client"]["run.created","client",{"agent":"","specHash":"","model":"scripted:","message":"',
    '["run.started","engine",{},null,null],["run.state","engine",{"state":"running"},"task",',
    '["turn.ended","engine",{"outcome":"complete"},["run.task_complete","model",{"message":"","payloadHash":"',
    '"commands":[]},["run.state","engine",{"state":"idle","reason":"completed"},["run.completed","engine",{"message":"',
    '"usage":{"modelCalls":1,"inputTokens":0,"cachedTokens":0,"outputTokens":0,"reasoningTokens":0,"costUsd":0.0}',
    '\\"actionableCommands\\":[\\"automaticCommands\\":[\\"reasoning\\":\\"\\"confidence\\":0.9,\\"taskComplete\\":true,',
    '\\"scratchpad\\":{\\"notes\\":\\"\\",\\"taskList\\":{\\"upsert\\":[{\\"id\\":\\"\\",\\"title\\":\\"',
    '\\",\\"status\\":\\"completed\\"\\"in_progress\\"\\"pending\\"\\"blocked\\"\\"remove\\":[',
    '\\"payloadChangeRequest\\":{\\"newElements\\":{\\"\\"removeElements\\":{\\"\\"__DELETE__\\"',
    '\\"replaceElements\\":{\\"\\"updateElements\\":{\\"',
    '\\"responseForm\\":{\\"title\\":\\"\\"questions\\":[{\\"id\\":\\"\\"label\\":\\"',
    '\\"nextStep\\":{\\"type\\":\\"Chat\\",\\"message\\":\\"',
    '["payload.changed","model",{"patch":[{"op":"replace","path":"/","value":{"op":"add"{"op":"remove"',
    '"warnings":[],"refused":[]},',
    # One ordinary turn: the calls end, the turn ends, the next one starts, its reply arrives, calls start.
    '[["settled",":action.1",[":action.2",[":chat",[false,null,["failed","',
    '"attempts":1},"turn//action/1"],["action.completed","engine",{"callId":"',
    '"user","results","{\\"results\\":[{\\"call\\":1,\\"action\\":\\"\\",\\"ok\\":true,\\"result\\":\\"',
    '\\"result\\":{\\"}},{\\"call\\":2,\\"action\\":\\"\\"ok\\":false,\\"error\\":{\\"code\\":\\"',
    '[["settled",":action.0",[true,{"[true,"",null,0.0,1],null]],[["action.completed","engine",{"callId":":action.0",',
    '"action":"","ok":true,"result":{"","durationMs":0.0,"attempts":1},"turn//action/0"],',
    '["turn.ended","engine",{"outcome":"step"},["turn.started","engine",{},,null]],[[,"user","feedback","',
    '[["settled",":model",[true,{"text":"{\\"message\\":\\"","finish":"stop","model":"scripted:',
    '"usage":{"input_tokens":0,"cached_tokens":0,"output_tokens":0,"reasoning_tokens":0,"cost_usd":null}},',
    'null,0.0,1],null]],[["reply.received","model",{"raw":"{\\"message\\":\\"","type":"Actions","message":"',
    '"warnings":[],"usage":{"modelCalls":1,"inputTokens":,"outputTokens":,"cachedTokens":},null],',
    '["action.started","model",{"callId":":action.0","action":"","params":{"},"turn//action/0"]],',
    '[[,"assistant","reply","{\\"message\\":\\"',
    '","nextStep\\":{\\"type\\":\\"Actions\\",\\"actions\\":[{\\"name\\":\\"\\",\\"params\\":{\\"}}]}}",',
)
FORMAT_1 = "".join(_TEXTS).encode("ascii")
"""Dictionary of log format 1."""
