"""Remote calls in programs: compiling their special forms, references and workers.

    rpc_async(to, function[, args[, kwargs[, timeout]]])     -> Future[T]
    rpc_sync(...)                                            -> T
    remote(...)                                              -> RRef[T]

Rules of calls:
- the arguments are positional; their number is checked first;
- `to` is the name of a worker, or a `WorkerInfo`; a value of a type that includes these
  is checked when the program runs;
- `function` is compiled, or can be: `args`, a tuple, is checked against its schema,
  which defines T.  Its full name is sent;
- `kwargs` is a dictionary of keyword arguments.  Its keys are known when the program
  runs, so it may only replace defaults; a dictionary display in the call itself is
  known at compile time, and may contain any argument;
- a form that accepts the name of a function in its place is called like a Python
  function, and the type of its result is unknown.

Rules of references:
- `RRef[T]` is always written with its type; programs receive and return references,
  and create them by `remote` only;
- `to_here` without a timeout uses the default at the time when the program runs;
- a module has the interface that was declared for its reference.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from everyorder.runtime.base.registry import Closeable
from everyorder.runtime.rpc.codec.named_functions import is_async
from everyorder.runtime.rpc.protocol.identities import WorkerInfo
from everyorder.runtime.rpc.script.remote_nodes import (
    ASYNC,
    GIVES,
    METHODS,
    OF_WORKER,
    REMOTE,
    ROWS,
    SYNC,
    WORKER,
    is_named,
    may_be_worker,
    result_of,
    type_of,
)
from everyorder.runtime.rpc.script.surface import Surface
from everyorder.runtime.schema.annotation import register_annotation, register_wrapper
from everyorder.runtime.schema.declared import register_class
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.subtyping import Mismatch
from everyorder.runtime.schema.types import (
    AnyType,
    DictType,
    FloatType,
    IntType,
    NoneType_,
    RRefType,
    StrType,
    TupleType,
    Type,
)
from everyorder.runtime.script.emission import (
    Arguments,
    Emitter,
    FunctionOfProgram,
    PythonFunction,
    SimpleValue,
    Sugared,
    SugaredTuple,
    arguments_of,
    bind_arguments,
    constant_of,
    no_attribute,
    register_special_form,
    register_value,
    sugar_of_value,
)
from everyorder.runtime.script.emission.expressions import elements_of, for_type
from everyorder.runtime.script.ir import Value, register_kind
from everyorder.runtime.script.ir.program import (
    Function,
    NotInferred,
    Program,
    mark_of,
    register_inference,
)

# At least a worker and a function; at most all five.
LEAST, MOST = 2, 5
_PARAMETERS = ("to", "func", "args", "kwargs", "timeout")
_OF_NAMES = ("to", "qualified_name", "args", "kwargs", "timeout")
_NAMED = DictType(StrType, AnyType)


def install(surface: Surface) -> Iterable[Closeable]:
    """Register remote calls with the compiler; yield their handles."""
    for row in ROWS:
        yield register_kind(row)
    for kind, name, python, by_name in (
        (ASYNC, "rpc_async", surface.rpc_async, surface.async_by_name),
        (SYNC, "rpc_sync", surface.rpc_sync, surface.sync_by_name),
        (REMOTE, "remote", surface.remote, surface.remote_by_name),
    ):
        yield register_special_form(python, CallForm(name, kind))
        form = CallByNameForm(by_name.__name__, kind)
        yield register_special_form(by_name, form)
    yield from _references(surface)


class _NamedForm(Sugared):
    """A form that calls a function on another worker; `kind` is its node's kind."""

    __slots__ = ("kind", "name")

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind

    def describe(self) -> str:
        """Return its name."""
        return f"`{self.name}`"


