"""Calls again and again: what makes them fast never makes them differ.

After a few calls an operator gets a call stub, a function with its own parameters.
Each call here is made so often that there is one, under every set of registrations, and
its answer is that of the first call.
"""

from typing import Any

from everyorder.harness.scenario import Scenario, define, fallback, impl
from everyorder.harness.scenario.effects import probe_tensor
from everyorder.runtime.dispatch import Dispatcher, fallthrough
from everyorder.runtime.keys import DispatchKey, exclude_keys
from tests.scenarios.asking import Question, ask, asked, handle, often
from tests.scenarios.kernels import (
    pair,
    spelled,
    spelled_anew,
    spelled_fallback,
    spelled_keyed,
    stack_greedy,
    stack_spelled,
    typed_spelled,
)

_X, _Y = probe_tensor("cpu"), probe_tensor("cpu below autograd")
_CUDA = probe_tensor("cuda")
_CE = "CompositeExplicitAutograd"


def _f(*args: Any, **kwargs: Any) -> Question:
    return often(lambda target: handle(target, "tree::fold")(*args, **kwargs))


_WIDE = "Tensor x, int[2] s=1, Tensor? y=None, *, Scalar alpha=1, str mode='m'"

# Every way of writing a call: by position and by name, with defaults, lists, numbers.
ways_of_writing = Scenario(
    define(f"tree::fold({_WIDE}) -> str"),
    impl("tree::fold", spelled, "CPU"),
    impl("tree::fold", spelled_anew, "AutogradCPU"),
    **asked(
        ask(
            "tree::fold(...), warm",
            _f(_X),
            _f(x=_X),
            _f(_X, [3, 4]),
            _f(_X, 3, _Y),
            _f(_X, s=(5, 6), alpha=2),
            _f(y=_X, x=_Y, mode="a"),
            _f(_X, 1, None, alpha=2.5),
        )
    ),
)

# What cannot be bound, also when calls are warm: the same words as at first.
what_is_refused = Scenario(
    define("tree::fold(Tensor x, int n=1, *, str mode) -> str", kernel=spelled),
    define("tree::fold(Tensor x, int n, *, str mode) -> str", kernel=spelled_anew),
    **asked(
        ask(
            "tree::fold(what does not fit), warm",
            _f(_X, 2, mode="a"),
            _f(_X, 2),
            _f(_X, mode="a"),
            _f(mode="a"),
            _f(_X, 2, 3, mode="a"),
            _f(_X, 2, n=2, mode="a"),
            _f(_X, 2, mode="a", more=1),
            _f("no tensor", 2, mode="a"),
            _f(None, 2, mode="a"),
            _f(_X, "two", mode="a"),
            _f(_X, 2, mode=3),
        )
    ),
)

# Lists of tensors, with and without None, and none at all: the keys of all are joined.
lists_of_tensors = Scenario(
    impl("tree::fold", spelled, "CPU"),
    impl("tree::fold", spelled_anew, "CUDA"),
    fallback(fallthrough, "Tracer"),
    given=[define("tree::fold(Tensor[] x, Tensor?[] y, Tensor? z=None) -> str")],
    **asked(
        ask(
            "tree::fold([...]), warm",
            _f([_X], []),
            _f([_X, _CUDA], []),
            _f([_X], [None, _CUDA]),
            _f([_X], [None], _CUDA),
            _f([], []),
            _f([probe_tensor("CPU+Tracer")], []),
            _f([_X, 3], []),
        )
    ),
)


# Types of elements and devices are objects to a kernel, however they are written.
codes_as_objects = Scenario(
    define("tree::fold(*, ScalarType dtype=float, Device device='cpu') -> str"),
    impl("tree::fold", spelled, _CE),
    impl("tree::fold", stack_spelled, "CompositeExplicitAutogradNonFunctional"),
    **asked(
        ask(
            "tree::fold(dtype=...), warm",
            _f(),
            _f(device="meta"),
            _f(dtype=6),
            _f(dtype="no type"),
            _f(device="no device"),
        )
    ),
)

# Numbers that stand for tensors, where the tag says so and nowhere else.
numbers_for_tensors = Scenario(
    define("tree::fold(Tensor x, Tensor y) -> str", tags=("numbers_as_tensors",)),
    define("tree::fold(Tensor x, Tensor y) -> str", tags=("defined_tensors",)),
    impl("tree::fold", spelled, "CPU"),
    **asked(
        ask(
            "tree::fold(x, number), warm",
            _f(_X, _Y),
            often(lambda target: _shape_of_last(target, 2.5)),
            _f(_X, None),
            _f(_X, "2"),
        )
    ),
)


def _shape_of_last(target: Dispatcher, number: float) -> str:
    bound = handle(target, "tree::fold").bind((_X, number), {})
    return f"{bound[1].shape}"


# Kernels of every convention below one call stub: keysets, the stack, fallbacks.
conventions = Scenario(
    impl("tree::fold", spelled_keyed, "CPU", with_keyset=True),
    impl("tree::fold", stack_spelled, "CUDA"),
    fallback(spelled_fallback, "Meta"),
    given=[
        define("tree::fold(Tensor x, int n=1, Tensor? y=None) -> str"),
        impl("tree::fold", typed_spelled, "XLA"),
        impl("tree::fold", stack_greedy, "Lazy"),
    ],
    **asked(
        ask(
            "tree::fold(...) by convention, warm",
            *(
                _f(probe_tensor(keys), 2)
                for keys in ("CPU+AutogradCPU", "CUDA", "Meta", "XLA", "Lazy")
            ),
        )
    ),
)


def _under_keys(target: Dispatcher) -> list[str]:
    op = handle(target, "tree::fold")
    seen = []
    for _ in range(3):
        seen.append(op(_X))
        with exclude_keys([DispatchKey.AutogradCPU]):
            seen.append(op(_X))
    return list(dict.fromkeys(seen))


# A thread's keys count at each call, and so does what is registered since the last.
keys_of_the_thread = Scenario(
    impl("tree::fold", spelled, "CPU"),
    impl("tree::fold", spelled_anew, "AutogradCPU"),
    impl("tree::fold", fallthrough, "AutogradCPU"),
    given=[define("tree::fold(Tensor x) -> str")],
    order_dependent="the newest kernel of a key is in force, older ones come back",
    **asked(ask("tree::fold(x), with and without autograd", _under_keys)),
)

_TWO = "tree::pair(Tensor x) -> (Tensor, Tensor)"


def _pair(*args: Any) -> Question:
    return often(lambda target: handle(target, "tree::pair")(*args))


# Several results, and a kernel that gives too few, too many, or none.
results = Scenario(
    define(_TWO),
    impl("tree::pair", pair, "CPU"),
    impl("tree::pair", spelled, "CUDA"),
    impl("tree::pair", lambda x: [x, x], "Meta"),
    **asked(
        ask(
            "tree::pair(...), warm",
            *(_pair(probe_tensor(kind)) for kind in ("cpu", "cuda", "meta")),
            often(
                lambda target: handle(target, "tree::pair").call_boxed(
                    [probe_tensor("cpu")]
                )
            ),
        )
    ),
)
