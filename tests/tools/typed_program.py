"""What a type checker knows of a program; checked by `test_stub`, run by nobody.

A checker must refuse the lines that say `type: ignore`, and no other one.
"""

# As mypy has it, strict.
# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import Callable, Iterator
from typing import Any, assert_type

from everyorder import runtime
from everyorder.runtime import Tensor, futures
from everyorder.runtime.operators.bindings.python_api import Ordered

Number = bool | int | float | complex


def methods(x: Tensor, y: Tensor) -> None:
    assert_type(x @ x, Tensor)
    assert_type(x + 1, Tensor)
    assert_type(1 - x, Tensor)
    assert_type(-x, Tensor)
    assert_type(x == y, Tensor)
    assert_type(x < 2.0, Tensor)
    assert_type(x[1:], Tensor)
    assert_type(x.sum(), Tensor)
    assert_type(x.sum((0, 1), keepdim=True, dtype="float64"), Tensor)
    assert_type(x.max(), Tensor)
    assert_type(x.max(dim=0), Ordered)
    assert_type(x.max(0, True).indices, Tensor)
    assert_type(x.max(y), Tensor)
    assert_type(x.sort(descending=True).values, Tensor)
    assert_type(x.view(2, -1), Tensor)
    assert_type(x.view((2, -1)), Tensor)
    assert_type(x.view(runtime.float32), Tensor)
    assert_type(x.permute(1, 0), Tensor)
    assert_type(x.expand(2, -1, 3), Tensor)
    assert_type(x.var(unbiased=False), Tensor)
    assert_type(x.nonzero(), Tensor)
    assert_type(x.nonzero(as_tuple=True), tuple[Tensor, ...])
    assert_type(x.split(2), tuple[Tensor, ...])
    assert_type(x.float().to("cuda"), Tensor)
    assert_type(x.T.mT.real, Tensor)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.dtype, runtime.dtype)
    assert_type(x.item(), Any)
    assert_type(x.tolist(), Any)
    assert_type(x.equal(y), bool)
    assert_type(x.add_(y), Tensor)
    assert_type(x.grad, Tensor | None)
    assert_type(x.backward(), None)
    assert_type(x.permute(dims=(1, 0)), Tensor)
    assert_type(x.new_zeros(size=(2,), dtype=float), Tensor)
    assert_type(x.to(y), Tensor)
    assert_type(x.unique(return_counts=True), tuple[Tensor, ...])
    assert_type(x.unique(), Tensor)
    assert_type(x.register_hook(lambda gradient: gradient * 2).remove(), None)
    x[0] = 1
    x[0, 1:] = [1.0, 2.0]
    x.grad = None
    x += y
    print(x.nonexistent)  # type: ignore[attr-defined]
    x.sum(keepdims="no")  # type: ignore[call-arg]
    x.relu(1)  # type: ignore[call-arg]


def functions(x: Tensor) -> None:
    assert_type(runtime.zeros(2, 3), Tensor)
    assert_type(runtime.zeros((2, 3), dtype="float32"), Tensor)
    assert_type(runtime.zeros(2, dtype=runtime.float32, device="cpu"), Tensor)
    assert_type(runtime.tensor([1.0, 2.0]), Tensor)
    assert_type(runtime.arange(3), Tensor)
    assert_type(runtime.float32, runtime.dtype)
    assert_type(runtime.inf, float)
    assert_type(runtime.add(x, 1, alpha=2, out=x), Tensor)
    assert_type(runtime.cat([x, x], 1), Tensor)
    assert_type(runtime.topk(x, 2), Ordered)
    assert_type(runtime.max(x, 0), Ordered)
    assert_type(runtime.where(x > 0, x, 0.0), Tensor)
    assert_type(runtime.where(x > 0), tuple[Tensor, ...])
    assert_type(runtime.allclose(x, x), bool)
    assert_type(runtime.max_pool2d(x, 2), Tensor)
    assert_type(runtime.max_pool2d(x, 2, return_indices=True), tuple[Tensor, Tensor])
    assert_type(runtime.conv2d(x, x, padding="same"), Tensor)
    assert_type(runtime.randint(3, (2, 2), generator=runtime.Generator()), Tensor)
    assert_type(runtime.autograd.Function, type[runtime.Function])
    print(runtime.nonexistent)  # type: ignore[attr-defined]
    runtime.matmul(x)  # type: ignore[call-arg]
    runtime.zeros(2, dtpe="float32")  # type: ignore[call-arg]
    runtime.zeros(2, dtype=3.5)  # type: ignore[arg-type]