class CallForm(_NamedForm):
    """A form whose second argument is the function."""

    __slots__ = ()

    def call_syntax(self, e: Emitter, node: ast.Call) -> Sugared:
        """Emit the call from its syntax, which shows a display of keyword arguments."""
        starred = any(isinstance(each, ast.Starred) for each in node.args)
        if starred or len(node.args) < 4:
            positional = elements_of(e, node.args)
        else:
            # In Python's order of evaluation.
            positional = elements_of(e, node.args[:3])
            positional.append(named_arguments(e, node.args[3]))
            positional += elements_of(e, node.args[4:])
        named = {str(each.arg): e.expression(each.value) for each in node.keywords}
        return self.call(e, Arguments(positional, named))

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Emit the call and return the result as a value."""
        self._check_count(e, arguments)
        to, callee, *rest = arguments.positional
        worker = worker_of(e, self.name, to)
        function = function_of(e, self.name, callee)
        inputs = [worker, e.constant(function.qualname)]
        if rest:
            inputs += _arguments(e, self.name, function, rest)
        else:
            callee_name = f"the function `{function.name}`"
            bind_arguments(e, callee_name, function.schema, Arguments())
        gives = GIVES[self.kind](result_of(function.schema))
        call_node = e.node(self.kind, inputs, (gives,), {"function": function})
        return sugar_of_value(call_node.output)

    def _check_count(self, e: Emitter, arguments: Arguments) -> None:
        count = len(arguments.positional)
        if not LEAST <= count <= MOST:
            verb = "is" if count == 1 else "are"
            ways = [
                f"{self.name}({', '.join(_PARAMETERS[:many])})"
                for many in range(MOST, LEAST - 1, -1)
            ]
            e.fail(
                f"`{self.name}` takes {LEAST} to {MOST} positional arguments, and "
                f"{count} {verb} given",
                "\n".join(("It is called in one of these ways:", *ways)),
            )
        for name in arguments.named:
            e.fail(
                f"`{self.name}` is given `{name}` by name",
                "In a program all of its arguments are positional.",
            )


class CallByNameForm(_NamedForm):
    """A form whose second argument is the name of the function."""

    __slots__ = ()

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Emit the call and return the result, whose type is unknown."""
        bound = arguments_of(e, self.name, _OF_NAMES, arguments, required=2)
        to, name, args, kwargs, timeout = bound
        inputs = [worker_of(e, self.name, to)]
        function = name.value(e)
        if function.type is not StrType:
            e.fail(
                f"`{self.name}` is given a function of type {function.type}",
                "It takes the full name of a function, a str.",
            )
        inputs.append(function)
        # None means an omitted argument.
        last = max((n for n, each in enumerate(bound) if not _is_none(each)), default=1)
        if last >= 2:
            items = () if _is_none(args) else tuple_of(e, self.name, args)
            inputs.append(SugaredTuple(items).value(e))
        if last >= 3:
            inputs.append(
                e.node("prim::DictConstruct", (), (_NAMED,)).output
                if _is_none(kwargs)
                else named_of(e, self.name, kwargs)
            )
        if last >= 4:
            inputs.append(timeout_of(e, self.name, timeout))
        gives = GIVES[self.kind](AnyType)
        return sugar_of_value(e.node(self.kind, inputs, (gives,)).output)


class SugaredDict(Sugared):
    """A dictionary display as the keyword arguments of a call."""

    __slots__ = ("items",)

    def __init__(self, items: Mapping[str, Sugared]) -> None:
        self.items = items

    def describe(self) -> str:
        """Return its description."""
        return "a dictionary"


def named_arguments(e: Emitter, node: ast.expr) -> Sugared:
    """Return the keyword arguments: a `SugaredDict` if they are written in the call."""
    display = node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        # `annotate(T, {...})`, as `.code` writes it.
        is_annotated = len(node.args) == 2 and not node.keywords
        if is_annotated and e.expression(node.func).describe() == "`annotate`":
            display = node.args[1]
    if not isinstance(display, ast.Dict):
        return e.expression(node)
    items: dict[str, Sugared] = {}
    names = [getattr(key, "value", None) for key in display.keys]
    if not all(isinstance(name, str) for name in names):
        return for_type(e, display, _NAMED)
    for name, value in zip(names, display.values, strict=True):
        if name in items:
            e.fail(f"the dictionary of arguments has `{name}` twice")
        items[str(name)] = e.expression(value)
    return SugaredDict(items)


