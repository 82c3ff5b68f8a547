"""Commands about files and texts rather than runs: prompts, schemas, replies."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from loopagent import resources
from loopagent import schemas as schema_files
from loopagent.cli.opening import ProjectDir
from loopagent.cli.output import err, out, print_json
from loopagent.core.agent_spec import AgentSpec
from loopagent.core.prompt import PromptPart, system_parts, volatile_message
from loopagent.core.reply import check_text
from loopagent.core.state import RunState
from loopagent.errors import ConfigError
from loopagent.project import load_project
from loopagent.project.scenarios import load_scenarios


agents = typer.Typer(help="Agents: lint, prompt.", no_args_is_help=True)
schemas = typer.Typer(help="JSON Schemas of the protocol: write, check.", no_args_is_help=True)
reply = typer.Typer(help="Replies: check what becomes of a model text.", no_args_is_help=True)


@agents.command("lint")
def lint(project: ProjectDir = Path()) -> None:
    """Check a project: every complaint with file, line and column; exit code 2 when there is one."""
    loaded = load_project(project)
    for warning in loaded.warnings:
        err.print(f"warning: {warning}", markup=False)
    scenarios = load_scenarios(loaded)
    counts = f"{len(loaded.agents)} agent(s), {len(loaded.actions)} action(s), {len(loaded.skills)} skill(s)"
    more = f"{len(scenarios)} scenario(s), {len(loaded.triggers)} trigger(s)"
    out.print(f"{counts}, {more}: fine")


@agents.command("prompt")
def prompt(
    name: Annotated[str, typer.Argument(help="Name of the agent.")],
    project: ProjectDir = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the exact system prompt of an agent, and about how many tokens each part has."""
    loaded = load_project(project)
    agent = loaded.agents.get(name)
    if agent is None:
        message = f"there is no agent {name!r}; known: {', '.join(loaded.agents) or 'none'}"
        raise ConfigError(message)
    parts = system_parts(resources.prompt("system.md.j2"), agent.spec)
    text = "".join(one.text for one in parts)
    state = PromptPart("message: state", volatile_message(_fresh_run(agent.spec)))
    counts = {one.name: one.tokens for one in (*parts, state)}
    protocol = sum(one.tokens for one in parts if one.protocol)
    total = sum(counts.values())
    if as_json:
        print_json(
            {
                "agent": name,
                "system": text,
                "parts": [{"part": part, "tokens": count} for part, count in counts.items()],
                "protocolTokens": protocol,
                "tokens": total,
            }
        )
        return
    sys.stdout.write(text)
    for part, count in counts.items():
        err.print(f"{count:>7}  {part}", markup=False)
    err.print(f"{total:>7}  tokens in all, about; {protocol} of them explain the protocol")


def _fresh_run(spec: AgentSpec) -> RunState:
    """A run of the agent as it starts, for the message that shows its state."""
    initial = {} if spec.payload.initial is None else spec.payload.initial
    return RunState(id="run", spec=spec, model=spec.model or "", payload=initial)


@schemas.command("write")
def write_schemas() -> None:
    """Write the schema files again from the classes."""
    for path in schema_files.write(resources.folder("schemas")):
        out.print(str(path), markup=False)


@schemas.command("check")
def check_schemas() -> None:
    """Prove that the schema files are what the classes say; exit code 1 when they have drifted apart."""
    wrong = schema_files.check(resources.folder("schemas"))
    for one in wrong:
        err.print(one, markup=False)
    if wrong:
        err.print("run `loopagent schemas write`")
        raise typer.Exit(1)
    out.print("the schemas are in step with the classes")


@reply.command("check")
def check_reply(
    file: Annotated[str, typer.Argument(help="File with the text; - reads standard input.")] = "-",
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Read lines of {id, raw, finishReason?}.")
    ] = False,
) -> None:
    """Say what becomes of a model's text, as JSON."""
    text = read_text(file)
    if not jsonl:
        print_json(check_text(text))
        return
    for number, line in _lines(text):
        sys.stdout.write(json.dumps(_checked(line, number), ensure_ascii=False) + "\n")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((at, line) for at, line in enumerate(text.split("\n"), start=1) if line.strip())


def _checked(line: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
        raw = row["raw"]
    except (ValueError, TypeError, KeyError) as error:
        message = f"line {number}: must be a JSON object with id and raw ({error})"
        raise ConfigError(message) from error
    return {"id": row.get("id"), **check_text(str(raw), str(row.get("finishReason") or "stop"))}


def read_text(file: str) -> str:
    """A file as text, or standard input for `-`."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        message = f"{file}: cannot be read: {error.strerror}"
        raise ConfigError(message) from error
    return data.decode("utf-8", "replace")
