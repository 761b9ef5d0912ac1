"""What a thread is in, as objects: what every call must leave as it found it."""

import gc
from typing import Any

from everyorder.runtime.dispatch.watch import DEPTH
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.tensors.keys import MODED, STATE
from everyorder.runtime.torch_dispatch.modes import same_modes


class Look:
    """The objects that a thread's state consists of, at one moment."""

    def __init__(self) -> None:
        self.stack = STATE.stack
        self.rest: tuple[Any, ...] = (
            LOCAL.view,
            STATE.snapshot,
            STATE.context,
            DEPTH.level,
        )

    def unchanged(self, entered: bool = False) -> bool:
        """Whether they are the very same now.

        If modes were `entered` and left, the stack is one of the same modes.
        """
        now = Look()
        same = self.stack is now.stack
        if entered and same_modes(self.stack, now.stack):
            same = True
        found = zip(self.rest, now.rest, strict=True)
        return same and all(one is other for one, other in found)


def nobody_entered() -> bool:
    """Whether no thread has a mode; exceptions that were caught keep theirs a while."""
    if MODED:
        gc.collect()
    return not MODED
