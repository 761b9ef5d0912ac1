"""Interfaces as attributes of modules: objects of classes that have the methods."""

# An object of a class is one of an interface that has its methods.
# mypy: disable-error-code="assignment, list-item, dict-item, no-any-return"

import io

import pytest

from everyorder import runtime
from everyorder.runtime import Module, Tensor
from everyorder.runtime.errors import ModuleError, UnknownAttribute
from everyorder.runtime.jit import interface, load, save, script


@interface
class Runs:
    def run(self, x: Tensor) -> Tensor:  # type: ignore[empty-body]  # an interface
        pass


@script
class Scaled:
    def __init__(self, k: int):
        self.k = k

    def run(self, x: Tensor) -> Tensor:
        return x * self.k

    def next(self) -> "Scaled":
        return Scaled(self.k + 1)


@script
class Other:
    def __init__(self, k: int):
        self.k = k


class Holding(Module):
    one: Runs
    many: list[Runs]
    named: dict[str, Runs]

    def __init__(self) -> None:
        super().__init__()
        self.one = Scaled(2)
        self.many = [Scaled(3), Scaled(2).next()]
        self.named = {"a": Scaled(5)}
        self.kind = Scaled

    def forward(self, x: Tensor) -> Tensor:
        for each in self.many:
            x = each.run(x)
        return self.named["a"].run(self.one.run(self.kind(7).run(x)))


def test_objects_are_of_the_interfaces_that_they_have() -> None:
    net, x = Holding(), runtime.ones(1)
    compiled = script(net)
    assert compiled(x).tolist() == net(x).tolist() == [630.0]
    assert compiled.one is net.one
    assert compiled.many is not net.many
    compiled.one = Scaled(1)
    assert compiled(x).tolist() == [315.0]
    with pytest.raises(ModuleError, match="`one` cannot be a member of `Holding`"):
        compiled.one = Other(1)
    archive = io.BytesIO()
    save(compiled, archive)
    archive.seek(0)
    assert load(archive)(x).tolist() == [315.0]


def test_a_decorated_class_names_itself() -> None:
    @script
    class Node:
        def __init__(self, n: int):
            self.n = n

        def plus(self, other: "Node") -> "Node":
            return Node(self.n + other.n)

    def total(first: Node, second: Node) -> int:
        return first.plus(second).n

    assert script(total)(Node(1), Node(2)) == 3

    with pytest.raises(UnknownAttribute, match="has no attribute `m`"):

        @script
        class Wrong:
            def __init__(self, n: int):
                self.n = n

            def same(self, other: "Wrong") -> bool:
                return self.n == other.m  # type: ignore[attr-defined]  # on purpose
