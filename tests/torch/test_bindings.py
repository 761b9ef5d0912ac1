"""The private bindings do what `bindings` says they do."""

import gc
import sys
import weakref
from typing import Any

import pytest

from everyorder.harness.systems.torch import error_text
from tests.torch.bindings import (
    arguments_of,
    invariants_text,
    invoke,
    load_torch,
    perform,
)
from tests.torch.steps import (
    Layout,
    TorchCall,
    TorchDefine,
    TorchDefineWithKernel,
    TorchFallback,
    TorchImpl,
)

pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

FOO = "everyorder_t::foo"
MISMATCH = TorchDefineWithKernel("foo(Tensor x, Tensor y) -> Tensor")


def kernel(*_args: object) -> object:
    return load_torch().empty(0)


def dump() -> str:
    text: str = load_torch()._C._dispatch_dump(FOO)
    return text


def test_a_failed_step_leaves_nothing() -> None:
    with pytest.raises(RuntimeError, match="number of arguments is different"):
        perform(MISMATCH, FOO, kernel)
    assert dump() == ""


def test_a_kept_library_shows_that_torch_defines_by_halves() -> None:
    kept: list[Any] = []
    with pytest.raises(RuntimeError):
        perform(MISMATCH, FOO, kernel, kept)
    assert dump() == (
        "name: everyorder_t::foo\n"
        "schema: everyorder_t::foo(Tensor x, Tensor y) -> Tensor\n"
        "debug: registered at /dev/null:0\n"
        "alias analysis kind: FROM_SCHEMA\n"
    )
    kept.pop().reset()
    assert dump() == ""


def test_overriding_does_not_warn() -> None:
    libraries = [perform(TorchImpl("CPU", "python"), FOO, kernel) for _ in range(2)]
    assert dump().splitlines()[2:] == [
        "CPU: registered at /dev/null:0 :: (none) [ boxed ]",
        "CPU (inactive): registered at /dev/null:0 :: (none) [ boxed ]",
    ]
    for library in libraries:
        library.reset()
    assert dump() == ""


def test_torch_never_lets_go_of_a_python_kernel() -> None:
    def local(*_args: object) -> object:
        return None

    watch = weakref.ref(local)
    perform(TorchImpl("CPU", "python"), FOO, local).reset()
    del local
    gc.collect()
    assert dump() == ""
    assert watch() is not None


@pytest.mark.parametrize(
    ("layout", "slot", "outcome"),
    [
        ("cpu", None, "returned"),
        ("sparse", None, "returned"),
        ("meta", None, "NotImplementedError: everyorder_t::foo: attempted to run this"
         " operator with Meta tensors, but there was no fake impl or Meta kernel"
         " registered."),
        ("cpu", "CUDA", "NotImplementedError: Could not run 'everyorder_t::foo' with"
         " arguments from the 'CUDA' backend."),
        ("meta", "CPU", "returned"),
    ],
)  # fmt: skip
def test_a_call_enters_the_live_table(
    layout: Layout, slot: str | None, outcome: str
) -> None:
    call = TorchCall(layout=layout, slot=slot)
    libraries = [
        perform(TorchDefine("foo(Tensor x) -> Tensor"), FOO, kernel),
        perform(TorchImpl("CPU", "python"), FOO, kernel),
        perform(TorchImpl("SparseCPU", "python"), FOO, kernel),
    ]
    try:
        assert invoke(call, FOO, arguments_of(call)) == outcome
    finally:
        for library in libraries:
            library.reset()


def test_a_call_without_schema() -> None:
    call = TorchCall()
    assert invoke(call, FOO, arguments_of(call)) == (
        "RuntimeError: Could not find schema for everyorder_t::foo."
    )
    library = perform(TorchImpl("CPU"), FOO, kernel)
    assert invoke(call, FOO, arguments_of(call)).endswith(
        "but we found an implementation; did you forget to def() the operator?"
    )
    library.reset()


def test_fallback_for_all_keys_of_an_alias_fails_at_a_taken_one() -> None:
    with pytest.raises(RuntimeError, match="dispatch key Meta"):
        perform(TorchFallback("CompositeImplicitAutograd"), FOO, kernel)
    library = perform(TorchFallback("CPU", "python"), FOO, kernel)
    library.reset()


@pytest.mark.parametrize("layout", ["cpu", "meta", "sparse", "csr", "mkldnn"])
def test_arguments(layout: Layout) -> None:
    plain = layout != "mkldnn"
    first, second = arguments_of(TorchCall(plain, layout, arguments=2))
    assert first is second
    assert first.requires_grad is plain
    assert tuple(first.shape) == (2, 2)
    assert (str(first.device), str(first.layout)) == {
        "cpu": ("cpu", "torch.strided"),
        "meta": ("meta", "torch.strided"),
        "sparse": ("cpu", "torch.sparse_coo"),
        "csr": ("cpu", "torch.sparse_csr"),
        "mkldnn": ("cpu", "torch._mkldnn"),
    }[layout]


def test_the_check_passes_for_a_name_that_does_not_exist() -> None:
    assert invariants_text("everyorder_t::nobody") == ""


def test_error_text_drops_what_moves() -> None:
    error = RuntimeError(
        'held INTERNAL ASSERT FAILED at "/build/a.cpp":5, please report a bug to'
        " PyTorch. x::f is ambiguous.\nCanonical state\n~~~\nname: x::f\n"
    )
    assert error_text(error) == ("RuntimeError", "held: x::f is ambiguous.")
    assert error_text(ValueError("bad\nException raised from f at g.cpp:3")) == (
        "ValueError",
        "bad",
    )


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError) as caught:
        load_torch.__wrapped__()
    assert str(caught.value) == (
        "this system drives the real torch: install the extra `torch`"
    )