def worker_of(e: Emitter, name: str, to: Sugared) -> Value:
    """Return the worker to call."""
    value = to.value(e)
    if not may_be_worker(value.type):
        e.fail(
            f"`{name}` is given a worker of type {value.type}",
            "A worker is a str, its name, or a WorkerInfo.",
        )
    return value


def function_of(e: Emitter, name: str, callee: Sugared) -> Function:
    """Return the function to call: compiled, with all functions that it calls."""
    if isinstance(callee, FunctionOfProgram):
        return callee.function
    if isinstance(callee, PythonFunction):
        if is_async(callee.python):
            e.fail(
                f"`{name}` is given {callee.describe()}, which is asynchronous",
                "Call it from Python, or pass the function that it marks.",
            )
        mark = mark_of(callee.python)
        if mark is None or mark.value == "export":
            return callee.function(e)
        what = callee.describe()
        e.fail(
            f"`{name}` is given {what}, which is marked by `@{mark.value}`",
            "Another worker looks for a compiled function of this name.",
        )
    return e.fail(
        f"`{name}` is given {callee.describe()} as the function",
        "It takes a compiled or compilable function: wrap the call in one.",
    )


def tuple_of(e: Emitter, name: str, args: Sugared) -> Sequence[Sugared]:
    """Return the positional arguments."""
    kind = args.type if isinstance(args, SimpleValue) else None
    items = None
    if isinstance(args, SugaredTuple) or isinstance(kind, TupleType):
        items = args.elements(e)
    if items is None:
        e.fail(
            f"`{name}` is given {args.describe()} as its arguments",
            "They are a tuple, as their number must be known: `(x, y)`.",
        )
    return items


def named_of(e: Emitter, name: str, kwargs: Sugared) -> Value:
    """Return the keyword arguments as a dictionary with keys known at run time."""
    value = kwargs.value(e)
    if value in e.untyped:
        # An empty dictionary whose type is still open.
        value = e.fitted(value, _NAMED) or value
    if not is_named(value.type):
        e.fail(
            f"`{name}` is given arguments by name of type {value.type}",
            "They are a dictionary whose keys are of type str.",
        )
    return value


def timeout_of(e: Emitter, name: str, timeout: Sugared) -> Value:
    """Return the timeout of a call in seconds."""
    value = timeout.value(e)
    if value.type is not FloatType:
        e.fail(
            f"`{name}` is given a timeout of type {value.type}",
            "It is a float: seconds, such as 5.0.",
        )
    return value


def _arguments(
    e: Emitter, name: str, function: Function, rest: Sequence[Sugared]
) -> list[Value]:
    """Return the values of the arguments after the function, as many as are present."""
    args, *others = rest
    items = tuple_of(e, name, args)
    callee, schema = f"the function `{function.name}`", function.schema
    literal = others[0] if others else None
    named = literal.items if isinstance(literal, SugaredDict) else None
    arguments = Arguments(items, named or {})
    values, _ = bind_arguments(e, callee, schema, arguments)
    count = len(items)
    if named:
        # Arguments without default become positional, so that the graph shows them.
        count = max(count, _without_defaults(schema))
    inputs = [_tuple(e, values[:count])]
    if others:
        if named is None:
            inputs.append(named_of(e, name, others[0]))
        else:
            inputs.append(_dictionary(e, schema, values, count, named))
    if others[1:]:
        inputs.append(timeout_of(e, name, others[1]))
    return inputs


def _without_defaults(schema: Schema) -> int:
    places = schema.arguments[: schema.kwarg_only_start]
    return sum(not each.has_default for each in places)


def _tuple(e: Emitter, values: Sequence[Value]) -> Value:
    tuple_type = TupleType(tuple(each.type for each in values))
    return e.node("prim::TupleConstruct", values, (tuple_type,)).output


