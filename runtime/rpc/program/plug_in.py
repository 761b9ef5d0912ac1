"""The plug-in: what programs get of remote calls, by the area of the compiler.

    Surface    what of remote calls programs see, and the one function that calls
    plug_in    lets programs have it; what comes back takes all of it back

Nothing of the compiler is loaded for it: an area that is not loaded gets its part at
the end of its own loading (`runtime.hooks`).
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from everyorder.runtime.dispatch.registration import Closeable
from everyorder.runtime.hooks import PlugIn, Remove, register_plug_in
from everyorder.runtime.locks import load

# A timeout that nobody gave, as programs for torch write it.
UNSET = -1.0
_HERE = "everyorder.runtime.rpc.program"


class Surface(NamedTuple):
    """What programs see of remote calls.

    The first three are the functions of Python whose names mean a call, the next three
    those that take the name of a function in its place.  `rref` is the class of
    references, `type_of` gives the type of the value of one as a text ("" is unknown).
    `call(mode, to, name, args, kwargs, timeout, type)` makes a call: it gives a future
    where `mode` is "async", the value where it is "sync", and a reference where it is
    "remote".
    """

    rpc_async: Any
    rpc_sync: Any
    remote: Any
    async_by_name: Any
    sync_by_name: Any
    remote_by_name: Any
    rref: type
    type_of: Callable[[Any], str]
    call: Callable[[str, Any, str, tuple[Any, ...], dict[str, Any], float, str], Any]


class PlugIns(Closeable):
    """The parts of the plug-in; `close` takes all of them back."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Iterable[PlugIn]) -> None:
        self._parts = [*parts]

    def close(self) -> None:
        """Take everything back; doing so again is harmless."""
        while self._parts:
            self._parts.pop().close()


def plug_in(surface: Surface) -> PlugIns:
    """Let programs have remote calls."""

    def part(module: str, name: str, *args: Surface) -> Callable[[], Iterable[Remove]]:
        def install() -> Iterable[Remove]:
            found: Iterable[Remove] = getattr(load(f"{_HERE}.{module}"), name)(*args)
            return found

        return install

    parts = {
        "emission": part("forms", "install", surface),
        "running": part("steps", "install", surface),
        "archive": part("kinds", "install_in_text", surface),
        "frontend": part("kinds", "install_in_reference"),
    }
    return PlugIns(
        register_plug_in(f"everyorder.runtime.script.{area}", install)
        for area, install in parts.items()
    )


# Programs have remote calls as soon as somebody may name them: a module that has names
# of ours says so at its end.
_NAMING = "everyorder.runtime.rpc.references", "everyorder.runtime.rpc.api"


def plug_in_workers() -> PlugIns:
    """Let programs have remote calls by the worker of this process."""

    def naming() -> Iterable[Remove]:
        # Who loads references only is not done before both are there.
        load("everyorder.runtime.rpc.api")
        return ()

    def named() -> Iterable[Remove]:
        found: Iterable[Remove] = load(f"{_HERE}.steps").install_here()
        return found

    references, api = _NAMING
    return PlugIns((register_plug_in(references, naming), register_plug_in(api, named)))
