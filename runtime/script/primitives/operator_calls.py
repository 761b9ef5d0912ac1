"""Operators as programs call them: by position, with values that are known to fit.

    bound_call    calls an operator: it gets every argument in the order of the schema
                  that the program was compiled with, converts none but codes, copies
                  the lists that kernels get fresh, and finds the bound kernel on the
                  published entry, at every call
    KernelLookup, PrimitiveCheck    what generated programs look up once in a run: the
                  bound kernels of operators, and whether primitives are their functions
    is_own, is_plain    whether a fused kernel may run in place of operators that
                  anybody can override

Rules of calls:
- a call runs what is registered at that moment; nothing of an entry is kept here, so
  that nothing can be stale and no kernel is kept alive;
- an operator that was defined anew with another schema is refused, as its values may
  not fit; with the old schema it is called again;
- where anything is out of the ordinary (a watcher, a number in place of a tensor, an
  operator that was removed) the operator is called as from Python, which raises the
  errors;
- results are checked as those of any call, unless the kernel is `trusted`;
- what a lookup finds is remembered with the operators of its namespace, and goes with
  them.

Rules of ownership:
- an operator is the runtime's own if everything that is registered for it was
  registered by the runtime: its definition, all its kernels, no rule of any class;
- a call reaches nothing but such a kernel if its keys are those of plain tensors on the
  CPU (no mode, no autocast, no key that a user added) and nobody watches;
- the answer holds for one state of the dispatcher, and is asked anew for another.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from everyorder.runtime.autograd.install import install as install_autograd
from everyorder.runtime.dispatch.call import BoundKernel
from everyorder.runtime.dispatch.call_stub import (
    globals_of,
    joined,
    linked,
    making,
    passed,
    returned,
)
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.registration import DispatcherProtocol
from everyorder.runtime.dispatch.registration_record import OperatorSpec
from everyorder.runtime.dispatch.state import (
    DispatcherState,
    OperatorEntry,
    OperatorMap,
)
from everyorder.runtime.errors.call import OperatorGone
from everyorder.runtime.keys import BACKEND_BITS, LOCAL, DispatchKey
from everyorder.runtime.keys.keyset import DEFAULT_INCLUDED
from everyorder.runtime.keys.local import View
from everyorder.runtime.operators.install import install as install_operators
from everyorder.runtime.schema.binding import presenters_of
from everyorder.runtime.schema.signature import OperatorName
from everyorder.runtime.script.primitives import NAMESPACE
from everyorder.runtime.tensors.keys import keys_of

Function = Callable[..., Any]


class BoundCall(NamedTuple):
    """A bound call: the function, and what others need to do the same faster.

    `key` is what entries remember its bound kernels by: `memo[key][view][bits]`;
    `kernel` is the one of an entry and a keyset, in this thread; `is_current` says
    whether an entry is one that it would call.
    """

    call: Function
    key: object
    name: OperatorName
    reading: OperatorSpec
    trusted: Function | None
    is_current: Callable[[OperatorEntry], bool]
    kernel: Callable[[OperatorEntry, int], BoundKernel]


def bound_call(
    dispatcher: DispatcherProtocol,
    name: OperatorName,
    reading: OperatorSpec,
    trusted: Function | None = None,
) -> BoundCall:
    """The call of the operator called `name`, with all of its arguments.

    `reading` is the definition that the caller knows.  The results of `trusted`, where
    that is the kernel, are what the schema says; it is given lists themselves.

    The function raises what a call of the operator raises, and `OperatorGone`.
    """
    schema, text = reading.schema, str(reading.schema)
    callee = OperatorHandle(dispatcher, name)._callee
    start = schema.kwarg_only_start
    names = [each.name for each in schema.arguments[start:]]
    # What entries remember for this function: views, keysets, bound kernels.
    key = object()

    def is_current(entry: OperatorEntry) -> bool:
        defined = entry.definitions[0].reading if entry.definitions else None
        if defined is None:
            return False
        return defined is reading or str(defined.schema) == text

    def current() -> OperatorEntry | None:
        entry: OperatorEntry | None = callee.current_entry()
        if entry is None or not entry.definitions:
            return None
        if not is_current(entry):
            found = str(entry.definitions[0].reading.schema)
            raise OperatorGone(
                code="OperatorChanged", operator=str(name), known=text, found=found
            )
        return entry

    def plain(*values: Any) -> Any:
        current()
        named = dict(zip(names, values[start:], strict=False))
        rest = values[start + len(names) :]
        return callee.call(*values[:start], *rest, **named)

    def resolve(bits: int) -> BoundKernel | None:
        entry = current()
        return None if entry is None else kernel_of(entry, bits)

    def kernel_of(entry: OperatorEntry, bits: int) -> BoundKernel:
        caller = callee.caller(entry)
        kernel: BoundKernel = caller.bound_kernel(callee, bits)
        if trusted is not None and kernel is not trusted:
            kernel = _careful(kernel, caller.reading)
        views = entry.memo.setdefault(key, {})
        views.setdefault(LOCAL.view, {})[bits] = kernel
        return kernel

    kind = "bound" if trusted is None else "trusted"
    if kind not in reading.memo:
        reading.memo[kind] = _maker_of(reading, trusted is not None)
    maker = reading.memo[kind]
    call: Function = plain if maker is None else maker(dispatcher, key, resolve, plain)
    return BoundCall(call, key, name, reading, trusted, is_current, kernel_of)


def _careful(kernel: BoundKernel, reading: OperatorSpec) -> BoundKernel:
    """A call of a kernel that is not the trusted one: lists copied, results checked."""
    presenters, returns = reading.convention.presenters, reading.convention.returns

    def run(*values: Any) -> Any:
        given = [
            value if present is None else present(value)
            for present, value in zip(presenters, values, strict=True)
        ]
        return returns(kernel(*given))

    return run


def _maker_of(reading: OperatorSpec, trusts: bool) -> Function | None:
    """Compile `make(dispatcher, key, resolve, plain)`; None where only `plain` does."""
    if reading.maker is None:
        return None
    schema = reading.schema
    arguments = schema.arguments
    names = [*map(passed, range(len(arguments)), arguments)]
    plain = f"return _slow({', '.join(names)})"
    seen = presenters_of(schema)
    shown = [
        f"{name} = _seen{at}({name})"
        for at, name in enumerate(names)
        if seen[at] is not None and not trusts
    ]
    body = [
        "if _WATCH.active:",
        f"    {plain}",
        *joined(schema, plain),
        *linked(schema, plain),
        *shown,
    ]
    call = f"_kernel({', '.join(names)})"
    body += [f"return {call}"] if trusts else [f"_result = {call}", *returned(schema)]
    values = globals_of(schema, reading.converters)
    values |= {f"_seen{at}": each for at, each in enumerate(seen)}
    return making(f"bound call of {schema.name}", names, body, values)


class KernelLookup:
    """The bound kernels of a namespace's operators, looked up once for each state."""

    def __init__(self, namespace: str, operators: Sequence[BoundCall]) -> None:
        self.namespace = namespace
        self.operators = operators

    def __call__(self, state: DispatcherState) -> tuple[Any, ...]:
        """The bound kernels by views and keysets, of each operator."""
        kernels = tuple(self._views(state))
        operators = state.namespaces.get(self.namespace)
        if isinstance(operators, OperatorMap):
            _bound_kernels_of(operators)[self] = kernels
        return kernels

    def _views(self, state: DispatcherState) -> Iterator[dict[Any, Any]]:
        for bound in self.operators:
            entry = state.entry(bound.name)
            if entry is None or not bound.is_current(entry):
                # Its bound call raises the error.
                yield {}
            else:
                yield entry.memo.setdefault(bound.key, {})


