"""Steps: what nodes for remote calls do when a program runs.

True only here: the function of each kind of `runtime.rpc.program.kinds`.

Rules:
- what comes back from another worker is held against the type that the program says: a
  future when it is waited for, a reference when it is asked for its value;
- an exception from another worker is raised as it comes, with the frames of the program
  that asked;
- a cast may lie: what a program took for a reference, or a worker, is asked for its
  class before it is asked for anything else.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from runtime.rpc.identities import WorkerInfo
from runtime.rpc.program.boundary import tests
from runtime.rpc.program.calls import called
from runtime.rpc.program.kinds import ASYNC, METHODS, REMOTE, SYNC
from runtime.rpc.program.surface import Surface
from runtime.schema.types import AnyType, FutureType, RRefType, Type
from runtime.script.ir import Node
from runtime.script.program import SHARED_PROGRAM
from runtime.script.running import checked, register_step, register_test

Function = Callable[..., Any]
Maker = Callable[[Node], Function]

_MODES = {ASYNC: "async", SYNC: "sync", REMOTE: "remote"}


def installed(surface: Surface) -> Iterable[Callable[[], None]]:
    """Let nodes for remote calls do what they do; gives what takes that back."""
    for kind, maker in makers(surface).items():
        yield register_step(kind, maker)
    for of, make in tests(surface).items():
        yield register_test(of, make)


def makers(surface: Surface) -> Mapping[str, Maker]:
    """Kind -> what makes the function of a node."""

    def call(node: Node) -> Function:
        return _call(node, surface)

    return {
        **dict.fromkeys(_MODES, call),
        "prim::worker_info": _worker,
        **{
            f"prim::rref_{name}": (_value if gives is None else _asked)(
                name, surface.rref
            )
            for name, gives in METHODS.items()
        },
    }


def _element(given: Type) -> Type:
    if isinstance(given, FutureType | RRefType):
        return given.element
    return given


def _call(node: Node, surface: Surface) -> Function:
    mode = _MODES[node.kind]
    known = node.attributes.get("function")
    type_ = node.output.type
    of = _element(type_)
    # Of a function that is known by its name only, nothing is.
    text = "" if of is AnyType else str(of)

    def call(to: Any, name: str, *rest: Any) -> Any:
        function = known
        if function is None:
            function = SHARED_PROGRAM.functions.get(name)
        schema = None if function is None else function.schema
        made = called(surface, mode, name, schema, (to, *rest), text)
        if mode != "sync":
            return made
        return checked(made, of, f"`{name}` of another worker")

    return call


def _value(name: str, kind: type) -> Maker:
    """The value of a reference, which is of the type that the program says."""

    def maker(node: Node) -> Function:
        of, given = node.output.type, node.inputs[0].type

        def ask(rref: Any, *timeout: float) -> Any:
            # Its method is called, whatever a program took for a reference.
            if not isinstance(rref, kind):
                checked(rref, given, "A program")
            return checked(getattr(rref, name)(*timeout), of, "A reference")

        return ask

    return maker


def _asked(name: str, kind: type) -> Maker:
    def maker(node: Node) -> Function:
        given = node.inputs[0].type

        def ask(rref: Any) -> Any:
            if not isinstance(rref, kind):
                checked(rref, given, "A program")
            return getattr(rref, name)()

        return ask

    return maker


def _worker(node: Node) -> Function:
    name, given = node.attributes["name"], node.inputs[0].type

    def ask(worker: Any) -> Any:
        if not isinstance(worker, WorkerInfo):
            checked(worker, given, "A program")
        return getattr(worker, name)

    return ask
