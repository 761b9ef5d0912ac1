"""Kernels of nodes: the function of each kind of node.

One row for each kind that both executors run by calling a function; branches, loops and
`with` are forms of control, which each executor implements separately.

Rules:
- a function returns one value for a node of one output, a sequence for several;
- operators are bound (`runtime.script.primitives.operator_calls`): the kernel
  registered when the step runs is called; an operator that does not fit the graph any
  more is refused;
- attributes of objects are accessed without a type check, except in programs loaded
  from archives;
- functions and methods are looked up on the first call, as a program may be compiled
  before all of its methods are, and run by the entry of their plan, which is looked up
  at each call; a method of a class or module is resolved by the static type, a method
  of an interface by the object's type at each call;
- an object of a class of a program is entered (`with`) by its compiled methods, any
  other by the methods of its Python class; `__exit__` is called once, with the class,
  the exception and the traceback, or with None three times, or with fewer if it takes
  fewer; a true result swallows the exception, as in Python; if the block has results,
  swallowing is an error, as they have no values.
"""

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, Self

from everyorder.runtime.base.hooks import PLAN
from everyorder.runtime.base.locks import load
from everyorder.runtime.base.registry import Registry, RegistryHandle
from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.errors.call import OperatorGone
from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.futures import Await, Future, awaitable, awaitable_nowait
from everyorder.runtime.schema.declared import DeclaredType, InterfaceType
from everyorder.runtime.schema.subtyping import is_subtype
from everyorder.runtime.schema.types import AwaitType, FutureType, TupleType
from everyorder.runtime.script.executor.python_interop import (
    FUSED,
    check_value,
    exception,
    restore_frames,
    test_of,
    warn,
)
from everyorder.runtime.script.executor.task_pool import ForkFuture, fork_pool
from everyorder.runtime.script.ir import Node, Value, row_of
from everyorder.runtime.script.ir.program import Function, declared_type
from everyorder.runtime.script.primitives import primitive_table
from everyorder.runtime.script.primitives.operator_calls import BoundCall, bound_call
from everyorder.runtime.script.types.python_classes import named_tuple_class

Entry = Callable[..., Any]


def plan_of_function(function: Function) -> Any:
    """Return the plan of a function; build it if there is none."""
    return PLAN.get()(function)


def entry_of(function: Function) -> Entry:
    """Return the entry of a function, which looks up the plan at each call."""
    memo = function.memo

    def run_function(*arguments: Any) -> Any:
        return (memo.get("plan") or plan_of_function(function)).execute(*arguments)

    return run_function


def method_of(
    owner: Any, declared: DeclaredType | None, name: str
) -> tuple[Entry, int]:
    """Return the entry of a method of the object's type, and its number of arguments.

    Raises:
        RunningError: the method was not compiled.
    """
    own = declared_type(owner) if declared is None else declared
    if own is not None:
        function = own.declaration.functions.get(name)
        if function is not None:
            return entry_of(function), len(function.schema.arguments)
    kind = type(owner).__name__ if own is None else str(own)
    raise RunningError(code="MethodMissing", qualname=kind, method=name)


class With:
    """The context manager of one run of a `with` block."""

    __slots__ = ("_leave", "_manager", "_needs", "_type")

    _leave: Callable[..., Any]

    def __init__(self, manager: Any, type_: Any, needs: bool) -> None:
        self._manager = manager
        self._type = type_
        self._needs = needs

    @classmethod
    def maker(cls, node: Node) -> Callable[[Any], Self]:
        """Return a function that creates an instance for a manager, for a node."""
        type_, needs = node.inputs[0].type, bool(node.outputs)
        return lambda manager: cls(manager, type_, needs)

    def __enter__(self) -> Any:
        """Enter the manager and return its value."""
        manager, type_ = self._manager, self._type
        if isinstance(type_, DeclaredType):
            owner = None if isinstance(type_, InterfaceType) else type_
            leave, count = method_of(manager, owner, "__exit__")
            enter, _ = method_of(manager, owner, "__enter__")
            self._leave = lambda *error: leave(manager, *error[: count - 1])
            return enter(manager)
        kind: Any = manager.__class__
        leaving: Any = kind.__exit__
        self._leave = partial(leaving, manager)
        return kind.__enter__(manager)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        """Leave the manager; return True if the exception is swallowed."""
        swallows = bool(self._leave(kind, error, traceback))
        if swallows and error is not None and self._needs:
            raise RunningError(
                code="ErrorSwallowed",
                manager=f"an object of type {type(self._manager).__name__}",
                error=kind.__name__,
            )
        return swallows and error is not None


Run = Callable[..., Any]
# Returns the entry of a nested graph, or of a block with its captured values; takes the
# node, and the name for backtraces.
Nested = Callable[[Node, str], tuple[Run, Sequence[Value]]]


class StepFunction(NamedTuple):
    """The function of a node, its captured values, and an operator's bound call."""

    call: Run
    captured: Sequence[Value] = ()
    bound: BoundCall | None = None


# Names of tasks and awaits in backtraces.
FORKED, AWAITED, CLOSED = "<forked function>", "<awaitable function>", "<closure>"


