"""What `runtime.jit` compiles, saves and loads: functions, classes and modules."""

import enum
import gc
import weakref
from collections.abc import Callable
from io import BytesIO
from typing import Any, Final, NamedTuple

import pytest

from everyorder import runtime
from everyorder.runtime import jit
from everyorder.runtime.errors import ArchiveError
from everyorder.runtime.jit import Await, ScriptFunction
from everyorder.runtime.nn import Module, ModuleList, Parameter
from everyorder.runtime.script.executor import call
from tests.script.archive.recompile import recompiled

Tensor = runtime.Tensor


def again(value: Any) -> Any:
    """What comes back of an archive, and is saved as the same bytes."""
    file, twice = BytesIO(), BytesIO()
    jit.save(value, file)
    file.seek(0)
    back = jit.load(file)
    jit.save(back, twice)
    assert twice.getvalue() == file.getvalue()
    return back


def same(function: Callable[..., Any], *arguments: Any) -> ScriptFunction:
    """The function of an archive gives what Python gives; so does its text."""
    ours = jit.script(function)
    back = again(ours)
    assert isinstance(back, ScriptFunction)
    assert back.code == ours.code
    text = recompiled(ours.function)
    wanted = repr(function(*arguments))
    assert repr(ours(*arguments)) == repr(back(*arguments)) == wanted
    assert repr(call(text, arguments, {})) == wanted
    return back


def several(x: Tensor) -> tuple[Tensor, list[Tensor]]:
    return x + 1, [x * i for i in range(5)]


def several_later(x: Tensor) -> Tensor:
    aw = jit._awaitable(several, x)
    one, others = jit._awaitable_wait(aw)
    for each in others:
        one = one + each
    return one


@pytest.mark.spec("script 1.9", "16 multiout_save")
def test_await_multiout_save() -> None:
    assert "awaitable(__awaitable_function)" in jit.script(several_later).code
    same(several_later, runtime.tensor([1.0, 2.0]))


def awaited(aw: Await[Tensor]) -> Tensor:
    return jit._awaitable_wait(aw) * 3


def one_more(x: Tensor) -> Tensor:
    return x + 1


def awaited_elsewhere(x: Tensor) -> Tensor:
    aw = jit._awaitable(one_more, x)
    return awaited(aw)


@pytest.mark.spec("script 1.9", "17 func_arg")
def test_await_func_arg() -> None:
    same(awaited_elsewhere, runtime.tensor([1.0]))


def forked(x: Tensor, n: int) -> Tensor:
    found = [jit.fork(one_more, x * i) for i in range(n)]
    for each in found:
        x = x + jit.wait(each)
    return x


def test_forks_in_a_list() -> None:
    same(forked, runtime.tensor([1.0]), 3)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Both(NamedTuple):
    number: int
    name: str


class Counter:
    def __init__(self, start: int) -> None:
        self.total = start
        self.seen = [start]

    def add(self, more: int) -> int:
        self.total += more
        self.seen.append(more)
        return self.total

    def __len__(self) -> int:
        return len(self.seen)


def mixed(n: int) -> tuple[int, str, dict[str, list[int]], Both]:
    counter = Counter(n)
    found: dict[str, list[int]] = {}
    while len(counter) < 6:
        if counter.add(len(counter)) > 9:
            break
        found[f"{counter.total}é\n"] = counter.seen[:]
    colour = Colour.RED if n > 2 else Colour.BLUE
    name: str | None = None
    if colour == Colour.RED:
        name = "red"
    if name is None:
        name = "none"
    return counter.total, name, found, Both(len(found), name)


def test_classes_enums_named_tuples_and_control() -> None:
    back = same(mixed, 1)
    for n in (0, 2, 3, 20):
        assert repr(back(n)) == repr(mixed(n))


class Level:
    def __init__(self, height: int) -> None:
        self.height = height

    @property
    def twice(self) -> int:
        return self.height * 2

    @twice.setter
    def twice(self, value: int) -> None:
        self.height = value // 2


def level(height: int) -> Level:
    made = Level(height)
    made.twice = made.twice + 2
    return made


def test_properties_are_those_of_python_again() -> None:
    made = again(jit.script(level))(3)
    assert type(made) is not Level
    assert (made.height, made.twice) == (4, 8)
    made.twice = 10
    assert made.height == 5
    assert again(jit.script(level))(1).twice == 4


