"""References and workers in programs: their types, and what they are asked.

True only here: what `RRef[T]` and `WorkerInfo` are to programs.

    annotations    RRef[T], with its type always; WorkerInfo
    values         the methods and attributes that programs have of both
    at the boundary    which reference of Python's is one of RRef[T]

Rules:
- a program is given references, and gives them; it makes none but by `remote`;
- a reference whose type is known is of no other; of one of another type that nobody has
  told, the value is looked at when it comes;
- `to_here` without a timeout has the one that is the default when the program runs;
- a module is seen by the interface that its reference was given.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from runtime.errors.schema import SchemaError
from runtime.rpc.identities import WorkerInfo
from runtime.rpc.program.kinds import OF_WORKER, WORKER
from runtime.rpc.program.surface import Surface
from runtime.schema.annotation import register_annotation, register_wrapper
from runtime.schema.classes import register_class
from runtime.schema.parser import parse_type
from runtime.schema.subtype import is_subtype
from runtime.schema.types import (
    BoolType,
    FloatType,
    IntType,
    RRefType,
    StrType,
    TensorType,
    Type,
)
from runtime.script.emission import (
    Arguments,
    Emitter,
    SimpleValue,
    Sugared,
    arguments_of,
    no_attribute,
    register_special_form,
    register_value,
    sugar_of_value,
)
from runtime.script.program import Program, Uninferred, register_inference

Remove = Callable[[], None]

# Method of a reference -> what it gives; None: the value.
_METHODS: Mapping[str, Type | None] = {
    "to_here": None,
    "local_value": None,
    "is_owner": BoolType,
    "owner": WORKER,
    "owner_name": StrType,
    "confirmed_by_owner": BoolType,
}
_PROXIES = ("rpc_sync", "rpc_async", "remote")
_CALLS = "Calls on the value are Python's: give the reference to a function there."


class ReferenceMethod(Sugared):
    """A method of a reference, bound to it."""

    __slots__ = ("name", "rref")

    def __init__(self, rref: "ReferenceValue", name: str) -> None:
        self.rref = rref
        self.name = name

    def says(self) -> str:
        """The method."""
        return f"the method `{self.name}` of {self.rref.type}"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """What it gives."""
        takes = ("timeout",) if self.name == "to_here" else ()
        given = arguments_of(e, self.says(), takes, arguments, required=0)
        inputs = [self.rref.node_value]
        if given and given[0] is not None:
            message = f"{self.says()} is given a timeout of type {{}}"
            value = given[0].value(e)
            if value.type is IntType:
                value = e.operator("script::float.int", value)
            inputs.append(e.fit(value, FloatType, message, "It is a float: seconds."))
        type_ = _METHODS[self.name]
        if type_ is None:
            assert isinstance(self.rref.type, RRefType), "it is a reference"
            type_ = self.rref.type.element
        return sugar_of_value(
            e.node(f"prim::rref_{self.name}", inputs, (type_,)).output
        )


class ReferenceValue(SimpleValue):
    """A reference."""

    __slots__ = ()

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """One of its methods."""
        if name in _METHODS:
            return ReferenceMethod(self, name)
        hint = _CALLS if name in _PROXIES else ""
        return no_attribute(e, str(self.type), name, tuple(_METHODS), hint)


class WorkerValue(SimpleValue):
    """A worker: its name, and its id."""

    __slots__ = ()

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """The name, or the id."""
        if name not in OF_WORKER:
            return no_attribute(e, "WorkerInfo", name, tuple(OF_WORKER))
        types, attributes = (OF_WORKER[name],), {"name": name}
        node = e.node("prim::worker_info", (self.node_value,), types, attributes)
        return sugar_of_value(node.output)


class ReferenceClass(Sugared):
    """The class of references: it is for annotations."""

    __slots__ = ()

    def says(self) -> str:
        """The class."""
        return "the class `RRef`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """None is made in a program."""
        return self._refuse(e)

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        """Nor of a type."""
        return self._refuse(e)

    def _refuse(self, e: Emitter) -> NoReturn:
        e.fail(
            "a program makes no RRef",
            "Take it as a parameter, or let `remote` give one.",
        )


def type_of(surface: Surface, rref: Any) -> Type | None:
    """The type of the value of a reference, None if it is not known here."""
    text = surface.type_of(rref)
    try:
        found = parse_type(text, type_variables=False) if text else None
    except SchemaError:
        # Of a class that only its owner has.
        return None
    return None if str(found) == "PyObject" else found


def installed(surface: Surface) -> Iterable[Remove]:
    """Let programs know references and workers; gives what takes that back."""

    def infer(rref: Any, program: Program) -> Type | Uninferred:
        found = type_of(surface, rref)
        if found is None:
            return Uninferred("of a reference to a value of Python's no type is known")
        return RRefType(found)

    register_class(WORKER.qualname)
    yield register_annotation(WorkerInfo, WORKER)
    yield register_wrapper(surface.rref, RRefType)
    yield register_value(RRefType, ReferenceValue).close
    yield register_value(WORKER, WorkerValue).close
    yield register_special_form(surface.rref, ReferenceClass()).close
    yield register_inference(surface.rref, infer)
    yield register_inference(WorkerInfo, lambda value, program: WORKER)


def tests(surface: Surface) -> Mapping[Any, Callable[[Any], Callable[[Any], bool]]]:
    """A type, or a class of types -> what makes the test of a value."""

    def of_reference(wanted: RRefType) -> Callable[[Any], bool]:
        def is_one(value: Any) -> bool:
            if not isinstance(value, surface.rref):
                return False
            known = type_of(surface, value)
            return known is None or fits(known, wanted.element)

        return is_one

    return {
        RRefType: of_reference,
        WORKER: lambda _: lambda value: isinstance(value, WorkerInfo),
    }


def fits(known: Type, wanted: Type) -> bool:
    """Whether a reference of one type is one of another."""
    return is_subtype(known, wanted) or (known is TensorType and wanted is TensorType)
