"""Worlds: ours and torch's, by one surface, so that one small program runs in both.

True only here: what the two call differently.  A program defines operators, classes of
tensors and modes through its world and returns the lines that its handlers wrote.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from everyorder import runtime
from everyorder.runtime import python_dispatch
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.schema.enums import DType, Layout, MemoryFormat

# Both dispatchers have nothing else there.
NAMESPACE = "everyorder_worlds"

# What is no dtype.
KINDS: dict[str, Any] = {"strided": Layout, "contiguous_format": MemoryFormat}

# (world, who, func, types, args, kwargs) -> the result of a handler
Answer = Callable[["World", Any, Any, Any, Any, Any], Any]


def declines(
    world: "World", who: Any, func: Any, types: Any, args: Any, kwargs: Any
) -> Any:
    """The answer of one who leaves the call to others."""
    return NotImplemented


def runs(
    world: "World", who: Any, func: Any, types: Any, args: Any, kwargs: Any
) -> Any:
    """The answer of a mode that lets the call go on."""
    return func(*args, **kwargs)


def leaves(
    world: "World", who: Any, func: Any, types: Any, args: Any, kwargs: Any
) -> Any:
    """The answer of a class that runs the operator without handlers."""
    with world.no_dispatch():
        return func(*args, **kwargs)


class World:
    """What both have in common."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, line: str) -> None:
        self.lines.append(line)

    def heard(self, who: str, func: Any, types: Any, args: Any, kwargs: Any) -> None:
        """Write down what a handler was called with."""
        names = ", ".join(each.__name__ for each in types)
        given = [*map(shown, args), *(f"{k}={shown(v)}" for k, v in kwargs.items())]
        name = f"{func.__module__.removeprefix('torch._ops.')}.{func.__name__}"
        name = name.removeprefix("everyorder.runtime.ops.").replace(f"{NAMESPACE}.", "")
        self.note(f"{who}: {name}({', '.join(given)}) types=({names})")

    def subclass(self, name: str, *bases: type, answer: Answer = declines) -> Any:
        """A class of tensors whose handler writes a line and answers."""
        world = self

        def handler(
            cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            world.heard(cls.__name__, func, types, args, kwargs)
            return answer(world, cls, func, types, args, kwargs)

        found = bases or (self.tensors,)
        return type(name, found, {"__torch_dispatch__": classmethod(handler)})

    def mode(self, name: str, answer: Answer = runs) -> Any:
        """An object of a new class of modes, likewise."""
        world = self

        def handler(
            mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            world.heard(name, func, types, args, kwargs)
            return answer(world, mode, func, types, args, kwargs)

        return type(name, (self.modes,), {"__torch_dispatch__": handler})()

    def made(self, cls: Any) -> Any:
        """A tensor of that class, with elements."""
        return self.tensors._make_subclass(cls, self.tensor(1.0))

    def raises(self, call: Callable[[], Any], *kinds: type[BaseException]) -> None:
        """Write down whether the call raises one of these."""
        try:
            call()
        except kinds as error:
            name = next(each.__name__ for each in kinds if isinstance(error, each))
            self.note(f"raised {name}")
        else:
            self.note("returned")

    # What differs.

    tensors: Any
    modes: Any
    dispatch: Any

    def tensor(self, *values: float) -> Any:
        raise NotImplementedError

    def no_dispatch(self) -> Any:
        raise NotImplementedError

    def operator(self, schema: str, kernel: Callable[..., Any]) -> Any:
        """Define an operator with a composite kernel; gives its only overload."""
        raise NotImplementedError

    def value(self, name: str) -> Any:
        """A dtype, a layout, a memory format or a device."""
        raise NotImplementedError

    def bits(self) -> tuple[int, int]:
        """What the thread includes and excludes."""
        raise NotImplementedError

    def rule(self, op: Any, cls: type, rule: Callable[..., Any]) -> None:
        raise NotImplementedError

    def stack(self) -> list[str]:
        raise NotImplementedError

    def without_modes(self) -> Any:
        raise NotImplementedError

    def without_innermost(self) -> Any:
        raise NotImplementedError

    def reentrant(self) -> Any:
        raise NotImplementedError


class Ours(World):
    """This runtime."""

    tensors = runtime.Tensor
    modes = python_dispatch.TorchDispatchMode

    def __init__(self) -> None:
        super().__init__()
        self.library = runtime.Library(NAMESPACE, "FRAGMENT")
        self.rules: list[Any] = []

    def tensor(self, *values: float) -> Any:
        return runtime.tensor([*values])

    def no_dispatch(self) -> Any:
        return python_dispatch.no_dispatch()

    def operator(self, schema: str, kernel: Callable[..., Any]) -> Any:
        name = schema.partition("(")[0]
        self.library.define(schema)
        self.library.impl(name, kernel, "CompositeExplicitAutograd")
        return getattr(getattr(runtime.ops, NAMESPACE), name).default

    def value(self, name: str) -> Any:
        if name.startswith("cpu"):
            return runtime.Device.parse(name)
        kind = KINDS.get(name, DType)
        return kind.named(name)

    def bits(self) -> tuple[int, int]:
        return LOCAL.included, LOCAL.excluded

    def rule(self, op: Any, cls: type, rule: Callable[..., Any]) -> None:
        self.rules.append(python_dispatch.register_torch_dispatch(op, cls, rule))

    def stack(self) -> list[str]:
        return [type(each).__name__ for each in python_dispatch.current_modes()]

    def without_modes(self) -> Any:
        return python_dispatch.disable_current_modes()

    def without_innermost(self) -> Any:
        return python_dispatch.pop_mode_temporarily()

    def reentrant(self) -> Any:
        return python_dispatch.enable_reentrant_dispatch()

    def close(self) -> None:
        for rule in self.rules:
            rule.close()
        self.library.close()


class Torchs(World):
    """The real torch."""

    def __init__(self) -> None:
        super().__init__()
        import torch
        from torch.utils import _python_dispatch

        self.torch = torch
        self.private = _python_dispatch
        self.tensors = torch.Tensor
        self.modes = _python_dispatch.TorchDispatchMode
        self.library = torch.library.Library(NAMESPACE, "FRAGMENT")

    def tensor(self, *values: float) -> Any:
        # Torch makes tensors by operators, which modes would hear of.
        with self.without_modes():
            return self.torch.tensor([*values])

    def no_dispatch(self) -> Any:
        return self.torch._C._DisableTorchDispatch()

    def operator(self, schema: str, kernel: Callable[..., Any]) -> Any:
        name = schema.partition("(")[0]
        self.library.define(schema)
        self.library.impl(name, kernel, "CompositeExplicitAutograd")
        return getattr(getattr(self.torch.ops, NAMESPACE), name).default

    def value(self, name: str) -> Any:
        if name.startswith("cpu"):
            return self.torch.device(name)
        return getattr(self.torch, name)

    def bits(self) -> tuple[int, int]:
        private = self.torch._C
        return (
            private._dispatch_tls_local_include_set().raw_repr(),
            private._dispatch_tls_local_exclude_set().raw_repr(),
        )

    def rule(self, op: Any, cls: type, rule: Callable[..., Any]) -> None:
        self.torch.library.register_torch_dispatch(
            op.name(), cls, rule, lib=self.library
        )

    def stack(self) -> list[str]:
        found = self.private._get_current_dispatch_mode_stack()
        return [type(each).__name__ for each in found]

    def without_modes(self) -> Any:
        return self.private._disable_current_modes()

    def without_innermost(self) -> Any:
        return self.private._pop_mode_temporarily()

    def reentrant(self) -> Any:
        return self.torch.overrides.enable_reentrant_dispatch()

    def close(self) -> None:
        self.library._destroy()


@contextmanager
def opened(kind: type[Any]) -> Iterator[Any]:
    """A world, and its end."""
    world = kind()
    try:
        yield world
    finally:
        world.close()


def shown(value: Any) -> str:
    """A value as both worlds show it."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(shown, value))}]"
    if hasattr(value, "data_ptr"):
        return type(value).__name__
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return repr(value)
    return str(value).removeprefix("torch.")
