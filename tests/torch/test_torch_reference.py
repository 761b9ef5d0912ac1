"""The reference answers in torch's own bytes, and leaves nothing behind."""

import pytest

from tests.counting import calls_of
from tests.torch.bindings import load_torch
from tests.torch.reference import (
    TorchBuiltinFallback,
    torch_accepted_keys,
    torch_builtin_fallbacks,
    torch_dump,
)
from tests.torch.steps import (
    TorchDefine,
    TorchDefineInferred,
    TorchDefineWithKernel,
    TorchFallback,
    TorchImpl,
    TorchStep,
)

pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

FOO = TorchDefine("foo(Tensor x) -> Tensor", origin="some.py:7")


def registered() -> list[str]:
    names = load_torch()._C._dispatch_get_all_op_names()
    return [name for name in names if name.startswith("everyorder_t::")]


def test_every_format() -> None:
    state, table = torch_dump(
        (
            FOO,
            TorchImpl("CPU"),
            TorchImpl("CPU", debug="mine", origin="b.py:3"),
            TorchImpl("CUDA", "python", origin="c.py:4"),
            TorchImpl("XLA", "fallthrough"),
            TorchImpl(None, "python"),
        )
    )
    assert state == (
        "name: everyorder_t::foo\n"
        "schema: everyorder_t::foo(Tensor x) -> Tensor\n"
        "debug: registered at some.py:7\n"
        "alias analysis kind: FROM_SCHEMA\n"
        "CPU: mine :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]\n"
        "CPU (inactive): impl_t_t :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]\n"
        "CUDA: registered at c.py:4 :: (none) [ boxed ]\n"
        "XLA: registered at /dev/null:0 :: (none) [ fallthrough boxed ]\n"
        "CompositeImplicitAutograd[alias]: registered at /dev/null:0 :: (none)"
        " [ boxed ]\n"
    )
    assert table.splitlines()[:5] == [
        "Undefined: registered at /dev/null:0 [math kernel]",
        "CPU: mine [kernel]",
        "CUDA: registered at c.py:4 [kernel]",
        "HIP: registered at /dev/null:0 [math kernel]",
        "XLA: fallthrough registered at /dev/null:0 [kernel]",
    ]
    assert registered() == []


@pytest.mark.parametrize(
    ("step", "schema", "kind"),
    [
        (FOO, "(Tensor x) -> Tensor", "FROM_SCHEMA"),
        (TorchDefine("foo() -> ()", "PURE_FUNCTION"), "() -> ()", "PURE_FUNCTION"),
        (TorchDefine("foo() -> ()", "unset"), "() -> ()", "CONSERVATIVE (default)"),
        (TorchDefineInferred(), "(Tensor _0) -> Tensor _0", "CONSERVATIVE"),
        (
            TorchDefineWithKernel("foo(Tensor x) -> Tensor", alias="PURE_FUNCTION"),
            "(Tensor x) -> Tensor",
            "PURE_FUNCTION",
        ),
    ],
)
def test_alias_kinds(step: TorchStep, schema: str, kind: str) -> None:
    lines = torch_dump((step,))[0].splitlines()
    assert lines[1] == f"schema: everyorder_t::foo{schema}"
    assert lines[3] == f"alias analysis kind: {kind}"


def test_kernels_of_definitions() -> None:
    native = ":: (Tensor _0) -> Tensor _0 [ boxed unboxed ]"
    assert torch_dump((TorchDefineInferred("CPU"),))[0].splitlines()[4:] == [
        f"CPU: default_def_name_t_t {native}"
    ]
    with_kernel = TorchDefineWithKernel("foo(Tensor x) -> Tensor")
    assert torch_dump((with_kernel,))[0].splitlines()[4:] == [
        f"CompositeImplicitAutograd[alias]: default_def_schema_t_t {native}"
    ]


def test_fallback_shows_in_the_table_only() -> None:
    fallback = TorchFallback("CUDA", origin="f.py:9")
    state, table = torch_dump((FOO, fallback))
    assert state == torch_dump((FOO,))[0]
    assert table.splitlines()[0] == (
        "CUDA: fallthrough registered at f.py:9 [backend fallback]"
    )
    assert torch_dump((FOO, fallback), removed=(1,)) == torch_dump((FOO,))


def test_removal() -> None:
    kernel = TorchImpl("CPU")
    assert torch_dump((FOO, kernel), removed=(1,)) == torch_dump((FOO,))
    assert torch_dump((FOO, kernel), removed=(0,)) == torch_dump((kernel,))
    assert torch_dump((FOO, kernel), removed=(0, 1)) == ("", "")


def test_a_raise_takes_everything_down() -> None:
    with pytest.raises(RuntimeError, match="multiple times"):
        torch_dump((TorchImpl("CPU"), FOO, FOO))
    arguments = ", ".join(f"Tensor a{i}" for i in range(65))
    with pytest.raises(RuntimeError, match="65 arguments"):
        torch_dump((TorchDefine(f"foo({arguments}) -> Tensor"),))
    assert registered() == []


def test_builtin_fallbacks() -> None:
    found = torch_builtin_fallbacks()
    assert [one.key for one in found if one.is_fallthrough] == [
        *("BackendSelect", "ADInplaceOrView", "AutocastCPU", "AutocastMTIA"),
        *("AutocastMAIA", "AutocastXPU", "AutocastMPS", "AutocastCUDA"),
        *("FuncTorchVmapMode", "VmapMode"),
    ]
    assert [one.key for one in found if not one.is_fallthrough] == [
        *("Meta", "Python", "FuncTorchDynamicLayerBackMode", "Functionalize"),
        *("Conjugate", "Negative", "ZeroTensor", "AutogradOther", "AutogradCPU"),
        *("AutogradCUDA", "AutogradXLA", "AutogradMPS", "AutogradXPU"),
        *("AutogradHPU", "AutogradLazy", "AutogradMTIA", "AutogradMAIA"),
        *("AutogradPrivateUse1", "AutogradMeta", "Tracer", "FuncTorchBatched"),
        *("BatchedNestedTensor", "Batched", "FuncTorchGradWrapper"),
        *("PythonTLSSnapshot", "FuncTorchDynamicLayerFrontMode", "PreDispatch"),
        "PythonDispatcher",
    ]
    assert all(one.debug.startswith("registered at ") for one in found)
    assert isinstance(found[0], TorchBuiltinFallback)
    assert registered() == []


def test_accepted_keys() -> None:
    names = torch_accepted_keys()
    assert len(names) == len(set(names)) == 107
    assert names[0] == "CPU"
    assert names[93] == "PythonDispatcher"
    assert names[94:] == (
        "Undefined",
        "CompositeExplicitAutogradNonFunctional",
        "CompositeExplicitAutograd",
        "CompositeImplicitAutogradNestedTensor",
        "CompositeImplicitAutograd",
        "Autograd",
        "FuncTorchBatchedDecomposition",
        *("Dense", "Quantized", "Sparse", "SparseCsr", "NestedTensor"),
        "AutogradFunctionality",
    )
    assert registered() == []


def test_cost_of_a_scenario() -> None:
    steps = (FOO, TorchImpl("CPU"), TorchImpl(None, "python"), TorchImpl("Autograd"))
    torch_dump(steps)
    assert calls_of(lambda: torch_dump(steps)) < 200
