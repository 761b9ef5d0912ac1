"""Plays histories on a dispatcher through public calls, with every law after every
operation.

Operations: `+x` do step x, which may be refused, `-x` undo it, `=x` close it again,
`?k,l` call `d::f` with a tensor of these keys (`?raise`: on the CPU, and the kernel
raises), `@` look around without calling.  What a step registers is the table `STEPS`.
"""

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from everyorder.invariants import (
    Call,
    Change,
    Operation,
    Run,
    Surroundings,
    Violation,
    check,
    check_run,
    check_step,
    forget,
    surroundings,
)
from everyorder.runtime.dispatch import Dispatcher, Library, Registration, fallthrough
from everyorder.runtime.dispatch.registration_record import RegistrationRecord
from everyorder.runtime.dispatch.watch import DEPTH
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.keys import LOCAL, DispatchKey, KeySet, include_keys
from everyorder.runtime.tensors.keys import STATE


@dataclass
class Held:
    """What a step left open."""

    close: Callable[[], None]
    tokens: tuple[RegistrationRecord, ...]
    libraries: list[Library]
    kernels: list[tuple[str, "weakref.ref[Any]"]]


class Listener:
    """Hears everything and does nothing."""

    def on_operator_registered(self, name: Any, schema: Any) -> None:
        """Nothing."""

    def on_operator_deregistered(self, name: Any, schema: Any) -> None:
        """Nothing."""


Make = Callable[["Driver", str], Registration | Library]


def _kernel(key: str | list[str], op: str = "f") -> Make:
    def make(driver: "Driver", name: str) -> Registration:
        return driver.library().impl(op, driver.kernel(name), key, debug=name)

    return make


def _through(key: str) -> Make:
    def make(driver: "Driver", name: str) -> Registration:
        return driver.library().impl("f", fallthrough, key, debug=name)

    return make


def _typed(function: Any) -> Make:
    def make(driver: "Driver", name: str) -> Registration:
        return driver.library().impl("f", function, "CPU", debug=name)

    return make


def _define(schema: str, kernel: Any = None) -> Make:
    def make(driver: "Driver", name: str) -> Registration:
        return driver.library().define(schema, debug=name, kernel=kernel)

    return make


def _fallback(key: str, kernel: Any = None) -> Make:
    def make(driver: "Driver", name: str) -> Registration:
        library = driver.library("_", "IMPL")
        return library.fallback(kernel or driver.kernel(name), key, debug=name)

    return make


def _claim(namespace: str) -> Make:
    def make(driver: "Driver", name: str) -> Library:
        return driver.library(namespace, "DEF", name)

    return make


def _listen(driver: "Driver", name: str) -> Registration:
    return driver.dispatcher.add_listener(Listener(), name)


def _reserve(driver: "Driver", name: str) -> Registration:
    return driver.library(origin=name).reserve("f")


def _rule(driver: "Driver", name: str) -> Registration:
    return driver.library().rule("f", Listener, driver.kernel(name), debug=name)


def _group(driver: "Driver", name: str) -> Library:
    library = driver.library(origin=name)
    library.impl("f", driver.kernel("group_cpu"), "CPU", debug="group_cpu")
    library.impl("f", driver.kernel("group_cuda"), "CUDA", debug="group_cuda")
    return library


def one_tensor(x: "Tensor") -> None:  # type: ignore[name-defined]  # noqa: F821  # a registered name
    """A typed kernel that fits `def`."""


def one_int(x: int) -> None:
    """A typed kernel that does not."""


STEPS: dict[str, Make] = {
    "def": _define("f(Tensor x) -> ()"),
    "def2": _define("f(Tensor x) -> ()"),
    "deflists": _define("f(Tensor[] x, Tensor? y, Tensor?[] z, Tensor[]? n) -> ()"),
    "defout": _define("f.out(Tensor x) -> ()"),
    "defg": _define("g(Tensor x) -> ()"),
    "pair": _define("f(Tensor x) -> ()", one_tensor),
    "badpair": _define("f(Tensor x) -> ()", one_int),
    "typed": _typed(one_tensor),
    "typed2": _typed(one_int),
    "reserve": _reserve,
    "rule": _rule,
    "rule2": _rule,
    "listen": _listen,
    "listen2": _listen,
    "listen3": _listen,
    "group": _group,
    "claima": _claim("alpha"),
    "claimz": _claim("zeta"),
    "cpu": _kernel("CPU"),
    "cpu2": _kernel("CPU"),
    "cpu3": _kernel("CPU"),
    "cuda": _kernel("CUDA"),
    "cpug": _kernel("CPU", "g"),
    "cpu_cuda": _kernel(["CPU", "CUDA"]),
    "autogradcpu": _kernel("AutogradCPU"),
    "sparse": _kernel("SparseCPU"),
    "block": _kernel("Sparse"),
    "ci": _kernel("CompositeImplicitAutograd"),
    "ce": _kernel("CompositeExplicitAutograd"),
    "autograd": _kernel("Autograd"),
    "nested": _kernel("CompositeImplicitAutogradNestedTensor"),
    "batched": _kernel("FuncTorchBatchedDecomposition"),
    "throughcpu": _through("AutogradCPU"),
    "throughother": _through("AutogradOther"),
    "fallcpu": _fallback("CPU"),
    "fallthrough": _fallback("CompositeExplicitAutograd", fallthrough),
}


