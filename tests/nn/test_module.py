"""Modules: members, calls with hooks, state, copies, and what they refuse."""

# Modules give what `forward` gives: Any.
# mypy: disable-error-code="no-any-return, union-attr, assignment"

import copy
import pickle
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import (
    Module,
    ModuleDict,
    ModuleList,
    Parameter,
    Sequential,
    Tensor,
)
from everyorder.runtime.errors import ModuleError, NotReplaceable
from tests.coded import code, coded

ModuleNotInitialized = coded(ModuleError, "ModuleNotInitialized")
UnfitIndex = coded(ModuleError, "UnfitIndex")


class Scale(Module):
    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = Parameter([by, by])
        self.register_buffer("seen", runtime.tensor([0]))
        self.register_buffer("spare", None)
        self.register_buffer("cache", runtime.tensor([1.0]), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.by

    def extra_repr(self) -> str:
        return f"by={self.by.tolist()[0]}"


class Net(Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Scale(2.0)
        self.rest = ModuleList([Scale(3.0), self.first])
        self.name = "net"

    def forward(self, x: Tensor) -> Tensor:
        return self.rest[0](self.first(x))


def paths(pairs: Any) -> list[str]:
    return [path for path, _ in pairs]


def test_a_parameter() -> None:
    x = runtime.tensor([1.0, 2.0])
    one = Parameter(x)
    assert isinstance(one, Tensor)
    assert one.requires_grad
    assert one.is_leaf
    assert not Parameter(x, requires_grad=False).requires_grad
    assert type(one + 1) is Tensor
    x[0] = 5.0
    assert one.tolist() == [5.0, 2.0]
    assert Parameter().shape == (0,)
    again = pickle.loads(pickle.dumps(one))
    assert (type(again), again.requires_grad) == (Parameter, True)


def test_members_come_once() -> None:
    net = Net()
    once = ["first.by", "rest.0.by"]
    assert paths(net.named_parameters()) == once
    everywhere = net.named_parameters(remove_duplicate=False)
    assert paths(everywhere) == [*once, "rest.1.by"]
    assert paths(net.named_parameters(prefix="p", recurse=False)) == []
    assert paths(net.first.named_parameters(prefix="p")) == ["p.by"]
    buffers = ["first.seen", "first.cache", "rest.0.seen", "rest.0.cache"]
    assert paths(net.named_buffers()) == buffers
    assert paths(net.named_modules()) == ["", "first", "rest", "rest.0"]
    assert paths(net.named_children()) == ["first", "rest"]
    assert len([*net.modules()]) == 4
    assert [*net.children()] == [net.first, net.rest]
    assert len([*net.parameters()]) == 2
    assert len([*net.buffers()]) == 4


def test_assigning() -> None:
    one = Scale(1.0)
    one.seen = runtime.tensor([7])
    assert one._buffers["seen"] is one.seen
    one.by = None
    assert one._parameters == {"by": None}
    one.by = Parameter([4.0])
    one.plain = runtime.tensor([1.0])
    assert "plain" in one.__dict__
    one.plain = Parameter([1.0])
    assert "plain" not in one.__dict__
    assert [*one._parameters] == ["by", "plain"]
    one.plain = Sequential()
    assert [*one._parameters] == ["by"]
    assert [*one._modules] == ["plain"]
    one.plain = None
    assert one._modules == {"plain": None}
    del one.plain
    assert not hasattr(one, "plain")
    one.note = 1
    del one.note
    one.cache = Parameter([2.0])
    assert isinstance(one._buffers["cache"], Parameter)
    one.add_module("inner", None)
    assert one._modules == {"inner": None}
    del one.cache
    assert one._non_persistent_buffers_set == set()
    assert {"by", "seen", "forward", "training"} <= {*dir(one)}


class Early(Module):
    def __init__(self) -> None:
        self.by = Parameter([1.0])


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "early": (
        Early,
        ModuleNotInitialized,
        "`by` was assigned to a `Early` that is not initialized.\n"
        "  to do: call `super().__init__()` first",
    ),
    "a dot": (
        lambda: Scale(1.0).register_buffer("a.b", None),
        ModuleError,
        "`a.b` cannot be a member of `Scale`: a name is not empty and has no dots.",
    ),
    "no string": (
        lambda: Scale(1.0).register_buffer(1, None),  # type: ignore[arg-type]  # refused
        ModuleError,
        "`1` cannot be a member of `Scale`: a name is a string, not an object of type "
        "int.",
    ),
    "taken": (
        lambda: Scale(1.0).register_module("forward", Scale(1.0)),
        ModuleError,
        "`forward` cannot be a member of `Scale`: there is an attribute of this name.",
    ),
    "no parameter": (
        lambda: Scale(1.0).register_parameter("w", runtime.ones(1)),  # type: ignore[arg-type]  # refused
        ModuleError,
        "`w` cannot be a member of `Scale`: an object of type Tensor is not "
        "a `Parameter`.",
    ),
    "no tensor": (
        lambda: Scale(1.0).register_buffer("w", 1),  # type: ignore[arg-type]  # refused
        ModuleError,
        "`w` cannot be a member of `Scale`: an object of type int is not a tensor.",
    ),
    "no module": (
        lambda: ModuleList([1]),  # type: ignore[list-item]  # refused
        ModuleError,
        "`0` cannot be a member of `ModuleList`: an object of type int is not a "
        "module.",
    ),
    "another in its place": (
        lambda: setattr(Scale(1.0), "by", 1),
        ModuleError,
        "`by` cannot be a member of `Scale`: only a `Parameter` or None replaces "
        "the existing one, not an object of type int.",
    ),
    "no mode": (
        lambda: Scale(1.0).train(1),
        ModuleError,
        "`training` cannot be a member of `Scale`: it is a bool, not an object of type "
        "int.",
    ),
    "no pair": (
        lambda: ModuleDict([3]),
        ModuleError,
        "`?` cannot be a member of `ModuleDict`: an object of type int is not a pair "
        "of a key and a module.",
    ),
    "no attribute": (
        lambda: Scale(1.0).sen,
        ModuleError,
        "`Scale` has no attribute `sen`.\n  similar: seen",
    ),
    "no path": (
        lambda: Net().get_submodule("rest.7"),
        ModuleError,
        "`Net` has no module `rest.7`.\n  similar: rest.0, rest",
    ),
    "no parameter there": (
        lambda: Net().get_parameter("first.bye"),
        ModuleError,
        "`Net` has no parameter `first.bye`.\n"
        "  similar: first.by, rest.1.by, rest.0.by",
    ),
    "no buffer there": (
        lambda: Net().get_buffer("first.spare"),
        ModuleError,
        "`Net` has no buffer `first.spare`.\n  similar: first.seen, first.cache",
    ),
    "no forward": (
        Module(),
        coded(ModuleError, "NoForward"),
        "`Module` was called and has no `forward`.\n"
        "  to do: define `forward(self, ...)` in the class",
    ),
    "out of range": (
        lambda: Net().rest[2],
        UnfitIndex,
        "`ModuleList` has no module at 2; the last is 1.",
    ),
    "no index": (
        lambda: Sequential()["a"],  # type: ignore[call-overload]  # refused
        UnfitIndex,
        "`Sequential` has no module at an object of type str; it is empty.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    call, kind, text = REFUSED[case]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == text


def test_paths() -> None:
    net = Net()
    assert net.get_submodule("") is net
    assert net.get_submodule("rest.1") is net.first
    assert net.get_parameter("rest.0.by") is net.rest[0].by
    assert net.get_buffer("first.seen") is net.first.seen


def test_modes() -> None:
    net = Net()
    assert net.eval() is net
    assert not any(each.training for each in net.modules())
    assert all(each.training for each in net.train().modules())
    visited: list[str] = []
    assert net.apply(lambda each: visited.append(type(each).__name__)) is net
    assert visited == ["Scale", "Scale", "Scale", "ModuleList", "Net"]


def test_gradients() -> None:
    net = Net()
    net(runtime.ones(2)).sum().backward()
    assert net.first.by.grad.tolist() == [3.0, 3.0]
    net.zero_grad(set_to_none=False)
    assert net.first.by.grad.tolist() == [0.0, 0.0]
    net.zero_grad()
    assert net.first.by.grad is None
    assert not any(
        each.requires_grad for each in net.requires_grad_(False).parameters()
    )


def test_moving() -> None:
    net = Net()
    by = net.first.by
    assert net.to("cpu").first.by is by
    assert net.double() is net
    assert net.first.by.dtype is runtime.float64
    assert isinstance(net.first.by, Parameter)
    assert net.rest[1].by is net.first.by
    assert net.first.seen.dtype is runtime.int64
    assert net.to(dtype=runtime.float32).first.cache.dtype is runtime.float32
    assert net.half().first.by.dtype is runtime.float16
    assert net.bfloat16().first.by.dtype is runtime.bfloat16
    assert net.float().cpu().first.by.dtype is runtime.float32
    assert net.to("meta").first.by.device.type == "meta"


def test_hooks() -> None:
    one, events = Scale(2.0), []
    x = runtime.ones(2)

    def before(module: Module, args: Any) -> Any:
        events.append(("before", module is one, len(args)))
        return args[0] + 1

    def behind(module: Module, args: Any, result: Tensor) -> Any:
        events.append(("behind", args[0].tolist(), result.tolist()))
        return result * 10

    first = one.register_forward_pre_hook(before)
    second = one.register_forward_hook(behind)
    assert one(x).tolist() == [40.0, 40.0]
    assert events == [("before", True, 1), ("behind", [2.0, 2.0], [4.0, 4.0])]
    assert copy.deepcopy(one)(x).tolist() == [40.0, 40.0]
    first.remove()
    first.remove()
    assert one(x).tolist() == [20.0, 20.0]
    second.remove()
    with one.register_forward_pre_hook(
        lambda module, args, kwargs: ((), {"x": kwargs["x"] + 2}), with_kwargs=True
    ):
        assert one(x=x).tolist() == [6.0, 6.0]
    assert one(x).tolist() == [2.0, 2.0]


def test_a_hook_in_front() -> None:
    one, events = Scale(1.0), []
    one.register_forward_hook(lambda *_: events.append("late"))
    one.register_forward_hook(
        lambda *_: events.append("early"), prepend=True, with_kwargs=True
    )
    one(runtime.ones(2))
    assert events == ["early", "late"]


def test_state() -> None:
    net = Net()
    state = net.state_dict()
    names = ["first.by", "first.seen", "rest.0.by", "rest.0.seen", "rest.1.by"]
    assert [*state] == [*names, "rest.1.seen"]
    assert not state["first.by"].requires_grad
    assert net.state_dict(keep_vars=True)["first.by"] is net.first.by
    assert [*net.first.state_dict(prefix="p.")] == ["p.by", "p.seen"]
    other = Net()
    with runtime.no_grad():
        other.first.by.mul_(100)
    assert tuple(other.load_state_dict(state)) == ([], [])
    assert other.first.by.tolist() == [2.0, 2.0]
    assert other.first.by is not net.first.by
    state["rest.1.seen"] = runtime.tensor([9])
    other.load_state_dict(state, assign=True)
    assert other.first.seen.tolist() == [9]
    assert isinstance(other.first.by, Parameter)


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    one = Scale(2.0)
    state = {"by": runtime.zeros(3), "more": runtime.zeros(1)}
    with pytest.raises(NotReplaceable, check=code("StateMismatch")) as caught:
        one.load_state_dict(state)
    assert str(caught.value) == (
        "The state does not fit `Scale`.\n"
        "  missing:    seen\n"
        "  unexpected: more\n"
        "  unfit:      by has shape (3,) instead of (2,)"
    )
    with pytest.raises(
        NotReplaceable, check=code("StateMismatch"), match="by is an object of type int"
    ):
        one.load_state_dict({"by": 1}, strict=False)
    assert one.by.tolist() == [2.0, 2.0]
    found = one.load_state_dict({"more": runtime.zeros(1)}, strict=False)
    assert tuple(found) == (["by", "seen"], ["more"])


def test_text() -> None:
    assert repr(Net()) == (
        "Net(\n"
        "  (first): Scale(by=2.0)\n"
        "  (rest): ModuleList(\n"
        "    (0): Scale(by=3.0)\n"
        "    (1): Scale(by=2.0)\n"
        "  )\n"
        ")"
    )
    assert repr(ModuleList([Module(), Module()])) == (
        "ModuleList(\n  (0-1): 2 x Module()\n)"
    )
    assert repr(Module()) == "Module()"


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))],
    ids=["deepcopy", "pickle"],
)
def test_copies(copied: Any) -> None:
    net = Net()
    again = copied(net)
    assert again.rest[1] is again.first
    assert again.first.by is not net.first.by
    assert again.first.by.tolist() == [2.0, 2.0]
    assert (again.name, again.training) == ("net", True)
    assert again(runtime.ones(2)).tolist() == [6.0, 6.0]


