"""Calls of operators by compiled programs: by position, with arguments known to fit.

    bound_call    calls an operator with every argument in the order of the schema
                  that the program was compiled with; it converts only enum
                  constants, copies lists for kernels, and looks up the bound kernel
                  on the published entry at every call
    KernelLookup, PrimitiveCheck    lookups of generated programs, once in a run: the
                  bound kernels of operators, and True if primitives run their functions
    is_own, is_plain    conditions for a fused kernel to replace operators that
                  users can override

Rules of calls:
- a call runs the kernel that is registered at that moment; this module stores nothing
  of an entry, so that nothing can be stale and no kernel is kept alive;
- an operator that was redefined with another schema is refused, because the arguments
  may not fit; if it was redefined with the same schema, calls continue;
- in every special case (a watcher, a number in place of a tensor, an operator that was
  removed) the operator is called as from Python, which raises the errors;
- results are checked as those of any call, unless the kernel is `trusted`;
- the result of a lookup is cached with the operators of its namespace, and dropped with
  them.

Rules of ownership:
- an operator is built-in if the runtime registered everything that is registered for
  it: its definition and all its kernels, and there is no rule of any class;
- a call reaches only such a kernel if its keys are those of plain tensors on the CPU
  (no mode, no autocast, no key that a user added) and there is no watcher;
- the result is valid for one state of the dispatcher.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from everyorder.runtime.autograd.install import install as install_autograd
from everyorder.runtime.dispatch.call_stub import (
    globals_of,
    joined,
    linked,
    making,
    passed,
    returned,
)
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.kernel_lookup import BoundKernel
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
    """A bound call: the function, and data to make the same call faster.

    `key` is the key of its bound kernels in the memo of an entry:
    `memo[key][view][bits]`; `kernel` returns the bound kernel of an entry and a keyset,
    in this thread; `is_current` returns True for an entry that the function would call.
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
    """Return the bound call of the operator called `name`, with all of its arguments.

    `reading` is the definition that the caller was compiled with. If the kernel is
    `trusted`, its results are not checked, and it receives lists uncopied.

    The function raises whatever a call of the operator raises, and `OperatorGone`.
    """
    schema, text = reading.schema, str(reading.schema)
    callee = OperatorHandle(dispatcher, name)._callee
    start = schema.kwarg_only_start
    names = [each.name for each in schema.arguments[start:]]
    # The key of this function's data in entries: views, keysets, bound kernels.
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
            schema_now = str(entry.definitions[0].reading.schema)
            raise OperatorGone(
                code="OperatorChanged", operator=str(name), known=text, found=schema_now
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
    """Return the call of an untrusted kernel: copies lists, checks results."""
    presenters, returns = reading.convention.presenters, reading.convention.returns

    def run(*values: Any) -> Any:
        arguments = [
            value if present is None else present(value)
            for present, value in zip(presenters, values, strict=True)
        ]
        return returns(kernel(*arguments))

    return run


def _maker_of(reading: OperatorSpec, trusts: bool) -> Function | None:
    """Compile `make(dispatcher, key, resolve, plain)`.

    Returns None for an operator that only `plain` can call.
    """
    if reading.maker is None:
        return None
    schema = reading.schema
    arguments = schema.arguments
    names = [*map(passed, range(len(arguments)), arguments)]
    plain = f"return _slow({', '.join(names)})"
    arg_presenters = presenters_of(schema)
    conversions = [
        f"{name} = _seen{at}({name})"
        for at, name in enumerate(names)
        if arg_presenters[at] is not None and not trusts
    ]
    body = [
        "if _WATCH.active:",
        f"    {plain}",
        *joined(schema, plain),
        *linked(schema, plain),
        *conversions,
    ]
    call = f"_kernel({', '.join(names)})"
    body += [f"return {call}"] if trusts else [f"_result = {call}", *returned(schema)]
    values = globals_of(schema, reading.converters)
    values |= {f"_seen{at}": each for at, each in enumerate(arg_presenters)}
    return making(f"bound call of {schema.name}", names, body, values)


class KernelLookup:
    """The bound kernels of a namespace's operators, looked up once per state."""

    def __init__(self, namespace: str, operators: Sequence[BoundCall]) -> None:
        self.namespace = namespace
        self.operators = operators

    def __call__(self, state: DispatcherState) -> tuple[Any, ...]:
        """Return the bound kernels of each operator, by views and keysets."""
        kernels = tuple(self._views(state))
        operators = state.namespaces.get(self.namespace)
        if isinstance(operators, OperatorMap):
            _bound_kernels_of(operators)[self] = kernels
        return kernels

    def _views(self, state: DispatcherState) -> Iterator[dict[Any, Any]]:
        for bound in self.operators:
            entry = state.entry(bound.name)
            if entry is None or not bound.is_current(entry):
                # The bound call raises the error.
                yield {}
            else:
                yield entry.memo.setdefault(bound.key, {})


class PrimitiveCheck:
    """A check that the kernels of primitives are their functions, in this thread."""

    def __init__(self, primitives: Sequence[BoundCall]) -> None:
        self.primitives = primitives

    def __call__(self, state: DispatcherState) -> bool:
        """Return True if they are; cached with the operators of the namespace."""
        view = LOCAL.view
        operators = state.namespaces.get(NAMESPACE)
        if not isinstance(operators, OperatorMap):
            return False
        by_view: dict[Any, bool] = _bound_kernels_of(operators).setdefault(self, {})
        if view not in by_view:
            by_view[view] = all(is_known(state, each) for each in self.primitives)
        return by_view[view]


def is_known(state: DispatcherState, bound: BoundCall) -> bool:
    """Return True if the kernel of a primitive is its function, in this thread."""
    entry = state.entry(bound.name)
    if entry is None or not bound.is_current(entry):
        return False
    return bound.kernel(entry, 0) is bound.trusted


def _bound_kernels_of(operators: OperatorMap) -> dict[object, Any]:
    """Return the memo of the operators of a namespace."""
    try:
        return operators.bound_kernels
    except AttributeError:
        operators.bound_kernels = {}
        return operators.bound_kernels


# The keys that a call may have if it runs only kernels of the CPU: autograd's keys pass
# it on where nothing is recorded.
_PLAIN = (keys_of("cpu").bits | DEFAULT_INCLUDED.bits) & ~DispatchKey.AutocastCPU.bits


@cache
def _tokens() -> frozenset[object]:
    """Return the tokens of all that the runtime has registered for its operators."""
    libraries = (*install_operators(), *install_autograd())
    return frozenset(token for library in libraries for token in library.tokens)


def is_own(kind: str, state: DispatcherState) -> bool:
    """Return True if an operator, with all its registrations, is built-in."""
    name, _, overload = kind.partition(".")
    entry: OperatorEntry | None = state.entry(OperatorName(name, overload))
    if entry is None or not entry.definitions or entry.rules:
        return False
    own = _tokens()
    kernels = [each for chain in entry.implementations.values() for each in chain]
    return all(each in own for each in (*entry.definitions, *kernels))


def is_plain(bits: int, view: View) -> bool:
    """Return True if a call with these keys reaches only a kernel of the CPU."""
    active = (bits | view.included) & (BACKEND_BITS | ~view.excluded)
    return not active & ~_PLAIN
