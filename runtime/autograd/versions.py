"""The fallback at ADInplaceOrView: operators of others that write to their arguments.

True only here: whose versions rise.  An operator says in its schema what it writes to;
one of `core` has a kernel at ADInplaceOrView (`runtime.autograd.kernels`), any other
comes here: it is called below, then the versions of what it wrote to are raised, so
that a gradient which needs the old values is refused and not wrong.

Rules:
- a call that raises leaves versions as they are, as one of `core` does; one that is
  interrupted raises them, as nobody knows what it has written;
- an inference tensor is written to in inference mode only;
- an operator that writes nothing pays nothing: its bound kernel is the one below.
"""

from collections.abc import Callable
from typing import Any

from runtime.autograd.kernels import EXHAUSTED, untracked
from runtime.autograd.saved import is_inference
from runtime.dispatch.kernel import linked
from runtime.dispatch.library import Library
from runtime.dispatch.registration import Registration
from runtime.keys import KeySet
from runtime.tensors.arrays import claimed
from runtime.tensors.tensor import Tensor


def install_version_fallback(library: Library) -> Registration:
    """Register the fallback, in a library of `_`.

    Raises `DuplicateFallback`; a dispatcher that starts with the built-in one has it
    released first (`runtime.dispatch.dispatcher.release`).
    """
    return library.fallback(linked(_bumping, "versions"), "ADInplaceOrView")


def _bumping(below: Any, keyset: KeySet) -> Callable[..., Any]:
    run, schema = below.run, below.schema
    places = [i for i, argument in enumerate(schema.arguments) if argument.is_write]
    if not places:
        return run  # type: ignore[no-any-return]  # the bare function below

    def kernel(*arguments: Any) -> Any:
        written = [
            tensor
            for value in map(arguments.__getitem__, places)
            for tensor in (value if isinstance(value, (list, tuple)) else [value])
            if isinstance(tensor, Tensor)
        ]
        for tensor in written:
            if is_inference(tensor):
                untracked(tensor, str(schema.name))
        storages = [(tensor._place or claimed(tensor))[0] for tensor in written]
        over = True
        try:
            return run(*arguments)
        except EXHAUSTED:
            raise
        except Exception:
            over = False
            raise
        finally:
            if over:
                for storage in storages:
                    storage.version += 1

    return kernel
