"""From a call to the kernel: where the operator stands, and what is bound for a call.

How a call works: bind the arguments to the schema; join the keysets of the tensors
among them; add what the thread includes, take off what it excludes and what falls
through; the highest key left names a slot (`Caller.run`, `BoundKernels`); run the
slot's kernel by its convention (`runtime.dispatch.runners`).  No lock is taken.

There are two ways.  The *plain way* looks the entry up in the published state and uses
its `Caller`; every call can go it.  From the `WARM`th call on the operator has a *call
stub*: a function with the operator's own parameters, compiled once for each definition
(`runtime.dispatch.call_stub`).  It makes no list of arguments, finds the *bound kernel*
of the keyset on the entry, and goes the plain way whenever something is out of the
ordinary.  A bound kernel is a plain function of all arguments in the order of the
schema, as kernels see them (codes are objects), which runs the kernel of one keyset of
one entry.

Rules:
- a caller is a pure function of one immutable entry, built at the first call and kept
  on the entry; it cannot be stale.  It keeps no entry, as that would be a circle, which
  keeps kernels alive until the garbage collector comes by;
- a call stub keeps nothing of an entry: it asks the published state at every call, and
  what is remembered for it lies on the entry, under a key of its dispatcher and
  definition;
- a callee (an operator of a dispatcher) keeps its dispatcher; an entry keeps neither;
- whoever shows a callee to the world (`owner`) is a partial object, whose function is
  changed from `start` to the call stub: nothing calls faster;
- a bound kernel takes its keyset as it is, as a redispatch does.  A linked kernel and
  all that lies below it are of one entry, whatever is registered while it runs;
- results are converted and checked by the outermost call only, save those of boxed
  kernels, of fallbacks, and of kernels with a keyset, which always are;
- a bound kernel holds bound kernels below it and never one above;
- the operator that boxed kernels and fallbacks are given is made when they run, from a
  weak reference to the dispatcher.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from weakref import ref

from runtime.dispatch.kernel import Kernel
from runtime.dispatch.keyring import Keyring, Published
from runtime.dispatch.runners import LINKED, Runner, Runners
from runtime.dispatch.state import OperatorEntry
from runtime.dispatch.table import Table
from runtime.dispatch.token import ClassRule, DefinitionReading, namespace_of
from runtime.dispatch.watch import DEPTH, UNOBSERVED, WATCH, Observer
from runtime.errors.call import CannotRun, OperatorGone
from runtime.keys import LOCAL, SLOTS, DispatchKey, KeySet, full_after, slot_of
from runtime.schema.schema import Schema
from runtime.schema.signature import OperatorName

BoundKernel = Callable[..., Any]

# Calls of one entry before a call stub is made: compiling one costs as much as some
# hundred plain calls, and entries that are explored are called a few times only.
WARM = 8
# Further plain calls of one entry after which another handle of it may get a call stub.
COLD = 64


def _nobody() -> None:
    return None


class Callee:
    """One operator of one dispatcher.

    `handle` makes an `OperatorHandle` of a dispatcher and a name.
    """

    __slots__ = ("dispatcher", "handle", "name", "namespace", "owner", "text")

    def __init__(
        self,
        dispatcher: Published,
        name: OperatorName,
        handle: Callable[[Published, OperatorName], Any],
    ) -> None:
        self.dispatcher = dispatcher
        self.name = name
        self.handle = handle
        # Where the operator stands in a state.
        self.namespace = namespace_of(name)
        self.text = str(name)
        self.owner: Callable[[], partial[Any] | None] = _nobody

    def show(self, owner: "partial[Any]") -> None:
        """Let `owner` call the operator; its call stub as soon as there is one."""
        self.owner = ref(owner)

    def start(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the operator the plain way."""
        try:
            entry = self.dispatcher.state.namespaces[self.namespace][self.text]
            caller: Caller | None = entry.memo["caller"]
        except KeyError:
            caller = None
        if caller is None:
            caller = self.caller(self.published())
        caller.calls += 1
        if caller.calls == WARM or not caller.calls % COLD:
            self._settle(caller)
        return caller.call(self, args, kwargs)

    def slow(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """As `start`, for a call stub."""
        return self.start(*args, **kwargs)

    def published(self) -> OperatorEntry | None:
        """The entry in the published state: one reference, taken once."""
        return self.dispatcher.state.find(self.namespace, self.text)

    def caller(self, entry: OperatorEntry | None) -> "Caller":
        """The caller of an entry.  Raises `OperatorGone`, `CannotRun`."""
        found: Caller | None = None if entry is None else entry.memo.get("caller")
        return found or caller_of(entry, self.text)

    @property
    def keyring(self) -> Keyring:
        """The keyring of the dispatcher."""
        return self.dispatcher.keyring

    def operator(self) -> Any:
        """A handle of the operator, for kernels that are given one."""
        return self.owner() or self.handle(self.dispatcher, self.name)

    def weak(self) -> Callable[[], Any]:
        """`operator`, for what is kept on an entry: it keeps no dispatcher."""
        dispatcher, name, make = ref(self.dispatcher), self.name, self.handle
        handles, text = self.keyring.handles, self.text

        def again() -> Any:
            made = handles.get(text)
            if made is not None:
                return made
            found = dispatcher()
            assert found is not None, "whoever calls an operator has its dispatcher"
            return make(found, name)

        return again

    def _settle(self, caller: "Caller") -> None:
        """Give the owner the call stub of the definition, if it has one."""
        owner, reading = self.owner(), caller.reading
        maker = reading.maker
        if owner is None or maker is None:
            return
        key = self.dispatcher.keyring.key(reading)

        def resolve(bits: int) -> BoundKernel | None:
            entry = self.published()
            if entry is None or not entry.definitions:
                return None
            caller = self.caller(entry)
            if caller.reading is not reading:
                return None
            bound = caller.bound_kernel(self, bits)
            views = entry.memo.setdefault(key, {})
            views.setdefault(LOCAL.view, {})[bits] = bound
            return bound

        stub = maker(self.dispatcher, key, resolve, self.slow)
        # The one way to give a partial object another function; it takes the
        # attributes, too, and would forget them.
        setstate: Callable[..., None] = partial.__dict__["__setstate__"]
        setstate(owner, (stub, (), {}, vars(owner)))


class Caller:
    """Everything a call of one entry needs; see `caller_of`."""

    __slots__ = ("_bound", "bind", "calls", "name", "reading", "runners", "schema")

    def __init__(self, entry: OperatorEntry, reading: DefinitionReading) -> None:
        # Not the entry itself, which keeps the caller: a circle would keep its kernels
        # alive until the garbage collector comes by.  So nothing below holds `self`.
        self.name = entry.name
        self.schema = reading.schema
        self.reading = reading
        self.bind = reading.convention.bind
        self.runners = Runners(entry, reading)
        self._bound: dict[object, BoundKernels] = {}
        # Plain calls so far.
        self.calls = 0

    @property
    def table(self) -> Table:
        """The table of the entry."""
        return self.runners.table

    def call(
        self, callee: Callee, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Bind, dispatch, run."""
        values = self.bind(args, kwargs)
        runners = self.runners
        bits = runners.keys_of(values)
        if WATCH.active:
            return self._watched("call", callee, bits, values)
        runner = runners.runner(slot_of(bits))
        if runner is LINKED:
            return self.run(callee, bits, values)
        return runner(callee.operator, bits, values)

    def call_boxed(self, callee: Callee, values: list[Any]) -> Any:
        """Dispatch and run bound arguments."""
        bits = self.runners.keys_of(values)
        if WATCH.active:
            return self._watched("callBoxed", callee, bits, values)
        return self.run(callee, bits, values)

    def redispatch(
        self, label: str, callee: Callee, keyset: KeySet, values: list[Any]
    ) -> Any:
        """Run the kernel of the highest key of `keyset`, taken as it is."""
        if WATCH.active:
            return self._traced(label, callee, keyset.bits, values)
        return self.run(callee, keyset.bits, values)

    def run(self, callee: Callee, bits: int, values: list[Any]) -> Any:
        """Run the kernel of the highest key of `bits`."""
        runner = self.runners.runner(slot_of(bits))
        if runner is LINKED:
            bound = self._bound_kernels(callee, WATCH.active).top(bits)
            return self.runners.returns(bound(*self.runners.presented(values)))
        return runner(callee.operator, bits, values)

    def run_kernel(
        self,
        callee: Callee,
        kernel: Kernel,
        fallback: bool,
        key: DispatchKey,
        values: Any,
    ) -> Any:
        """Run a kernel that may not be the one of its slot."""
        bits = self.runners.keys_of(values)
        if kernel.facts.kind == "linked":
            bound = self._bound_kernels(callee, WATCH.active).of(kernel, bits, key)
            return self.runners.returns(bound(*self.runners.presented(values)))
        run = self.runners.runner_of(kernel, fallback, key.name)
        return run(callee.operator, bits, values)

    def bound_kernel(self, callee: Callee, bits: int) -> BoundKernel:
        """The bound kernel of a call whose arguments have these bits."""
        return self._bound_kernels(callee, False).top(self.runners.called_by(bits))

    def _bound_kernels(self, callee: Callee, traced: bool) -> "BoundKernels":
        asked = (callee.keyring, traced)
        found = self._bound.get(asked)
        if found is None:
            found = BoundKernels(self.runners, callee.weak(), traced)
            self._bound[asked] = found
        return found

    def _watched(self, label: str, callee: Callee, bits: int, values: list[Any]) -> Any:
        observers = WATCH.observers
        if not observers or self.name.name in UNOBSERVED:
            return self._traced(label, callee, bits, values)
        return self._observed(observers, label, callee, bits, values)

    def _observed(
        self,
        observers: tuple[Observer, ...],
        label: str,
        callee: Callee,
        bits: int,
        values: list[Any],
    ) -> Any:
        """Tell the first observer, and run the call inside; the others likewise.

        One call inside of another, so that each hears the end whatever the others do.
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

    def _traced(self, label: str, callee: Callee, bits: int, values: list[Any]) -> Any:
        WATCH.write(label, str(self.name), SLOTS[slot_of(bits)].name)
        DEPTH.level += 1
        try:
            return self.run(callee, bits, values)
        finally:
            DEPTH.level -= 1


def caller_of(entry: OperatorEntry | None, name: str) -> Caller:
    """The caller of an entry, kept on it.

    Raises:
        OperatorGone: nothing is registered for the operator, or rules alone.
        CannotRun: it has kernels and no schema.
    """
    if entry is None or not entry.total:
        raise OperatorGone(code="OperatorGone", operator=name)
    if not entry.definitions:
        raise CannotRun(code="CallWithoutSchema", operator=name)
    found: Caller | None = entry.memo.get("caller")
    if found is None:
        found = entry.memo["caller"] = Caller(entry, entry.definitions[0].reading)
    return found


class BoundKernels:
    """The bound kernels of one entry, for one dispatcher; traced or not."""

    __slots__ = ("_made", "_runners", "_tops", "_traced", "operator")

    def __init__(
        self, runners: Runners, operator: Callable[[], Any], traced: bool
    ) -> None:
        self._runners = runners
        self.operator = operator
        self._traced = traced
        self._made: dict[int, BoundKernel] = {}
        self._tops: dict[int, BoundKernel] = {}

    def at(self, bits: int) -> BoundKernel:
        """The bound kernel of a redispatch with this keyset."""
        found = self._made.get(bits)
        if found is None:
            found = self._made[bits] = self._redispatched(bits)
        return found

    def top(self, bits: int) -> BoundKernel:
        """The bound kernel of a call with this keyset: it writes no line of its own."""
        found = self._tops.get(bits)
        if found is None:
            found = self._tops[bits] = self._top(bits)
        return found

    def _top(self, bits: int) -> BoundKernel:
        number = slot_of(bits)
        runners = self._runners
        kernel = runners.linked_at(number)
        if kernel is not None:
            return self.of(kernel, bits, SLOTS[number])
        direct = runners.direct_at(number)
        return direct or self._stacked(runners.runner(number), bits)

    def of(self, kernel: Kernel, bits: int, key: DispatchKey) -> BoundKernel:
        """A linked kernel as a bound one, as if it were the one of `key`."""
        assert kernel.function is not None, "only `fallthrough` has no function"
        # Bound kernels of its own: what it holds on to must not hold on to it.
        bound = BoundKernels(self._runners, self.operator, self._traced)
        # An alias key has no place of its own: what lies below is below the call's key.
        key = key if key.bits else SLOTS[slot_of(bits)]
        below = bound.at(bits & full_after(key).bits) if key.bits else bound.nothing()
        made: BoundKernel = kernel.function(
            Below(bound, below, self._runners), KeySet.from_bits(bits)
        )
        return made

    def nothing(self) -> BoundKernel:
        """What says that there is no kernel below."""
        return self._stacked(self._runners.missing(DispatchKey.Undefined), 0)

    def ran(
        self, kernel: Kernel, bits: int, key: DispatchKey, fallback: bool
    ) -> BoundKernel:
        """Any other kernel as a bound one, as if it were the one of `key`."""
        return self._stacked(self._runners.runner_of(kernel, fallback, key.name), bits)

    def _stacked(self, runner: Runner, bits: int) -> BoundKernel:
        """The bound kernel of a runner, whose values are those of the stack."""
        operator, stacking = self.operator, self._runners.stacking
        return lambda *values: runner(operator, bits, stacking(values))

    def _redispatched(self, bits: int) -> BoundKernel:
        bound = self.top(bits)
        if not self._traced:
            return bound
        name, key = str(self._runners.name), SLOTS[slot_of(bits)].name

        def traced(*values: Any) -> Any:
            WATCH.write("redispatch", name, key)
            DEPTH.level += 1
            try:
                return bound(*values)
            finally:
                DEPTH.level -= 1

        return traced


class Below:
    """What a linked kernel calls; `run` is the bare function, for those in a hurry.

    `schema` and `tags` are those of the operator, which a fallback does not know
    otherwise, and `rules` are those of its entry, for whoever asks handlers.
    """

    __slots__ = ("_bound", "rules", "run", "schema", "tags")

    def __init__(
        self, bound: "BoundKernels", run: BoundKernel, runners: Runners
    ) -> None:
        self._bound = bound
        self.run = run
        self.schema: Schema = runners.schema
        self.tags: tuple[str, ...] = runners.tags
        self.rules: tuple[ClassRule, ...] = runners.rules

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel of the next key."""
        return self.run(*arguments)

    def at(self, keyset: KeySet) -> BoundKernel:
        """The function that runs the kernel of the highest key of `keyset`."""
        return self._bound.at(keyset.bits)

    def instead(
        self, kernel: Kernel, keyset: KeySet, key: DispatchKey, fallback: bool
    ) -> BoundKernel:
        """The function that runs `kernel` where the linked one stands, at `key`.

        `fallback` says that it gets the operator; `fallthrough` is what lies below.
        """
        function = kernel.function
        if function is None:
            return self.run
        if kernel.facts.kind == "linked":
            made: BoundKernel = function(self, keyset)
            return made
        return self._bound.ran(kernel, keyset.bits, key, fallback)

    def operator(self) -> Any:
        """The `OperatorHandle` of the operator; keep it no longer than a call."""
        return self._bound.operator()
