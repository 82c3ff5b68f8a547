"""`python -m loopagent`: the command line."""

from loopagent.cli import main


main()
