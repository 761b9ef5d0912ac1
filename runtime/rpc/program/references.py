"""References and workers in programs: their types, and what they are asked.

True only here: what `RRef[T]` and `WorkerInfo` are to programs.

    annotations    RRef[T], with its type always; WorkerInfo
    values         the methods and attributes that programs have of both

Rules:
- a program is given references, and gives them; it makes none but by `remote`;
- `to_here` without a timeout has the one that is the default when the program runs;
- a module is seen by the interface that its reference was given.
"""

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from runtime.rpc.identities import WorkerInfo
from runtime.rpc.program.boundary import type_of
from runtime.rpc.program.kinds import METHODS, OF_WORKER, WORKER
from runtime.rpc.program.surface import Surface
from runtime.schema.annotation import register_annotation, register_wrapper
from runtime.schema.classes import register_class
from runtime.schema.types import (
    FloatType,
    IntType,
    RRefType,
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
        type_ = METHODS[self.name]
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
        if name in METHODS:
            return ReferenceMethod(self, name)
        hint = _CALLS if name in _PROXIES else ""
        return no_attribute(e, str(self.type), name, tuple(METHODS), hint)


class WorkerValue(SimpleValue):
    """A worker: its name, and its id."""

    __slots__ = ()

    def says(self) -> str:
        """A worker."""
        return "a WorkerInfo"

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """The name, or the id."""
        if name not in OF_WORKER:
            return no_attribute(e, self.says(), name, tuple(OF_WORKER))
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
