"""Freezing of modules: what becomes a constant, what stays, and what is refused."""

# Modules give what `forward` gives: Any.
# mypy: disable-error-code="no-any-return"

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Module, Tensor
from everyorder.runtime.errors import ModuleError, NotScriptable
from everyorder.runtime.jit import ScriptModule, freeze, script
from everyorder.runtime.script.ir import check
from tests.script.modules.zoo import ZOO, Affine, Counting, Lists, Nested
from tests.script.modules.zoo import Methods as Several


def frozen(module: Module, *names: str) -> ScriptModule:
    return freeze(script(module.eval()), [*names])


def shown(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.tolist()
    return tuple(map(shown, value)) if isinstance(value, tuple) else value


def kinds(module: ScriptModule) -> list[str]:
    return [node.kind for node in module.graph.nodes()]


@pytest.mark.spec("script 0.7", "freezing")
@pytest.mark.parametrize("name", ZOO)
def test_it_computes_the_same(name: str) -> None:
    make, calls = ZOO[name]
    eager, one = make().eval(), frozen(make())
    for arguments in calls:
        assert shown(one(*arguments)) == shown(eager(*arguments))
    for function in one.__script_type__.declaration.functions.values():
        check(function.graph)


@pytest.mark.spec("script 0.7", "freezing")
def test_attributes_are_constants_named_by_their_ways() -> None:
    one = frozen(Nested())
    assert "prim::GetAttr" not in kinds(one)
    assert [*one.named_parameters()] == []
    names = [node.output.hint for node in one.graph.nodes() if not node.inputs]
    assert {"self.first.scale", "self.second.shift"} <= {*names}
    net = Lists()
    hints = {node.output.hint for node in frozen(net).graph.nodes() if node.outputs}
    assert "self.layers.0.scale" in hints


class Switch(Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Affine()

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            x = self.inner(x)
        return x


def test_what_is_known_decides_branches() -> None:
    assert kinds(frozen(Switch())) == []
    with pytest.raises(NotScriptable, match="not frozen while it is"):
        freeze(script(Switch()))


@pytest.mark.spec("script 6.7", "freezing")
def test_what_is_set_stays() -> None:
    net = Counting()
    compiled = script(net.eval())
    one = freeze(compiled)
    assert [one(runtime.ones(1)) for _ in range(3)] == [1, 2, 3]
    assert (one.calls, one.total.tolist()) == (3, [3.0])
    assert [name for name, _ in one.named_buffers()] == ["total"]


class Shared(Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = Counting()
        self.other = self.one

    def forward(self, x: Tensor) -> int:
        self.one(x)
        return self.other.calls


def test_what_is_set_by_another_way_stays() -> None:
    one = frozen(Shared())
    assert [one(runtime.ones(1)) for _ in range(3)] == [1, 2, 3]


@pytest.mark.spec("script 6.7", "freezing")
def test_what_is_preserved_stays() -> None:
    one = frozen(Several(), "extra", "factor")
    assert {*one.__script_type__.declaration.methods} == {"extra", "forward"}
    assert one.factor == 3
    assert one.extra(runtime.ones(1)).tolist() == [3.0]
    with pytest.raises(ModuleError) as caught:
        frozen(Several(), "facto")
    assert str(caught.value) == (
        "`Methods` has no attribute or method `facto`.\n  similar: factor"
    )


def test_the_module_stays_as_it_was() -> None:
    compiled = script(Nested().eval())
    before = [each.kind for each in compiled.graph.nodes()]
    one = freeze(compiled)
    assert [each.kind for each in compiled.graph.nodes()] == before
    assert one.__script_type__ is not compiled.__script_type__
    with runtime.no_grad():
        compiled.first.scale.mul_(10)
    assert one(runtime.ones(1)).tolist() == compiled(runtime.ones(1)).tolist()


class Listing(Module):
    names: dict[str, list[int]]

    def __init__(self, inner: Module | None = None) -> None:
        super().__init__()
        self.sizes = [1, 2]
        self.names = {"a": [1]}
        self.limit = 3

    def forward(self, x: Tensor) -> Tensor:
        return x + len(self.sizes) + len(self.names["a"]) + self.limit

    def grow(self) -> None:
        self.sizes.append(7)


class Holding(Module):
    def __init__(self) -> None:
        super().__init__()
        self.sub = Listing()

    def forward(self, x: Tensor) -> Tensor:
        return self.sub(x)


def test_later_writes_to_the_original_are_not_seen() -> None:
    for net in (Listing(), Holding()):
        compiled = script(net.eval())
        one = freeze(compiled)
        inner = getattr(compiled, "sub", compiled)
        inner.sizes.append(3)
        inner.names["a"].append(3)
        assert compiled(runtime.zeros(1)).tolist() == [8.0]
        assert one(runtime.zeros(1)).tolist() == [6.0]


def test_a_member_of_a_submodule_is_preserved() -> None:
    one = frozen(Holding(), "sub.limit")
    one.sub.limit = 10
    assert one(runtime.zeros(1)).tolist() == [13.0]
    with pytest.raises(ModuleError) as caught:
        frozen(Holding(), "sub.limt")
    assert str(caught.value) == (
        "`Listing` has no attribute or method `limt`.\n  similar: limit"
    )
    with pytest.raises(ModuleError, match="`Holding` has no submodule `sup`"):
        frozen(Holding(), "sup.limit")
