"""Programs: functions and types that belong together, and their Python classes.

    Function         a name, a schema, a graph, and a memo for derived data
    Program          functions by their names, a namespace of types, Python classes
    declared_type    the declared type of a Python object
    inferred_type    the type of a value, inferred from the value
    annotate, is_of_type, unchecked_cast, is_scripting, fork, wait    in expressions
    ignore, unused, export                                            on functions
    interface, Attribute                                              in classes

Rules of functions:
- the schema is known before the graph, so that functions can call themselves and each
  other; a pending graph is built on first access; only one thread compiles at a time,
  so the graph of a function that is being compiled is never accessed;
- the graph is compiled and cleaned up, and not changed afterwards: optimizations work
  on a copy;
- `memo` holds data that other modules derive from the graph to run, print or fuse it,
  by the names of the modules.

Rules of programs:
- the name of a function is unique in its program, by the smallest free number, as the
  names of types are; these are owned by the namespace (`runtime.schema.declared`), and
  methods are stored in the declaration of their class: `declaration.functions`;
- functions and types live as long as their program, unless they are discarded; but the
  functions of `SHARED_PROGRAM`, the default, live as long as something refers to them
  (the Python function that was passed to `jit.script`, a graph that calls them), and
  their names are free again then; its types live as long as the process;
- `compiled` is for the compiler: it maps a Python function to its compiled function and
  keeps neither alive. Other data about a program, or a declaration, is stored in its
  `memo`: in a table with weak keys, a value that refers to its key would keep both
  alive.

Rules of types of values:
- an object of a class of a program is an object of the declared Python class; a class
  that is read from an archive gets a new Python class; a module carries its type,
  because modules of one class may have different types; none of this keeps a class
  alive;
- a list, and the keys and values of a dictionary, have the one type into which all of
  them fit; the type of an empty container is not inferred; a class that can be declared
  (a named tuple, an enum, a dataclass) is declared; the type of a future follows from
  its value;
- an object that is not a value of programs has no type, and the reason names the part.

Rules of marks, functions that have another meaning in a script, recognized by identity:
- outside of a script a marked function is unchanged, `annotate` returns its value, and
  `fork` runs at once, on the calling thread;
- a mark is an attribute of the function; one function has one mark, the last;
- the mark of a class is not inherited.
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
    method; the parameters and results of the graph are the arguments and returns of the
    schema.  `python` is the Python function that it was compiled from, or None.
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
        """Return the last part of the full name."""
        return self.qualname.rpartition(".")[2]

    @property
    def graph(self) -> Graph:
        """Return the graph; build it on first access.

        Raises whatever compiling raises.
        """
        if not isinstance(self._graph, Graph):
            self._graph = self._graph()
        return self._graph

    @property
    def is_compiled(self) -> bool:
        """Return True if the graph has been built."""
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
        """Return the functions by their full names, in the order of registration."""
        return MappingProxyType(self._functions)

    def free_name(self, qualname: str) -> str:
        """Return the name, with a number in it if the plain name is in use."""
        plain = unmangled(qualname)
        path, _, name = plain.rpartition(".")
        free, number = plain, 0
        while free in self._functions or self.namespace.find(free) is not None:
            free, number = f"{path}.___torch_mangle_{number}.{name}", number + 1
        return free

    def add(self, function: Function) -> None:
        """Store a function; an assertion fails if its name is in use."""
        registered = self._functions.setdefault(function.qualname, function)
        assert registered is function, "a free name is used once"

    def discard(self, function: Function) -> None:
        """Release the name of a function; repeated calls are ignored."""
        if self._functions.get(function.qualname) is function:
            del self._functions[function.qualname]


SHARED_PROGRAM = Program(SHARED, keeps=False)


# The attribute in which a module carries its type.
TYPE_ATTRIBUTE = "__script_type__"

_TYPES: WeakKeyDictionary[type, DeclaredType] = WeakKeyDictionary()


def declare_objects(python: type, declared: DeclaredType) -> None:
    """Associate the objects of a Python class with a declared type."""
    _TYPES[python] = declared


def declared_type(value: Any) -> DeclaredType | None:
    """Return the declared type of a value, or None."""
    carried = getattr(value, TYPE_ATTRIBUTE, None)
    if isinstance(carried, DeclaredType):
        return carried
    return _TYPES.get(type(value))


# The deepest nesting of containers; schemas read types no deeper.
_DEEPEST = 100

_PLAIN: Mapping[type, Type] = {
    **PLAIN_TYPES,
    DType: ScalarTypeType,
    Layout: LayoutType,
    MemoryFormat: MemoryFormatType,
}


@dataclass(frozen=True, slots=True)
class NotInferred:
    """No type was inferred; `reason` is a sentence without a full stop."""

    reason: str


# Infers the type of a value of a plug-in's class in a program.
Infer = Callable[[Any, Program], Type | NotInferred]
# Class -> what asks its objects; those of classes below are asked, too.
_PLUG_IN_TYPES: Registry[type, Infer] = Registry("inferred types")


def register_inference(python: type, infer: Infer) -> RegistryHandle:
    """Let objects of a class of a plug-in be of the type that `infer` gives."""
    return _PLUG_IN_TYPES.register(python, infer, stacklevel=2)


def inferred_type(
    value: Any, program: Program = SHARED_PROGRAM, depth: int = 0
) -> Type | NotInferred:
    """Return the type of a value, or the reason why it has none."""
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
    declared_by_class = program.classes(
        type(value), TypeScope({}, classes=program.classes)
    )
    if declared_by_class is not None:
        return declared_by_class
    return NotInferred(f"{describe_value(value)} is not a value of a program")


def _tuple(value: Any, program: Program, depth: int) -> Type | NotInferred:
    if hasattr(value, "_fields"):
        named = program.classes(type(value), TypeScope({}, classes=program.classes))
        if named is not None:
            return named
    elements: list[Type] = []
    for place, each in enumerate(value):
        element = inferred_type(each, program, depth + 1)
        if isinstance(element, NotInferred):
            return NotInferred(f"element {place} of a tuple: {element.reason}")
        elements.append(element)
    return TupleType(tuple(elements))


def _list(value: list[Any], program: Program, depth: int) -> Type | NotInferred:
    if not value:
        return NotInferred("an empty list does not say of what")
    element = _one(value, "a list", "element", program, depth)
    return element if isinstance(element, NotInferred) else ListType(element)


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
    """Return the one type into which all values fit."""
    types: dict[Type, None] = {}
    for place, each in enumerate(values):
        inferred = inferred_type(each, program, depth + 1)
        if isinstance(inferred, NotInferred):
            return NotInferred(f"{word} {place} of {of}: {inferred.reason}")
        types[inferred] = None
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

    # Compile the method, though `forward` does not call it.
    EXPORT = "export"
    # Call the function as Python does.
    IGNORE = "ignore"
    # Raise where the function is called.
    UNUSED = "unused"


class Attribute(NamedTuple):
    """A value of a module with the type of its attribute in scripts."""

    value: Any
    type: Any


def mark_of(function: Any) -> Mark | None:
    """Return the mark of a function, a method or the getter of a property, or None."""
    if isinstance(function, property):
        function = function.fget
    elif isinstance(function, staticmethod | classmethod):
        function = function.__func__
    mark = getattr(function, MARK_ATTRIBUTE, None)
    return mark if isinstance(mark, Mark) else None


def export(fn: F) -> F:
    """Compile a method of a module, even if no compiled code calls it.

    Raises:
        NotScriptable: `fn` is not a function.
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
        NotScriptable: `drop` is neither a function nor a bool.
    """
    if isinstance(drop, bool):
        return unused if drop else ignore
    return _marked("ignore", drop, Mark.IGNORE)


def unused(fn: F) -> F:
    """Do not compile a function; a script that calls it raises there.

    Raises:
        NotScriptable: `fn` is not a function.
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
            expected = "a function that is written in Python"
            raise NotScriptable(
                code="MarkMisuse", call=word, found=describe_type(fn), wanted=expected
            ) from None
    return fn


