"""BoundCall calls: by position, of whatever is registered at the moment."""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.dispatch import Dispatcher, Library
from everyorder.runtime.errors.call import KernelError, OperatorGone
from everyorder.runtime.schema import parse_name
from everyorder.runtime.script.primitives.operator_calls import BoundCall, bound_call
from tests.coded import code


def bound(d: Dispatcher, trusted: Any = None) -> BoundCall:
    name = parse_name("test::foo")
    entry = d.entry("test::foo")
    assert entry is not None
    return bound_call(d, name, entry.definitions[0].reading, trusted)


def test_what_is_registered_runs() -> None:
    d = Dispatcher()
    library = Library("test", dispatcher=d)
    definition = library.define("foo(int[] l, ScalarType? t=None, *, int n=2) -> int")
    seen: list[Any] = []

    def kernel(l: Any, t: Any = None, *, n: Any = 2) -> Any:  # noqa: E741  # the schema's
        seen.append((l, t, n))
        return len(l) + n

    held = library.impl("foo", kernel, "CompositeImplicitAutograd")
    call, mine = bound(d).call, [1, 2]
    assert (call(mine, 6, 3), call(mine, None, 2)) == (5, 4)
    assert seen == [([1, 2], runtime.float32, 3), ([1, 2], None, 2)]
    assert seen[0][0] is not mine
    held.close()
    held = library.impl("foo", lambda *a, **k: "text", "CompositeImplicitAutograd")
    with pytest.raises(KernelError, check=code("WrongReturnType")):
        call(mine, None, 2)
    held.close()
    definition.close()
    with pytest.raises(OperatorGone, check=code("OperatorGone")):
        call(mine, None, 2)
    library.define("foo(int[] l) -> int", kernel=len)
    with pytest.raises(
        OperatorGone, check=code("OperatorChanged"), match="another schema"
    ):
        call(mine, None, 2)
    library.close()


def test_a_trusted_kernel_gets_lists_themselves() -> None:
    d = Dispatcher()
    seen: list[Any] = []

    def kernel(l: Any) -> Any:  # noqa: E741  # the schema's
        seen.append(l)
        return len(l)

    with Library("test", dispatcher=d) as library:
        library.define("foo(int[] l) -> int", kernel=runtime.direct(kernel))
        mine = [1]
        for trusted, same in ((kernel, True), (len, False), (None, False)):
            assert bound(d, trusted).call(mine) == 1
            assert (seen.pop() is mine) is same


def test_a_schema_without_a_call_stub_goes_the_plain_way() -> None:
    d = Dispatcher()
    with Library("test", dispatcher=d) as library:
        library.define("foo(int a, ...) -> int", kernel=runtime.boxed(_sum))
        assert bound(d).call(1, 2, 3) == 6


def _sum(operator: Any, keyset: Any, stack: list[Any]) -> None:
    stack.append(sum([stack.pop() for _ in range(3)]))
