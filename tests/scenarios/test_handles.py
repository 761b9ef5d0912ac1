"""Handles: all that an operator can be asked and called by.

A handle is a name, so each of these answers follows what is live; the handle itself is
the same one before, in between and after.
"""

from copy import copy, deepcopy
from functools import partial
from importlib import import_module
from pickle import dumps, loads
from typing import Any

import everyorder.runtime.bootstrap  # noqa: F401  # registers `core` on the default dispatcher
from everyorder.harness.scenario import Scenario, define, fallback, impl, reserve
from everyorder.harness.scenario.effects import probe_tensor
from everyorder.runtime.dispatch import Dispatcher, default_dispatcher, fallthrough
from everyorder.runtime.dispatch.handle import (
    PROVIDERS,
    OperatorHandle,
    OperatorPacket,
    load_operator,
)
from everyorder.runtime.keys import DispatchKey, KeySet, exclude_keys, include_keys
from everyorder.runtime.schema import parse_name
from tests.scenarios.asking import Question, answer, ask, asked, handle
from tests.scenarios.kernels import (
    all_spelled,
    composed,
    on_cpu,
    pair,
    spelled,
    spelled_anew,
    spelled_fallback,
    spelled_keyed,
    typed_spelled,
)

_X = probe_tensor("cpu")
_CPU = KeySet(DispatchKey.CPU)


def _f(question: Any, name: str = "tree::leaf") -> Question:
    """A question about the operator."""
    return lambda target: question(handle(target, name))


# Names, schema and tags: of an operator, of a mere name, of nothing.
what_it_is = Scenario(
    define("tree::leaf(Tensor x) -> Tensor", tags=("core", "pointwise")),
    reserve("tree::leaf"),
    impl("tree::leaf", on_cpu, "CPU"),
    **asked(
        ask(
            "tree::leaf",
            _f(lambda op: (op.has_schema, op.schema, op._schema is op.schema)),
            _f(lambda op: (op.tags, op.is_view, op.schemas())),
            _f(lambda op: (op.namespace, op.overload, op.__name__, op.__module__)),
            _f(lambda op: (str(op), repr(op), str(op.overloadpacket))),
            _f(lambda op: repr(op.overloadpacket)),
            _f(lambda op: (op.entry.total, op.entry.definition is None)),
            _f(lambda op: op.dump_state() == op.dispatcher.dump_state("tree::leaf")),
            _f(lambda op: op.dump_table() == op.dispatcher.dump_table("tree::leaf")),
            _f(lambda op: op.reading.text),
            lambda target: target.find_op("tree::leaf"),
            _f(lambda op: op.dispatcher.find_op("tree::leaf") is op),
        )
    ),
)

# Kernels by key: direct ones, those that the table computed, and keys that have none.
kernels_by_key = Scenario(
    define("tree::leaf(Tensor x) -> Tensor"),
    impl("tree::leaf", on_cpu, "CPU"),
    impl("tree::leaf", composed),
    **asked(
        ask(
            "tree::leaf.has_kernel(...)",
            _f(lambda op: (op.has_kernel("CPU"), op.has_kernel(DispatchKey.CUDA))),
            _f(lambda op: op.has_kernel("CompositeImplicitAutograd")),
            _f(lambda op: (op.has_computed_kernel("CPU"), op.has_kernel("Autograd"))),
            _f(lambda op: op.has_computed_kernel(DispatchKey.CUDA)),
            _f(lambda op: op.has_computed_kernel("Undefined")),
            _f(lambda op: op.has_computed_kernel("Autograd")),
            _f(lambda op: op.has_computed_kernel("Dense")),
            _f(lambda op: op.has_kernel("CPUU")),
        )
    ),
)

_LONG = "tree::leaf(Tensor x, int n=1, *, Tensor? y=None) -> str"

# All ways of calling: by name, boxed, bound only; each gives the kernel the same.
ways_of_calling = Scenario(
    define(_LONG),
    impl("tree::leaf", spelled, "CPU"),
    impl("tree::leaf", spelled_keyed, "CUDA", with_keyset=True),
    **asked(
        ask(
            "tree::leaf(...)",
            _f(lambda op: op(_X, 2, y=_X)),
            _f(lambda op: op.call(n=3, x=_X)),
            _f(lambda op: op.call_boxed([_X, 4, None])),
            _f(lambda op: op.call_boxed([_X])),
            _f(lambda op: op.call_boxed([_X, 1, None, 5])),
            _f(lambda op: op.call_boxed([])),
            _f(lambda op: op.bind((_X,), {"y": _X})),
            _f(lambda op: op.normalize((_X,), {})),
            _f(lambda op: op.redispatch(KeySet(DispatchKey.CUDA), _X, 2)),
            _f(lambda op: op.redispatch_boxed(KeySet(DispatchKey.CUDA), [_X, 2, _X])),
            _f(lambda op: op.redispatch(KeySet(DispatchKey.AutogradCPU), _X)),
            _f(lambda op: op.redispatch(KeySet(), _X)),
        )
    ),
)

