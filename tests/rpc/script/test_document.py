"""Document 000: its program, to the letter, with our names for its imports."""

import linecache
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, jit
from everyorder.runtime import rpc as real
from tests.rpc.script import fakes
from tests.rpc.script.fakes import World
from tests.script.emission.scripts import kinds

# As it stands in the document; `torch` is `runtime`, `rpc` is `runtime.rpc`.
LISTING = """\
torch.jit.script
def send_rpc_async(dst_worker_name, user_callable_qual_name, tensor):
    # type: (str, str, Tensor) -> None
    rpc._rpc_async_torchscript(
        dst_worker_name, user_callable_qual_name, args=(tensor,)
    )
"""
X = runtime.tensor([1.0, 2.0])


def send_rpc_async(text: str = LISTING, rpc: Any = real) -> Any:
    """The function that a listing defines."""
    names: dict[str, Any] = {"torch": runtime, "rpc": rpc, "__name__": "document"}
    names["__file__"] = file = "document_000.py"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    exec(compile(text, file, "exec", dont_inherit=True), names)
    return names["send_rpc_async"]


@pytest.mark.spec("rpc 0.1", "the listing of document 000")
@pytest.mark.parametrize("text", [LISTING, f"@{LISTING}"])
def test_the_listing_compiles_and_runs(text: str, fake: World) -> None:
    """0.1: a worker by its name, a function by its full name, a tuple of a tensor."""
    found = send_rpc_async(text, fakes)
    f = jit.script(found)
    assert (f is found) == text.startswith("@")
    assert str(f.schema) == (
        "send_rpc_async(str dst_worker_name, str user_callable_qual_name, "
        "Tensor tensor) -> NoneType"
    )
    assert "prim::rpc_async" in kinds(f.function)
    fake.there = {"__torch__.there": lambda x: x + 1}
    assert f("w1", "__torch__.there", X) is None
    assert fake.calls == [("async", "w1", "__torch__.there", (X,), {}, -1.0)]


def test_the_listing_compiles_with_the_real_names() -> None:
    f = jit.script(send_rpc_async())
    (call,) = (n for n in f.function.graph.nodes() if n.kind == "prim::rpc_async")
    assert str(call.output.type) == "Future(Any)"
    assert [str(each.type) for each in call.inputs] == ["str", "str", "(Tensor)"]
    assert Tensor is runtime.Tensor
