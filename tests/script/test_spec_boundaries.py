"""What holds at the boundaries: storages, owners, imports, and the first error of all.

Tests of the other boundaries are marked `spec("boundary", ...)`, each in its area.
"""

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import jit
from everyorder.runtime.errors.script import NotSupported
from everyorder.runtime.script.emission import compile_text
from everyorder.runtime.script.ir.program import Program
from tests.counting import unmeasured

PACKAGES = (
    "everyorder.runtime.futures",
    "everyorder.runtime.nn",
    "everyorder.runtime.script.archive",
    "everyorder.runtime.script.emission",
    "everyorder.runtime.script.frontend",
    "everyorder.runtime.script.executor.fusion",
    "everyorder.runtime.script.ir",
    "everyorder.runtime.script.modules",
    "everyorder.runtime.script.passes",
    "everyorder.runtime.script.primitives",
    "everyorder.runtime.script.ir.program",
    "everyorder.runtime.script.executor",
    "everyorder.runtime.script.tracing",
    "everyorder.runtime.jit",
)


@pytest.mark.spec("script 0.15", "locks and the order of imports")
@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_may_be_imported_first(package: str) -> None:
    """0.15: in a process that has loaded nothing of ours, and without `runtime.rpc`."""
    program = f"import {package}, sys; print('everyorder.runtime.rpc' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=unmeasured(),
    )
    assert (ran.stdout, ran.stderr) == ("False\n", "")


CALL = """\
def f(dst: str, x: Tensor, kwargs: Dict[str, Tensor]):
    y = x + 1
    z = y + 1
    return g(dst, z, **kwargs)
def g(dst: str, x: Tensor, y: Tensor):
    return x + y
"""


EXPANDED = """\
`**` at a call is not supported, because which arguments it gives is not \
known before the call:
  <text>:4:24
    y = x + 1
    z = y + 1
    return g(dst, z, **kwargs)
                       ~~~~~~ <--- HERE
def g(dst: str, x: Tensor, y: Tensor):
    return x + y
Write each argument with its name.
"""


@pytest.mark.spec("script 0.2", "keyword arguments are not expanded")
@pytest.mark.spec("script 6.9", "excerpts")
@pytest.mark.spec("rpc 0.2", "keyword arguments are not expanded")
def test_keyword_arguments_are_not_expanded_at_a_call() -> None:
    """0.2, 6.9: the construct, the reason, and its place with two lines around it."""
    with pytest.raises(NotSupported) as caught:
        compile_text(CALL, Program(), {})
    assert str(caught.value) == EXPANDED.rstrip()


MAKERS: list[Callable[[], Any]] = [
    lambda: runtime.tensor([]),
    lambda: runtime.ones(0),
    lambda: runtime.zeros(3, 0),
    lambda: runtime.empty(2),
    lambda: runtime.ones(2, device="meta"),
    lambda: runtime.ones(3)[:0],
    lambda: jit.script(doubled)(runtime.ones(0)),
]


def doubled(x: runtime.Tensor) -> runtime.Tensor:
    return x * 2


@pytest.mark.spec("script 0.16", "storages")
@pytest.mark.spec("boundary", "Every tensor has a storage")
@pytest.mark.parametrize("make", MAKERS)
def test_a_storage_is_never_absent(make: Callable[[], Any]) -> None:
    """0.16: without elements, without memory, of a program: it is there."""
    made = make()
    storage = made.untyped_storage()
    assert storage is not None
    assert storage is made.untyped_storage()
    assert made.detach().untyped_storage() is storage


@pytest.mark.spec("script 0.19", "owners")
@pytest.mark.spec("boundary", "an await owns the function and all of its arguments")
def test_an_await_owns_its_arguments_until_it_is_gone() -> None:
    """0.19: whoever has the await has them; nobody else does."""

    class Held:
        pass

    def body(x: Any) -> int:
        return 1

    held = Held()
    dead = weakref.ref(held)
    aw = runtime.futures.awaitable(body, held)
    del held
    assert dead() is not None
    assert aw.wait() == 1
    del aw
    assert dead() is None


@pytest.mark.spec("script 0.19", "owners")
@pytest.mark.spec(
    "boundary",
    "functions and types live as long as their program, unless they are discarded",
)
def test_a_function_goes_with_the_unit_that_it_is_of() -> None:
    """0.19: graphs and plans are their function's, functions are their program's."""
    unit = jit.CompilationUnit("def f(x: int) -> int:\n    return x + 1\n")
    assert unit.f(1) == 2
    function = weakref.ref(unit.f.function)
    kept = unit.f
    del unit
    gc.collect()
    assert (function(), kept(2)) == (kept.function, 3)
    del kept
    gc.collect()
    assert function() is None
