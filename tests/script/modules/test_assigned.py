"""Methods that `__init__` assigns, and `__call__`: a script runs what Python runs."""

# Modules give what `forward` gives: Any.
# mypy: disable-error-code="no-any-return, assignment, method-assign, misc"

import io
import types
from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Module, ModuleList, Tensor
from everyorder.runtime.errors import NotScriptable
from everyorder.runtime.jit import freeze, ignore, load, save, script


class Chosen(Module):
    """`forward` is one of two methods, as `__init__` decides."""

    def __init__(self, deep: bool) -> None:
        super().__init__()
        if deep:
            self.forward = self.deep

    def forward(self, x: Tensor) -> Tensor:
        return x - 1

    def deep(self, x: Tensor) -> Tensor:
        return x + 1


def plus(self, x: Tensor) -> Tensor:  # type: ignore[no-untyped-def]  # a method
    return x + self.step


class Bound(Module):
    """The method `helper` of the class is replaced in each module."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 10
        self.helper = types.MethodType(plus, self)

    def helper(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.helper(x)


class Renamed(Module):
    """A method has two names."""

    def __init__(self) -> None:
        super().__init__()
        self.activation = self.helper

    def helper(self, x: Tensor) -> Tensor:
        return x * 3

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(x) + self.helper(x)


class Outer(Module):
    def __init__(self, *inner: Module) -> None:
        super().__init__()
        self.first, self.second = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


class Called(Module):
    """A call adds to the result of `forward`."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 2

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x) + 100


class OnlyCalled(Module):
    def __call__(self, x: Tensor) -> Tensor:
        return x + 100


class Extended(Called):
    """A call calls that of the class above."""

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x) + 1000


MODULES: dict[str, Callable[[], Module]] = {
    "chosen": lambda: Chosen(True),
    "not chosen": lambda: Chosen(False),
    "both": lambda: Outer(Chosen(True), Chosen(False)),
    "bound": Bound,
    "renamed": Renamed,
    "called": Called,
    "called alone": OnlyCalled,
    "called above": Extended,
    "called within": lambda: Outer(Called(), OnlyCalled()),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_script_runs_what_python_runs(name: str) -> None:
    x = runtime.tensor([1.0, 2.0])
    expected = MODULES[name]()(x).tolist()
    compiled = script(MODULES[name]())
    assert compiled(x).tolist() == expected
    assert freeze(script(MODULES[name]().eval()))(x).tolist() == expected
    archive = io.BytesIO()
    save(compiled, archive)
    archive.seek(0)
    assert load(archive)(x).tolist() == expected


def test_hooks_run_where_forward_does() -> None:
    net = Called()
    net.register_forward_hook(twice)
    assert script(net)(runtime.ones(1)).tolist() == net(runtime.ones(1)).tolist()


def twice(module: Any, args: tuple[Tensor], result: Tensor) -> Tensor:
    return result * 2


class Plain(Module):
    def __init__(self, forward: Any) -> None:
        super().__init__()
        self.forward = forward

    def forward(self, x: Tensor) -> Tensor:
        return x - 1


def test_forward_of_another_object_is_refused() -> None:
    with pytest.raises(NotScriptable) as caught:
        script(Plain(Chosen(False).deep))
    assert str(caught.value) == (
        "the module of class `Plain` is not for scripts: its `forward` is "
        "`Chosen.deep`\nof another module, not a method of the module.\n"
        "  to do: Assign `types.MethodType(function, self)`, or define `forward`."
    )
    with pytest.raises(NotScriptable, match="its `forward` is `doubled`, not"):
        script(Plain(doubled))


def doubled(x: Tensor) -> Tensor:
    return x * 2


def test_a_function_is_called_without_the_module() -> None:
    net = Outer(Plain(doubled), Chosen(True))
    assert script(net)(runtime.ones(1)).tolist() == net(runtime.ones(1)).tolist()


class Long(ModuleList):
    """A list of modules whose length and elements are its own."""

    def __len__(self) -> int:
        return 7

    def __contains__(self, number: int) -> bool:
        return number == 3


class Rows(Module):
    """A module with elements."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = [1, 2, 3]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> int:
        return self.rows[place]

    def forward(self, x: Tensor) -> Tensor:
        return x + len(self)


class Asking(Module):
    def __init__(self) -> None:
        super().__init__()
        self.long = Long([Called()])
        self.rows = Rows()

    def forward(self, x: Tensor) -> Tensor:
        if 3 in self.long and self.rows:
            x = x + 100
        return self.rows(x) + len(self.long) + len(self.rows) * self.rows[1]


def test_special_methods_of_a_class_are_its_own() -> None:
    net, x = Asking(), runtime.zeros(1)
    compiled = script(net)
    assert compiled(x).tolist() == net(x).tolist() == [116.0]
    assert (len(compiled.long), len(compiled.rows), compiled.rows[2]) == (7, 3, 3)
    assert 3 in compiled.long
    assert 1 not in compiled.long
    archive = io.BytesIO()
    save(compiled, archive)
    archive.seek(0)
    back = load(archive)
    assert back(x).tolist() == [116.0]
    assert (len(back.long), len(back.rows), back.rows[2]) == (7, 3, 3)


class LeftToPython(Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2

    @ignore
    def __call__(self, *args: Any) -> Any:
        return super().__call__(*args)


def test_a_call_that_is_ignored_is_not_compiled() -> None:
    assert script(LeftToPython())(runtime.ones(1)).tolist() == [2.0]
