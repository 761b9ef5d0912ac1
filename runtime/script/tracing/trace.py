"""Tracing: compile a Python function by running it once with examples.

    function = trace_function(f, (x, {"scale": y}))
    call(function, (other, {"scale": y}))

Rules of traces:
- each parameter of the function that was passed becomes an argument of the trace, under
  its name; the other parameters keep their defaults for ever;
- the function runs with copies of the examples; its writes to them are recorded;
- a trace runs in the grad mode of its caller: if the function itself switches it, this
  is not recorded, and a warning is issued;
- an exception of the function propagates unchanged, and no state remains;
- `trace_method` traces a method of a module: members of its type are read from the
  module.

Calls reach the recorder of the thread (`runtime.script.tracing.recorder`) through the
kernel at the key `Tracer`, through the observer of other calls, and through futures
that were forked in a trace:
- while the recorder runs a call, the key is not included, so that nested calls are not
  recorded;
- a thread that includes the key without a recorder runs as if it did not;
- a fork runs at once, on this thread, and is recorded into a nested graph; its future
  can be waited for anywhere in the trace, and after it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any, NamedTuple

from everyorder.runtime.base.hooks import TRACE_OBSERVER
from everyorder.runtime.dispatch.kernel import linked
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.errors.future import callable_name
from everyorder.runtime.errors.script import Untraceable
from everyorder.runtime.futures import Future
from everyorder.runtime.keys import LOCAL, DispatchKey, exclude_keys
from everyorder.runtime.keys.local import view_of
from everyorder.runtime.schema.declared import ROOT, ModuleType, qualified_name
from everyorder.runtime.schema.schema import NUMBERS_AS_TENSORS, Schema
from everyorder.runtime.schema.signature import Argument, OperatorName
from everyorder.runtime.schema.types import (
    DictType,
    FutureType,
    ListType,
    TupleType,
    Type,
)
from everyorder.runtime.script.executor import call, run
from everyorder.runtime.script.ir import Graph, Value, check
from everyorder.runtime.script.ir.program import SHARED_PROGRAM, Function, Program
from everyorder.runtime.script.tracing.check import (
    NodeResults,
    TypeFault,
    check_trace,
    copy_tensor,
    map_tensors,
    type_of,
)
from everyorder.runtime.script.tracing.recorder import (
    CURRENT,
    GraphRecorder,
    place_of_caller,
    warn,
)
from everyorder.runtime.tensors import Tensor
from everyorder.runtime.tensors.keys import TRACER


def _record_or_run(
    record: Callable[[GraphRecorder], Any], run: Callable[[], Any]
) -> Any:
    """Record a call by the recorder of the thread, without its nested calls."""
    recorder, view = CURRENT.recorder, LOCAL.view
    LOCAL.view = view_of(view.included & ~TRACER, view.excluded)
    try:
        return run() if recorder is None else record(recorder)
    finally:
        LOCAL.view = view


def recording_kernel(below: Any, keyset: Any) -> Callable[..., Any]:
    """Return the kernel at Tracer: runs the operator below and records the call."""
    schema, run = below.schema, below.run
    numbers = NUMBERS_AS_TENSORS in below.tags

    def record(*arguments: Any) -> Any:
        return _record_or_run(
            lambda recorder: recorder.operator(schema, numbers, run, arguments),
            lambda: run(*arguments),
        )

    return record


class TracedFuture(Future[Any]):
    """The future of a fork in a trace, complete from the start."""

    __slots__ = ()

    def wait(self, timeout: float | None = None) -> Any:
        """Return the value; a wait in a trace is recorded."""
        result = super().wait(timeout)
        recorder = CURRENT.recorder
        value = None if recorder is None else recorder.find(self)
        if recorder is not None and value is not None:
            recorder.builder.place = place_of_caller()
            waited: Value = recorder.builder.node("prim::wait", [value]).output
            recorder.learn(result, waited)
        return result


class _Tracer:
    """The trace observer: forwards calls to the recorder of the thread."""

    def read(self, tensor: Any, operation: str) -> None:
        recorder = CURRENT.recorder
        if recorder is not None:
            recorder.read(tensor, operation)

    def apply_function(self, function: type, args: tuple[Any, ...]) -> Any:
        apply: Callable[..., Any] = function._applied  # type: ignore[attr-defined]  # an autograd function
        return _record_or_run(
            lambda recorder: recorder.autograd_function(function, args),
            lambda: apply(*args),
        )

    def change(self, name: str, run: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        return _record_or_run(
            lambda recorder: recorder.change(name, run, args), lambda: run(*args)
        )

    def call_function(
        self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        return _record_or_run(
            lambda recorder: recorder.compiled_function(function, args, kwargs),
            lambda: call(function, args, kwargs),
        )

    def fork(
        self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        outer = CURRENT.recorder
        future = TracedFuture()
        if outer is None:
            future.set_result(function(*args, **kwargs))
            return future
        place = place_of_caller()
        inner = GraphRecorder(parent=outer, keeps_results=outer.keeps_results)
        with inner:
            result = function(*args, **kwargs)
        inner.builder.place = outer.builder.place = place
        value = inner.value(result, None, "fork")
        inner.builder.result(value)
        node = outer.builder.node(
            "prim::fork",
            inner.captured,
            [FutureType(value.type)],
            graph=inner.builder.graph,
        )
        outer.node_results += inner.node_results
        future.set_result(result)
        outer.learn(future, node.output)
        return future


# The library lives as long as the default dispatcher.
_LIBRARY = Library("_", "IMPL", origin="tracing")
_LIBRARY.fallback(linked(recording_kernel, "tracer"), "Tracer")
TRACE_OBSERVER.set(_Tracer())


Examples = Tensor | dict[str, Any] | Sequence[Any]


class Recording(NamedTuple):
    """A graph, the types of its arguments by name, that of its result, and the result.

    `node_results` has the results of each node, if they were requested.
    """

    graph: Graph
    arguments: Mapping[str, Type]
    returned: Type
    result: Any
    node_results: NodeResults


class _Target(NamedTuple):
    """The traced function, and the module that it belongs to."""

    python: Callable[..., Any]
    name: str
    strict: bool
    program: Program
    owner: Any = None
    of: ModuleType | None = None

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by their names in the trace."""
        by_name: dict[str, Any] = {}
        # Calling a module calls its `forward`, which has the parameter names.
        method = getattr(self.python, "forward", None) or self.python
        bound = signature(method).bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            kind = bound.signature.parameters[name].kind
            if kind is Parameter.VAR_POSITIONAL:
                by_name |= {f"{name}_{at}": each for at, each in enumerate(value)}
            elif kind is Parameter.VAR_KEYWORD:
                by_name |= value
            else:
                by_name[name] = value
        return by_name

    def record(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        keeps_results: bool = False,
    ) -> Recording:
        """Run the function with copies of the examples and record its calls.

        Raises:
            Untraceable: a graph cannot represent a call or a value. BaseException: the
            function's exception.
        """
        args = [map_tensors(copy_tensor, each) for each in args]
        kwargs = {name: map_tensors(copy_tensor, each) for name, each in kwargs.items()}
        recorder = GraphRecorder(self.name, keeps_results=keeps_results)
        builder = recorder.builder
        if self.of is not None:
            recorder.learn_attributes(
                self.owner, self.of, builder.parameter(self.of, "self")
            )
        types: dict[str, Type] = {}
        bound = self.bound(args, kwargs)
        for name, value in bound.items():
            try:
                types[name] = type_of(value, f"`{name}`", self.program.classes)
            except TypeFault as unfit:
                raise Untraceable(
                    code="UntraceableInput",
                    function=self.name,
                    path=unfit.path,
                    reason=unfit.reason,
                ) from None
        parameters = [builder.parameter(of, name) for name, of in types.items()]
        for value, parameter in zip(bound.values(), parameters, strict=True):
            recorder.learn(value, parameter)
        with recorder:
            result = self.python(*args, **kwargs)
        builder.place = None
        returned = self._type_of_result(result)
        builder.result(recorder.value(result, returned, self.name))
        check(builder.graph, "tracing")
        return Recording(builder.graph, types, returned, result, recorder.node_results)

    def _type_of_result(self, result: Any) -> Type:
        path, advice = "The result", "return tensors, or tuples of them"
        if isinstance(result, TracedFuture):
            raise self._refused(path, "it is a future", "wait for it")
        try:
            type_ = type_of(result, path, self.program.classes)
        except TypeFault as unfit:
            raise self._refused(unfit.path, unfit.reason, advice) from None
        container = _container_in(type_) if self.strict else None
        if container is not None:
            reason = (
                f"it has {container} in it, which always has the elements that it had "
                "while it was traced"
            )
            advice = "return a tuple, or trace with strict=False"
            raise self._refused(path, reason, advice)
        return type_

    def _refused(self, path: str, reason: str, advice: str) -> Untraceable:
        return Untraceable(
            code="UntraceableOutput",
            function=self.name,
            path=path,
            reason=reason,
            advice=advice,
        )

    def check(
        self,
        function: Function,
        graph: Graph,
        examples: Sequence[tuple[str, Sequence[Any], Mapping[str, Any]]],
        tolerance: float,
    ) -> None:
        """Compare the trace with the function for examples with descriptions."""
        for words, args, kwargs in examples:

            def record(args: Any = args, kwargs: Any = kwargs) -> Any:
                recording = self.record(args, kwargs, keeps_results=True)
                return recording.graph, recording.result, recording.node_results

            def run_trace(args: Any = args, kwargs: Any = kwargs) -> Any:
                bound = self.bound(args, kwargs)
                values = [map_tensors(copy_tensor, each) for each in bound.values()]
                own = [] if self.of is None else [self.owner]
                return run(function, [*own, *values])

            check_trace(self.name, words, graph, record, run_trace, tolerance, warn)


