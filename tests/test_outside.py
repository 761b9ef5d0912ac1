"""Names that stay outside: refused with a replacement, and listed in the documents."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Function, tensor
from everyorder.runtime.autograd.outside import OUTSIDE as AUTOGRAD
from everyorder.runtime.errors.call import NotOffered
from everyorder.runtime.outside import OUTSIDE

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "outside.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_is_refused_with_its_replacement(name: str) -> None:
    assert not hasattr(runtime, name)
    with pytest.raises(AttributeError, match=re.escape(OUTSIDE[name])):
        getattr(runtime, name)
    assert name not in dir(runtime)


@pytest.mark.parametrize("name", AUTOGRAD)
def test_a_name_of_autograd_is_refused_with_its_replacement(name: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(AUTOGRAD[name])):
        getattr(runtime.autograd, name)
    with pytest.raises(AttributeError, match=r"no attribute 'unknown'$"):
        _ = runtime.autograd.unknown  # type: ignore[attr-defined]  # the mistake


def test_a_layer_is_refused_with_its_replacement() -> None:
    assert runtime.nn.Module is runtime.Module
    with pytest.raises(AttributeError, match=r"'Linear': there are no layers"):
        _ = runtime.nn.Linear  # type: ignore[attr-defined]  # the mistake
    assert not hasattr(runtime.nn, "_private")


@pytest.mark.parametrize(
    "line",
    [
        "from everyorder.runtime import optim",
        "import everyorder.runtime.optim",
        "from everyorder.runtime.nn import Linear",
    ],
)
def test_an_import_is_refused_as_the_page_says(line: str) -> None:
    # Python replaces the text of an AttributeError.
    with pytest.raises(ImportError, match=r"'(optim|Linear)' from|optim'$"):
        exec(line, {})
    assert "Python's own `ImportError`" in PAGE


def test_the_page_lists_every_name() -> None:
    table = "\n".join(line for line in PAGE.splitlines() if line.startswith("| `"))
    assert [name for name in OUTSIDE if f"`{name}`" not in table] == []
    of_autograd = [f"`autograd.{name}`" for name in AUTOGRAD]
    assert [name for name in of_autograd if name not in table] == []


def test_the_replacements_are_there() -> None:
    for path in (
        *("jit.script", "jit.trace", "jit.save", "jit.load", "rpc", "no_grad"),
        *("autograd.grad", "autocast", "stack", "zeros", "nn.Module", "nn.Sequential"),
        *("Module.load_state_dict", "linear", "conv2d", "layer_norm", "dropout"),
        *(
            "cross_entropy",
            "scatter",
            "gather",
            "Tensor.index_put_",
            "TorchDispatchMode",
        ),
    ):
        value: Any = runtime
        for name in path.split("."):
            value = getattr(value, name)


def test_the_example_of_the_page() -> None:
    code, printed = re.findall(r"```(?:python)?\n(.*?)```", PAGE, re.DOTALL)
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == printed


def test_rules_for_other_modes_are_ignored_until_they_are_called() -> None:
    class Double(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2

    x = tensor([1.5], requires_grad=True)
    Double.apply(x).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2]
    with pytest.raises(NotOffered, match=r"`Function.vmap` is not offered"):
        Double.vmap(None, (0,), x)
    with pytest.raises(NotOffered, match=r"`Function.jvp` is not offered"):
        Double.jvp(None, x)
