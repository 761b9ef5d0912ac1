"""Methods of modules that are traced: what the type has is read from the module."""

from types import SimpleNamespace
from typing import Any

from everyorder.runtime.schema.declared import ModuleType
from everyorder.runtime.schema.types import TensorType
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import (
    TYPE_ATTRIBUTE,
    Function,
    Program,
    fork,
    wait,
)
from everyorder.runtime.script.tracing import trace_function, trace_method
from tests.script.tracing.traced import arange, body, same

PROGRAM = Program()


def _types() -> tuple[ModuleType, ModuleType]:
    linear = PROGRAM.namespace.declare(ModuleType, "__torch__.net.Linear")
    linear.declaration.add_attribute("weight", TensorType)
    net = PROGRAM.namespace.declare(ModuleType, "__torch__.net.Net")
    net.declaration.add_attribute("first", linear)
    net.declaration.add_attribute("bias", TensorType)
    net.declaration.add_attribute("absent", TensorType)
    return linear, net


LINEAR, NET = _types()


class Linear(SimpleNamespace):
    """x * weight."""

    weight: Any

    def forward(self, x: Any) -> Any:
        return x * self.weight


class Net(SimpleNamespace):
    """Two of them, of which the type has one."""

    first: Linear
    bias: Any
    other: Any

    def forward(self, x: Any) -> Any:
        y = self.first.forward(x) + self.bias
        self.bias.add_(1)
        return y + self.first.weight + self.other + self.bias


def net(start: float) -> Net:
    """A module of the type."""
    first = Linear(weight=arange(2, start=start).requires_grad_())
    made = Net(first=first, bias=arange(2), other=arange(2), absent=None)
    first.__dict__[TYPE_ATTRIBUTE], made.__dict__[TYPE_ATTRIBUTE] = LINEAR, NET
    return made


def test_parameters_are_attributes() -> None:
    module = net(1)
    options: dict[str, Any] = {"program": PROGRAM, "check_trace": False}
    traced = trace_method(module.forward, module, NET, arange(2), **options)
    assert traced.qualname == "__torch__.net.Net.forward"
    assert str(traced.schema) == ("forward(__torch__.net.Net self, Tensor x) -> Tensor")
    assert traced.python is Net.forward
    assert (
        body_of(traced)
        == """\
  %2 : __torch__.net.Linear = prim::GetAttr[name="first"](%self.1)
  %3 : Tensor = prim::GetAttr[name="weight"](%2)
  %4 : Tensor = core::mul(%x.1, %3)
  %5 : Tensor = prim::GetAttr[name="bias"](%self.1)
  %6 : int = prim::Constant[value=1]()
  %7 : Tensor = core::add(%4, %5, %6)
  %8 : Tensor = core::add_(%5, %6, %6)
  %9 : Tensor = core::add(%7, %3, %6)
  %10 : Tensor = prim::Constant[value=object(0)]()
  %11 : Tensor = core::add(%9, %10, %6)
  %12 : Tensor = core::add(%11, %8, %6)
  return (%12)
"""
    )
    other, again = net(5), net(5)
    given = call(traced, (other, arange(2)))
    assert same(given, again.forward(arange(2)))
    assert same(other.bias, again.bias)
    given.sum().backward()
    assert same(other.first.weight.grad, arange(2) + 1)


def body_of(traced: Function) -> str:
    """As `body`, with the types of the program."""
    return body(traced, PROGRAM.namespace)


def test_a_trace_of_a_method_is_checked() -> None:
    module = net(1)
    traced = trace_method(module.first.forward, module.first, LINEAR, arange(2))
    assert same(
        call(traced, (module.first, arange(2))), module.first.forward(arange(2))
    )


def test_a_fork_takes_attributes_from_outside() -> None:
    module = net(1)

    def forward(x: Any) -> Any:
        return wait(fork(lambda: x * module.first.weight)) + module.first.weight

    traced = trace_method(forward, module, NET, arange(2), program=PROGRAM)
    assert (
        body_of(traced)
        == """\
  %2 : __torch__.net.Linear = prim::GetAttr[name="first"](%self.1)
  %3 : Tensor = prim::GetAttr[name="weight"](%2)
  %4 : Future(Tensor) = prim::fork_0(%x.1, %3)
  %5 : Tensor = prim::wait(%4)
  %6 : int = prim::Constant[value=1]()
  %7 : Tensor = core::add(%5, %3, %6)
  return (%7)
with prim::fork_0 = graph(%x.1 : Tensor, %1 : Tensor):
  %2 : Tensor = core::mul(%x.1, %1)
  return (%2)
"""
    )


def test_methods_that_are_compiled_are_called() -> None:
    module = net(1)
    method = trace_method(
        module.first.forward, module.first, LINEAR, arange(2), name="scale"
    )
    LINEAR.declaration.add_method("scale", method.schema)
    LINEAR.declaration.functions["scale"] = method

    def forward(x: Any) -> Any:
        return call(method, (module.first, x)).exp()

    traced = trace_method(forward, module, NET, arange(2), program=PROGRAM)
    assert (
        body_of(traced)
        == """\
  %2 : __torch__.net.Linear = prim::GetAttr[name="first"](%self.1)
  %3 : Tensor = prim::CallMethod[name="scale"](%2, %x.1)
  %4 : Tensor = core::exp(%3)
  return (%4)
"""
    )
    other = net(7)
    assert same(call(traced, (other, arange(2))), other.first.forward(arange(2)).exp())


def test_a_module_that_is_called_has_the_names_of_forward() -> None:
    class Called(Linear):
        def __call__(self, *args: Any) -> Any:
            return self.forward(*args) + 1

    module = Called(weight=arange(2))
    module.__dict__[TYPE_ATTRIBUTE] = LINEAR
    traced = trace_method(module, module, LINEAR, arange(2), name="forward")
    assert str(traced.schema) == (
        "forward(__torch__.net.Linear self, Tensor x) -> Tensor"
    )
    assert traced.python is Linear.forward
    assert same(call(traced, (module, arange(2))), module(arange(2)))


def test_a_module_outside_is_constants() -> None:
    module = net(1)
    traced = trace_function(module.first.forward, arange(2), program=Program())
    assert [each.kind for each in traced.graph.nodes()] == [
        "prim::Constant",
        "core::mul",
    ]
