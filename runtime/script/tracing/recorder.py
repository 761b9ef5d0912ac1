"""The recorder: records the calls of a traced thread as nodes of a graph.

It maps Python objects to values of the graph. Operators are recorded at the key
`Tracer`, above autograd, as they were called, not decomposed.

    an operator                   a node of its kind, with every argument
    detach_, requires_grad_       script::detach_, script::requires_grad_
    autograd.Function.apply       prim::PythonOp
    a compiled function, method   prim::CallFunction, prim::CallMethod
    fork, and wait of its future  prim::fork with a graph, prim::wait
    an await                      the calls of its function, where it is waited for

Rules:
- a recorder belongs to one thread; calls on other threads are not recorded; calls
  inside of a recorded call are not recorded;
- a tensor is identified by object identity; one that was not recorded is a constant
  that holds the object itself, or an attribute of the traced module;
- after an operator writes to a tensor, the tensor denotes the operator's output;
- numbers that are read out of tensors, and their sizes, are constants of the trace; a
  warning is issued at the place of the read;
- a call that raises is not recorded;
- the place of a node is that of the caller, skipping code of the runtime and code
  without a file; a file is read as it was when it was imported (`linecache`).
"""

import linecache
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import FrameType
from typing import Any, Self

from everyorder.runtime.autograd.grad_mode import GRAD
from everyorder.runtime.base.exits import Exit
from everyorder.runtime.errors.base import page
from everyorder.runtime.errors.script import TraceWarning, Untraceable
from everyorder.runtime.errors.source import Source
from everyorder.runtime.futures import Future
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.keys.local import view_of
from everyorder.runtime.schema.call_errors import describe_value, shortened
from everyorder.runtime.schema.declared import DeclaredType, ModuleType, ScriptClassType
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.subtyping import variables
from everyorder.runtime.schema.types import (
    AnyType,
    DictType,
    FutureType,
    ListType,
    TensorType,
    TupleType,
    Type,
    unwrap_optional,
)
from everyorder.runtime.schema.values import is_tensor
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.executor.python_interop import binder_of
from everyorder.runtime.script.ir import Node, Place, Value
from everyorder.runtime.script.ir.printer import place_text
from everyorder.runtime.script.ir.program import Function, declared_type
from everyorder.runtime.script.ir.type_rules import parts_of
from everyorder.runtime.script.tracing.builder import GraphBuilder, plain_of
from everyorder.runtime.tensors.keys import MODED, TRACER, Presence, trace_observer
from everyorder.runtime.tensors.tensor_impl import TensorBase

_OURS = __name__.partition(".")[0]
# The number of cached files of traced programs.
REMEMBERED = 64


@dataclass(slots=True)
class _Position:
    """A position in the form of Python's syntax trees."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


@lru_cache(maxsize=REMEMBERED)
def _source(text: str, file: str) -> Source:
    return Source(text, file)


def caller() -> FrameType | None:
    """Return the innermost frame outside of the runtime."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        file = frame.f_code.co_filename
        if name is not None and name.partition(".")[0] != _OURS and file[:1] != "<":
            return frame
        frame = frame.f_back
    return None


