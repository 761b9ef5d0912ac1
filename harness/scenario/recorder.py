"""Which kernels a call ran.

True only here: recorded kernels.  A recorded kernel notes its step and then calls the
real one, so the system sees *which* kernel a call reached, whatever it returns.  It has
the facts of the real kernel and the same calling convention.
"""

from typing import Any

from runtime.dispatch.kernel import Kernel


class Recorder:
    """The kernels that ran, oldest first, since the list was last emptied."""

    __slots__ = ("ran",)

    def __init__(self) -> None:
        self.ran: list[str] = []


def recorded(kernel: Kernel, origin: str, recorder: Recorder | None) -> Kernel:
    """`kernel`, noting its name and `origin` in `recorder` whenever it runs."""
    function = kernel.function
    if function is None or recorder is None:
        return kernel
    label = f"{kernel.facts.name} ({origin})"
    ran = recorder.ran

    def noted(*args: Any, **kwargs: Any) -> Any:
        ran.append(label)
        return function(*args, **kwargs)

    return Kernel(noted, kernel.facts, kernel.with_keyset)
