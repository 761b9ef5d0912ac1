"""Modules that scripts and Python run alike: each with the calls that are compared."""

# Modules give what `forward` gives: Any.
# mypy: disable-error-code="no-any-return, has-type, assignment, empty-body"

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from everyorder import runtime
from everyorder.runtime import (
    Module,
    ModuleDict,
    ModuleList,
    Parameter,
    Sequential,
    Tensor,
)
from everyorder.runtime.jit import interface
from everyorder.runtime.script.ir.program import export, ignore, unused


class Scale(Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter([1.0])

    def forward(self, x: Tensor) -> Tensor:
        return x * self.w


class Affine(Module):
    def __init__(self, scale: float = 2.0, shift: float = 1.0) -> None:
        super().__init__()
        self.scale = Parameter([scale])
        self.register_buffer("shift", runtime.tensor([shift]))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale + self.shift


class Nested(Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Affine()
        self.second = Affine(3.0, 4.0)
        self.again = self.first

    def forward(self, x: Tensor) -> Tensor:
        return self.again(self.second(self.first(x)))


class Plain(Module):
    limit: Final[int]
    names: list[str]
    maybe: int | None

    def __init__(self) -> None:
        super().__init__()
        self.count = 3
        self.rate = 0.5
        self.flag = True
        self.word = "w"
        self.pair = (1, 2.0)
        self.limit = 7
        self.names = []
        self.maybe = None
        self.table = {"a": 1}

    def forward(self, x: int) -> tuple[float, str, int, bool]:
        known = self.maybe
        extra = 0 if known is None else known
        self.names.append(self.word)
        total = x * self.count + self.pair[0] + extra + self.table["a"]
        return (
            total * self.rate,
            self.word + str(len(self.names)),
            self.limit,
            self.flag,
        )


class Counting(Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.register_buffer("total", runtime.zeros(1))

    def forward(self, x: Tensor) -> int:
        self.calls += 1
        self.total = self.total + x
        return self.calls


class Lists(Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = ModuleList([Affine(float(i), 1.0) for i in range(4)])
        self.empty = ModuleList()

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        for place, layer in enumerate(self.layers):
            x = x + place * layer(x)
        for layer, other in zip(self.layers, self.layers[1:]):  # noqa: B905  # upstream's form
            x = layer(other(x))
        for layer in self.layers[::-1]:
            x = layer(x)
        for _ in self.empty:
            x = x * 0
        return self.layers[1](x) + self.layers[-2](x) + len(self.layers)


class Chains(Module):
    def __init__(self) -> None:
        super().__init__()
        self.chain = Sequential(Affine(), Sequential(Affine(3.0)), Affine(4.0))
        self.named = Sequential(OrderedDict(a=Affine(5.0), b=Affine(6.0)))

    def forward(self, x: Tensor) -> Tensor:
        return self.chain(x) + self.named[1](x) + self.named.a(x) + self.chain[1][0](x)


class Dictionaries(Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = ModuleDict({"a": Affine(), "b": Affine(3.0)})

    def forward(self, x: Tensor) -> tuple[Tensor, str]:
        keys = ""
        for key in self.table:
            keys += key
        for key, layer in self.table.items():
            x = layer(x)
            keys += key
        for layer in self.table.values():
            x = layer(x)
        for key in self.table.keys():  # noqa: SIM118  # this form, too
            keys += key
        if "a" in self.table and "c" not in self.table:
            x = x + len(self.table)
        return self.table["b"](x), keys


class Optionals(Module):
    def __init__(self, down: Module | None) -> None:
        super().__init__()
        self.down = down
        self.register_parameter("bias", None if down is None else Parameter([1.0]))

    def forward(self, x: Tensor) -> Tensor:
        if self.down is not None:
            x = self.down(x)
        if self.bias is not None:
            x = x + self.bias
        return x


class Methods(Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Affine()
        self.factor = 3

    @staticmethod
    def halved(x: Tensor) -> Tensor:
        return x / 2

    @property
    def doubled(self) -> int:
        return self.factor * 2

    @doubled.setter
    def doubled(self, value: int) -> None:
        self.factor = value

    def helper(self, x: Tensor, times: int = 2) -> Tensor:
        for _ in range(times):
            x = self.inner(x)
        return x

    @export
    def extra(self, x: Tensor) -> Tensor:
        return self.helper(x, times=1)

    @ignore
    def aside(self, x: int) -> int:
        return [*range(x)][-1]

    @unused
    def never(self, x: Tensor) -> Tensor:
        return {x}  # type: ignore[return-value]  # nobody compiles it

    def uncompiled(self, x: Any) -> Any:
        return {x}

    def forward(self, x: Tensor) -> Tensor:
        self.doubled = 4
        return self.halved(self.helper(x)) + self.doubled + self.aside(5)


def squared(x: Tensor) -> Tensor:
    return x * x


class Functions(Module):
    def __init__(self) -> None:
        super().__init__()
        self.activation = squared
        self.root = math.sqrt

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(x) + self.root(16.0)


@interface
class Layer(Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Chosen(Module):
    """One module of several, by what is known when the program runs."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = ModuleList([Affine(), Scale(), Affine(3.0)])
        self.table = ModuleDict({"a": Scale(), "b": Affine(5.0)})

    def forward(self, x: Tensor, n: int, key: str) -> Tensor:
        for place in range(n):
            layer: Layer = self.layers[place]
            x = layer.forward(x)
        named: Layer = self.table[key]
        return named.forward(x)


class Walking(Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = Affine()
        self.b = ModuleList([Affine(3.0)])

    def forward(self, x: Tensor) -> tuple[Tensor, str]:
        names = ""
        for name, each in self.named_parameters():
            names += name + ";"
            x = x + each
        for name, each in self.named_buffers():
            names += name + ";"
            x = x + each
        for name, _ in self.named_modules():
            names += name + ";"
        for name, _ in self.named_children():
            names += name + ";"
        for each in self.parameters():
            x = x * each
        return x, names


class Modes(Module):
    def forward(self, x: int) -> int:
        return x if self.training else -x


def before(self: Any, input: tuple[Tensor]) -> tuple[Tensor]:  # noqa: A002  # its name upstream
    return (input[0] + 1,)


def silent(self: Any, input: tuple[Tensor]) -> None:  # noqa: A002  # as above
    pass


def behind(self: Any, input: tuple[Tensor], result: Tensor) -> Tensor:  # noqa: A002  # as above
    return result * 10 + input[0]


class Hooked(Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Affine()
        self.inner.register_forward_pre_hook(before)
        self.inner.register_forward_pre_hook(silent)
        self.inner.register_forward_hook(behind)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


class Above(Affine):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 1


class Higher(Above):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * 2


class Case(NamedTuple):
    """How a module is made, and what it is called with, one call after another."""

    make: Callable[[], Module]
    calls: tuple[tuple[Any, ...], ...]


def tensors(count: int = 2) -> tuple[tuple[Any, ...], ...]:
    return tuple((runtime.tensor([float(i + 1)]),) for i in range(count))


ZOO: dict[str, Case] = {
    "affine": Case(Affine, tensors()),
    "nested": Case(Nested, tensors()),
    "plain": Case(Plain, ((1,), (5,))),
    "counting": Case(Counting, tensors(3)),
    "lists": Case(Lists, tensors()),
    "chains": Case(Chains, tensors()),
    "dictionaries": Case(Dictionaries, tensors()),
    "without": Case(lambda: Optionals(None), tensors()),
    "with": Case(lambda: Optionals(Affine()), tensors()),
    "methods": Case(Methods, tensors()),
    "functions": Case(Functions, tensors()),
    "chosen": Case(
        Chosen,
        (
            (runtime.tensor([2.0]), 3, "a"),
            (runtime.tensor([1.5]), 1, "b"),
        ),
    ),
    "walking": Case(Walking, tensors()),
    "training": Case(Modes, ((3,),)),
    "evaluating": Case(lambda: Modes().eval(), ((3,),)),
    "hooked": Case(Hooked, tensors()),
    "above": Case(Higher, tensors()),
    "a chain": Case(lambda: Sequential(Affine(), Affine(3.0)), tensors()),
}