# What kernels of each kind are given: everything, what differs from its default, a
# keyset first; and what a call looks like with keys included, and excluded.
what_kernels_get = Scenario(
    define(_LONG),
    impl("tree::leaf", typed_spelled, "CPU"),
    impl("tree::leaf", all_spelled, "CUDA"),
    **asked(
        ask(
            "tree::leaf(...) on CPU, CUDA",
            _f(lambda op: op(_X, y=_X)),
            _f(lambda op: op(probe_tensor("cuda below autograd"), y=_X)),
            _f(lambda op: op(probe_tensor("meta"))),
            _f(lambda op: _with(exclude_keys([DispatchKey.CPU]), op)),
            _f(lambda op: _with(exclude_keys([DispatchKey.AutogradCPU]), op)),
            _f(lambda op: _with(include_keys(DispatchKey.CUDA), op)),
            _f(lambda op: _with(include_keys(DispatchKey.Tracer), op)),
        )
    ),
)


def _with(context: Any, op: Any) -> Any:
    with context:
        return op(_X)


# For one key: its kernel, else its fallback, else nothing; the keyset is the call's.
calls_for_a_key = Scenario(
    impl("tree::leaf", spelled_keyed, "CPU", with_keyset=True),
    impl("tree::leaf", spelled_anew, "Autograd"),
    fallback(spelled_fallback, "Meta"),
    fallback(fallthrough, "XLA"),
    given=[define("tree::leaf(Tensor x) -> str")],
    **asked(
        ask(
            "tree::leaf.call_for_key(...)",
            *(
                _f(lambda op, key=key: op.call_for_key(key, [_X]))
                for key in ("CPU", DispatchKey.Autograd, "Meta", "XLA", "AutogradCPU")
            ),
            _f(lambda op: op.call_for_key("Undefined", [_X])),
            _f(lambda op: op.call_for_key("CPU", [])),
        )
    ),
)

# Several results, one, none, and as many as there are: a boxed call gives a list.
results = Scenario(
    impl("tree::none", lambda *given: None, "CPU"),
    impl("tree::two", pair, "CPU"),
    impl("tree::any", spelled, "CPU"),
    given=[
        define("tree::none(Tensor x) -> ()"),
        define("tree::two(Tensor x) -> (Tensor, Tensor)"),
        define("tree::any(Tensor x) -> ..."),
    ],
    **asked(
        ask(
            "call_boxed(...)",
            *(
                _f(lambda op: (op.call_boxed([_X]), op(_X)), f"tree::{name}")
                for name in ("none", "two", "any")
            ),
        )
    ),
)


def _copied(op: Any) -> list[object]:
    packet = op.overloadpacket
    return [
        *(copy(op) is op, deepcopy(op) is op, copy(packet) is packet),
        *(deepcopy([packet])[0] is packet, str(packet), packet.overloads()),
    ]


def _provided(target: Dispatcher) -> list[str]:
    """Unpickling loads what provides the operator, if it is one of the runtime's."""
    name = parse_name("tree::leaf")
    found = []
    for provider in ({}, {"tree": partial(import_module, "no.such.module")}):
        with PROVIDERS.register_all(provider):
            found += [
                answer(partial(load_operator, kind, target, name))
                for kind in (OperatorHandle, OperatorPacket)
            ]
    return found


def _pickled(target: Dispatcher) -> list[object]:
    operator = default_dispatcher().find_op("core::neg")
    packet = operator.overloadpacket if operator else None
    return [
        loads(dumps(operator)) is operator,
        loads(dumps(packet)) is packet,
        answer(lambda: dumps(handle(target, "tree::leaf"))),
        target.find_op("tree::leaf"),
    ]


# A copy is the operator itself, and so is what was pickled, but for a private
# dispatcher, which another process does not know.
copies = Scenario(
    define("tree::leaf(Tensor x) -> Tensor"),
    define("tree::leaf.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)"),
    **asked(ask("copy(tree::leaf)", _f(_copied), _provided, _pickled)),
)
