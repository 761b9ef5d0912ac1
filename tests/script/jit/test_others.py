"""Traces, archives and freezing by the names of `runtime.jit`."""

# Modules give what `forward` gives: Any.
# mypy: disable-error-code="no-any-return"

from pathlib import Path
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Module, Tensor, jit
from everyorder.runtime.errors import NotScriptable, Untraceable
from tests.script.modules.zoo import ZOO, Nested

# Programs of which archives cannot have all: they call Python.
NOT_SAVED = {"methods"}


def shown(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.tolist()
    return tuple(map(shown, value)) if isinstance(value, tuple) else value


@pytest.mark.parametrize("name", sorted({*ZOO} - NOT_SAVED))
def test_what_is_loaded_computes_the_same(name: str, tmp_path: Path) -> None:
    make, calls = ZOO[name]
    path = tmp_path / "m.pt"
    jit.save(jit.script(make()), path)
    loaded, eager = jit.load(path), make()
    assert isinstance(loaded, jit.ScriptModule)
    for arguments in calls:
        assert shown(loaded(*arguments)) == shown(eager(*arguments))
    state = {n: shown(v) for n, v in eager.state_dict().items()}
    assert {n: shown(v) for n, v in loaded.state_dict().items()} == state


def through(module: Any, path: Path) -> Any:
    """A compiled module that was saved, and loaded again."""
    jit.save(module, path)
    return jit.load(path)


@pytest.mark.parametrize("name", ["nested", "lists", "counting", "dictionaries"])
def test_what_is_frozen_and_loaded_in_any_order(name: str, tmp_path: Path) -> None:
    make, calls = ZOO[name]
    path, compiled = tmp_path / "m.pt", jit.script(make().eval())
    wanted = shown(make()(*calls[0]))
    assert shown(through(jit.freeze(compiled), path)(*calls[0])) == wanted
    assert shown(jit.freeze(through(compiled, path))(*calls[0])) == wanted
    assert shown(through(through(compiled, path), path)(*calls[0])) == wanted


class Holding(Module):
    def __init__(self, traced: Module, loaded: Module) -> None:
        super().__init__()
        self.traced = traced
        self.loaded = loaded

    def forward(self, x: Tensor) -> Tensor:
        return self.traced(x) + self.loaded(x)


def test_traced_and_loaded_modules_within_another(tmp_path: Path) -> None:
    x = runtime.ones(1)
    traced = jit.trace(Nested(), (x,))
    loaded = through(traced, tmp_path / "m.pt")
    assert jit.script(Holding(traced, loaded))(x).tolist() == [54.0]
    assert jit.freeze(traced.eval())(x).tolist() == [27.0]


def add(x: int, y: int = 2) -> int:
    return x + y


def test_a_function_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "f.pt"
    jit.script(add).save(path)
    loaded = jit.load(path)
    assert isinstance(loaded, jit.ScriptFunction)
    jit.script(Nested()).save(path)
    assert jit.load(path)(runtime.ones(1)).tolist() == [27.0]
    assert loaded(1) == 3


def test_a_trace_of_a_function() -> None:
    traced = jit.trace(lambda x: x * 2 + 1, (runtime.ones(2),))
    assert isinstance(traced, jit.ScriptFunction)
    assert traced(runtime.tensor([3.0])).tolist() == [7.0]


class Two(Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Nested()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)

    def other(self, x: Tensor, y: Tensor) -> Tensor:
        return self.inner.first(x) - y


def test_a_trace_of_a_module() -> None:
    net, x = Two(), runtime.tensor([2.0])
    traced = jit.trace(net, (x,))
    assert isinstance(traced, jit.ScriptModule)
    assert traced(x + 1).tolist() == net(x + 1).tolist()
    assert traced.inner.first.scale is net.inner.first.scale
    assert traced.__script_type__ is not jit.trace(net, (x,)).__script_type__
    with runtime.no_grad():
        net.inner.first.scale.mul_(3)
    assert traced(x).tolist() == net(x).tolist()
    both = jit.trace_module(net, {"forward": (x,), "other": (x, x)})
    assert both.other(x, x + 1).tolist() == net.other(x, x + 1).tolist()
    assert [*both.__script_type__.declaration.methods] == ["forward", "other"]


class Kept(Module):
    """`other` does what it did with the first input."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 1

    def other(self, x: Tensor) -> Tensor:
        return x * float(x[0])


@pytest.mark.filterwarnings("ignore:While a function was traced")
def test_check_inputs_of_a_module_are_by_methods() -> None:
    one, two = runtime.tensor([1.0]), runtime.tensor([2.0, 3.0])
    inputs = {"forward": one, "other": one}
    traced = jit.trace_module(Kept(), inputs, check_inputs=[{"forward": two}])
    assert traced.forward(two).tolist() == [3.0, 4.0]
    with pytest.raises(Untraceable, match=r"differs from the function for\s+check_inp"):
        jit.trace_module(Kept(), inputs, check_inputs=[{"forward": two, "other": two}])
    assert jit.trace(Kept(), one, check_inputs=[two])(two).tolist() == [3.0, 4.0]
    wrong: Any
    for wrong in ([two], [{"othr": two}]):
        with pytest.raises(NotScriptable, match="they are inputs by"):
            jit.trace_module(Kept(), inputs, check_inputs=wrong)


def test_what_is_saved_and_frozen_is_compiled() -> None:
    with pytest.raises(NotScriptable) as caught:
        jit.save(3, "file")
    assert str(caught.value) == (
        "an object of class int is not for scripts: only compiled modules and "
        "functions\n"
        "can be saved.\n"
        "  to do: Compile it by `jit.script`, or `jit.trace`."
    )
    with pytest.raises(NotScriptable, match="only compiled modules can be"):
        jit.freeze(Module())
