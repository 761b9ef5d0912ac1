"""Step descriptions are plain data: they work, and print, without torch."""

import pytest

from tests.torch.steps import (
    TorchCall,
    TorchDefine,
    TorchDefineInferred,
    TorchFallback,
    TorchImpl,
    TorchStep,
    kernel_label,
)


def test_descriptions_are_values() -> None:
    assert TorchImpl("CPU") == TorchImpl("CPU", "t_t", None, "/dev/null:0")
    assert len({TorchCall(), TorchCall(requires_grad=True), TorchCall()}) == 2


@pytest.mark.parametrize(
    ("step", "printed"),
    [
        (TorchImpl("CPU"), "impl_t_t"),
        (TorchImpl("CPU", debug="mine"), "mine"),
        (TorchImpl("CPU", "python"), "registered at /dev/null:0"),
        (TorchImpl(None, "fallthrough", origin="a.py:7"), "registered at a.py:7"),
        (TorchFallback("CPU", origin="b.py:2"), "registered at b.py:2"),
    ],
)
def test_printed_description(step: TorchImpl | TorchFallback, printed: str) -> None:
    assert step.printed == printed


@pytest.mark.parametrize("kind", ["python", "fallthrough"])
def test_debug_needs_the_native_kernel(kind: str) -> None:
    with pytest.raises(ValueError, match="by its origin") as caught:
        TorchImpl("CPU", kind, debug="mine")  # type: ignore[arg-type]  # a parameter
    assert str(caught.value) == (
        f"torch describes a {kind} kernel by its origin;"
        " give origin= instead of debug='mine'"
    )


@pytest.mark.parametrize(
    ("step", "label"),
    [
        (TorchImpl("CPU"), "CPU"),
        (TorchImpl(None), "CompositeImplicitAutograd"),
        (TorchDefineInferred(), "CompositeImplicitAutograd"),
        (TorchDefine("foo() -> ()"), "CompositeImplicitAutograd"),
        (TorchFallback("CUDA"), "fallback CUDA"),
    ],
)
def test_kernel_label(step: TorchStep, label: str) -> None:
    assert kernel_label(step) == label