def step_of(node: Node, nested: Nested) -> StepFunction:
    """Return the function of a node.

    Raises:
        OperatorGone: the operator is not defined, or is now defined with another
        schema.
    """
    maker = _MAKERS.rows.get(node.kind)
    if maker is not None:
        return StepFunction(maker(node))
    maker_with = _NESTED.get(node.kind)
    if maker_with is not None:
        return maker_with(node, nested)
    return operator_of(node)


# Operators


def operator_of(node: Node) -> StepFunction:
    """Return the call of the operator of a node; raises as `step_of`."""
    row = row_of(node.kind)
    if row is None or row.schema is None:
        raise OperatorGone(operator=node.kind)
    result_types = row.infer(node)
    outputs = [each.type for each in node.outputs]
    if (
        isinstance(result_types, str)
        or len(result_types) != len(outputs)
        or not all(map(is_subtype, result_types, outputs))
    ):
        inputs = ", ".join(str(each.type) for each in node.inputs)
        results = ", ".join(map(str, outputs))
        raise OperatorGone(
            code="OperatorChanged",
            operator=node.kind,
            known=f"({inputs}) -> ({results})",
            found=str(row.schema),
        )
    dispatcher = default_dispatcher()
    name = row.schema.name
    entry = dispatcher.state.entry(name)
    assert entry is not None, "a row exists only for a defined operator"
    primitive = primitive_table.by_name(node.kind)
    trusted = None if primitive is None else primitive.function
    bound = bound_call(dispatcher, name, entry.definitions[0].reading, trusted)
    if row.schema.is_varret and len(outputs) == 1:
        return StepFunction(lambda *values: bound.call(*values)[0])
    return StepFunction(bound.call, (), bound)


# Values


def _tuple(node: Node) -> Run:
    type_ = node.output.type
    if isinstance(type_, TupleType) and type_.qualname:
        named: Run = named_tuple_class(type_)
        return named
    return _packed


def _packed(*values: Any) -> tuple[Any, ...]:
    return values


def _listed(*values: Any) -> list[Any]:
    return [*values]


def _dict(node: Node) -> Run:
    def make(*values: Any) -> dict[Any, Any]:
        return dict(zip(values[::2], values[1::2], strict=True))

    return make


def _same(value: Any) -> Any:
    return value


def _unpacked(node: Node) -> Run:
    # One output receives a value, several receive a sequence.
    return _first if len(node.outputs) == 1 else _same


def _first(values: Sequence[Any]) -> Any:
    return values[0]


def _list_unpack(node: Node) -> Run:
    count = len(node.outputs)

    def unpack(values: list[Any]) -> Any:
        length = len(values)
        # The message is Python's.
        if length < count:
            text = f"not enough values to unpack (expected {count}, got {length})"
            raise ValueError(text)
        if length > count:
            raise ValueError(f"too many values to unpack (expected {count})")
        return values[0] if count == 1 else tuple(values)

    return unpack


def _index(node: Node) -> Run:
    index = node.attributes["index"]
    return lambda value: value[index]


def _instance(node: Node) -> Run:
    tests = [test_of(each) for each in node.attributes["types"]]
    if len(tests) == 1:
        return tests[0]
    return lambda value: any(test(value) for test in tests)


# Objects and calls


def _create(node: Node) -> Run:
    declaration: Any = node.output.type.declaration  # type: ignore[attr-defined]  # the checker says so

    def create() -> Any:
        python = declaration.python
        if python is None:
            raise RunningError(code="ClassGone", qualname=declaration.qualname)
        return python.__new__(python)

    return create


def _get(node: Node) -> Run:
    name, look = node.attributes["name"], _look(node)
    if look is not None:
        return lambda owner: getattr(look(owner), name)
    # `attrgetter` would treat a dot as nested access.
    return (lambda owner: getattr(owner, name)) if "." in name else attrgetter(name)


def _set(node: Node) -> Run:
    name, look = node.attributes["name"], _look(node)
    if look is not None:
        return lambda owner, value: setattr(look(owner), name, value)
    return lambda owner, value: setattr(owner, name, value)


def _look(node: Node) -> Run | None:
    """Return a function that checks the type of an object, or None if trusted."""
    declared: Any = node.inputs[0].type
    if not declared.declaration.namespace.is_foreign:
        return None
    test = test_of(declared)

    def look(owner: Any) -> Any:
        return owner if test(owner) else check_value(owner, declared, _FOREIGN)

    return look


_FOREIGN = "A program of an archive"


def _call(node: Node) -> Run:
    """Call the function in the first input, which is passed like all others."""
    entry: Run | None = None
    function = node.inputs[0].node.attributes["function"]

    def call(_: Any, *values: Any) -> Any:
        nonlocal entry
        if entry is None:
            entry = entry_of(function)
        return entry(*values)

    return call


def _call_method(node: Node) -> Run:
    entry: Run | None = None
    declared: Any = node.inputs[0].type
    name = node.attributes["name"]

    def call(owner: Any, *values: Any) -> Any:
        nonlocal entry
        if entry is None:
            entry, _ = method_of(owner, declared, name)
        return entry(owner, *values)

    return call