class PrimitiveCheck:
    """Whether the kernels of primitives are their functions, in this thread."""

    def __init__(self, primitives: Sequence[BoundCall]) -> None:
        self.primitives = primitives

    def __call__(self, state: DispatcherState) -> bool:
        """Whether they are; remembered with the operators of the namespace."""
        view = LOCAL.view
        operators = state.namespaces.get(NAMESPACE)
        if not isinstance(operators, OperatorMap):
            return False
        known: dict[Any, bool] = _bound_kernels_of(operators).setdefault(self, {})
        if view not in known:
            known[view] = all(is_known(state, each) for each in self.primitives)
        return known[view]


def is_known(state: DispatcherState, bound: BoundCall) -> bool:
    """Whether the kernel of a primitive is its function, in this thread."""
    entry = state.entry(bound.name)
    if entry is None or not bound.is_current(entry):
        return False
    return bound.kernel(entry, 0) is bound.trusted


def _bound_kernels_of(operators: OperatorMap) -> dict[object, Any]:
    """The memo of the operators of a namespace."""
    try:
        return operators.bound_kernels
    except AttributeError:
        operators.bound_kernels = {}
        return operators.bound_kernels


# What a call may have, and run nothing but kernels of the CPU: autograd's keys pass it
# on where nothing is recorded.
_PLAIN = (keys_of("cpu").bits | DEFAULT_INCLUDED.bits) & ~DispatchKey.AutocastCPU.bits


@cache
def _tokens() -> frozenset[object]:
    """The tokens of all that the runtime has registered for its operators."""
    libraries = (*install_operators(), *install_autograd())
    return frozenset(token for library in libraries for token in library.tokens)


def is_own(kind: str, state: DispatcherState) -> bool:
    """Whether an operator is the runtime's, with all that is registered for it."""
    name, _, overload = kind.partition(".")
    entry: OperatorEntry | None = state.entry(OperatorName(name, overload))
    if entry is None or not entry.definitions or entry.rules:
        return False
    own = _tokens()
    kernels = [each for chain in entry.implementations.values() for each in chain]
    return all(each in own for each in (*entry.definitions, *kernels))


def is_plain(bits: int, view: View) -> bool:
    """Whether a call with these keys reaches a kernel of the CPU, and nothing else."""
    found = (bits | view.included) & (BACKEND_BITS | ~view.excluded)
    return not found & ~_PLAIN
