"""The rows of upstream's `backend_fallback_test.cpp`.

| upstream row | test here |
|---|---|
| TestBackendFallbackWithMode | with_mode |
| TestBackendFallbackWithWrapper | with_wrapper |
| TestFallthroughBackendFallback | fallthrough_fallback |

`norm` decomposes into `native_norm`, as batch_norm does into its native form.
"""

from typing import Any

from everyorder.runtime.dispatch import Dispatcher, Library, boxed, fallthrough
from everyorder.runtime.keys import DispatchKey, KeySet, exclude_keys, include_keys
from everyorder.runtime.tensors import Tensor, tensor
from tests.dispatch.samples import op, silent, untyped

MODE = DispatchKey.TESTING_ONLY_GenericMode
WRAPPER = DispatchKey.TESTING_ONLY_GenericWrapper


def operators(d: Dispatcher) -> Library:
    """`norm` (a composite of `native_norm`) and `mul`, both with a CPU kernel."""
    library = Library("test", "DEF", dispatcher=d, origin="here")
    library.define("norm(Tensor x) -> Tensor")
    library.define("native_norm(Tensor x) -> Tensor")
    library.define("mul(Tensor x, Tensor y) -> Tensor")

    @untyped
    def norm(x: Any) -> Any:
        return op(d, "test::native_norm").call(x)

    library.impl("norm", norm)
    library.impl("native_norm", lambda x: x, "CPU")
    library.impl("mul", lambda x, y: x, "CPU")
    return library


def test_with_mode() -> None:
    d = silent()
    library, wild = operators(d), Library("_", "IMPL", dispatcher=d)
    seen: list[str] = []

    def fallback(operator: Any, keys: KeySet, stack: list[Any]) -> None:
        seen.append(operator.name.name)
        count = len(operator.schema.arguments)
        arguments = stack[-count:]
        del stack[-count:]
        with exclude_keys([MODE]):  # else the call would come back here, for ever
            stack.extend(operator.call_boxed(arguments))

    wild.fallback(boxed(fallback), MODE)
    x = tensor([1.0])
    with include_keys(MODE):
        assert op(d, "test::mul").call(x, x) is x
    assert seen == ["test::mul"]
    with include_keys(MODE):
        assert op(d, "test::norm").call(x) is x
    assert seen == ["test::mul", "test::norm"]

    # With the guard around the decomposition alone, its parts come by as well.
    seen.clear()

    def decomposing(operator: Any, keys: KeySet, stack: list[Any]) -> None:
        seen.append(operator.name.name)
        key = DispatchKey.CompositeImplicitAutograd
        if operator.has_kernel(key):
            stack.extend(operator.call_for_key(key, [stack.pop()]))
            return
        with exclude_keys([MODE]):
            stack.extend(operator.call_boxed([stack.pop()]))

    wild.close()
    wild = Library("_", "IMPL", dispatcher=d)
    wild.fallback(boxed(decomposing), MODE)
    with include_keys(MODE):
        assert op(d, "test::norm").call(x) is x
    assert seen == ["test::norm", "test::native_norm"]
    library.close()
    wild.close()


class Wrapper(Tensor):
    """A tensor around another; it carries the wrapper key alone."""

    __slots__ = ("inner",)

    def __init__(self, inner: Tensor) -> None:
        super().__init__(
            None,
            shape=inner.shape,
            dtype=inner.dtype,
            device=inner.device,
            key_bits=WRAPPER.bits,
        )
        self.inner = inner


def test_with_wrapper() -> None:
    d = silent()
    library, wild = operators(d), Library("_", "IMPL", dispatcher=d)
    seen: list[str] = []

    def unwrapped(value: Any) -> Any:
        return value.inner if isinstance(value, Wrapper) else value

    def fallback(operator: Any, keys: KeySet, stack: list[Any]) -> None:
        seen.append(operator.name.name)
        count = len(operator.schema.arguments)
        arguments = [unwrapped(value) for value in stack[-count:]]
        del stack[-count:]
        stack.extend(Wrapper(each) for each in operator.call_boxed(arguments))

    wild.fallback(boxed(fallback), WRAPPER)
    inner = tensor([1.0])
    found = op(d, "test::norm").call(Wrapper(inner))
    assert isinstance(found, Wrapper)
    assert found.inner is inner
    assert seen == ["test::norm"], "its parts were called with what was inside"
    mixed = op(d, "test::mul").call(Wrapper(inner), inner)
    assert isinstance(mixed, Wrapper)
    assert seen == ["test::norm", "test::mul"]
    library.close()
    wild.close()


def test_fallthrough_fallback() -> None:
    d = silent()
    library, wild = operators(d), Library("_", "IMPL", dispatcher=d)
    seen: list[str] = []

    @untyped
    def mul(x: Any, y: Any) -> Any:
        seen.append("mul")
        with exclude_keys([MODE]):
            return op(d, "test::mul").call(x, y)

    wild.fallback(fallthrough, MODE)
    library.impl("mul", mul, MODE)
    x = tensor([1.0])
    with include_keys(MODE):
        assert op(d, "test::norm").call(x) is x
        assert seen == []
        assert op(d, "test::mul").call(x, x) is x
    assert seen == ["mul"]
    library.close()
    wild.close()