def place_of_caller() -> Place | None:
    """Return the place of the innermost call outside of the runtime."""
    frame = caller()
    if frame is None:
        return None
    file = frame.f_code.co_filename
    lines = linecache.getlines(file, frame.f_globals)
    positions = list(frame.f_code.co_positions())
    line, end, column, end_column = positions[frame.f_lasti // 2]
    if not lines or line is None or end is None or line > len(lines):
        return None
    source = _source("".join(lines), file)
    if column is None or end_column is None:
        column, end_column = 0, len(lines[end - 1].encode())
    return Place(source, source.span(_Position(line, column, end, end_column)))


# The operator that reads the one element of a tensor.
_READ = "core::_local_scalar_dense"
_NO_RESULT = object()


class _CurrentRecorder(threading.local):
    """The recorder of a thread, stored in the thread's `__dict__`."""

    recorder: "GraphRecorder | None" = None


CURRENT = _CurrentRecorder()


# The sizes that tensors answer without an operator.
_SIZES: Mapping[str, Any] = {
    name: vars(TensorBase)[name] for name in ("shape", "numel")
}
# The number of active recorders of all threads.
_ACTIVE = [0]
_ACTIVE_LOCK = threading.Lock()


def _watch_sizes(step: int) -> None:
    """Count a recorder that begins, or ends: meanwhile reads of sizes are reported.

    At other times they cost nothing.
    """
    with _ACTIVE_LOCK:
        _ACTIVE[0] += step
        watched = {"shape": property(_shape, _SIZES["shape"].fset), "numel": _numel}
        for name, member in (watched if _ACTIVE[0] else _SIZES).items():
            setattr(TensorBase, name, member)


def _shape(tensor: Any) -> Any:
    _report_size(tensor, "shape")
    return tensor._shape


def _numel(self: Any) -> int:
    """Return the number of elements."""
    _report_size(self, "numel()")
    count: int = _SIZES["numel"](self)
    return count


def _report_size(tensor: Any, asked: str) -> None:
    """Report a read by code outside of the runtime to the thread's recorder."""
    name = sys._getframe(2).f_globals.get("__name__") or ""
    recorder = CURRENT.recorder
    if recorder is None or name.partition(".")[0] == _OURS:
        return
    if trace_observer() is not None:
        recorder.read(tensor, asked)


class GraphRecorder:
    """A graph that is being recorded, and the values of Python objects.

    `parent` is the recorder outside of a fork.  With `keeps_results`, `node_results`
    has a copy of the result of each operator, by its node.
    """

    def __init__(
        self,
        name: str = "",
        parent: "GraphRecorder | None" = None,
        keeps_results: bool = False,
    ) -> None:
        self.builder = GraphBuilder(name)
        self.parent = parent
        self.keeps_results = keeps_results
        self.node_results: list[tuple[Node, list[Any]]] = []
        # The values that a fork captures, in the order of its parameters.
        self.captured: list[Value] = []
        # Identity -> the object, kept alive by this entry, and its value.
        self._known: dict[int, tuple[Any, Value]] = {}
        self._plain: dict[tuple[type, str], Value] = {}
        # Identity -> an object of the traced module, its owner, and its name.
        self._owned: dict[int, tuple[Any, Any, str]] = {}
        self._outside: tuple[Any, Any] | None = None
        self._grad: bool | None = GRAD.enabled

    # Entering and leaving.

    def __enter__(self) -> Self:
        """Record the calls of this thread from now on."""
        view = LOCAL.view
        inside = view_of(view.included | TRACER, view.excluded & ~TRACER)
        self._presence: Presence | None = Presence(MODED)
        self._outside = view, CURRENT.recorder
        _watch_sizes(1)
        # In one statement, with no call in between: a signal sees both or neither.
        CURRENT.recorder, LOCAL.view = self, inside
        return self

    @Exit
    def __exit__(self) -> Generator[None, None, None]:
        freed = False
        try:
            yield
        except GeneratorExit:
            freed = True
        finally:
            if not freed:
                assert self._outside is not None, "the recorder was entered"
                LOCAL.view, CURRENT.recorder = self._outside
                self._outside = self._presence = None
                _watch_sizes(-1)

    # Objects and values.

    def learn_attributes(self, owner: Any, of: DeclaredType, value: Value) -> None:
        """Register an object and the attributes declared by its type."""
        self._known[id(owner)] = owner, value
        todo = [(owner, of)]
        while todo:
            outer, type_ = todo.pop()
            for name, inner in type_.declaration.attributes.items():
                member = getattr(outer, name, None)
                if member is None or id(member) in self._owned:
                    continue
                if isinstance(inner, ModuleType | ScriptClassType):
                    todo.append((member, inner))
                elif not is_tensor(member):
                    continue
                self._owned[id(member)] = member, outer, name

    def find(self, target: Any) -> Value | None:
        """Return the value of an object that is recorded here or outside a fork."""
        entry = self._known.get(id(target))
        if entry is not None:
            return entry[1]
        owned = self._owned.get(id(target))
        value: Value | None = None
        if owned is not None:
            _, owner, name = owned
            value = self._attribute(owner, name)
        elif self.parent is not None:
            outer = self.parent.find(target)
            if outer is not None:
                self.captured.append(outer)
                value = self.builder.graph.block.add_parameter(outer.type, outer.hint)
        if value is not None:
            self._known[id(target)] = target, value
        return value

    def _attribute(self, owner: Any, name: str) -> Value:
        outer = self.find(owner)
        assert outer is not None, "an owner is the module or one of its attributes"
        return self.builder.node("prim::GetAttr", [outer], name=name).output

    def value(
        self, argument: Any, expected: Type | None = None, call: str = ""
    ) -> Value:
        """Return the value of an object; an unknown object becomes a constant.

        Raises:
            Untraceable: a graph cannot hold the object.
        """
        recorded = self.find(argument)
        if recorded is not None:
            return recorded
        expected = None if expected is None else unwrap_optional(expected)
        if is_tensor(argument):
            constant = self.builder.constant(argument)
            self._known[id(argument)] = argument, constant
            return constant
        plain = plain_of(argument)
        if plain is not None:
            key = type(plain[0]), repr(plain[0])
            value = self._plain.get(key)
            if value is None:
                value = self._plain[key] = self.builder.constant(argument)
            return value
        if isinstance(argument, list | tuple):
            return self._sequence(argument, expected, call)
        if isinstance(argument, dict):
            inner = expected.value if isinstance(expected, DictType) else None
            pairs = [
                self.value(each, of, call)
                for pair in argument.items()
                for each, of in zip(pair, (None, inner), strict=True)
            ]
            if isinstance(expected, DictType):
                return self.builder.node(
                    "prim::DictConstruct", pairs, [expected]
                ).output
        reason = f"{describe_value(argument)} is not a value of a graph"
        if isinstance(declared_type(argument), ModuleType):
            reason = (
                f"{describe_value(argument)} is not a part of what is traced; trace a "
                "module, and make it a submodule"
            )
        raise self._refused(call, reason)

    def _sequence(self, elements: Any, expected: Type | None, call: str) -> Value:
        if isinstance(expected, ListType) or isinstance(elements, list):
            of = expected.element if isinstance(expected, ListType) else None
            of = None if of is None or variables(of) else of
            values = [self.value(each, of, call) for each in elements]
            if of is None and not values:
                raise self._refused(call, "an empty list does not say of what")
            return self.builder.list_of(values, of)
        parts: Sequence[Type | None] = [None] * len(elements)
        named = expected if isinstance(expected, TupleType) else None
        if named is not None and len(named.elements) == len(elements):
            parts = named.elements
        values = [
            self.value(each, of, call) for each, of in zip(elements, parts, strict=True)
        ]
        return self.builder.tuple_of(values, named)

    def learn(self, result: Any, value: Value) -> None:
        """Map the tensors of a node's result to its output, or to parts of it."""
        of = value.type
        if is_tensor(result) or (
            isinstance(of, FutureType) and isinstance(result, Future)
        ):
            self._known[id(result)] = result, value
        elif isinstance(of, TupleType) and _holds(result):
            for each, part in zip(result, self.builder.unpack(value), strict=True):
                self.learn(each, part)
        elif isinstance(of, ListType) and _holds(result):
            parts = self.builder.unpack(value, len(result))
            for each, part in zip(result, parts, strict=True):
                self.learn(each, part)
        elif isinstance(of, DictType) and _holds(list(result.values())):
            for key, each in result.items():
                part = self.builder.insert("script::getitem", value, key)
                self.learn(each, part)

    # Recording of calls.

    def operator(
        self,
        schema: Schema,
        numbers: bool,
        run: Callable[..., Any],
        arguments: tuple[Any, ...],
    ) -> Any:
        """Run an operator, and record the call."""
        self.builder.place = place_of_caller()
        kind = str(schema.name)
        formals = [each.fake_type for each in schema.arguments]
        formals += [AnyType] * (len(arguments) - len(formals))
        returns = [each.fake_type for each in schema.returns]
        holds = any(map(_holds_tensors, returns))
        if not holds and returns and not schema.is_mutable:
            result = run(*arguments)
            if any(self._is_recorded(each) for each in arguments):
                self._warn_of(kind, result)
            return result
        if self._grad is not None and GRAD.enabled is not self._grad:
            # One warning per trace.
            self._grad = None
            self._warn_of_grad()
        values = [
            self.value(self._unwrapped(each, of, numbers), of, kind)
            for each, of in zip(arguments, formals, strict=True)
        ]
        result = run(*arguments)
        node = self._append(kind, values, returns)
        self._learn_all(result, node)
        if self.keeps_results:
            self._keep(node, result)
        return result

    def _unwrapped(self, argument: Any, of: Type, numbers: bool) -> Any:
        """Return an argument for a tensor parameter: the number, if it wraps one."""
        if numbers and of is TensorType and is_tensor(argument):
            number = argument.number
            if number is not None and id(argument) not in self._known:
                return number
        return argument

    def _is_recorded(self, argument: Any) -> bool:
        if isinstance(argument, list | tuple):
            return any(map(self._is_recorded, argument))
        return is_tensor(argument) and self.find(argument) is not None

    def _append(
        self, kind: str, values: Sequence[Value], types: Sequence[Type], **more: Any
    ) -> Node:
        block, place = self.builder.block, self.builder.place
        return block.append(Node(kind, values, types, more, place))

    def _learn_all(self, result: Any, node: Node) -> None:
        if len(node.outputs) == 1:
            self.learn(result, node.outputs[0])
        elif node.outputs:
            for each, value in zip(result, node.outputs, strict=True):
                self.learn(each, value)

    def _keep(self, node: Node, result: Any) -> None:
        tensors = result if isinstance(result, list | tuple) else [result]
        copies = [each.detach().clone() for each in tensors if is_tensor(each)]
        self.node_results.append((node, copies))

    def autograd_function(self, function: Any, args: tuple[Any, ...]) -> Any:
        """Run an autograd function, and record it as a Python operation."""
        self.builder.place = place_of_caller()
        name = function.__name__
        values = [self.value(each, None, name) for each in args]
        result = function._applied(*args)
        types = self._types_of_result(result, name)
        node = self._append(
            "prim::PythonOp", values, types, name=name, object=function.apply
        )
        self._learn_all(result, node)
        if self.keeps_results:
            self._keep(node, result)
        return result

    def change(self, name: str, run: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Run a method that changes a tensor, and record it as a primitive."""
        self.builder.place = place_of_caller()
        result = run(*args)
        value = self.find(args[0])
        # A tensor that the trace does not know is a constant, and has changed.
        if value is not None:
            changed = self.builder.insert(f"script::{name}", value, *args[1:])
            self.learn(result, changed)
        return result

    def _types_of_result(self, result: Any, name: str) -> Sequence[Type]:
        """Return the types of the outputs: one for each element of a longer tuple."""
        if is_tensor(result):
            return [TensorType]
        if isinstance(result, list | tuple) and all(map(is_tensor, result)):
            if isinstance(result, list):
                return [ListType(TensorType)]
            many = [TensorType for _ in result]
            return many if len(many) > 1 else [TupleType((TensorType,) * len(many))]
        raise self._refused(
            name, f"it returned {describe_value(result)}, and no tensors"
        )

    def compiled_function(
        self, function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Run a compiled function or method and record the call."""
        self.builder.place = place_of_caller()
        arguments = binder_of(function.schema)(args, kwargs)
        formals = [each.fake_type for each in function.schema.arguments]
        name = function.name
        values = [
            self.value(each, of, name)
            for each, of in zip(arguments, formals, strict=True)
        ]
        result = call(function, args, kwargs)
        (returned,) = function.schema.returns
        owner = declared_type(arguments[0]) if arguments else None
        if owner is not None and owner.declaration.functions.get(name) is function:
            node = self._append(
                "prim::CallMethod", values, [returned.fake_type], name=name
            )
        else:
            values.insert(0, self.builder.constant(function))
            node = self._append("prim::CallFunction", values, [returned.fake_type])
        if not _holds_tensors(returned.fake_type) and result is not None:
            self._warn_of(name, result)
        self._learn_all(result, node)
        if self.keeps_results:
            self._keep(node, result)
        return result

    def read(self, tensor: Any, operation: str) -> None:
        """Warn that a recorded tensor was read."""
        if self.find(tensor) is not None:
            self.builder.place = place_of_caller()
            self._warn_of(operation)

    def _warn_of_grad(self) -> None:
        if not self.keeps_results:
            message = (
                f"While a function was traced, it set grad mode to {GRAD.enabled}. The "
                "trace does not: it runs in the mode of its caller."
            )
            warn(page(message), self.builder.place)

    def _warn_of(self, operation: str, result: Any = _NO_RESULT) -> None:
        if self.keeps_results:
            # The first recording has warned.
            return
        what = "the element of a tensor was read"
        if operation != _READ:
            what = f"`{operation}` was asked"
        value = "" if result is _NO_RESULT else f": {shortened(result)}"
        message = (
            f"While a function was traced, {what}{value}. The trace keeps the answer, "
            "and what Python decides by it, whatever it is given."
        )
        warn(page(message), self.builder.place)

    def _refused(self, call: str, reason: str) -> Untraceable:
        place = self.builder.place
        source, span = (None, None) if place is None else place
        return Untraceable(call=call, reason=reason, source=source, span=span)


def warn(message: str, place: Place | None) -> None:
    """Issue a warning at a place of a program."""
    if place is None:
        warnings.warn(message, TraceWarning, stacklevel=2)
        return
    line, _ = place.source.place(place.span[0])
    warnings.warn_explicit(message, TraceWarning, place.source.file, line)


def _holds(elements: Any) -> bool:
    """Return True if a list or a tuple contains tensors or futures."""
    return any(
        is_tensor(each)
        or isinstance(each, Future)
        or (isinstance(each, list | tuple) and _holds(each))
        or (isinstance(each, dict) and _holds(list(each.values())))
        for each in elements
    )


def _holds_tensors(of: Type) -> bool:
    if of in (TensorType, AnyType) or variables(of):
        return True
    parts = parts_of(of)[-1:] if isinstance(of, DictType) else parts_of(of)
    return any(map(_holds_tensors, parts))


def place_of(node: Node) -> str:
    """Return the place of a node's call, as text; empty if it is not known."""
    return "" if node.place is None else place_text(node.place)