def trace_function(
    func: Callable[..., Any],
    example_inputs: Examples = (),
    *,
    example_kwarg_inputs: Mapping[str, Any] | None = None,
    check_trace: bool = True,
    check_inputs: Sequence[Examples] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    name: str | None = None,
    program: Program = SHARED_PROGRAM,
    owner: Any = None,
    of: ModuleType | None = None,
) -> Function:
    """Trace `func` with example inputs; return the function of a program.

    `strict` refuses lists and dictionaries as results.  With `check_trace`, the trace
    is compared with the function, for the examples and for each of `check_inputs`.

    Raises:
        Untraceable: a graph cannot represent a call or a value. Untraceable: the
        results of trace and function differ. BaseException: the exception of `func`.
    """
    # The trace is named after its function, in characters that are valid in names.
    last = callable_name(func).rpartition(".")[2] if name is None else name
    written = re.sub(r"\W|^(?=\d)", "_", last, flags=re.A)
    traced = _Target(func, written, strict, program, owner, of)
    args, kwargs = _as_arguments(example_inputs), example_kwarg_inputs or {}
    # A trace within a trace is not part of it.
    with exclude_keys([DispatchKey.Tracer]):
        recording = traced.record(args, kwargs)
        function = _named(traced, recording)
        if check_trace:
            examples = [("the inputs that it was traced with", args, kwargs)]
            examples += [
                (f"check_inputs[{place}]", _as_arguments(each), {})
                for place, each in enumerate(check_inputs or ())
            ]
            traced.check(function, recording.graph, examples, check_tolerance)
    if of is None:
        program.add(function)
    return function


