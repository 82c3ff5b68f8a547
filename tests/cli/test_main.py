"""The list of commands: what it says is what the commands say of themselves, and it costs nothing else."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest
from typer.testing import CliRunner

from loopagent.cli.main import COMMANDS, cli, load_command
from tests.http.server import ROOT


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_of_a_command_what_it_says_itself(name: str) -> None:
    command = load_command(name)
    assert COMMANDS[name][1] == command.help.splitlines()[0].strip()
    asked = CliRunner().invoke(cli, [name, "--help"])
    assert asked.exit_code == 0, asked.output
    assert f"{name} [OPTIONS]" in asked.output


def test_the_list_of_commands_imports_none_of_them() -> None:
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from loopagent.cli.main import cli\n"
        "shown = CliRunner().invoke(cli, ['--help'])\n"
        "assert shown.exit_code == 0 and 'run ' in shown.output, shown.output\n"
        "print(*[one for one in sys.modules if one.startswith('loopagent.cli.') or one == 'fastapi'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"loopagent.cli.main", "loopagent.cli.output"}


def test_a_mistyped_command_is_answered_with_the_one_that_was_meant() -> None:
    asked = CliRunner().invoke(cli, ["rnus"])
    assert asked.exit_code == 2
    assert "runs" in asked.output


def test_the_version_is_told() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert CliRunner().invoke(cli, ["--version"]).stdout.strip() == declared