def limits(x: float) -> tuple[bool, float, float, str]:
    return x < float("inf"), -float("inf"), float("nan"), "\ud800'\"\\"


def test_constants_that_no_literal_writes() -> None:
    same(limits, 1.0)


def without(x: Tensor) -> Tensor:
    with runtime.no_grad():
        y = x * 2
    return y + 1


def test_managers_of_the_runtime() -> None:
    back = same(without, runtime.tensor([1.0]))
    assert not back(runtime.tensor([1.0], requires_grad=True)).requires_grad


class Scale(Module):
    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by
        self.weight = Parameter(runtime.tensor([by, by]))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight + self.by


class Network(Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = ModuleList([Scale(1.0), Scale(2.0)])
        self.register_buffer("offset", runtime.tensor([0.5, 0.5]))
        self.shared = self.layers[0].weight
        self.names = {"a": 1}

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        y: Tensor = x + self.offset + self.names["a"]
        return y


def test_modules() -> None:
    ours = jit.script(Network())
    back = again(ours)
    x = runtime.tensor([1.0, 2.0])
    assert back(x).tolist() == ours(x).tolist() == Network()(x).tolist()
    assert back.code == ours.code
    names = [name for name, _ in ours.named_parameters()]
    assert [name for name, _ in back.named_parameters()] == names
    assert back.shared is back.layers[0].weight
    assert list(back.state_dict()) == list(ours.state_dict())
    back.layers[0].weight.data.fill_(5.0)
    assert back.shared.tolist() == [5.0, 5.0]


@pytest.mark.spec("script 0.19", "owners")
def test_what_is_loaded_dies_with_its_last_user() -> None:
    function = again(jit.script(several_later))
    dead = weakref.ref(function.function)
    del function
    gc.collect()
    assert dead() is None


class Volume(enum.Enum):
    LOW = 1
    HIGH = 2


class Levels(Module):
    names: dict[str, Volume]
    fixed: Final[Volume]

    def __init__(self) -> None:
        super().__init__()
        self.level = Volume.LOW
        self.others = [Volume.HIGH]
        self.names = {"a": Volume.LOW}
        self.pair = (1, Volume.HIGH)
        self.fixed = Volume.HIGH

    def forward(self, x: Tensor) -> Tensor:
        if self.level == Volume.LOW and self.others[0] == self.pair[1]:
            return x + 1
        if self.fixed == self.names["a"]:
            return x - 1
        return x

    @jit.export
    def change(self, level: Volume = Volume.HIGH) -> None:
        self.level = level


def test_members_of_enums_are_values_of_modules() -> None:
    ours, x = jit.script(Levels()), runtime.zeros(1)
    back = again(ours)
    assert back(x).tolist() == ours(x).tolist() == [1.0]
    assert back.level is Volume.LOW
    assert (back.others, back.names, back.fixed) == (
        [Volume.HIGH],
        {"a": Volume.LOW},
        Volume.HIGH,
    )
    back.change()
    assert (back(x).tolist(), back.level) == ([0.0], Volume.HIGH)
    # The enum is shared: what was loaded does not change what is compiled and saved.
    assert jit.script(Levels()).__script_type__ is ours.__script_type__
    assert again(ours)(x).tolist() == [1.0]
    assert again(back)(x).tolist() == [0.0]


@jit.script
class Stateful:
    def __init__(self, n: int):
        self.n = n

    def __getstate__(self) -> int:
        return self.n

    def __setstate__(self, n: int) -> None:
        self.n = n + 1


class HoldsState(Module):
    held: Stateful

    def __init__(self) -> None:
        super().__init__()
        self.held = Stateful(4)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.held.n


def test_attributes_are_saved_whatever_the_state_is() -> None:
    ours = jit.script(HoldsState())
    back = again(ours)
    assert back(runtime.zeros(1)).tolist() == [4.0]
    assert back.held.__getstate__() == 4


@jit.script
class Indexed:
    def __init__(self, n: int):
        self.n = n

    def __index__(self) -> int:
        return self.n


def index_of(x: Tensor) -> int:
    return Indexed(3).n


def test_a_method_that_cannot_be_loaded_is_not_saved() -> None:
    with pytest.raises(ArchiveError) as caught:
        jit.save(jit.script(index_of), BytesIO())
    assert str(caught.value).splitlines()[1:] == [
        "Python calls its method `__index__` by itself.",
        "  at:    the types",
        "  to do: Give the method another name.",
    ]
