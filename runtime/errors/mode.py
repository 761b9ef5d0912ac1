"""Errors of modes: recording, inference, autocast.

Who must act: whoever entered the mode.
"""

from dataclasses import dataclass

from runtime.errors.autograd import AutogradError
from runtime.errors.call import page


@dataclass(eq=False, kw_only=True)
class ModeMisuse(AutogradError, TypeError):
    """A mode was made the decorator of a coroutine function."""

    mode: str
    function: str

    def render(self) -> str:
        """The mode, the function, and why it cannot be."""
        return page(
            f"`{self.mode}` cannot decorate `{self.function}`, a coroutine function: a "
            "mode belongs to a thread, and others would run in it while it awaits.",
            ("to do", "enter the mode around what computes, between two awaits"),
        )
