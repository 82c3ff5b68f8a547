"""Value objects: what is made often and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from dataclasses import dataclass as value_object
else:

    def value_object(*, frozen, slots):
        """Make a class of values: frozen for type checkers, who look at every line, but not at run time.

        A frozen dataclass sets each field by a call, so that it takes four times as long to make; a turn makes about
        twenty values with a hundred fields together.

        Args:
            frozen: Always True; type checkers go by it.
            slots: As for `dataclass`.
        """
        del frozen
        return dataclass(slots=slots, unsafe_hash=True)


__all__ = ["value_object"]
