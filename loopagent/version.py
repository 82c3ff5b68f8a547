"""The version of loopagent."""

from typing import Final


VERSION: Final = "0.1.0"