def operators(x: Tensor) -> None:
    assert_type(runtime.ops.core.add(x, 1), Tensor)
    assert_type(runtime.ops.aten.mul(x, x), Tensor)
    assert_type(runtime.ops.core.add.Tensor(x, x), Any)
    assert_type(runtime.ops.core.equal(x, x), bool)
    assert_type(runtime.ops.mine.f(x), Any)
    print(runtime.ops.core.nonexistent)  # type: ignore[attr-defined]


class Counting(Tensor):
    calls: int

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def classes(x: Counting) -> None:
    assert_type(x.calls, int)
    assert_type(x.as_subclass(Counting), Counting)
    assert_type(Tensor._make_subclass(Counting, x), Counting)
    assert_type(x + x, Tensor)
    assert_type(x.add_(1), Counting)
    print(x.nonexistent)  # type: ignore[attr-defined]


@runtime.no_grad()
def quiet(x: Tensor, times: int = 1) -> Tensor:
    return x * times


@runtime.enable_grad()
def each(x: Tensor) -> Iterator[Tensor]:
    yield x


@runtime.set_grad_enabled(False)
@runtime.inference_mode()
@runtime.autocast("cpu")
def named(x: Tensor, *, name: str) -> str:
    return name


class Layer:
    @runtime.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        return x


@runtime.custom_op("mine::scale", mutates_args=())
def scale(x: Tensor, factor: float = 2.0) -> Tensor:
    return x * factor


def _pair(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * 1, x * 2


pair = runtime.custom_op("mine::pair", _pair, mutates_args=())


def decorators(x: Tensor) -> None:
    assert_type(quiet(x, times=2), Tensor)
    assert_type(each(x), Iterator[Tensor])
    assert_type(named(x, name=""), str)
    assert_type(Layer().forward(x), Tensor)
    assert_type(scale(x), Tensor)
    assert_type(scale(x, factor=3.0), Tensor)
    assert_type(pair(x), tuple[Tensor, Tensor])
    assert_type(scale.name, str)
    with runtime.no_grad() as mode:
        assert_type(mode, runtime.no_grad)
    quiet("x")  # type: ignore[arg-type]
    quiet(x, 1, 2)  # type: ignore[call-arg]
    named(x)  # type: ignore[call-arg]
    Layer().forward()  # type: ignore[call-arg]
    scale(x, "2")  # type: ignore[arg-type]
    pair(x, x)  # type: ignore[call-arg]
    print(scale.nonexistent)  # type: ignore[attr-defined]


@scale.register_fake
def _(x: Tensor, factor: float = 2.0) -> Tensor:
    return runtime.empty_like(x)


def callables() -> Callable[[Tensor, float], Tensor]:
    return scale


def asked_later(x: Tensor, names: list[str]) -> None:
    future = futures.Future[int]()
    assert_type(future.wait(), int)
    assert_type(futures.Future[int]().wait(timeout=1.5), int)
    assert_type(future.value(), int)
    assert_type(future.done(), bool)
    assert_type(future.then(lambda f: str(f.wait())), futures.Future[str])
    assert_type(future.then_async(lambda f: f), futures.Future[int])
    assert_type(futures.collect_all([future]).wait(), list[futures.Future[int]])
    assert_type(futures.wait_all([future]), list[int])
    assert_type(futures.call_end_callbacks(future, print), futures.Future[int])
    assert_type(futures.from_concurrent(futures.to_concurrent(future)).wait(), int)
    aw = futures.awaitable(scale, x, factor=3.0)
    assert_type(aw, futures.Await[Tensor])
    assert_type(aw.wait(), Tensor)
    assert_type(futures.awaitable_wait(aw), Tensor)
    assert_type(futures.awaitable_nowait(3).wait(), int)
    assert_type(aw.is_nowait(), bool)
    assert_type(aw.dtype, Any)
    future.set_result("x")  # type: ignore[arg-type]
    future.set_exception(3)  # type: ignore[arg-type]
    future.then(lambda: 1)  # type: ignore[arg-type,misc]
    futures.awaitable(scale, "x")  # type: ignore[arg-type]
    futures.awaitable(3)  # type: ignore[arg-type]
    futures.awaitable_wait(future)  # type: ignore[arg-type]
    print(future.nonexistent)  # type: ignore[attr-defined]


async def in_a_loop(future: futures.Future[int]) -> None:
    assert_type(await future, int)