def trace_method(
    func: Callable[..., Any],
    owner: Any,
    of: ModuleType,
    example_inputs: Examples = (),
    **options: Any,
) -> Function:
    """Trace `func`, bound to a module; return the method of the module.

    `owner` is the module, `of` its type: the tensors and modules that the type declares
    are read from the first argument of the method. For the other options see
    `trace_function`.
    """
    return trace_function(func, example_inputs, owner=owner, of=of, **options)


def _named(traced: _Target, recording: Recording) -> Function:
    """Return the recording as a function with a name and a schema."""
    of = traced.of
    own = () if of is None else (Argument("self", of),)
    arguments = own + tuple(
        [Argument(name, each) for name, each in recording.arguments.items()]
    )
    schema = Schema(
        OperatorName(traced.name), arguments, (Argument("", recording.returned),)
    )
    if of is None:
        python = traced.python if hasattr(traced.python, "__name__") else None
        path = f"{ROOT}." if python is None else qualified_name(python)
        qualname = traced.program.free_name(f"{path.rpartition('.')[0]}.{traced.name}")
    else:
        qualname = f"{of.declaration.qualname}.{traced.name}"
    recording.graph.name = qualname
    method = getattr(traced.python, "forward", None) or traced.python
    python = getattr(method, "__func__", method)
    return Function(qualname, schema, recording.graph, python)


def _as_arguments(inputs: Examples) -> Sequence[Any]:
    """Return the arguments; a value other than a list or a tuple is the only one."""
    if isinstance(inputs, list | tuple) and not hasattr(inputs, "_fields"):
        return inputs
    return (inputs,)


def _container_in(of: Type) -> str | None:
    if isinstance(of, ListType):
        return "a list"
    if isinstance(of, DictType):
        return "a dictionary"
    if isinstance(of, TupleType):
        return next(filter(None, map(_container_in, of.elements)), None)
    return None