# The classes that an interface may derive from.
INTERFACE_BASES: Registry[type, None] = Registry("bases of interfaces", {object: None})


def interface(cls: C) -> C:
    """Declare a class as an interface of classes and modules with its methods.

    Raises:
        NotScriptable: `cls` is not a class, or derives from another class.
    """
    unknown: Any = cls
    if not isinstance(unknown, type):
        description = describe_type(cls)
        raise NotScriptable(
            code="MarkMisuse", call="interface", found=description, wanted="a class"
        )
    if len(cls.__bases__) != 1 or cls.__bases__[0] not in INTERFACE_BASES.rows:
        description = f"{cls.__name__}, which derives from {cls.__bases__[0].__name__}"
        expected = "a class without bases, with all of the methods"
        raise NotScriptable(
            code="MarkMisuse", call="interface", found=description, wanted=expected
        )
    setattr(cls, INTERFACE_ATTRIBUTE, True)
    return cls


def is_interface(cls: Any) -> bool:
    """Return True if `interface` declared the class itself; its bases do not count."""
    return isinstance(cls, type) and INTERFACE_ATTRIBUTE in vars(cls)


def annotate(the_type: Any, the_value: T) -> T:
    """Return the value; in a script it has the type."""
    return the_value


def unchecked_cast(the_type: Any, the_value: Any) -> Any:
    """Return the value; a script that was saved casts it to the type."""
    return the_value


def is_scripting() -> bool:
    """Return False; in a script True, a constant at compile time."""
    return False


def is_of_type(obj: Any, target_type: Any) -> bool:
    """Return True if an object, with its elements, is of a type like `list[int]`.

    `target_type` may be a tuple of types; a class is tested by Python's `isinstance`.

    Raises:
        NotScriptable: `target_type` is not a type.
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
        expected = "an object, and a type or a tuple of types"
        description = f"{shortened(target_type)} as type"
        raise NotScriptable(
            code="MarkMisuse", call="isinstance", found=description, wanted=expected
        )
    return isinstance(obj, kind) and _holds(obj, kind, parts)


def _holds(value: Any, kind: type, parts: tuple[Any, ...]) -> bool:
    """Return True if the parts of a container are of the types."""
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
    """Call `func(*args, **kwargs)` at once and return a future of its result.

    A trace records the call and the future. In a script `func` runs concurrently with
    its caller, and the future holds an exception that it raises.

    Raises:
        FutureMisuse: `func` cannot be called.
        BaseException: what the function raised.
    """
    unknown: Any = func
    if not callable(unknown):
        description, expected = describe_type(func), "a callable, then its arguments"
        raise FutureMisuse(call="fork", found=description, wanted=expected)
    observer = trace_observer()
    if observer is not None:
        traced: Future[T] = observer.fork(func, args, kwargs)
        return traced
    future: Future[T] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[T]) -> T:
    """Return the value of a future, as `future.wait()` does.

    Raises:
        FutureMisuse: `future` is not a future. BaseException: the error that the future
        was completed with.
    """
    unknown: Any = future
    if not isinstance(unknown, Future):
        description, expected = (
            describe_type(future),
            "the result of `fork`, or another future",
        )
        raise FutureMisuse(call="wait", found=description, wanted=expected)
    return future.wait()
