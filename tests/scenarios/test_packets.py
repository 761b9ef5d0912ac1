"""Operators by attribute: `ops.<namespace>.<operator>`, with all its overloads.

Which overload a call takes is the first by name that its arguments fit, whatever the
order of registration.
"""

from collections.abc import Callable
from copy import copy
from importlib import import_module
from inspect import signature
from typing import Any

from everyorder.harness.scenario import Scenario, define, impl, listen, reserve
from everyorder.harness.scenario.effects import probe_tensor
from everyorder.runtime.base.registry import Registry
from everyorder.runtime.dispatch import Dispatcher, Operators
from tests.scenarios.asking import ask, asked, often
from tests.scenarios.kernels import composed, on_cpu, spelled, spelled_anew

_CE = "CompositeExplicitAutograd"
_X = probe_tensor("cpu")


def _missing() -> None:
    """Provide a namespace by a module that does not exist."""
    import_module("no.such.module")


def _packet(target: Dispatcher, name: str = "power") -> Any:
    return getattr(Operators(lambda: target).math, name)


def _calls(*args: Any, **kwargs: Any) -> Any:
    return often(lambda target: _packet(target)(*args, **kwargs))


_chosen = ask(
    "ops.math.power(...)",
    _calls(_X),
    _calls(_X, 2),
    _calls(_X, 2.5),
    _calls(_X, n=2),
    _calls("text"),
    _calls(_X, 2, 3),
)

# An integer fits `number` and `real`: the first by name is called, unless it is gone.
first_that_fits = Scenario(
    define("math::power(Tensor x) -> str", kernel=spelled),
    define("math::power.number(Tensor x, int n) -> str", kernel=spelled),
    define("math::power.real(Tensor x, float n) -> str", kernel=spelled_anew),
    **asked(_chosen),
)

# Overloads without a kernel are chosen all the same; those without a schema are not.
chosen_by_schema = Scenario(
    define("math::power.number(Tensor x, int n) -> str"),
    impl("math::power", spelled, _CE),
    define("math::power.real(Tensor x, float n) -> str", kernel=spelled_anew),
    **asked(_chosen),
)


def _overload(name: str) -> Any:
    return lambda target: getattr(_packet(target), name).name


# What there is, by name: the unnamed overload is `default`, misspelled ones are near.
overloads_by_name = Scenario(
    define("math::power(Tensor x) -> Tensor"),
    define("math::power.number(Tensor x, int n) -> Tensor"),
    impl("math::power.kernel_only", on_cpu, "CPU"),
    given=[reserve("math::root")],
    **asked(
        ask(
            "ops.math.power.*",
            _overload("default"),
            _overload("number"),
            _overload("numbre"),
            _overload("kernel_only"),
            _overload("__deepcopy_me__"),
            lambda target: _packet(target).overloads(),
            lambda target: [n for n in dir(_packet(target)) if n[0] in "dkn"],
        )
    ),
)

# A name that is no operator, or not any more; names that are near, sorted.
operators_by_name = Scenario(
    define("math::power(Tensor x) -> Tensor"),
    define("math::powers(Tensor x) -> Tensor"),
    define("text::power(Tensor x) -> Tensor"),
    given=[impl("math::pow", composed)],
    **asked(
        ask(
            "ops.math.*",
            lambda target: _packet(target, "power").__name__,
            lambda target: _packet(target, "pow"),
            lambda target: _packet(target, "powre"),
            lambda target: str(_packet(target)),
            lambda target: repr(_packet(target)),
            lambda target: repr(Operators(lambda: target).math),
            lambda target: repr(Operators(lambda: target)),
            lambda target: [
                n for n in dir(Operators(lambda: target).math) if n[0] in "pm"
            ],
            lambda target: sorted({"math", "text"} & {*dir(Operators(lambda: target))}),
            lambda target: Operators(lambda: target)._private,
            # What `copy` asks of an object before it has its attributes.
            lambda target: repr(copy(Operators(lambda: target)).math),
            # What provides a namespace is loaded when it is asked for.
            lambda target: Operators(lambda: target, _providing(_missing)).math,
        )
    ),
)


def _providing(load: Callable[[], object]) -> Registry[str, Callable[[], object]]:
    return Registry("providers", {"math": load})


def _found_then(target: Dispatcher) -> list[str]:
    """A packet and a handle that are kept, and what is found again."""
    ops = Operators(lambda: target)
    packet = ops.math.power
    kept = packet.default
    return [
        f"the same packet: {ops.math.power is packet is kept.overloadpacket}",
        f"the same handle: {packet.default is kept}",
        f"the same namespace: {ops.math is ops.math}",
        f"remembered: {'default' in vars(packet)}",
    ]


def _lasting(target: Dispatcher) -> list[bool]:
    """What a namespace of the runtime's own remembers."""
    ops = Operators(lambda: target, _providing(lambda: None))
    packet = ops.math.power
    return [
        *("math" in vars(ops), "power" in vars(ops.math), ops.math is ops.math),
        *("default" in vars(packet), bool(packet.default), "default" in vars(packet)),
    ]


# One packet and one handle of a name, as long as somebody keeps them.
kept_by_name = Scenario(
    define("math::power(Tensor x) -> Tensor"),
    define("math::power.number(Tensor x, int n) -> Tensor"),
    listen(),
    **asked(ask("ops.math.power, again", _found_then, _lasting)),
)


def _of(name: str, overload: str = "") -> Any:
    def found(target: Dispatcher) -> Any:
        packet = _packet(target, name)
        return getattr(packet, overload) if overload else packet

    return found


def _signature(name: str, overload: str = "") -> Any:
    return lambda target: str(signature(_of(name, overload)(target)))


def _documentation(name: str, overload: str = "") -> Any:
    return lambda target: _of(name, overload)(target).__doc__


# The signature is that of the only schema; several, or none, take anything.
signatures = Scenario(
    define("math::power(Tensor x, *, int n=2) -> Tensor"),
    define("math::power.number(Tensor x, int n) -> Tensor"),
    define("math::wide(int from=1, Tensor? to=None, *, bool lambda, Device d) -> ()"),
    given=[
        impl("math::power.kernel_only", on_cpu, "CPU"),
        define("math::rest(Tensor x, str mode, ...) -> Tensor"),
    ],
    **asked(
        ask(
            "signature(ops.math.*)",
            _signature("power"),
            _signature("power", "default"),
            _documentation("power"),
            _documentation("power", "number"),
            _signature("wide"),
            _documentation("wide"),
            _signature("rest", "default"),
        )
    ),
)
