"""Programs: functions and types that belong together, and of which type a value is.

    Function         a name, a schema, a graph, and what others keep with them
    Program          functions by their names, a namespace of types, Python classes
    declared_type    the declared type of an object that runs
    inferred_type    the type that a value has, by looking at it

Rules of functions:
- the schema is known before the graph, so that functions can call themselves and each
  other; a graph that is still to be made is made when it is first asked for; whoever
  compiles is alone, so nobody asks for the graph of a function that is being compiled;
- the graph is what was compiled and cleaned up, and is not changed afterwards: who
  optimizes takes a copy;
- `memo` is for whoever runs, prints or fuses: what is computed of the graph, by the
  name of the chapter that computes it.

Rules of programs:
- the name of a function is unique in its program, by the smallest free number, as the
  names of types are; these are owned by the namespace (`runtime.schema.declaration`),
  and methods lie with the declaration of their class: `declaration.functions`;
- what nobody discards lives as long as the program, and no longer, but for the
  functions of `SHARED_PROGRAM`, that of whoever names none: they live as long as
  somebody has them (the Python function that `jit.script` was given, a graph that calls
  them), and their names are free again then; its types live as long as the process;
- `compiled` is for who compiles: which function a function of Python became; nothing
  lives by that.  What else others find by a program, or by a declaration, lies in its
  `memo`: in a table with weak keys a value that leads to its key would keep both.

Rules of types of values:
- an object of a class of a program is an object of the Python class that was declared;
  what is read from an archive gets a Python class of its own; a module carries its
  type, as others of the same class may have another; no class is kept alive by that;
- a list, and the keys and values of a dictionary, have the one type into which all of
  them fit; one without elements does not say its type; a class that can be declared (a
  named tuple, an enum, a dataclass) is; a future is of the type of its value;
- what is no value of programs has no type, and the reason says which part it was.
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, WeakValueDictionary

from runtime.futures import Future
from runtime.schema.calls import described
from runtime.schema.codes import Device, DType, Layout, MemoryFormat
from runtime.schema.declaration import SHARED, DeclaredType, Namespace, unmangled
from runtime.schema.python_classes import PythonClasses
from runtime.schema.schema import Schema
from runtime.schema.scope import Scope
from runtime.schema.subtyping import Mismatch, unify
from runtime.schema.types import (
    DICT_KEYS,
    BoolType,
    ComplexType,
    DeviceType,
    DictType,
    FloatType,
    FutureType,
    IntType,
    LayoutType,
    ListType,
    MemoryFormatType,
    NoneType_,
    ScalarTypeType,
    StrType,
    TensorType,
    TupleType,
    Type,
)
from runtime.schema.values import is_tensor
from runtime.script.ir import Graph
from runtime.script.plug_ins import added


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
CARRIED = "__script_type__"

_TYPES: WeakKeyDictionary[type, DeclaredType] = WeakKeyDictionary()


def declare_objects(python: type, declared: DeclaredType) -> None:
    """Let the objects of a Python class be of a declared type."""
    _TYPES[python] = declared


def declared_type(value: Any) -> DeclaredType | None:
    """The declared type of a value, or None."""
    carried = getattr(value, CARRIED, None)
    if isinstance(carried, DeclaredType):
        return carried
    return _TYPES.get(type(value))


# Containers within containers; source: what the schema reads of types.
_DEEPEST = 100

# By the class itself: a bool is no int here.
_PLAIN: dict[type, Type] = {
    type(None): NoneType_,
    bool: BoolType,
    int: IntType,
    float: FloatType,
    complex: ComplexType,
    str: StrType,
    Device: DeviceType,
    DType: ScalarTypeType,
    Layout: LayoutType,
    MemoryFormat: MemoryFormatType,
}


@dataclass(frozen=True, slots=True)
class Uninferred:
    """No type was found, for a reason: a sentence without a full stop."""

    reason: str


# What gives the type of a value of a class of a plug-in, in a program.
Infer = Callable[[Any, Program], Type | Uninferred]
# Class -> what asks its objects; those of classes below are asked, too.
_ADDED: dict[type, Infer] = {}


def register_inference(python: type, infer: Infer) -> Callable[[], None]:
    """Let objects of a class of a plug-in be of the type that `infer` gives.

    What comes back takes it out again.
    """
    return added(_ADDED, python, infer, "has a type")


def inferred_type(
    value: Any, program: Program = SHARED_PROGRAM, depth: int = 0
) -> Type | Uninferred:
    """The type of a value, or why it has none."""
    plain = _PLAIN.get(type(value))
    if plain is not None:
        return plain
    if is_tensor(value):
        return TensorType
    for base in type(value).__mro__ if _ADDED else ():
        if base in _ADDED:
            return _ADDED[base](value, program)
    if depth > _DEEPEST:
        return Uninferred(f"its containers are nested more than {_DEEPEST} deep")
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
            return Uninferred("a future without a value does not say of which type")
        inner = inferred_type(value.value(), program, depth + 1)
        return inner if isinstance(inner, Uninferred) else FutureType(inner)
    found = program.classes(type(value), Scope({}, classes=program.classes))
    if found is not None:
        return found
    return Uninferred(f"{described(value)} is no value of a program")


def _tuple(value: Any, program: Program, depth: int) -> Type | Uninferred:
    if hasattr(value, "_fields"):
        named = program.classes(type(value), Scope({}, classes=program.classes))
        if named is not None:
            return named
    elements: list[Type] = []
    for place, each in enumerate(value):
        found = inferred_type(each, program, depth + 1)
        if isinstance(found, Uninferred):
            return Uninferred(f"element {place} of a tuple: {found.reason}")
        elements.append(found)
    return TupleType(tuple(elements))


def _list(value: list[Any], program: Program, depth: int) -> Type | Uninferred:
    if not value:
        return Uninferred("an empty list does not say of what")
    found = _one(value, "a list", "element", program, depth)
    return found if isinstance(found, Uninferred) else ListType(found)


def _dict(value: dict[Any, Any], program: Program, depth: int) -> Type | Uninferred:
    if not value:
        return Uninferred("an empty dictionary does not say of what")
    key = _one(value, "a dictionary", "key", program, depth)
    if isinstance(key, Uninferred):
        return key
    if key not in DICT_KEYS:
        return Uninferred(f"no dictionary has keys of type {key}")
    of = _one(value.values(), "a dictionary", "value", program, depth)
    return of if isinstance(of, Uninferred) else DictType(key, of)


def _one(
    values: Iterable[Any], of: str, word: str, program: Program, depth: int
) -> Type | Uninferred:
    """The one type into which all values fit."""
    types: dict[Type, None] = {}
    for place, each in enumerate(values):
        found = inferred_type(each, program, depth + 1)
        if isinstance(found, Uninferred):
            return Uninferred(f"{word} {place} of {of}: {found.reason}")
        types[found] = None
    one = unify(*types)
    if isinstance(one, Mismatch):
        several = " and ".join(sorted(map(str, types)))
        return Uninferred(f"the {word}s of {of} are of the types {several}")
    return one
