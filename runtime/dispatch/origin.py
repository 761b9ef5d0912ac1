"""Origins: where something was registered, as dumps tell it.

True only here: the words for a line of code.
"""

import sys


def origin_of_caller() -> str:
    """The line that called the function which asks."""
    frame = sys._getframe(2)
    return f"registered at {frame.f_code.co_filename}:{frame.f_lineno}"
