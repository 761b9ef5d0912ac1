"""From a call to the kernel: operator references, and the state bound for a call.

How a call works: bind the arguments to the schema; join the keysets of the tensors
among them; add the keys that the thread includes, and remove those that it excludes and
those that fall through; the highest key left selects a slot (`EntryInvoker.run`,
`BoundKernels`); run the slot's kernel by its convention (`runtime.dispatch.runners`).
No lock is acquired.

There are two paths.  The *slow path* looks up the entry in the published state and uses
its `EntryInvoker`; every call can use it.  From the `WARM`th call on the operator has a
*call stub*: a function with the operator's own parameters, compiled once for each
definition (`runtime.dispatch.call_stub`).  It builds no list of arguments, finds the
*bound kernel* of the keyset on the entry, and falls back to the slow path in every
unusual case.  A bound kernel is a plain function of all arguments in the order of the
schema, as kernels see them (enum constants are objects), which runs the kernel of one
keyset of one entry.

Rules:
- an `EntryInvoker` is a pure function of one immutable entry, built at the first call
  and stored on the entry; it cannot be stale.  It does not refer to the entry: that
  would be a reference cycle, which keeps kernels alive until the next collection;
- a call stub does not refer to an entry: it reads the published state at every call,
  and its cache is on the entry, under a key of its dispatcher and definition;
- an `OperatorRef` (an operator of a dispatcher) keeps its dispatcher alive; an entry
  keeps neither;
- the owner of an `OperatorRef`, a handle or a packet, is a partial object, whose
  function is changed from `OperatorRef.call` to the call stub: no other way of calling
  is as fast;
- a bound kernel uses its keyset without change, as a redispatch does.  A linked kernel
  and the next ones belong to one entry, whatever is registered while it runs;
- only the outermost call converts and checks results, except those of boxed kernels, of
  fallbacks, and of kernels with a keyset, which are always checked;
- a bound kernel refers to bound kernels of lower keys and never to one of a higher key;
- the operator argument of boxed kernels and fallbacks is created when they run, from a
  weak reference to the dispatcher.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from weakref import ref

from everyorder.runtime.dispatch.dispatch_table import Table
from everyorder.runtime.dispatch.kernel import Kernel
from everyorder.runtime.dispatch.registration import DispatcherProtocol, HandleCache
from everyorder.runtime.dispatch.registration_record import (
    ClassRule,
    OperatorSpec,
    namespace_of,
)
from everyorder.runtime.dispatch.runners import LINKED, Runner, Runners
from everyorder.runtime.dispatch.state import OperatorEntry
from everyorder.runtime.dispatch.watch import DEPTH, UNOBSERVED, WATCH, Observer
from everyorder.runtime.errors.call import CannotRun, OperatorGone
from everyorder.runtime.keys import (
    LOCAL,
    SLOTS,
    DispatchKey,
    KeySet,
    full_after,
    slot_of,
)
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import OperatorName

BoundKernel = Callable[..., Any]

# Calls of one entry before a call stub is compiled: compiling one costs as much as some
# hundred slow calls, and entries under exploration are called only a few times.
WARM = 8
# Further slow calls of one entry after which another handle of it may get a call stub.
COLD = 64


def _no_owner() -> None:
    return None


class OperatorRef:
    """One operator of one dispatcher.

    `make_handle` creates an `OperatorHandle` from a dispatcher and a name.
    """

    __slots__ = ("dispatcher", "make_handle", "name", "namespace", "owner", "text")

    def __init__(
        self,
        dispatcher: DispatcherProtocol,
        name: OperatorName,
        make_handle: Callable[[DispatcherProtocol, OperatorName], Any],
    ) -> None:
        self.dispatcher = dispatcher
        self.name = name
        self.make_handle = make_handle
        # The keys of the operator in a state.
        self.namespace = namespace_of(name)
        self.text = str(name)
        self.owner: Callable[[], partial[Any] | None] = _no_owner

    def set_owner(self, owner: "partial[Any]") -> None:
        """Let `owner` call the operator: by its call stub, as soon as there is one."""
        self.owner = ref(owner)

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the operator by the slow path."""
        try:
            entry = self.dispatcher.state.namespaces[self.namespace][self.text]
            caller: EntryInvoker | None = entry.memo["caller"]
        except KeyError:
            caller = None
        if caller is None:
            caller = self.caller(self.current_entry())
        caller.calls += 1
        if caller.calls == WARM or not caller.calls % COLD:
            self._install_stub(caller)
        return caller.call(self, args, kwargs)

    def slow_path(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call by the slow path; call stubs use it."""
        return self.call(*args, **kwargs)

    def current_entry(self) -> OperatorEntry | None:
        """Return the entry in the published state, which is read once."""
        return self.dispatcher.state.find(self.namespace, self.text)

    def caller(self, entry: OperatorEntry | None) -> "EntryInvoker":
        """Return the invoker of an entry.  Raises `OperatorGone`, `CannotRun`."""
        caller: EntryInvoker | None = (
            None if entry is None else entry.memo.get("caller")
        )
        return caller or caller_of(entry, self.text)

    @property
    def keyring(self) -> HandleCache:
        """Return the handle cache of the dispatcher."""
        return self.dispatcher.keyring

    def operator(self) -> Any:
        """Return a handle of the operator, for kernels with an operator parameter."""
        return self.owner() or self.make_handle(self.dispatcher, self.name)

    def weak_operator(self) -> Callable[[], Any]:
        """Return `operator` as a function that does not keep the dispatcher alive."""
        reference, name, make_handle = ref(self.dispatcher), self.name, self.make_handle
        handles, text = self.keyring.handles, self.text

        def operator() -> Any:
            handle = handles.get(text)
            if handle is not None:
                return handle
            dispatcher = reference()
            assert dispatcher is not None, "a call keeps the dispatcher of its operator"
            return make_handle(dispatcher, name)

        return operator

    def _install_stub(self, caller: "EntryInvoker") -> None:
        """Set the function of the owner to the call stub of the definition, if any."""
        owner, reading = self.owner(), caller.reading
        maker = reading.maker
        if owner is None or maker is None:
            return
        key = self.dispatcher.keyring.key(reading)

        def resolve(bits: int) -> BoundKernel | None:
            entry = self.current_entry()
            if entry is None or not entry.definitions:
                return None
            caller = self.caller(entry)
            if caller.reading is not reading:
                return None
            bound = caller.bound_kernel(self, bits)
            views = entry.memo.setdefault(key, {})
            views.setdefault(LOCAL.view, {})[bits] = bound
            return bound

        stub = maker(self.dispatcher, key, resolve, self.slow_path)
        # Only `__setstate__` can replace the function of a partial object.  It replaces
        # the attributes, too, so they are passed along.
        setstate: Callable[..., None] = partial.__dict__["__setstate__"]
        setstate(owner, (stub, (), {}, vars(owner)))


class EntryInvoker:
    """The state of calls of one entry; see `caller_of`."""

    __slots__ = ("_bound", "bind", "calls", "name", "reading", "runners", "schema")

    def __init__(self, entry: OperatorEntry, reading: OperatorSpec) -> None:
        # No reference to the entry, which stores this object: a cycle would keep its
        # kernels alive until the next collection.
        self.name = entry.name
        self.schema = reading.schema
        self.reading = reading
        self.bind = reading.convention.bind
        self.runners = Runners(entry, reading)
        self._bound: dict[object, BoundKernels] = {}
        # Slow calls so far.
        self.calls = 0

    @property
    def table(self) -> Table:
        """Return the table of the entry."""
        return self.runners.table

    def call(
        self, callee: OperatorRef, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Bind the arguments, dispatch, and run the kernel."""
        values = self.bind(args, kwargs)
        runners = self.runners
        bits = runners.keyset_bits(values)
        if WATCH.active:
            return self._watched("call", callee, bits, values)
        runner = runners.runner(slot_of(bits))
        if runner is LINKED:
            return self.run(callee, bits, values)
        return runner(callee.operator, bits, values)

    def call_boxed(self, callee: OperatorRef, values: list[Any]) -> Any:
        """Dispatch with bound arguments, and run the kernel."""
        bits = self.runners.keyset_bits(values)
        if WATCH.active:
            return self._watched("callBoxed", callee, bits, values)
        return self.run(callee, bits, values)

    def redispatch(
        self, label: str, callee: OperatorRef, keyset: KeySet, values: list[Any]
    ) -> Any:
        """Run the kernel of the highest key of `keyset`, which is used unchanged."""
        if WATCH.active:
            return self._traced(label, callee, keyset.bits, values)
        return self.run(callee, keyset.bits, values)

    def run(self, callee: OperatorRef, bits: int, values: list[Any]) -> Any:
        """Run the kernel of the highest key of `bits`."""
        runner = self.runners.runner(slot_of(bits))
        if runner is LINKED:
            bound = self._bound_kernels(callee, WATCH.active).for_call(bits)
            return self.runners.returns(bound(*self.runners.from_stack(values)))
        return runner(callee.operator, bits, values)

    def run_kernel(
        self,
        callee: OperatorRef,
        kernel: Kernel,
        fallback: bool,
        key: DispatchKey,
        values: Any,
    ) -> Any:
        """Run a kernel that may not be the one of its slot."""
        bits = self.runners.keyset_bits(values)
        if kernel.facts.kind == "linked":
            bound_kernels = self._bound_kernels(callee, WATCH.active)
            bound = bound_kernels.bind_linked(kernel, bits, key)
            return self.runners.returns(bound(*self.runners.from_stack(values)))
        run = self.runners.runner_of(kernel, fallback, key.name)
        return run(callee.operator, bits, values)

    def bound_kernel(self, callee: OperatorRef, bits: int) -> BoundKernel:
        """Return the bound kernel of a call whose arguments have these bits."""
        bits = self.runners.call_bits(bits)
        return self._bound_kernels(callee, False).for_call(bits)

    def _bound_kernels(self, callee: OperatorRef, traced: bool) -> "BoundKernels":
        place = callee.keyring, traced
        bound = self._bound.get(place)
        if bound is None:
            bound = BoundKernels(self.runners, callee.weak_operator(), traced)
            self._bound[place] = bound
        return bound

    def _watched(
        self, label: str, callee: OperatorRef, bits: int, values: list[Any]
    ) -> Any:
        observers = WATCH.observers
        if not observers or self.name.name in UNOBSERVED:
            return self._traced(label, callee, bits, values)
        return self._observed(observers, label, callee, bits, values)

    def _observed(
        self,
        observers: tuple[Observer, ...],
        label: str,
        callee: OperatorRef,
        bits: int,
        values: list[Any],
    ) -> Any:
        """Run the call inside of the first observer, and of the others in turn.

        So each observer is notified of the end, whatever the others do.
        """
        if not observers:
            return self._traced(label, callee, bits, values)
        first, *others = observers
        context = first.before(
            str(self.name), self.schema, tuple(values), KeySet.from_bits(bits)
        )
        try:
            outcome = self._observed(tuple(others), label, callee, bits, values)
        except BaseException as error:
            first.after(context, error)
            raise
        first.after(context, outcome)
        return outcome

    def _traced(
        self, label: str, callee: OperatorRef, bits: int, values: list[Any]
    ) -> Any:
        WATCH.write(label, str(self.name), SLOTS[slot_of(bits)].name)
        DEPTH.level += 1
        try:
            return self.run(callee, bits, values)
        finally:
            DEPTH.level -= 1


def caller_of(entry: OperatorEntry | None, name: str) -> EntryInvoker:
    """Return the invoker of an entry, which is stored on the entry.

    Raises:
        OperatorGone: nothing is registered for the operator except rules of classes.
        CannotRun: it has kernels and no schema.
    """
    if entry is None or not entry.total:
        raise OperatorGone(operator=name)
    if not entry.definitions:
        raise CannotRun(code="CallWithoutSchema", operator=name)
    caller: EntryInvoker | None = entry.memo.get("caller")
    if caller is None:
        caller = entry.memo["caller"] = EntryInvoker(
            entry, entry.definitions[0].reading
        )
    return caller


class BoundKernels:
    """The bound kernels of one entry, for one dispatcher; traced or not."""

    __slots__ = ("_calls", "_redispatches", "_runners", "_traced", "operator")

    def __init__(
        self, runners: Runners, operator: Callable[[], Any], traced: bool
    ) -> None:
        self._runners = runners
        self.operator = operator
        self._traced = traced
        self._redispatches: dict[int, BoundKernel] = {}
        self._calls: dict[int, BoundKernel] = {}

    def for_redispatch(self, bits: int) -> BoundKernel:
        """Return the bound kernel of a redispatch with this keyset."""
        bound = self._redispatches.get(bits)
        if bound is None:
            bound = self.for_call(bits)
            if self._traced:
                bound = self._tracing(bound, bits)
            self._redispatches[bits] = bound
        return bound

    def for_call(self, bits: int) -> BoundKernel:
        """Return the bound kernel of a call with this keyset; the caller traces it."""
        bound = self._calls.get(bits)
        if bound is None:
            bound = self._calls[bits] = self._bound(bits)
        return bound

    def _bound(self, bits: int) -> BoundKernel:
        number = slot_of(bits)
        runners = self._runners
        kernel = runners.linked_kernel(number)
        if kernel is not None:
            return self.bind_linked(kernel, bits, SLOTS[number])
        direct = runners.direct_function(number)
        return direct or self._run_by(runners.runner(number), bits)

    def bind_linked(self, kernel: Kernel, bits: int, key: DispatchKey) -> BoundKernel:
        """Return a linked kernel as a bound one, as if it were the one of `key`."""
        assert kernel.function is not None, "only `fallthrough` has no function"
        # A new object, not `self`: the kernels that a linked one refers to must not
        # refer back to it.
        bound = BoundKernels(self._runners, self.operator, self._traced)
        # An alias key has no bit: the next kernel is that of the call's key.
        key = key if key.bits else SLOTS[slot_of(bits)]
        if key.bits:
            run = bound.for_redispatch(bits & full_after(key).bits)
        else:
            run = bound._run_by(self._runners.missing(DispatchKey.Undefined), 0)
        function: BoundKernel = kernel.function(
            NextKernel(bound, run, self._runners), KeySet.from_bits(bits)
        )
        return function

    def bind(
        self, kernel: Kernel, bits: int, key: DispatchKey, fallback: bool
    ) -> BoundKernel:
        """Return any other kernel as a bound one, as if it were the one of `key`."""
        return self._run_by(self._runners.runner_of(kernel, fallback, key.name), bits)

    def _run_by(self, runner: Runner, bits: int) -> BoundKernel:
        """Return the bound kernel of a runner, which gets its values from the stack."""
        operator, to_stack = self.operator, self._runners.to_stack
        return lambda *values: runner(operator, bits, to_stack(values))

    def _tracing(self, bound: BoundKernel, bits: int) -> BoundKernel:
        """Return a bound kernel that traces the redispatch to it."""
        name, key = str(self._runners.name), SLOTS[slot_of(bits)].name

        def traced(*values: Any) -> Any:
            WATCH.write("redispatch", name, key)
            DEPTH.level += 1
            try:
                return bound(*values)
            finally:
                DEPTH.level -= 1

        return traced


class NextKernel:
    """The kernel of the next key, which a linked kernel calls.

    `run` is the bare function, which is faster to call.  `schema` and `tags` are those
    of the operator, which a fallback does not get otherwise, and `rules` those of its
    entry, for callers of handlers.
    """

    __slots__ = ("_bound", "rules", "run", "schema", "tags")

    def __init__(self, bound: BoundKernels, run: BoundKernel, runners: Runners) -> None:
        self._bound = bound
        self.run = run
        self.schema: Schema = runners.schema
        self.tags: tuple[str, ...] = runners.tags
        self.rules: tuple[ClassRule, ...] = runners.rules

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel of the next key."""
        return self.run(*arguments)

    def for_keyset(self, keyset: KeySet) -> BoundKernel:
        """Return the function that runs the kernel of the highest key of `keyset`."""
        return self._bound.for_redispatch(keyset.bits)

    def bind(
        self, kernel: Kernel, keyset: KeySet, key: DispatchKey, fallback: bool
    ) -> BoundKernel:
        """Return the function that runs `kernel` in place of the linked one, at `key`.

        If `fallback`, the kernel gets the operator; `fallthrough` is the next kernel.
        """
        function = kernel.function
        if function is None:
            return self.run
        if kernel.facts.kind == "linked":
            bound: BoundKernel = function(self, keyset)
            return bound
        return self._bound.bind(kernel, keyset.bits, key, fallback)

    def operator(self) -> Any:
        """Return the `OperatorHandle`; do not keep it for longer than a call."""
        return self._bound.operator()
