"""A mode that writes down every operator, whatever it is called with.

The idea: a wrapper logs what happens to *it*.  A mode logs what happens in a *block*:
factories that are given no tensor, plain tensors, wrappers, and the backward pass.  Its
handler is a method; while it runs, the mode is off the stack, so that what it calls
goes to the next mode outwards, and at last to the kernels.

    with LoggingMode(), capture_logs(use_shortid_for_all_tensors=True) as logs:
        x = runtime.ones(2)
        y = x + x

    # logs:  $0: f32[2] = everyorder.runtime.ops.core.ones.default(['2'])
    #        $1: f32[2] = everyorder.runtime.ops.core.add.default($0, $0)

`capture_logs_with_logging_tensor_mode` is this in one word.  Modes nest: each writes a
line, the outer one first, because the inner one waits for what the operator returns;
both see the same tensors, so that their numbers agree.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from everyorder.runtime.torch_dispatch import TorchDispatchMode
from tests.examples.logging_tensor import capture_logs, note


class LoggingMode(TorchDispatchMode):
    """Logs every operator of the thread, and changes nothing."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        results = func(*args, **(kwargs or {}))
        note(f"{func.__module__}.{func.__name__}", args, kwargs or {}, results)
        return results


@contextmanager
def capture_logs_with_logging_tensor_mode(types: bool = True) -> Iterator[list[str]]:
    """Context: the lines of every operator inside, with all tensors by number."""
    with capture_logs(types, use_shortid_for_all_tensors=True) as lines, LoggingMode():
        yield lines
