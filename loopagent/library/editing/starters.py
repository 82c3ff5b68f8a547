"""What a new action begins with, by kind."""

from __future__ import annotations

from typing import Final

from loopagent.documents import DocumentError
from loopagent.library.editing.splicing import SpliceError, read_text, rewritten


KINDS: Final = {
    "http": "Sends one HTTP request: you say method, address, headers and body.",
    "openapi": "Calls an operation of an OpenAPI document that is kept with the action.",
    "mcp": "Calls a tool of an MCP server that the operator set up.",
    "prompt": "Asks a model one question and holds its answer to a schema.",
    "pipeline": "Calls several actions one after another and passes results on.",
}
"""What each kind does, in a sentence."""
_HEAD: Final = """\
apiVersion: loopagent/v1
kind: Action
name: {name}
title: ""
description: ""          # what it does and when to use it, for the model
effects: {effects}            # read, write, external or irreversible
params:
  type: object
  additionalProperties: false
  properties: {{}}
"""
_RUNS: Final = {
    "http": """\
egress: {hosts: []}      # the only hosts it may call
run:
  kind: http
  method: GET
  url: ""
""",
    "openapi": """\
egress: {hosts: []}      # the only hosts it may call
run:
  kind: openapi
  spec: api.json         # the document that is kept with it
  operation: ""          # its operationId, or GET /orders/{id}
""",
    "mcp": """\
run:
  kind: mcp
  server: ""             # as the settings name it
  tool: ""
""",
    "prompt": """\
run:
  kind: prompt
  template: ""           # the question; {{ params.x }} puts a parameter in
""",
    "pipeline": """\
run:
  kind: pipeline
  steps:
    - id: first          # later steps see its result as steps.first
      action: ""
""",
}


def starter(kind: str, name: str) -> str:
    """The text of a new action; what is still missing is empty, and the checks say so.

    Args:
        kind: One of `KINDS`.
        name: Its name.
    """
    effects = "write" if kind == "pipeline" else "read"
    return _HEAD.format(name=name, effects=effects) + _RUNS[kind]


def renamed_copy(text: str, name: str) -> str:
    """A text that says another name, as it was otherwise."""
    try:
        return rewritten(text, {**read_text(text), "name": name})
    except (DocumentError, SpliceError):
        return text  # its author sees in the checks that the name is another
