"""Compiled modules: they compute what Python does, and are modules in Python."""

# Modules give what `forward` gives: Any.
# mypy: disable-error-code="no-any-return, assignment, empty-body, misc"

import copy
import pickle
from typing import Any, Final

import pytest

from everyorder import runtime
from everyorder.runtime import Module, Tensor
from everyorder.runtime.errors import (
    IllTyped,
    ModuleError,
    NotScriptable,
    SchemaError,
    UnknownAttribute,
)
from everyorder.runtime.jit import (
    RecursiveScriptModule,
    ScriptModule,
    interface,
    script,
    script_method,
    unused,
)
from everyorder.runtime.script.ir import check, graph_text
from everyorder.runtime.script.ir.program import SHARED_PROGRAM
from tests.coded import code
from tests.script.modules import zoo
from tests.script.modules.zoo import (
    ZOO,
    Affine,
    Counting,
    Methods,
    Nested,
    Plain,
    Scale,
)


def shown(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.tolist()
    return tuple(map(shown, value)) if isinstance(value, tuple) else value


@pytest.mark.spec("script 0.7", "literals as indices of modules")
@pytest.mark.spec("script 6.6", "literals")
@pytest.mark.parametrize("name", ZOO)
def test_it_computes_what_python_does(name: str) -> None:
    make, calls = ZOO[name]
    eager, compiled = make(), script(make())
    for arguments in calls:
        assert shown(compiled(*arguments)) == shown(eager(*arguments))
    own = {n: shown(v) for n, v in eager.state_dict().items()}
    assert {n: shown(v) for n, v in compiled.state_dict().items()} == own


@pytest.mark.parametrize("name", ZOO)
def test_graphs_are_sound(name: str) -> None:
    compiled = script(ZOO[name].make())
    for each in compiled.modules():
        for function in each.__script_type__.declaration.functions.values():
            check(function.graph)


def test_it_is_a_module() -> None:
    net = Nested()
    compiled = script(net)
    assert isinstance(compiled, ScriptModule)
    assert RecursiveScriptModule is ScriptModule
    assert isinstance(compiled, Module)
    assert script(compiled) is compiled
    assert isinstance(compiled.first, ScriptModule)
    assert compiled.first is compiled.again
    assert compiled.first.scale is net.first.scale
    names = [name for name, _ in net.named_parameters()]
    assert [name for name, _ in compiled.named_parameters()] == names
    assert [name for name, _ in compiled.named_modules()] == ["", "first", "second"]
    assert [*compiled.state_dict()] == [*net.state_dict()]
    assert compiled.original_name == "Nested"
    assert repr(compiled) == (
        "ScriptModule(\n"
        "  original_name=Nested\n"
        "  (first): ScriptModule(original_name=Affine)\n"
        "  (second): ScriptModule(original_name=Affine)\n"
        "  (again): ScriptModule(original_name=Affine)\n"
        ")"
    )
    assert compiled.first.__script_type__ is compiled.second.__script_type__
    assert {"first", "forward", "training"} <= {*dir(compiled)}


def test_modes_and_gradients() -> None:
    compiled = script(Nested())
    assert not compiled.eval().first.training
    compiled.train()
    compiled(runtime.ones(1)).sum().backward()
    assert compiled.first.scale.grad is not None
    compiled.zero_grad()
    assert compiled.first.scale.grad is None
    state = Nested().state_dict()
    state["first.scale"] = runtime.tensor([9.0])
    state["again.scale"] = runtime.tensor([9.0])
    compiled.load_state_dict(state)
    assert compiled.again.scale.tolist() == [9.0]


def test_attributes_are_seen_from_both_sides() -> None:
    net = Counting()
    compiled = script(net)
    compiled(runtime.ones(1))
    assert (compiled.calls, compiled.total.tolist()) == (1, [1.0])
    assert net.calls == 0
    compiled.calls = 10
    compiled.total = runtime.tensor([5.0])
    assert compiled(runtime.ones(1)) == 11
    assert compiled.total.tolist() == [6.0]
    assert next(compiled.buffers()) is compiled.total


@pytest.mark.spec("script 6.6", "lists of compiled modules")
def test_lists_are_those_of_the_compiled_module() -> None:
    net = Plain()
    compiled = script(net)
    compiled(1)
    assert (compiled.names, net.names) == (["w"], [])
    compiled.names = ["a", "b"]
    assert compiled(1)[1] == "w3"
    assert (compiled.limit, compiled.table) == (7, {"a": 1})


def test_what_may_not_be_set() -> None:
    compiled = script(Plain())
    for name, value, text in [
        ("count", "a", "it is of type int, not an object of type str."),
        ("limit", 8, "there is a constant of this name."),
        ("forward", 8, "there is a method of this name."),
        ("new", Affine(), "the module is compiled, and gets no more members."),
    ]:
        with pytest.raises(ModuleError) as caught:
            setattr(compiled, name, value)
        assert str(caught.value) == f"`{name}` cannot be a member of `Plain`: {text}"
    with pytest.raises(ModuleError, match="scripts use it, and it cannot be deleted"):
        del compiled.count
    compiled.note = 1
    assert compiled.note == 1
    del compiled.note
    with pytest.raises(ModuleError) as missing:
        compiled.coun  # noqa: B018  # it raises
    assert str(missing.value) == (
        "`ScriptModule` has no attribute `coun`.\n  similar: count"
    )


def test_methods() -> None:
    compiled = script(Methods())
    x = runtime.ones(1)
    assert compiled.extra(x).tolist() == Methods().extra(x).tolist()
    assert compiled.helper(x, times=1).tolist() == [3.0]
    assert compiled.aside(3) == 2
    assert compiled.doubled == 6
    compiled.doubled = 5
    assert (compiled.factor, compiled.doubled) == (5, 10)
    for name in ("uncompiled", "halved"):
        with pytest.raises(ModuleError, check=code("NoSuchMember")):
            getattr(compiled, name)
    assert str(compiled.forward.schema) == (
        "forward(__torch__.tests.script.modules.zoo.Methods self, Tensor x) -> Tensor"
    )
    assert compiled.forward.name == "forward"


def test_copies() -> None:
    compiled = script(Counting())
    deep, shallow = copy.deepcopy(compiled), copy.copy(compiled)
    compiled(runtime.ones(1))
    assert (compiled.calls, deep.calls, shallow.calls) == (1, 0, 0)
    assert deep(runtime.ones(1)) == 1
    assert deep.total.tolist() == [1.0]
    assert deep.__script_type__ is compiled.__script_type__
    nested = copy.deepcopy(script(Nested()))
    assert nested.first is nested.again
    with pytest.raises(NotScriptable) as caught:
        pickle.dumps(compiled)
    assert str(caught.value) == (
        "the compiled module `Counting` is not for scripts: a compiled module is not\n"
        "pickled.\n  to do: Use `jit.save` and `jit.load`."
    )


def test_containers_in_python() -> None:
    compiled = script(zoo.Lists())
    assert len(compiled.layers) == 4
    assert [*compiled.layers][1] is compiled.layers[1]
    assert compiled.layers[-1] in compiled.layers
    table = script(zoo.Dictionaries()).table
    assert ([*table], "a" in table, "z" in table) == (["a", "b"], True, False)
    assert [key for key, _ in table.items()] == [*table.keys()] == ["a", "b"]
    assert [*table.values()] == [table["a"], table.b]
    assert bool(script(zoo.Lists()).empty)
    with pytest.raises(TypeError, match="a compiled `Lists` has no len"):
        len(compiled)


def test_hooks_run_from_python_too() -> None:
    net = zoo.Hooked()
    compiled, x = script(net), runtime.ones(1)
    assert compiled.inner(x).tolist() == net.inner(x).tolist()
    assert compiled.inner(x=x).tolist() == net.inner(x).tolist()
    handle = compiled.register_forward_hook(lambda *_: 7)
    assert compiled(x) == 7
    handle.remove()
    assert compiled(x).tolist() == net(x).tolist()


def test_a_compiled_module_within_another() -> None:
    inner = script(Affine())
    net = Nested()
    net.second = inner
    compiled = script(net)
    assert compiled.second is inner
    x = runtime.ones(1)
    assert compiled(x).tolist() == net(x).tolist()


class Tell(Module):
    def forward(self, x: int) -> str:
        return str(x)


class Twice(Module):
    def forward(self, x: str) -> tuple[str, str]:
        return x, x


class Telling(Module):
    def __init__(self) -> None:
        super().__init__()
        self.chain = runtime.Sequential(Tell(), Twice())

    def forward(self, x: int) -> tuple[str, str]:
        found: tuple[str, str] = self.chain(x)
        return found


def test_a_chain_of_any_types() -> None:
    assert script(Telling())(3) == ("3", "3")
    assert script(runtime.Sequential(Tell(), Twice()))(3) == ("3", "3")


def test_deriving_and_script_method_are_refused() -> None:
    with pytest.raises(NotScriptable) as caught:

        class Mine(ScriptModule):
            pass

    assert str(caught.value) == (
        "the class `Mine`, which derives from ScriptModule is not for scripts: its\n"
        "methods would be compiled before there is an object.\n"
        "  to do: Derive from `runtime.Module`, and call `jit.script` with an object."
    )
    with pytest.raises(NotScriptable, match="methods are compiled with their module"):
        script_method(len)
    with pytest.raises(NotScriptable, match=r"made by `jit.script`"):
        ScriptModule(3, {})  # type: ignore[arg-type]  # refused


@interface
class Maps:
    def forward(self, x: Tensor) -> Tensor:
        pass


class Swapping(Module):
    part: Maps

    def __init__(self) -> None:
        super().__init__()
        self.part = Affine()
        self.other = Scale()

    def forward(self, x: Tensor, swap: bool) -> Tensor:
        if swap:
            self.part = self.other
        return self.part.forward(x)


def test_an_interface_takes_another_module() -> None:
    compiled, x = script(Swapping()), runtime.ones(1)
    assert compiled(x, False).tolist() == [3.0]
    assert compiled(x, True).tolist() == [1.0]
    assert compiled.part is compiled.other
    compiled.part = script(Affine(5.0))
    assert compiled(x, False).tolist() == [6.0]
    with pytest.raises(ModuleError, check=code("UnfitMember")):
        compiled.part = script(Plain())
    assert "prim::CallInterface" in graph_text(compiled.graph)


class Factorial(Module):
    def forward(self, n: int) -> int:
        return 1 if n < 2 else n * self.forward(n - 1)


class Endless(Module):
    def forward(self, n: int):  # type: ignore[no-untyped-def]  # on purpose
        return self.forward(n - 1)


class Mutual(Module):
    def forward(self, n: int) -> bool:
        return n == 0 or self.odd(n - 1)

    def odd(self, n: int) -> bool:
        return n != 0 and self.forward(n - 1)


def test_methods_that_call_themselves_and_each_other() -> None:
    assert script(Factorial())(5) == 120
    assert [script(Mutual())(n) for n in range(4)] == [True, False, True, False]
    with pytest.raises(IllTyped, check=code("IllTyped")) as caught:
        script(Endless())
    assert caught.value.message == (
        "the method `self.forward` calls itself, and its result has no type"
    )


class Broken(Module):
    def __init__(self) -> None:
        super().__init__()
        self.fine = Affine()

    def helper(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.helper(x).nothing()  # type: ignore[attr-defined]  # on purpose


def test_nothing_is_left_of_what_fails() -> None:
    script(Affine())
    names = SHARED_PROGRAM.namespace.qualnames
    for _ in range(2):
        with pytest.raises(UnknownAttribute):
            script(Broken())
    assert SHARED_PROGRAM.namespace.qualnames == names
    assert script(Affine())(runtime.ones(1)).tolist() == [3.0]


class Needing(Module):
    def __init__(self) -> None:
        super().__init__()
        self.kind = Helping()

    def forward(self, x: Tensor) -> Tensor:
        return self.kind.wrong(x)


class Helping(Module):
    def forward(self, x: Tensor) -> Tensor:
        return x

    def wrong(self, x: Tensor) -> Tensor:
        return x.nothing()  # type: ignore[attr-defined]  # on purpose


def test_a_known_type_keeps_no_method_that_fails() -> None:
    helping = script(Helping())
    for _ in range(2):
        with pytest.raises(UnknownAttribute):
            script(Needing())
    assert [*helping.__script_type__.declaration.methods] == ["forward"]
    assert helping(runtime.ones(1)).tolist() == [1.0]


def test_methods_of_a_text() -> None:
    compiled = script(Methods())
    compiled.define(
        "def more(self, x: int) -> int:\n"
        "    return self.most(x) + self.factor\n"
        "def most(self, x: int) -> int:\n"
        "    return x * 3\n"
        "def root(self) -> Tensor:\n"
        "    return torch.ones([2]) * math.sqrt(4.0)\n"
    )
    assert (compiled.more(2), compiled.most(3)) == (9, 9)
    assert compiled.root().tolist() == [2.0, 2.0]
    other = script(Methods())
    assert other.most(2) == 6
    with pytest.raises(SchemaError, check=code("DeclarationConflict")):
        other.define("def most(self) -> int:\n    return 1\n")
    with pytest.raises(UnknownAttribute):
        other.define("def a(self) -> int:\n    return 1\ndef b(self):\n    self.nil\n")
    assert not hasattr(other, "a")


def test_the_texts_of_a_module() -> None:
    compiled = script(Affine())
    assert compiled.code == (
        "def forward(self, x: Tensor) -> Tensor:\n"
        "  return ops.core.add(ops.core.mul(x, self.scale), self.shift)\n"
    )
    assert compiled.graph is compiled.forward.graph
    nodes = [node.kind for node in compiled.graph.nodes()]
    constant, get = "prim::Constant", "prim::GetAttr"
    assert nodes == [constant, get, "core::mul", get, "core::add"]


class Unfinished(Module):
    names: "Final"

    def __init__(self) -> None:
        super().__init__()
        self.names = ["a", "b"]
        self.layers = runtime.ModuleList([Affine()])
        self.empty = runtime.ModuleList()

    @unused
    def later(self, x: int) -> int:
        return {x}  # type: ignore[return-value]  # nobody compiles it

    def forward(self, x: int) -> str:
        text = ""
        for name in self.names:
            text += name
        if self.layers and not self.empty:
            text += "!"
        if x > 3:
            self.later(x)
        return text


def test_what_is_unused_raises_where_it_is_called() -> None:
    compiled = script(Unfinished())
    assert compiled(1) == "ab!"
    with pytest.raises(RuntimeError, match=r"Unfinished\.later is marked as unused"):
        compiled(4)


def test_calls_in_a_graph_are_inlined_in_a_copy() -> None:
    compiled = script(Nested())
    before = [node.kind for node in compiled.graph.nodes()]
    inlined = [node.kind for node in compiled.inlined_graph.nodes()]
    assert "prim::CallMethod" in before
    assert "prim::CallMethod" not in inlined
    assert [node.kind for node in compiled.graph.nodes()] == before
    assert compiled.forward.inlined_graph is not compiled.forward.inlined_graph
