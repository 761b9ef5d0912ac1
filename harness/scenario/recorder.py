"""Which kernels a call ran, and what it was like inside of them.

True only here: recorded kernels.  A recorded kernel notes its step and then calls the
real one, so the system sees *which* kernel a call reached, whatever it returns.  It has
the facts of the real kernel and the same calling convention.
"""

from collections.abc import Callable
from typing import Any

from invariants.surroundings import Surroundings
from runtime.dispatch.kernel import Kernel


class Recorder:
    """The kernels that ran, oldest first, since the list was last emptied.

    While `sample` is set, a kernel that runs also appends what it returns to `inside`.
    """

    __slots__ = ("inside", "ran", "sample")

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.inside: list[Surroundings] = []
        self.sample: Callable[[], Surroundings] | None = None


def recorded(
    kernel: Kernel, origin: str, recorder: Recorder | None, debug: str | None = None
) -> Kernel:
    """`kernel`, noting its description in `recorder` whenever it runs."""
    function = kernel.function
    if function is None or recorder is None:
        return kernel
    label = debug or f"{kernel.facts.name} ({origin})"
    noted = _noting(function, label, recorder)
    if kernel.facts.kind == "linked":
        # Its factory is called once; what the factory makes is what runs.
        factory = function

        def linking(below: Any, keyset: Any) -> Callable[..., Any]:
            return _noting(factory(below, keyset), label, recorder)

        noted = linking
    return Kernel(noted, kernel.facts, kernel.with_keyset)


def _noting(
    function: Callable[..., Any], label: str, recorder: Recorder
) -> Callable[..., Any]:
    ran = recorder.ran

    def noted(*args: Any, **kwargs: Any) -> Any:
        ran.append(label)
        if recorder.sample is not None:
            recorder.inside.append(recorder.sample())
        return function(*args, **kwargs)

    return noted
