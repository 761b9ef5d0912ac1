"""The language: what the reference of programs says of remote calls.

The words are here; the names are those of the tables."""

from collections.abc import Callable, Iterable

from runtime.rpc.program.kinds import METHODS, OF_WORKER, WORKER
from runtime.schema.types import Type
from runtime.script.frontend import Section, register_section

_WORDS = (
    "`rpc_async`, `rpc_sync` and `remote` of `runtime.rpc` are special forms: they\n"
    "are known by their objects, whatever they are called. Workers are named by\n"
    "`to`; `d` has arguments by their names, and `f` is a function that is compiled."
)
_FORMS = (
    ("`rpc_async`", "`y = rpc.rpc_async(to, f, (x,), d, 5.0)`", "`Future[T]`"),
    ("`rpc_sync`", "`y = rpc.rpc_sync(to, f, (x,))`", "`T`, what `f` gives"),
    ("`remote`", "`y = rpc.remote(to, f, (x,))`", "`RRef[T]`"),
)
_REFUSED = (
    (
        "an argument by name",
        "`y = rpc.rpc_sync(to, func=f)`",
        "arguments are looked up by their places",
        "Write all of them in their order: worker, function, args, kwargs, timeout.",
    ),
    (
        "a function that is not compiled",
        "`y = rpc.rpc_sync(to, len, (xs,))`",
        "another worker looks for the full name of a compiled one",
        "Write a function that calls it.",
    ),
    (
        "a list as the arguments",
        "`y = rpc.rpc_sync(to, f, [x])`",
        "how many there are has to be known",
        "Write a tuple.",
    ),
    (
        "an argument without default by name",
        "`y = rpc.rpc_sync(to, f, (), d)`",
        "what a dictionary has is known when the program runs",
        "Write the dictionary in the call, or give the argument by its place.",
    ),
    (
        "an `RRef` that is made",
        "`y = rpc.RRef(x)`",
        "a program is given references, and gives them",
        "Take it as a parameter, or let `remote` give one.",
    ),
)


def _shown(given: Type | None) -> str:
    if given is None:
        return "`T`"
    return "`WorkerInfo`" if given is WORKER else f"`{given}`"


def installed() -> Iterable[Callable[[], None]]:
    """Let the reference have it; gives what takes that back."""
    asked = [
        (f"`{name}` of an `RRef[T]`", f"`y = rref.{name}()`", _shown(gives))
        for name, gives in METHODS.items()
    ]
    asked += [
        (f"`{name}` of a `WorkerInfo`", f"`y = rref.owner().{name}`", _shown(gives))
        for name, gives in OF_WORKER.items()
    ]
    tables = (
        (("accepted", "for example", "gives"), [*_FORMS, *asked]),
        (("refused", "for example", "because", "instead"), _REFUSED),
    )
    yield register_section(Section("Remote calls", _WORDS, tables))
