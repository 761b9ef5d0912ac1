"""Compiled groups: when the kernel runs, and that nobody can tell when it does not."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.dispatch.library import KernelOverridden, Library
from everyorder.runtime.dispatch.watch import WATCH
from everyorder.runtime.errors.tensor import DTypeRefused
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.script.executor import fused_kernel, fusion
from everyorder.runtime.script.executor.fusion import FusedGroup
from everyorder.runtime.script.primitives.operator_calls import is_own
from everyorder.runtime.torch_dispatch import TorchDispatchMode
from tests.script.fusion.chains import bits_of, fused, group_of, groups_of, tensor_of

PAIR = """\
graph(%x.1 : Tensor, %y.1 : Tensor):
  %o.1 : int = prim::Constant[value=1]()
  %a.1 : Tensor = core::add(%x.1, %y.1, %o.1)
  %b.1 : Tensor = core::relu(%a.1)
  return (%b.1)
"""


@pytest.fixture
def pair() -> FusedGroup:
    """A group that has been run once as a kernel."""
    x, y = tensor_of("float32", 1_000), tensor_of("float32", 1_000, 1)
    group = group_of(PAIR, (x, y))
    group(x, y)
    assert group.kernels == 1
    return group


class Quiet(TorchDispatchMode):
    """Counts the operators that it sees."""

    count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def given() -> tuple[Any, Any]:
    return tensor_of("float32", 1_000), tensor_of("float32", 1_000, 1)


@contextmanager
def overridden() -> Iterator[None]:
    """`core::add` gives its first operand."""
    library = Library("core", "IMPL", "CPU")
    with pytest.warns(KernelOverridden):
        library.impl("add", lambda self, other, *, alpha=1: core.neg(self))
    try:
        yield
    finally:
        library.close()


def test_an_operator_that_is_overridden_is_run(pair: FusedGroup) -> None:
    x, y = given()
    usual = bits_of(pair(x, y))
    assert pair.kernels == 2
    with overridden():
        assert bits_of(pair(x, y)) == bits_of(core.relu(core.neg(x)))
        assert pair.kernels == 2
    assert bits_of(pair(x, y)) == usual
    assert pair.kernels == 3


def test_an_override_that_is_not_asked_for_is_found(
    pair: FusedGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted fault: every operator counts as the runtime's own."""
    x, y = given()
    monkeypatch.setattr(fusion, "is_own", lambda kind, state: True)
    with overridden():
        assert bits_of(pair(x, y)) != bits_of(core.relu(core.neg(x)))


def test_a_gradient_is_recorded(pair: FusedGroup) -> None:
    x, y = given()
    x.requires_grad_(True)
    found = pair(x, y)
    assert pair.kernels == 1
    assert found.requires_grad
    core.sum(found).backward()
    assert x.grad is not None
    with runtime.no_grad():
        assert not pair(x, y).requires_grad
    assert pair.kernels == 2


def test_inference_mode_makes_its_own_tensors(pair: FusedGroup) -> None:
    x, y = given()
    with runtime.inference_mode():
        found = pair(x, y)
        assert pair.kernels == 2
        assert found.key_bits == pair.otherwise(x, y).key_bits


def test_modes_see_the_operators(pair: FusedGroup) -> None:
    x, y = given()
    with Quiet() as mode:
        pair(x, y)
    assert (mode.count, pair.kernels) == (2, 1)


class Child(runtime.Tensor):
    """A subclass without a handler."""


LAYOUTS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "turned": lambda: (
        core.t(core.reshape(given()[0], [50, 20])),
        core.reshape(given()[1], [20, 50]),
    ),
    "short rows": lambda: (core.reshape(given()[0], [100, 10]), given()[1][:10]),
    "halves": lambda: (tensor_of("float16", 100), tensor_of("float16", 100, 1)),
    "complex": lambda: (core.to(given()[0], dtype=runtime.complex64), given()[1]),
    "nothing": lambda: (given()[0][:0], given()[1][:0]),
    "meta": lambda: (core.to(given()[0], device="meta"),) * 2,
    "a subclass": lambda: (given()[0].as_subclass(Child), given()[1]),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_does_not_fit_is_run_by_operators(pair: FusedGroup, name: str) -> None:
    try:
        x, y = LAYOUTS[name]()
    except AttributeError:
        pytest.skip("no such way to make one")
    if name == "complex":
        with pytest.raises(DTypeRefused) as refused:
            pair(x, y)
        with pytest.raises(DTypeRefused) as expected:
            pair.otherwise(x, y)
        assert str(refused.value) == str(expected.value)
    elif name == "meta":
        assert pair(x, y).shape == (1_000,)
    else:
        assert bits_of(pair(x, y)) == bits_of(pair.otherwise(x, y))
    assert pair.kernels == 1


def test_wrong_shapes_raise_as_operators_do(pair: FusedGroup) -> None:
    x, y = given()
    with pytest.raises(runtime.errors.tensor.ShapesDoNotFit, match="core::add"):
        pair(x, y[:3])


def test_who_watches_sees_the_operators(pair: FusedGroup) -> None:
    x, y = given()
    with WATCH.tracing() as lines:
        pair(x, y)
    assert pair.kernels == 1
    assert any("core::relu" in line for line in lines)


def test_no_memory_is_left_to_the_operators(
    pair: FusedGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(fused_kernel, "empty", full)
    x, y = given()
    assert pair(x, y).shape == (1_000,)
    assert pair.kernels == 1


def test_decisions_are_few(monkeypatch: pytest.MonkeyPatch, pair: FusedGroup) -> None:
    for count in range(1, 100):
        x, y = tensor_of("float32", count), tensor_of("float32", count)
        pair(x, y)
    assert len(pair._memo) == 64


def test_another_way_may_be_given() -> None:
    x, y = given()
    graph, _ = fused(PAIR, (x, y))
    (node,) = groups_of(graph)
    group = FusedGroup(node.attributes["graph"], lambda *values: "another way")
    assert group(x, "no tensor") == "another way"
    assert is_own("core::add", runtime.dispatch.default_dispatcher().state)