def _dictionary(
    e: Emitter,
    schema: Schema,
    values: Sequence[Value],
    count: int,
    named: Mapping[str, Sugared],
) -> Value:
    """Return the keyword arguments that are not positional, converted."""
    pairs: list[Value] = []
    for place, argument in enumerate(schema.arguments):
        if place >= count and argument.name in named:
            pairs += [e.constant(argument.name), values[place]]
    common = e.common(pairs[1::2]) if pairs else AnyType
    value_type: Type = AnyType if isinstance(common, Mismatch) else common
    return e.node("prim::DictConstruct", pairs, (DictType(StrType, value_type),)).output


def _is_none(argument: Sugared | None) -> bool:
    if argument is None:
        return True
    is_known, value = constant_of(argument)
    is_none = isinstance(argument, SimpleValue) and argument.type is NoneType_
    return is_none or (is_known and value is None)


_PROXIES = ("rpc_sync", "rpc_async", "remote")
_CALLS = (
    "Calls on the value are made in Python: pass the reference to a function there."
)


class ReferenceMethod(Sugared):
    """A bound method of a reference."""

    __slots__ = ("name", "rref")

    def __init__(self, rref: "ReferenceValue", name: str) -> None:
        self.rref = rref
        self.name = name

    def describe(self) -> str:
        """Return the description of the method."""
        return f"the method `{self.name}` of {self.rref.type}"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Emit the call of the method and return its result."""
        takes = ("timeout",) if self.name == "to_here" else ()
        bound = arguments_of(e, self.describe(), takes, arguments, required=0)
        inputs = [self.rref.node_value]
        if bound and bound[0] is not None:
            message = f"{self.describe()} is given a timeout of type {{}}"
            value = bound[0].value(e)
            if value.type is IntType:
                value = e.operator("script::float.int", value)
            inputs.append(e.fit(value, FloatType, message, "It is a float: seconds."))
        type_ = METHODS[self.name]
        if type_ is None:
            assert isinstance(self.rref.type, RRefType), "references have this type"
            type_ = self.rref.type.element
        return sugar_of_value(
            e.node(f"prim::rref_{self.name}", inputs, (type_,)).output
        )


class ReferenceValue(SimpleValue):
    """A reference."""

    __slots__ = ()

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """Return one of its methods."""
        if name in METHODS:
            return ReferenceMethod(self, name)
        hint = _CALLS if name in _PROXIES else ""
        return no_attribute(e, str(self.type), name, tuple(METHODS), hint)


class WorkerValue(SimpleValue):
    """A worker: its name, and its id."""

    __slots__ = ()

    def describe(self) -> str:
        """Return its description."""
        return "a WorkerInfo"

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """Return the name, or the id."""
        if name not in OF_WORKER:
            return no_attribute(e, self.describe(), name, tuple(OF_WORKER))
        types, attributes = (OF_WORKER[name],), {"name": name}
        node = e.node("prim::worker_info", (self.node_value,), types, attributes)
        return sugar_of_value(node.output)


class SugaredRRefClass(Sugared):
    """The class `RRef`, which programs use in annotations only."""

    __slots__ = ()

    def describe(self) -> str:
        """Return the description of the class."""
        return "the class `RRef`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Refuse to create a reference in a program."""
        return self._refuse(e)

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        """Refuse `RRef[T]` as an expression: it would create a reference of a type."""
        return self._refuse(e)

    def _refuse(self, e: Emitter) -> NoReturn:
        e.fail(
            "a program cannot create an RRef",
            "Take it as a parameter, or create it by `remote`.",
        )


def _references(surface: Surface) -> Iterable[Closeable]:
    """Register references and workers as values; yield their handles."""

    def infer(rref: Any, program: Program) -> Type | NotInferred:
        value_type = type_of(surface, rref)
        if value_type is None:
            return NotInferred("the type of the value of a Python reference is unknown")
        return RRefType(value_type)

    yield register_class(WORKER.qualname)
    yield register_annotation(WorkerInfo, WORKER)
    yield register_wrapper(surface.rref, RRefType)
    yield register_value(RRefType, ReferenceValue)
    yield register_value(WORKER, WorkerValue)
    yield register_special_form(surface.rref, SugaredRRefClass())
    yield register_inference(surface.rref, infer)
    yield register_inference(WorkerInfo, lambda value, program: WORKER)
