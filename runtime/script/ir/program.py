"""Programs: functions and types that belong together, and what Python says of them.

    Function         a name, a schema, a graph, and what others keep with them
    Program          functions by their names, a namespace of types, Python classes
    declared_type    the declared type of an object that runs
    inferred_type    the type that a value has, by looking at it
    annotate, is_of_type, unchecked_cast, is_scripting, fork, wait    in expressions
    ignore, unused, export                                            on functions
    interface, Attribute                                              in classes

Rules of functions:
- the schema is known before the graph, so that functions can call themselves and each
  other; a graph that is still to be made is made when it is first asked for; whoever
  compiles is alone, so the graph of a function that is being compiled is never asked
  for;
- the graph is what was compiled and cleaned up, and is not changed afterwards: who
  optimizes takes a copy;
- `memo` has what other chapters compute of the graph to run, print or fuse it, by their
  names.

Rules of programs:
- the name of a function is unique in its program, by the smallest free number, as the
  names of types are; these are owned by the namespace (`runtime.schema.declared`),
  and methods lie with the declaration of their class: `declaration.functions`;
- functions and types live as long as their program, unless they are discarded; but the
  functions of `SHARED_PROGRAM`, the default, live as long as something refers to them
  (the Python function that `jit.script` was given, a graph that calls them), and their
  names are free again then; its types live as long as the process;
- `compiled` is for the compiler: the function that a function of Python became; it
  keeps nothing alive.  Other facts of a program, or of a declaration, lie in its
  `memo`: in a table with weak keys a value that leads to its key would keep both.

Rules of types of values:
- an object of a class of a program is an object of the Python class that was declared;
  what is read from an archive gets a Python class of its own; a module carries its
  type, as others of the same class may have another; no class is kept alive by that;
- a list, and the keys and values of a dictionary, have the one type into which all of
  them fit; one without elements does not say its type; a class that can be declared (a
  named tuple, an enum, a dataclass) is; a future is of the type of its value;
- what is no value of programs has no type, and the reason says which part it was.

Rules of marks, which are functions that mean something else in a script, by identity:
- without the compiler a marked function is itself, `annotate` gives its value, and
  `fork` runs at once, on this thread;
- a mark is an attribute of the function; one function has one mark, the last;
- what a class is marked as is not inherited.
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType, UnionType
from typing import (
    Any,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    overload,
)
from weakref import ReferenceType, WeakKeyDictionary, WeakValueDictionary

from everyorder.runtime.base.registry import Registry, RegistryHandle
from everyorder.runtime.errors.future import FutureMisuse, describe_type
from everyorder.runtime.errors.script import NotScriptable
from everyorder.runtime.futures import Future
from everyorder.runtime.schema.call_errors import describe_value, shortened
from everyorder.runtime.schema.declared import (
    SHARED,
    DeclaredType,
    Namespace,
    unmangled,
)
from everyorder.runtime.schema.enums import DType, Layout, MemoryFormat
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.subtyping import Mismatch, unify
from everyorder.runtime.schema.types import (
    DICT_KEYS,
    DictType,
    FutureType,
    LayoutType,
    ListType,
    MemoryFormatType,
    ScalarTypeType,
    TensorType,
    TupleType,
    Type,
)
from everyorder.runtime.schema.values import is_tensor
from everyorder.runtime.script.ir import Graph
from everyorder.runtime.script.ir.type_rules import PLAIN_TYPES
from everyorder.runtime.script.types.annotations import TypeScope
from everyorder.runtime.script.types.python_classes import PythonClasses
from everyorder.runtime.tensors.keys import trace_observer


class Function:
    """A function of a program.

    `qualname` is its full name, `__torch__.package.name` or that of a class and a
    method; the graph takes the arguments of the schema in order, and gives what the
    schema says.  `python` is the Python function that it was made of, or None.
    """

    __slots__ = ("__weakref__", "_graph", "memo", "python", "qualname", "schema")

    def __init__(
        self,
        qualname: str,
        schema: Schema,
        graph: Graph | Callable[[], Graph],
        python: Any = None,
    ) -> None:
        self.qualname = qualname
        self.schema = schema
        self.python = python
        self.memo: dict[str, Any] = {}
        self._graph = graph

    @property
    def name(self) -> str:
        """The last part of the full name."""
        return self.qualname.rpartition(".")[2]

    @property
    def graph(self) -> Graph:
        """The graph; made now, if it was not.  Raises what compiling raises."""
        if not isinstance(self._graph, Graph):
            self._graph = self._graph()
        return self._graph

    @property
    def is_compiled(self) -> bool:
        """Whether the graph has been made."""
        return isinstance(self._graph, Graph)

    def __repr__(self) -> str:
        return f"Function({self.qualname!r})"


class Program:
    """Functions by their full names, a namespace of types, and the Python classes."""

    __slots__ = (
        "__weakref__",
        "_functions",
        "classes",
        "compiled",
        "memo",
        "namespace",
    )

    def __init__(
        self, namespace: Namespace | None = None, *, keeps: bool = True
    ) -> None:
        self.namespace = Namespace() if namespace is None else namespace
        self.classes = PythonClasses(self.namespace)
        self._functions: MutableMapping[str, Function] = (
            {} if keeps else WeakValueDictionary()
        )
        self.memo: dict[str, Any] = {}
        self.compiled: WeakKeyDictionary[Any, ReferenceType[Function]] = (
            WeakKeyDictionary()
        )

    @property
    def functions(self) -> Mapping[str, Function]:
        """The functions by their full names, in the order in which they came."""
        return MappingProxyType(self._functions)

    def free_name(self, qualname: str) -> str:
        """The name, with a number in it if it is taken."""
        plain = unmangled(qualname)
        path, _, name = plain.rpartition(".")
        free, number = plain, 0
        while free in self._functions or self.namespace.find(free) is not None:
            free, number = f"{path}.___torch_mangle_{number}.{name}", number + 1
        return free

    def add(self, function: Function) -> None:
        """Keep a function; an assertion fails if its name is taken."""
        kept = self._functions.setdefault(function.qualname, function)
        assert kept is function, "a name is asked for, and given once"

    def discard(self, function: Function) -> None:
        """Give the name of a function back; doing so again is harmless."""
        if self._functions.get(function.qualname) is function:
            del self._functions[function.qualname]


SHARED_PROGRAM = Program(SHARED, keeps=False)


# The attribute in which a module carries its type.
TYPE_ATTRIBUTE = "__script_type__"

_TYPES: WeakKeyDictionary[type, DeclaredType] = WeakKeyDictionary()


def declare_objects(python: type, declared: DeclaredType) -> None:
    """Let the objects of a Python class be of a declared type."""
    _TYPES[python] = declared


def declared_type(value: Any) -> DeclaredType | None:
    """The declared type of a value, or None."""
    carried = getattr(value, TYPE_ATTRIBUTE, None)
    if isinstance(carried, DeclaredType):
        return carried
    return _TYPES.get(type(value))


# Containers within containers; source: what the schema reads of types.
_DEEPEST = 100

_PLAIN: Mapping[type, Type] = {
    **PLAIN_TYPES,
    DType: ScalarTypeType,
    Layout: LayoutType,
    MemoryFormat: MemoryFormatType,
}


@dataclass(frozen=True, slots=True)
class NotInferred:
    """No type was found, for a reason: a sentence without a full stop."""

    reason: str


# What gives the type of a value of a class of a plug-in, in a program.
Infer = Callable[[Any, Program], Type | NotInferred]
# Class -> what asks its objects; those of classes below are asked, too.
_PLUG_IN_TYPES: Registry[type, Infer] = Registry("inferred types")


def register_inference(python: type, infer: Infer) -> RegistryHandle:
    """Let objects of a class of a plug-in be of the type that `infer` gives."""
    return _PLUG_IN_TYPES.register(python, infer, stacklevel=2)


def inferred_type(
    value: Any, program: Program = SHARED_PROGRAM, depth: int = 0
) -> Type | NotInferred:
    """The type of a value, or why it has none."""
    plain = _PLAIN.get(type(value))
    if plain is not None:
        return plain
    if is_tensor(value):
        return TensorType
    rows = _PLUG_IN_TYPES.rows
    for base in type(value).__mro__ if rows else ():
        if base in rows:
            return rows[base](value, program)
    if depth > _DEEPEST:
        return NotInferred(f"its containers are nested more than {_DEEPEST} deep")
    declared = declared_type(value)
    if declared is not None:
        return declared
    if isinstance(value, tuple):
        return _tuple(value, program, depth)
    if isinstance(value, list):
        return _list(value, program, depth)
    if isinstance(value, dict):
        return _dict(value, program, depth)
    if isinstance(value, Future):
        if not value.done() or value.error() is not None:
            return NotInferred("a future without a value does not say of which type")
        inner = inferred_type(value.value(), program, depth + 1)
        return inner if isinstance(inner, NotInferred) else FutureType(inner)
    found = program.classes(type(value), TypeScope({}, classes=program.classes))
    if found is not None:
        return found
    return NotInferred(f"{describe_value(value)} is no value of a program")


def _tuple(value: Any, program: Program, depth: int) -> Type | NotInferred:
    if hasattr(value, "_fields"):
        named = program.classes(type(value), TypeScope({}, classes=program.classes))
        if named is not None:
            return named
    elements: list[Type] = []
    for place, each in enumerate(value):
        found = inferred_type(each, program, depth + 1)
        if isinstance(found, NotInferred):
            return NotInferred(f"element {place} of a tuple: {found.reason}")
        elements.append(found)
    return TupleType(tuple(elements))


def _list(value: list[Any], program: Program, depth: int) -> Type | NotInferred:
    if not value:
        return NotInferred("an empty list does not say of what")
    found = _one(value, "a list", "element", program, depth)
    return found if isinstance(found, NotInferred) else ListType(found)


def _dict(value: dict[Any, Any], program: Program, depth: int) -> Type | NotInferred:
    if not value:
        return NotInferred("an empty dictionary does not say of what")
    key = _one(value, "a dictionary", "key", program, depth)
    if isinstance(key, NotInferred):
        return key
    if key not in DICT_KEYS:
        return NotInferred(f"no dictionary has keys of type {key}")
    of = _one(value.values(), "a dictionary", "value", program, depth)
    return of if isinstance(of, NotInferred) else DictType(key, of)


def _one(
    values: Iterable[Any], of: str, word: str, program: Program, depth: int
) -> Type | NotInferred:
    """The one type into which all values fit."""
    types: dict[Type, None] = {}
    for place, each in enumerate(values):
        found = inferred_type(each, program, depth + 1)
        if isinstance(found, NotInferred):
            return NotInferred(f"{word} {place} of {of}: {found.reason}")
        types[found] = None
    one = unify(*types)
    if isinstance(one, Mismatch):
        several = " and ".join(sorted(map(str, types)))
        return NotInferred(f"the {word}s of {of} are of the types {several}")
    return one


# Marks

T = TypeVar("T")
P = ParamSpec("P")
C = TypeVar("C", bound=type)
F = TypeVar("F")

# The attributes that hold marks.
MARK_ATTRIBUTE, INTERFACE_ATTRIBUTE = "__script_mark__", "__script_interface__"


class Mark(Enum):
    """The treatment of a function or method by the compiler."""

    # Compile it, though `forward` does not call it.
    EXPORT = "export"
    # Call it as Python does.
    IGNORE = "ignore"
    # Raise where it is called.
    UNUSED = "unused"


class Attribute(NamedTuple):
    """A value of a module with the type that its attribute has in scripts."""

    value: Any
    type: Any


def mark_of(function: Any) -> Mark | None:
    """The mark of a function, a method or the getter of a property, or None."""
    if isinstance(function, property):
        function = function.fget
    elif isinstance(function, staticmethod | classmethod):
        function = function.__func__
    found = getattr(function, MARK_ATTRIBUTE, None)
    return found if isinstance(found, Mark) else None


def export(fn: F) -> F:
    """Compile a method of a module, though nothing that is compiled calls it.

    Raises:
        NotScriptable: it is no function.
    """
    return _marked("export", fn, Mark.EXPORT)


@overload
def ignore(drop: bool = False) -> Callable[[F], F]: ...
@overload
def ignore(drop: F) -> F: ...
def ignore(drop: Any = False) -> Any:
    """Leave a function to Python: scripts call it there.

    `@ignore`, or `@ignore(drop=True)`, which is `@unused`.

    Raises:
        NotScriptable: it is no function.
    """
    if isinstance(drop, bool):
        return unused if drop else ignore
    return _marked("ignore", drop, Mark.IGNORE)


def unused(fn: F) -> F:
    """Do not compile a function; a script that calls it raises there.

    Raises:
        NotScriptable: it is no function.
    """
    return _marked("unused", fn, Mark.UNUSED)


def _marked(word: str, fn: F, mark: Mark) -> F:
    parts: tuple[Any, ...] = (fn,)
    if isinstance(fn, property):
        parts = tuple(each for each in (fn.fget, fn.fset) if each is not None)
    for each in parts:
        if not callable(each):
            raise NotScriptable(
                code="MarkMisuse",
                call=word,
                found=describe_type(fn),
                wanted="a function",
            )
        try:
            setattr(each, MARK_ATTRIBUTE, mark)
        except (AttributeError, TypeError):
            wanted = "a function that is written in Python"
            raise NotScriptable(
                code="MarkMisuse", call=word, found=describe_type(fn), wanted=wanted
            ) from None
    return fn


# The classes that an interface may derive from.
INTERFACE_BASES: Registry[type, None] = Registry("bases of interfaces", {object: None})


def interface(cls: C) -> C:
    """Let a class stand for all classes and modules that have its methods.

    Raises:
        NotScriptable: it is no class, or derives from another.
    """
    unknown: Any = cls
    if not isinstance(unknown, type):
        found = describe_type(cls)
        raise NotScriptable(
            code="MarkMisuse", call="interface", found=found, wanted="a class"
        )
    if len(cls.__bases__) != 1 or cls.__bases__[0] not in INTERFACE_BASES.rows:
        found = f"{cls.__name__}, which derives from {cls.__bases__[0].__name__}"
        wanted = "a class of its own, with all of the methods"
        raise NotScriptable(
            code="MarkMisuse", call="interface", found=found, wanted=wanted
        )
    setattr(cls, INTERFACE_ATTRIBUTE, True)
    return cls


def is_interface(cls: Any) -> bool:
    """Whether a class was declared by `interface`, itself and no base of it."""
    return isinstance(cls, type) and INTERFACE_ATTRIBUTE in vars(cls)


def annotate(the_type: Any, the_value: T) -> T:
    """The value; in a script it is taken for one of the type."""
    return the_value


def unchecked_cast(the_type: Any, the_value: Any) -> Any:
    """The value; a script that was saved takes it for one of the type."""
    return the_value


def is_scripting() -> bool:
    """False; in a script True, known when it is compiled."""
    return False


def is_of_type(obj: Any, target_type: Any) -> bool:
    """Whether an object is of a type, by all that it holds: `list[int]`, say.

    `target_type` may be a tuple of types; a class is asked as Python does.

    Raises:
        NotScriptable: it means no type.
    """
    if isinstance(target_type, tuple):
        return any(is_of_type(obj, each) for each in target_type)
    if target_type is None or target_type is Any:
        return obj is None or target_type is Any
    origin, parts = get_origin(target_type), get_args(target_type)
    if origin in (Union, UnionType):
        return any(is_of_type(obj, each) for each in parts)
    kind: Any = target_type if origin is None else origin
    if not isinstance(kind, type):
        wanted = "an object, and a type or a tuple of types"
        found = f"{shortened(target_type)} as type"
        raise NotScriptable(
            code="MarkMisuse", call="isinstance", found=found, wanted=wanted
        )
    return isinstance(obj, kind) and _holds(obj, kind, parts)


def _holds(value: Any, kind: type, parts: tuple[Any, ...]) -> bool:
    """Whether what a container holds is of the types; others hold what they say."""
    if not parts:
        return True
    if kind is tuple:
        fits = zip(value, parts, strict=True)
        return len(value) == len(parts) and all(is_of_type(*each) for each in fits)
    if kind is dict:
        pairs = value.items()
        return all(
            is_of_type(*each)
            for pair in pairs
            for each in zip(pair, parts, strict=True)
        )
    return kind is not list or all(is_of_type(each, parts[0]) for each in value)


def fork(func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """A future of what `func(*args, **kwargs)` returns, which runs at once.

    A trace keeps both.  In a script it runs beside what forks it, and what it raises is
    the future's.

    Raises:
        FutureMisuse: `func` cannot be called.
        BaseException: what the function raised.
    """
    unknown: Any = func
    if not callable(unknown):
        found, wanted = describe_type(func), "a callable, then its arguments"
        raise FutureMisuse(call="fork", found=found, wanted=wanted)
    observer = trace_observer()
    if observer is not None:
        traced: Future[T] = observer.fork(func, args, kwargs)
        return traced
    future: Future[T] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[T]) -> T:
    """The value of a future, as `future.wait()`.

    Raises:
        FutureMisuse: it is no future.
        BaseException: the error that the future was completed with.
    """
    unknown: Any = future
    if not isinstance(unknown, Future):
        found, wanted = describe_type(future), "what `fork` gave, or another future"
        raise FutureMisuse(call="wait", found=found, wanted=wanted)
    return future.wait()
