"""A teaching tool: which kernel each key gets, for a choice of registered keys.

The idea: nothing is modelled.  A real dispatcher with one operator is filled through a
real library, and its dumps are shown, cut down to a few keys.

>>> tool = PythonDispatcher()
>>> tool.register(["CPU", "CompositeImplicitAutograd"])
>>> print(tool.dispatch_table())

Rules:
- `register` replaces what was registered before;
- a kernel is described as `fn_` and its key; built-in fallbacks have no description;
- the column format is upstream's (a data format).
"""

from collections.abc import Iterable

from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.errors.registration import LibraryMisuse
from everyorder.runtime.keys import DispatchKey

# One backend with a key of its own for autograd, one without, and two out of tree.
RUNTIME_KEYS = (
    *("CPU", "AutogradCPU", "FPGA", "AutogradOther"),
    *("XLA", "AutogradXLA", "Lazy", "AutogradLazy"),
)
ALIAS_KEYS = ("CompositeExplicitAutograd", "Autograd", "CompositeImplicitAutograd")

# Rows in the order in which a reader asks: the backends, then their autograd keys.
_ROWS = (
    *("CPU", "XLA", "Lazy", "FPGA"),
    *("AutogradOther", "AutogradCPU", "AutogradXLA", "AutogradLazy"),
)
# These two overlap everywhere, and which wins is no lesson for beginners.
_APART = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")

_OPERATOR = "teaching::foo"
# How the built-in fallbacks describe themselves (see `dispatcher`).
_BUILT_IN = "built in "


def _identity(x: "Tensor") -> "Tensor":  # type: ignore[name-defined]  # noqa: F821  # read by name
    return x


class PythonDispatcher:
    """One operator, `foo(Tensor x) -> Tensor`, and the keys it has kernels for."""

    __slots__ = ("_dispatcher", "_library")

    def __init__(self) -> None:
        self._dispatcher = Dispatcher()
        self._library = self._defined()

    def keys(self) -> tuple[str, ...]:
        """The keys that `register` takes."""
        return RUNTIME_KEYS + ALIAS_KEYS

    def register(self, keys: Iterable[DispatchKey | str]) -> None:
        """Register one kernel for each key, in place of all earlier ones.

        Raises:
            LibraryMisuse: a key is given twice, is none of `keys()`, or both composites
                are asked for; what was registered stays.
            LookupFailed: no dispatch key has that name.
        """
        chosen = [
            (key if isinstance(key, DispatchKey) else DispatchKey.parse(key)).name
            for key in keys
        ]
        self._check(chosen)
        self._library.close()
        self._library = self._defined()
        for key in chosen:
            self._library.impl("foo", _identity, key, debug=f"fn_{key}")

    def registrations(self) -> str:
        """The registered kernels by key."""
        lines = self.raw_registrations().splitlines()[4:]
        rows = [line.partition(" :: ")[0].split(": ", 1) for line in lines]
        return _block("Registered Kernels", rows)

    def dispatch_table(self) -> str:
        """What each runtime key of the tool runs, and why."""
        lines = self.raw_dispatch_table().splitlines()
        held = dict(line.split(": ", 1) for line in lines)
        rows = [[key, held[key].replace(_BUILT_IN, "")] for key in _ROWS if key in held]
        return _block("Computed Dispatch Table", rows)

    def raw_registrations(self) -> str:
        """See `Dispatcher.dump_state`."""
        return self._dispatcher.dump_state(_OPERATOR)

    def raw_dispatch_table(self) -> str:
        """See `Dispatcher.dump_table`."""
        return self._dispatcher.dump_table(_OPERATOR)

    def _defined(self) -> Library:
        library = Library(
            "teaching", "FRAGMENT", dispatcher=self._dispatcher, origin="teaching tool"
        )
        library.define("foo(Tensor x) -> Tensor")
        return library

    def _check(self, chosen: list[str]) -> None:
        twice = sorted({key for key in chosen if chosen.count(key) > 1})
        unknown = sorted(set(chosen).difference(self.keys()))
        if twice:
            reason = f"each key has one kernel, but {', '.join(twice)} came twice"
            remedy = "Name every key once."
        elif unknown:
            reason = f"the tool does not show {', '.join(unknown)}"
            remedy = f"Keys: {', '.join(self.keys())}."
        elif set(_APART) <= set(chosen):
            reason = f"{' and '.join(_APART)} are alternatives"
            remedy = "Take the one, or the other."
        else:
            return
        raise LibraryMisuse(
            code="CallRefused",
            call=f"register({chosen})",
            library="PythonDispatcher()",
            reason=reason,
            remedy=remedy,
        )


def _block(title: str, rows: list[list[str]]) -> str:
    lines = ["", title, f"{'key':<15} kernel", "-" * 27]
    lines += [f"{key:<15} {kernel}" for key, kernel in rows]
    return "\n".join(lines) + "\n"
