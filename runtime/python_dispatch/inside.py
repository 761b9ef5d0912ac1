"""Inside of a handler: what the thread includes and excludes while one runs.

True only here: the two views that are derived from the one a call came with, kept on
it, so that who is in a hurry reads a slot.

Rules: every key above Python is excluded, as the call has passed it; Python is not.  If
no mode is left on the stack, what modes include is not included either.
"""

from runtime.keys.local import View, view_of
from runtime.tensors.keys import ABOVE, HANDLED


def inside(view: View) -> View:
    """The view of a handler; kept as `view.handling`."""
    found = view.handling
    if found is None:
        found = view.handling = view_of(view.included, view.excluded | ABOVE)
    return found


def inside_last(view: View) -> View:
    """The view of the handler of the last mode; kept as `view.handling_last`."""
    found = view.handling_last
    if found is None:
        included = view.included & ~HANDLED
        found = view.handling_last = view_of(included, view.excluded | ABOVE)
    return found
