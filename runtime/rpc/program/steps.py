"""Steps: what nodes for remote calls do when a program runs.

True only here: the function of each kind of `runtime.rpc.program.kinds`.

Rules:
- what comes back from another worker is held against the type that the program says: a
  future when it is waited for, a reference when it is asked for its value;
- an exception from another worker is raised as it comes, with the frames of the program
  that asked.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from runtime.errors.future import described
from runtime.errors.rpc import RpcMisuse
from runtime.rpc.identities import WorkerInfo
from runtime.rpc.program.boundary import tests
from runtime.rpc.program.calls import called
from runtime.rpc.program.kinds import ASYNC, REMOTE, SYNC
from runtime.rpc.program.surface import Surface
from runtime.schema.types import FutureType, RRefType, Type
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
        "prim::rref_to_here": _value("to_here"),
        "prim::rref_local_value": _value("local_value"),
        "prim::worker_info": _worker,
        **{
            f"prim::rref_{name}": _asked(name)
            for name in ("is_owner", "owner", "owner_name", "confirmed_by_owner")
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
    of, text = _element(type_), str(_element(type_))

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


def _value(name: str) -> Maker:
    """The value of a reference, which is of the type that the program says."""

    def maker(node: Node) -> Function:
        of = node.output.type

        def ask(rref: Any, *timeout: float) -> Any:
            value = getattr(rref, name)(*timeout)
            return checked(value, of, "A reference")

        return ask

    return maker


def _asked(name: str) -> Maker:
    return lambda node: lambda rref: getattr(rref, name)()


def _worker(node: Node) -> Function:
    name = node.attributes["name"]

    def ask(worker: Any) -> Any:
        # A cast may have lied.
        if not isinstance(worker, WorkerInfo):
            raise RpcMisuse(
                call=name, found=described(worker), wanted="a worker: its WorkerInfo"
            )
        return getattr(worker, name)

    return ask
