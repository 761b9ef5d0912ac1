"""Ownership: whether operators are still the runtime's own, and reach its kernels.

True only here: when a fused kernel may run in place of operators that anybody can
override.

Rules:
- an operator is the runtime's own if everything that is registered for it was
  registered by the runtime: its definition, all its kernels, no rule of any class;
- a call reaches nothing but such a kernel if its keys are those of plain tensors on the
  CPU: no mode, no autocast, no key that was added by anybody; and nobody watches;
- the answer holds for one state of the dispatcher, and is asked anew for another.
"""

from functools import cache

from runtime.autograd.install import install as install_autograd
from runtime.dispatch.state import DispatcherState, OperatorEntry
from runtime.keys import BACKEND_BITS, DispatchKey
from runtime.keys.keyset import DEFAULT_INCLUDED
from runtime.keys.local import View
from runtime.operators.install import install as install_operators
from runtime.schema.names import OperatorName
from runtime.tensors.keys_of import keys_of

# What a call may have, and run nothing but kernels of the CPU: autograd's keys pass it
# on where nothing is recorded.
_PLAIN = (keys_of("cpu").bits | DEFAULT_INCLUDED.bits) & ~DispatchKey.AutocastCPU.bits


@cache
def _tokens() -> frozenset[object]:
    """What the runtime has registered for its operators."""
    libraries = (*install_operators(), *install_autograd())
    return frozenset(token for library in libraries for token in library.tokens)


def is_own(kind: str, state: DispatcherState) -> bool:
    """Whether an operator is the runtime's, with all that is registered for it."""
    entry: OperatorEntry | None = state.entry(OperatorName(*_split(kind)))
    if entry is None or not entry.definitions or entry.rules:
        return False
    own = _tokens()
    kernels = [each for chain in entry.implementations.values() for each in chain]
    return all(each in own for each in (*entry.definitions, *kernels))


def _split(kind: str) -> tuple[str, str]:
    name, _, overload = kind.partition(".")
    return name, overload


def is_plain(bits: int, view: View) -> bool:
    """Whether a call with these keys reaches a kernel of the CPU, and nothing else."""
    found = (bits | view.included) & (BACKEND_BITS | ~view.excluded)
    return not found & ~_PLAIN