def test_lists() -> None:
    a, b, c = Scale(1.0), Scale(2.0), Scale(3.0)
    found = ModuleList([a, b])
    assert (len(found), found[0], found[-1], [*found]) == (2, a, b, [a, b])
    assert found.append(c) is found
    assert [*found[1:]] == [b, c]
    assert type(found[1:]) is ModuleList
    assert [*found[1:]._modules] == ["0", "1"]
    found.insert(0, c)
    assert [*found] == [c, a, b, c]
    assert found.pop(0) is c
    del found[0]
    found += [a]
    assert [*found] == [b, c, a]
    found[-1] = b
    joined = found + [a]  # noqa: RUF005  # its own `+`
    assert [*joined] == [b, c, b, a]
    del found[:2]
    assert [*found._modules] == ["0"]
    with pytest.raises(ModuleError, check=code("UnfitMember")):
        found.insert(0, 1)  # type: ignore[arg-type]  # refused
    assert [*found] == [b]


def test_chains() -> None:
    chain = Sequential(Scale(2.0), Scale(3.0))
    assert chain(runtime.ones(2)).tolist() == [6.0, 6.0]
    named = Sequential({"a": Scale(2.0), "b": Scale(5.0)})
    assert named.a is named[0]
    assert named[1:](runtime.ones(2)).tolist() == [5.0, 5.0]
    named[1] = Scale(1.0)
    assert [*named._modules] == ["a", "b"]


def test_dictionaries() -> None:
    a, b = Scale(1.0), Scale(2.0)
    found = ModuleDict({"a": a})
    found["b"] = b
    assert ([*found], [*found.keys()], [*found.values()]) == (["a", "b"],) * 2 + (
        [a, b],
    )
    assert [*found.items()] == [("a", a), ("b", b)]
    assert ("a" in found, "c" in found, len(found)) == (True, False, 2)
    assert found["a"] is found.a
    assert found.pop("a") is a
    del found["b"]
    found.update([("c", a)])
    found.clear()
    assert len(found) == 0


def test_a_module_that_was_pickled_with_an_older_name_of_its_hooks_is_loaded() -> None:
    text = pickle.dumps(Scale(2.0), protocol=2)
    older = text.replace(b".node\nHookTable\n", b".node\nTable\n")
    assert older != text
    assert pickle.loads(older)(runtime.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
