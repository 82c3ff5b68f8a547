"""The command line: everything the API does, from a terminal, with JSON on request and honest exit codes."""

from __future__ import annotations

import sys

from loopagent.cli.main import cli
from loopagent.cli.output import fail
from loopagent.errors import ConfigError, LoopAgentError, RequestError


__all__ = ["main"]
USAGE = 2


def main() -> None:
    """Entry point: run the command line, turn what goes wrong into a message and an exit code."""
    try:
        cli()
    except ConfigError as error:
        fail(str(error), error.problems)
        sys.exit(USAGE)
    except RequestError as error:
        fail(
            f"{error} [{error.code}]",
            [f"{one['pointer']}: {one['detail']}" for one in error.errors],
        )
        sys.exit(USAGE)
    except LoopAgentError as error:
        fail(str(error))
        sys.exit(1)
