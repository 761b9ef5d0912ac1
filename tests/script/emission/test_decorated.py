"""Functions that a mode of autograd decorates: they run within the mode."""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Module, Tensor, jit


@runtime.no_grad()
def doubled(x: Tensor, n: int = 2) -> Tensor:
    if n > 1:
        return x * n
    for place in range(3):
        if place == 1:
            return x + place
    return x


@runtime.inference_mode()
def inferred(x: Tensor) -> Tensor:
    return x * 2


@runtime.inference_mode(False)
def not_inferred(x: Tensor) -> Tensor:
    return x * 2


@runtime.no_grad()
@runtime.enable_grad()
def enabled(x: Tensor) -> Tensor:
    return x * 2


@runtime.enable_grad()
@runtime.set_grad_enabled(False)
def disabled(x: Tensor) -> Tensor:
    return x * 2


def calling(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return doubled(x), enabled(x), x * 2


class Frozen(Module):
    @runtime.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) * 3

    @runtime.enable_grad()
    def inner(self, x: Tensor) -> Tensor:
        return x * 2


FUNCTIONS: list[Any] = [doubled, inferred, not_inferred, enabled, disabled, calling]


def facts(result: Any) -> Any:
    if isinstance(result, tuple):
        return [*map(facts, result)]
    return result.tolist(), result.requires_grad, result.is_inference()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_a_script_runs_in_the_mode(function: Any) -> None:
    x = runtime.ones(2, requires_grad=True)
    scripted = jit.script(function)
    for _ in range(2):
        assert facts(scripted(x)) == facts(function(x))
    assert runtime.is_grad_enabled()


def test_a_method_runs_in_the_mode() -> None:
    x = runtime.ones(2, requires_grad=True)
    assert (
        facts(jit.script(Frozen())(x))
        == facts(Frozen()(x))
        == ([6.0] * 2, False, False)
    )


def test_the_parameters_are_those_of_the_function() -> None:
    scripted = jit.script(doubled)
    assert str(scripted.schema) == "doubled(Tensor x, int n=2) -> Tensor"
    assert scripted(runtime.ones(1), 1).tolist() == [2.0]
    assert scripted(x=runtime.ones(1), n=3).tolist() == [3.0]