def _call_interface(node: Node) -> Run:
    name = node.attributes["name"]

    def call(owner: Any, *values: Any) -> Any:
        entry, _ = method_of(owner, None, name)
        return entry(owner, *values)

    return call


def _python(node: Node) -> Run:
    called, name = node.attributes["object"], node.attributes["name"]
    result_types = [each.type for each in node.outputs]
    what = f"`{name}`"
    if not result_types:
        return lambda *values: (called(*values), None)[1]
    if len(result_types) == 1:
        return lambda *values: check_value(called(*values), result_types[0], what)
    whole = TupleType(tuple(result_types))
    return lambda *values: check_value(called(*values), whole, what)


# Later


def _wait(node: Node) -> Run:
    type_ = node.inputs[0].type
    assert isinstance(type_, FutureType), "the checker says so"
    element = type_.element

    def wait(future: Any) -> Any:
        # A cast may pass any object as a future, and its method is called below.
        if not isinstance(future, Future):
            check_value(future, type_, "A program")
        try:
            value = future.wait()
        except BaseException as error:
            restore_frames(error)
            raise
        if future.__class__ is ForkFuture:
            return value
        return check_value(value, element, "A future")

    return wait


def _await(node: Node) -> Run:
    type_ = node.inputs[0].type
    assert isinstance(type_, AwaitType), "the checker says so"
    element = type_.element

    def wait(await_: Any) -> Any:
        if not isinstance(await_, Await):
            check_value(await_, type_, "A program")
        value = await_.wait()
        if not await_.is_nowait() and isinstance(await_.fn(), AwaitBody):
            return value
        return check_value(value, element, "An await")

    return wait


class AwaitBody:
    """The function of an await of a program: runs a nested graph."""

    __slots__ = ("_entry",)

    def __init__(self, entry: Run) -> None:
        self._entry = entry

    def __call__(self, *values: Any) -> Any:
        """Run the graph."""
        return self._entry(*values)


def _fork(node: Node, nested: Nested) -> StepFunction:
    entry, captured = nested(node, FORKED)
    return StepFunction(partial(fork_pool.fork, entry), captured)


def _awaitable(node: Node, nested: Nested) -> StepFunction:
    entry, captured = nested(node, AWAITED)
    return StepFunction(partial(awaitable, AwaitBody(entry)), captured)


def _closure(node: Node, nested: Nested) -> StepFunction:
    entry, captured = nested(node, CLOSED)
    return StepFunction(partial(partial, entry), captured)


def _fused(node: Node, nested: Nested) -> StepFunction:
    entry, _ = nested(node, FUSED)
    # Loaded lazily: it imports the compiler of kernels, which few programs need.
    fusion = load("everyorder.runtime.script.executor.fusion")
    return StepFunction(fusion.FusedGroup(node.attributes["graph"], entry))


# Others


def _raises(node: Node) -> Run:
    kind = node.attributes.get("class", "")

    def throw(message: str) -> None:
        raise exception(kind, message)

    return throw


def _warns(node: Node) -> Run:
    return lambda *values: warn(str(values[0]) if values else "", node)


_ROWS: dict[str, Callable[[Node], Run]] = {
    "prim::TupleConstruct": _tuple,
    "prim::TupleUnpack": _unpacked,
    "prim::TupleIndex": _index,
    "prim::ListConstruct": lambda _: _listed,
    "prim::ListUnpack": _list_unpack,
    "prim::DictConstruct": _dict,
    "prim::CreateObject": _create,
    "prim::GetAttr": _get,
    "prim::SetAttr": _set,
    "prim::CallFunction": _call,
    "prim::CallMethod": _call_method,
    "prim::CallInterface": _call_interface,
    "prim::PythonOp": _python,
    "prim::forkClosure": lambda _: fork_pool.fork,
    "prim::awaitableClosure": lambda _: lambda entry: awaitable(AwaitBody(entry)),
    "prim::wait": _wait,
    "prim::awaitable_wait": _await,
    "prim::awaitable_nowait": lambda _: awaitable_nowait,
    "prim::RaiseException": _raises,
    "prim::Print": lambda _: print,
    "prim::warn": _warns,
    "prim::unchecked_cast": lambda _: _same,
    "prim::isinstance": _instance,
}
_MAKERS: Registry[str, Callable[[Node], Run]] = Registry(
    "steps of programs", _ROWS, order=str
)
_NESTED: dict[str, Callable[[Node, Nested], StepFunction]] = {
    "prim::Closure": _closure,
    "prim::fork": _fork,
    "prim::awaitable": _awaitable,
    "prim::FusionGroup": _fused,
}


def register_step(kind: str, maker: Callable[[Node], Run]) -> RegistryHandle:
    """Let `maker` say what nodes of a kind of a plug-in do.

    Plans that were made before the handle is closed keep what they have.
    """
    assert kind not in _NESTED, f"{kind} does something already"
    return _MAKERS.register(kind, maker, stacklevel=2)
