"""Every error of autograd: its text, and that it crosses a process."""

import pickle

import pytest

from everyorder.runtime.errors import autograd as errors
from everyorder.runtime.errors.base import EveryorderError

TEXTS: dict[str, tuple[EveryorderError, str]] = {
    "mismatch": (
        errors.AutogradMisuse(
            code="GradientMismatch",
            where="`core::mul`",
            what="shape",
            expected="(2,)",
            found="(3,)",
        ),
        "`core::mul` gave a gradient of the wrong shape.\n"
        "  expected: (2,)\n"
        "  found:    (3,)",
    ),
    "no gradient": (
        errors.AutogradMisuse(
            code="NotAGradient", node="Exp", position=1, type="float"
        ),
        "The backward of `Exp` gave argument 1 no gradient.\n"
        "  expected: a Tensor, or None\n"
        "  found:    float",
    ),
    "input": (
        errors.BackwardRefused(code="InputWithoutGradient", index=1, shape=(2,)),
        "Input 1 of shape (2,) does not require grad.\n"
        "  to do: call requires_grad_() on it before it is used",
    ),
    "formula": (
        errors.NotImplementedFormula(code="NotImplementedFormula", operator="a::b"),
        "`a::b` has no formula for its gradient.\n"
        "  to do: use register_autograd (custom operators), a kernel at the key "
        "Autograd,\n"
        "         a runtime.autograd.Function, or no_grad()",
    ),
    "view": (
        errors.WriteRefused(
            code="ViewModified",
            operator="core::t",
            made="it is old",
            shape=(2,),
            indirect=True,
        ),
        "A view of shape (2,) or its base was modified in place, and the view is used\n"
        "again, by `core::t`; it is old, so gradients cannot follow.\n"
        "  to do: make the view where it is modified, or modify a clone()",
    ),
    "overlap": (
        errors.WriteRefused(
            code="OverlappingWrite", operator="core::add_", shape=(3,), strides=(0,)
        ),
        "`core::add_` would write to a tensor of which several elements share one "
        "place\n"
        "in memory.\n"
        "  layout: shape (3,), strides (0,)\n"
        "  to do:  modify a clone()",
    ),
    "detach": (
        errors.WriteRefused(code="NotDetachable", shape=(1,)),
        "`detach_()` of a view of shape (1,) would leave its base in the graph.\n"
        "  to do: use detach(), or detach the base",
    ),
    "function": (
        errors.AutogradMisuse(
            code="FunctionMisuse",
            function="F",
            fault="has no forward",
            remedy="write one",
        ),
        "`F` has no forward.\n  to do: write one",
    ),
    "once": (
        errors.NotImplementedFormula(code="DifferentiatedOnce", function="F"),
        "The backward of `F` is marked `once_differentiable`, and its result was\n"
        "differentiated.\n"
        "  to do: write backward with differentiable operators, unmarked",
    ),
    "hook": (
        errors.AutogradMisuse(code="HookMisuse", asked="retain_grad", fault="no"),
        "`retain_grad`: no.",
    ),
    "mode": (
        errors.AutogradMisuse(code="UnknownMode", found="a", known=("b", "c")),
        "The fallback at the Autograd keys has no mode 'a'.\n  known: b, c",
    ),
    "gradcheck": (
        errors.AutogradMisuse(code="GradcheckMisuse", fault="no input requires grad"),
        "gradcheck cannot check this: no input requires grad.",
    ),
    "no inputs": (
        errors.BackwardRefused(code="NoInputs", asked="grad"),
        "`grad` was given no inputs, so there is nothing to compute.\n"
        "  to do: name the tensors, or leave inputs out of backward() for every leaf",
    ),
    "unused": (
        errors.BackwardRefused(code="UnusedInput", index=0, shape=()),
        "The outputs were not computed from input 0 of shape ().\n"
        "  to do: pass allow_unused=True to get None for it",
    ),
    "version": (
        errors.BackwardRefused(
            code="SavedTensorModified",
            operator="core::mul",
            argument="other",
            shape=(2,),
            dtype="float32",
            expected=0,
            found=1,
        ),
        "`core::mul` saved `other` for its gradient, and the tensor was modified in "
        "place\n"
        "before the gradient was computed.\n"
        "  saved: shape (2,), float32, version 0\n"
        "  now:   version 1\n"
        "  to do: modify a clone(), or compute out of place",
    ),
    "leaf": (
        errors.WriteRefused(
            code="LeafModified", operator="core::add_", shape=(2,), is_view=True
        ),
        "`core::add_` would modify a view of a leaf of shape (2,) that requires grad: "
        "its\n"
        "old values could no longer be differentiated.\n"
        "  to do: modify it in no_grad(), or modify a clone()",
    ),
    "out": (
        errors.WriteRefused(
            code="OutRequiresGrad", operator="core::add.out", argument="self"
        ),
        "`core::add.out` writes into `out`, which records no gradient, but `self`\n"
        "requires grad.\n"
        "  to do: leave `out` away, or call it in no_grad()",
    ),
    "root": (
        errors.BackwardRefused(
            code="NoGradientToCompute", asked="grad", index=0, shape=()
        ),
        "`grad` starts from output 0 of shape (), which does not require grad and "
        "was not\n"
        "computed from tensors that do.\n"
        "  to do: compute it from tensors with requires_grad=True, in grad mode",
    ),
    "needed": (
        errors.BackwardRefused(
            code="GradientNeeded", asked="backward", index=0, shape=(2,)
        ),
        "`backward` starts from output 0 of shape (2,); only an output of one element "
        "has\n"
        "a gradient by itself.\n"
        "  to do: reduce it, by sum() for one, or pass a gradient of its shape",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str) -> None:
    error, text = TEXTS[name]
    assert str(error) == text
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.fields()) == (type(error), error.fields())
