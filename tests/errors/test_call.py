"""Errors of a call: whole texts, fields, bases and pickling."""

from pickle import dumps, loads
from typing import Any

import pytest

from everyorder.runtime.errors.base import COLUMNS, EveryorderError, page
from everyorder.runtime.errors.call import (
    REASONS,
    CallError,
    CannotRun,
    KernelError,
    MissingKernel,
    NoMatchingOverload,
    OperatorGone,
)
from everyorder.runtime.errors.registration import LookupFailed
from everyorder.runtime.errors.tensor import UnfitValue

CALL: dict[str, Any] = {
    "operator": "t::f",
    "call": "t::f(<Tensor>)",
    "schema": "t::f(Tensor x, int[2] size, *, float alpha, ScalarType? dtype=None, "
    "Device? device=None) -> Tensor",
}
SCHEMA_ROWS = """\
  schema: t::f(Tensor x, int[2] size, *, float alpha, ScalarType? dtype=None,
          Device? device=None) -> Tensor"""

TEXTS: list[tuple[EveryorderError, type[Exception], str]] = [
    (
        CallError(code="MissingArgument", **CALL, missing=("alpha",)),
        TypeError,
        f"""\
`t::f` was called without `alpha`, which has no default.
  call:   t::f(<Tensor>)
{SCHEMA_ROWS}""",
    ),
    (
        CallError(code="MissingArgument", **CALL, missing=("x", "size", "alpha")),
        TypeError,
        f"""\
`t::f` was called without `x`, `size` and `alpha`, which have no defaults.
  call:   t::f(<Tensor>)
{SCHEMA_ROWS}""",
    ),
    (
        CallError(
            code="TooManyArguments",
            **CALL,
            maximum=2,
            given=3,
            keyword_only=("alpha", "dtype"),
        ),
        TypeError,
        """\
`t::f` takes at most 2 positional arguments, but 3 were given.
  call:    t::f(<Tensor>)
  schema:  t::f(Tensor x, int[2] size, *, float alpha, ScalarType? dtype=None,
           Device? device=None) -> Tensor
  by name: alpha, dtype""",
    ),
    (
        CallError(
            code="TooManyArguments",
            operator="t::g",
            call="t::g(1)",
            schema="t::g() -> ()",
            maximum=0,
            given=1,
            keyword_only=(),
        ),
        TypeError,
        """\
`t::g` takes at most 0 positional arguments, but 1 was given.
  call:   t::g(1)
  schema: t::g() -> ()""",
    ),
    (
        CallError(code="UnknownArgument", **CALL, argument="dytpe", near=("dtype",)),
        TypeError,
        f"""\
`t::f` has no argument `dytpe`.
  call:   t::f(<Tensor>)
{SCHEMA_ROWS}
  near:   dtype""",
    ),
    (
        CallError(code="UnknownArgument", **CALL, argument="q", near=()),
        TypeError,
        f"""\
`t::f` has no argument `q`.
  call:   t::f(<Tensor>)
{SCHEMA_ROWS}""",
    ),
    (
        CallError(code="DuplicateArgument", **CALL, argument="x", position=0),
        TypeError,
        f"""\
`t::f` got `x` twice: as positional argument 1 and by name.
  call:   t::f(<Tensor>)
{SCHEMA_ROWS}""",
    ),
    (
        CallError(
            code="WrongArgumentType",
            **CALL,
            argument="size",
            position=1,
            expected="int[2]",
            found="a list of float",
            value="[1.5]",
        ),
        TypeError,
        f"""\
Argument 2 of `t::f`, `size`, takes `int[2]`, but was given a list of float.
  call:   t::f(<Tensor>)
{SCHEMA_ROWS}
  value:  [1.5]""",
    ),
    (
        UnfitValue(code="WrongValue", expected="int", found="a str", value="'x'"),
        TypeError,
        """\
Expected a value for `int`, found a str.
  value: 'x'""",
    ),
    (
        KernelError(
            code="WrongReturnCount",
            operator="t::f",
            expected=2,
            found=1,
            schema="t::f() -> (int, int)",
        ),
        TypeError,
        """\
A kernel of `t::f` should return 2 values, but returned 1.
  schema: t::f() -> (int, int)""",
    ),
    (
        KernelError(
            code="WrongReturnType",
            operator="t::f",
            position=1,
            expected="`int`",
            found="a str",
            value="'x'",
            schema="t::f() -> (int, int)",
        ),
        TypeError,
        """\
A kernel of `t::f` should return `int` as return 2, but returned a str.
  value:  'x'
  schema: t::f() -> (int, int)""",
    ),
    (
        CallError(
            code="WrongArgumentType",
            operator="t::f",
            call="t::f(array([1.]))",
            schema="t::f(Tensor x) -> ()",
            argument="x",
            position=0,
            expected="Tensor",
            found="an ndarray",
            value="array([1.])",
        ),
        TypeError,
        """\
Argument 1 of `t::f`, `x`, takes `Tensor`, but was given an ndarray.
  call:   t::f(array([1.]))
  schema: t::f(Tensor x) -> ()
  value:  array([1.])
  to do:  runtime.from_numpy(x) makes a tensor of an array""",
    ),
    (
        CallError(
            code="WrongArgumentType",
            operator="t::f",
            call="t::f(array([1.]))",
            schema="t::f(int x) -> ()",
            argument="x",
            position=0,
            expected="int",
            found="an ndarray",
            value="array([1.])",
        ),
        TypeError,
        """\
Argument 1 of `t::f`, `x`, takes `int`, but was given an ndarray.
  call:   t::f(array([1.]))
  schema: t::f(int x) -> ()
  value:  array([1.])""",
    ),
    (
        KernelError(
            code="WrongReturnType",
            operator="t::f",
            position=0,
            expected="`Tensor[]`",
            found="a list of ndarray",
            value="[array([1.])]",
            schema="t::f() -> Tensor[]",
        ),
        TypeError,
        """\
A kernel of `t::f` should return `Tensor[]` as return 1, but returned a list of
ndarray.
  value:  [array([1.])]
  schema: t::f() -> Tensor[]
  to do:  runtime.from_numpy(x) makes a tensor of an array""",
    ),
    (
        KernelError(
            code="WrongReturnType",
            operator="t::f",
            position=None,
            expected="None",
            found="an int",
            value="1",
            schema="t::f() -> ()",
        ),
        TypeError,
        """\
A kernel of `t::f` should return None, but returned an int.
  value:  1
  schema: t::f() -> ()""",
    ),
    (
        KernelError(
            code="StackMismatch",
            operator="t::f",
            kernel="registered at kernels.py",
            popped=1,
            pushed=2,
            expected_popped=2,
            expected_pushed=1,
        ),
        RuntimeError,
        """\
A boxed kernel of `t::f` left the stack wrong.
  kernel: registered at kernels.py
  did:    pop 1, push 2
  must:   pop 2, push 1""",
    ),
    (
        KernelError(code="FallthroughCalled", operator="t::f", key="AutogradCPU"),
        RuntimeError,
        """\
`t::f` was redispatched to AutogradCPU, where it has only a fallthrough and no
kernel to run.
  to do: redispatch with a key set below the fallthrough key""",
    ),
    (
        MissingKernel(
            operator="t::f",
            key="CUDA",
            keyset="KeySet(CUDA, AutogradCUDA)",
            available=("CPU", "Meta"),
            table="CPU: here [kernel]\nMeta: here [kernel]\n",
            reason="no kernel",
        ),
        NotImplementedError,
        """\
`t::f` cannot run: no kernel is registered for CUDA.
  keys:    KeySet(CUDA, AutogradCUDA)
  kernels: CPU, Meta
  to do:   register a kernel for CUDA, or move the arguments to a device that
           has one

CPU: here [kernel]
Meta: here [kernel]""",
    ),
    (
        MissingKernel(
            operator="t::f",
            key="Undefined",
            keyset="KeySet(CPU)",
            available=(),
            table="",
            reason="all keys fell through",
        ),
        NotImplementedError,
        """\
`t::f` cannot run: every key of the call is a fallthrough.
  keys:    KeySet(CPU)
  kernels: none
  to do:   register a kernel for one of the keys of the call""",
    ),
    (
        MissingKernel(
            operator="t::f",
            key="Undefined",
            keyset="KeySet(CPU)",
            available=("CPU",),
            table="",
            reason="all keys excluded",
        ),
        NotImplementedError,
        """\
`t::f` cannot run: every key of the call is excluded on this thread.
  keys:    KeySet(CPU)
  kernels: CPU
  to do:   call outside of exclude_keys, or exclude less""",
    ),
    (
        MissingKernel(
            operator="t::f",
            key="Undefined",
            keyset="KeySet()",
            available=("CPU",),
            table="",
            reason="no tensor arguments",
        ),
        NotImplementedError,
        """\
`t::f` cannot run: the call has no tensor to choose a kernel by.
  keys:    KeySet()
  kernels: CPU
  to do:   pass a tensor, or register a kernel for BackendSelect or
           CompositeExplicitAutograd""",
    ),
    (
        CannotRun(
            code="AmbiguousKernel",
            operator="t::f",
            state="name: t::f\nschema: (none)\n",
        ),
        RuntimeError,
        """\
`t::f` is ambiguous at AutogradOther: it has a CompositeImplicitAutograd kernel,
and also a kernel for a backend whose autograd key is AutogradOther. The
composite would hide the backend's.
  to do: register a kernel for AutogradOther, or call without autograd

name: t::f
schema: (none)""",
    ),
    (
        CannotRun(code="NamedNotSupported", operator="t::f"),
        RuntimeError,
        """\
`t::f` has no rule for named dimensions.
  to do: drop the names, call, and name the result""",
    ),
    (
        OperatorGone(code="OperatorGone", operator="t::f"),
        RuntimeError,
        """\
`t::f` has been deregistered.
  to do: keep its Library open, or look the operator up again""",
    ),
    (
        CannotRun(code="CallWithoutSchema", operator="t::f"),
        RuntimeError,
        """\
`t::f` has no schema: kernels are registered, but no definition.
  to do: define it, then call""",
    ),
    (
        LookupFailed(
            code="NoSuchOverload",
            operator="t::f",
            overload="Tenosr",
            near=("Tensor", "Tensors"),
        ),
        AttributeError,
        """\
`t::f` has no overload `Tenosr`.
  near: Tensor, Tensors""",
    ),
    (
        LookupFailed(code="NoSuchOverload", operator="t::f", overload="x", near=()),
        AttributeError,
        "`t::f` has no overload `x`.",
    ),
    (
        NoMatchingOverload(
            operator="t::f", attempts=(("", "one.\n  call: f()"), ("out", "two."))
        ),
        TypeError,
        """\
The call fits none of 2 overloads of `t::f`.
  default:
    one.
      call: f()
  out:
    two.""",
    ),
]


@pytest.mark.parametrize(
    ("error", "base", "text"), TEXTS, ids=lambda v: type(v).__name__
)
def test_an_error_reads(
    error: EveryorderError, base: type[Exception], text: str
) -> None:
    assert str(error) == text
    assert isinstance(error, base)
    assert max(map(len, text.splitlines())) <= COLUMNS


@pytest.mark.parametrize("error", [e for e, _, _ in TEXTS], ids=lambda e: str(e)[:30])
def test_an_error_survives_pickling(error: EveryorderError) -> None:
    copy = loads(dumps(error))
    assert type(copy) is type(error)
    assert copy.fields() == error.fields()


def test_every_reason_has_advice() -> None:
    assert all(len(words) == 2 for words in REASONS.values())


def test_a_page_leaves_words_whole() -> None:
    assert page("word", ("row", "x" * 100)) == f"word\n  row: {'x' * 100}"
    long = page("a-b " * 25)
    assert long == f"{'a-b ' * 19}a-b\na-b a-b a-b a-b a-b"


def test_notes_cross_a_process_too() -> None:
    error = OperatorGone(code="OperatorGone", operator="t::f")
    error.add_note("seen twice")
    assert loads(dumps(error)).__notes__ == ["seen twice"]