class Driver:
    """A fresh dispatcher, what is open on it, and what the laws said."""

    def __init__(self, *, merges: bool = False, blind: bool = False) -> None:
        forget()
        self.dispatcher = Dispatcher(
            warns_of_overrides=False, merges_alias_kinds=merges
        )
        self.blind = blind
        self.start = self.dispatcher.snapshot()
        self.held: dict[str, Held] = {}
        self.closed: dict[str, Held] = {}
        self.gone: list[tuple[str, weakref.ref[Any]]] = []
        self.calls: list[Call] = []
        self.operations: list[Operation] = []
        self.found: list[Violation] = []
        self._libraries: list[Library] = []
        self._new: list[tuple[str, weakref.ref[Any]]] = []
        self._inside: list[tuple[str, Surroundings]] = []
        self._raise = False

    def library(
        self, namespace: str = "d", kind: str = "FRAGMENT", origin: str = "driver"
    ) -> Library:
        """A library on this dispatcher, held by the step that asked for it."""
        made = Library(namespace, kind, dispatcher=self.dispatcher, origin=origin)
        self._libraries.append(made)
        return made

    def kernel(self, name: str) -> Callable[..., None]:
        """A kernel that only this driver's registrations keep alive."""

        # Without annotations: an annotated kernel is a typed one.
        def run(*_arguments, **_named):  # type: ignore[no-untyped-def]
            self._inside.append((name, self.sample()))
            if self._raise:
                with include_keys(DispatchKey.Tracer):
                    raise ZeroDivisionError

        self._new.append((name, weakref.ref(run)))
        return run

    def sample(self) -> Surroundings:
        """What surrounds us now."""
        return surroundings(LOCAL, DEPTH, self.dispatcher._lock, STATE)

    def play(self, history: str) -> list[Violation]:
        """Play operations, up to the first that breaks a law; the violations."""
        for operation in history.split():
            self.found += self._operation(operation[0], operation[1:])
            if self.found:
                break
        return self.found

    def finish(self) -> list[Violation]:
        """Judge the run as it is and with everything closed; the violations."""
        self.found += self._run_laws(())
        self.play(" ".join(f"-{name}" for name in self.held))
        # States keep kernels alive, and callers and entries are cycles.
        self.closed.clear()
        self.calls.clear()
        gc.collect()
        return self.found or self._run_laws(tuple(self.gone))

    def _run_laws(
        self, gone: tuple[tuple[str, "weakref.ref[Any]"], ...]
    ) -> list[Violation]:
        tokens = [token for held in self.held.values() for token in held.tokens]
        end, calls = self.dispatcher.snapshot(), tuple(self.calls)
        operations = tuple(self.operations)
        return check_run(Run(self.start, end, tuple(tokens), calls, gone, operations))

    def _operation(self, kind: str, name: str) -> list[Violation]:
        before, early = self.dispatcher.snapshot(), self.sample()
        tokens: tuple[RegistrationRecord, ...] | None = None
        change: Change
        if kind == "+":
            change = "add"
            try:
                held = self.held[name] = self._do(name)
                tokens = held.tokens
            except EveryorderError as error:
                error.__traceback__ = None
                change = "fail"
        elif kind == "-":
            change = "remove"
            held = self.closed[name] = self.held.pop(name)
            held.close()
            tokens, self.gone = held.tokens, self.gone + held.kernels
        elif kind == "=":
            change = "again"
            self.closed[name].close()
        elif kind == "?":
            change = "use"
            self._call(name)
        else:
            change = "use"
            self._look()
        after = self.dispatcher.snapshot()
        if kind != "?":
            self.operations.append(Operation(f"{kind}{name}", early, self.sample()))
        if self.blind:
            tokens = None
        found = check(after, since=before) + check_step(before, after, change, tokens)
        return found + [each for each in check(after) if each not in found]

    def _do(self, name: str) -> Held:
        self._new, self._libraries = [], []
        made = STEPS[name](self, name)
        return Held(made.close, made.tokens, self._libraries, self._new)

    def _call(self, keys: str) -> None:
        self._raise = keys == "raise"
        names = ["CPU"] if self._raise else keys.split(",")
        bits = KeySet(DispatchKey.parse(name) for name in names).bits
        handle = self.dispatcher.find_op("d::f")
        state, before = self.dispatcher.snapshot(), self.sample()
        self._inside = []
        try:
            if handle is not None:
                with self.dispatcher.trace():
                    handle(SimpleNamespace(key_bits=bits))
        except (EveryorderError, ZeroDivisionError) as error:
            error.__traceback__ = None
        ran = self._inside[0][0] if self._inside else None
        inside = tuple(sample for _, sample in self._inside)
        after = self.sample()
        self.calls.append(Call("d::f", state, bits, before, after, inside, ran))

    def _look(self) -> None:
        dispatcher = self.dispatcher
        for name in ("d::f", "d::f.out", "d::g", "d::none"):
            dispatcher.find_op(name)
            dispatcher.find_schema(name)
            dispatcher.dump_state(name)
            dispatcher.dump_table(name)
        dispatcher.dangling_impls()
        dispatcher.registrations_for("CPU")


def play(history: str, *, merges: bool = False, blind: bool = False) -> list[Violation]:
    """A whole run of a history on a fresh dispatcher; what its first broken operation
    broke.

    `merges` turns the 2020 rule on; a `blind` run does not tell the laws of a step
    which registrations a step owns.
    """
    driver = Driver(merges=merges, blind=blind)
    return driver.play(history) or driver.finish()
