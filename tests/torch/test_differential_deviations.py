"""Each prediction says exactly what it is about."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.tools.deviations import DEVIATIONS
from tests.torch import predictions as deviations
from tests.torch.predictions import PREDICTIONS, Shown
from tests.torch.steps import (
    TorchDefine,
    TorchDefineWithKernel,
    TorchFallback,
    TorchImpl,
)

STATE = "name: x::f\nschema: (none)\nHIP: h :: (none) [ boxed ]\n"
AUTOGRAD = "Autograd[alias]: a :: (none) [ fallthrough boxed ]\n"


def test_every_prediction_has_one_name() -> None:
    assert all(name == each.__name__ for name, each in PREDICTIONS.items())
    assert len(PREDICTIONS) == 24
    assert all(each.__doc__ for each in PREDICTIONS.values())


def test_the_table_of_deviations_names_predictions() -> None:
    named = {each.predicted_by for each in DEVIATIONS if each.predicted_by}
    assert named <= PREDICTIONS.keys()
    # One row of the table stands for all traces of failed calls.
    leftovers = {each.__name__ for each in deviations.LEFTOVERS}
    assert PREDICTIONS.keys() - named - leftovers <= {"a_text_for_another_type"}


@pytest.mark.parametrize(
    ("predict", "before", "after"),
    [
        ("a_set_of_its_own", "f(Tensor($0! -> ) x)", "f(Tensor! x)"),
        ("a_wildcard_with_other_sets", "(a! -> *|b)", "(a! -> *)"),
        ("the_order_of_alias_sets", "(b|a! -> d|c)", "(a|b! -> c|d)"),
        ("the_order_of_alias_sets", "(Tensor x, int y)", "(Tensor x, int y)"),
        ("a_union_with_a_scalar", "Union(TensorScalar)?", "Union(Tensor, Scalar)?"),
        ("a_union_with_a_scalar", "Union(, str, Scalar)", "Union(Scalar, str)"),
        ("a_union_with_a_scalar", "Union(Scalar)?", "Scalar?"),
        ("a_union_with_none", "Union(int, NoneType, str)", "Union(int, str)?"),
        ("a_union_with_none", "Union(NoneType, str, bool)?", "Union(str, bool)?"),
        ("a_union_with_none", "Union(int, str)? x", "Union(int, str)? x"),
        ("an_annotation_of_an_optional_element", "Tensor?(a!)[]", "Tensor(a!)?[]"),
    ],
)
def test_printed(predict: str, before: str, after: str) -> None:
    assert PREDICTIONS[predict](before, None) == after


def parsed(*arguments: tuple[str, str, int | None, Any]) -> Any:
    return SimpleNamespace(
        arguments=[
            SimpleNamespace(
                name=name,
                type=kind,
                N=size,
                default_value=default,
                kwarg_only=False,
                has_default_value=lambda default=default: default is not None,
            )
            for name, kind, size, default in arguments
        ]
    )


def test_printed_defaults() -> None:
    one = parsed(("x", "List[int]", None, [1, 1]), ("y", "List[int]", 2, [2, 2]))
    assert (
        deviations.a_list_of_equal_ints("f(int[] x=1, int[2] y=2)", one)
        == "f(int[] x=[1, 1], int[2] y=2)"
    )
    one = parsed(("x", "int", None, "a"), ("y", "str", None, "a"))
    assert (
        deviations.a_text_for_another_type('f(int x=a, str y="a")', one)
        == 'f(int x="a", str y="a")'
    )


@pytest.mark.parametrize(
    ("predict", "text", "verdict"),
    [
        ("a_hexadecimal_number", "f(int x=0x1F) -> ()", True),
        ("a_hexadecimal_number", "f(int x=01) -> ()", False),
        ("an_annotation_inside_a_type", "f(Dict(str, Tensor(a)) x) -> ()", True),
        ("an_annotation_inside_a_type", "f((int, Tensor!) x) -> ()", True),
        ("an_annotation_inside_a_type", "f(Tensor(a) x) -> ((int, Tensor(a)))", True),
        ("an_annotation_inside_a_type", "f(Tensor(a)[](b) x) -> (Tensor(a))", False),
    ],
)
def test_refused(predict: str, text: str, verdict: bool) -> None:
    assert PREDICTIONS[predict](text, None) is verdict


def test_refused_for_its_arguments() -> None:
    twice = parsed(("x", "int", None, None), ("x", "int", None, None))
    late = parsed(("x", "int", None, 1), ("y", "List[int]", None, None))
    assert deviations.an_argument_named_twice("", twice)
    assert not deviations.an_argument_named_twice("", late)
    assert deviations.a_late_list_without_default("", late)
    assert not deviations.a_late_list_without_default("", twice)


@pytest.mark.parametrize(
    ("predict", "text", "verdict"),
    [
        ("a_wildcard_before_other_sets", "f(Tensor(*|a) x) -> ()", True),
        ("a_wildcard_before_other_sets", "f(Tensor(a|*) x) -> ()", False),
        ("a_complex_default_without_j", "f(complex x=2) -> ()", True),
        ("a_complex_default_without_j", "f(complex x=2j, int y=2) -> ()", False),
        ("a_float_that_is_nearly_zero", "f(float x=1e-400) -> ()", True),
        ("a_float_that_is_nearly_zero", "f(float x=1e-300) -> ()", False),
        ("an_optional_none", "f(NoneType? x) -> ()", True),
        ("an_optional_none", "f(int? x=None) -> ()", False),
        ("a_union_of_one_type", "f(Union(int, int) x) -> ()", True),
        ("a_union_of_one_type", "f(Union(int, str) x) -> ()", False),
    ],
)
def test_accepted(predict: str, text: str, verdict: bool) -> None:
    assert PREDICTIONS[predict](text) is verdict


def test_steps() -> None:
    block = deviations.a_kernel_at_a_building_block
    assert block(TorchImpl("Dense"), frozenset())
    assert block(TorchFallback("Sparse"), frozenset())
    assert not block(TorchImpl("CPU"), frozenset())
    pure = deviations.a_pure_function_with_annotations
    assert pure(TorchDefine("f(Tensor(a) x) -> ()", "PURE_FUNCTION"), frozenset())
    assert not pure(TorchDefine("f(Tensor x) -> ()", "PURE_FUNCTION"), frozenset())
    assert not pure(TorchDefine("f(Tensor(a) x) -> ()"), frozenset())
    assert not pure(TorchImpl("CPU"), frozenset())
    unread = deviations.a_key_that_torch_cannot_read
    assert unread(TorchImpl("AutogradHIP"), frozenset({"CPU"}))
    assert not unread(TorchImpl("CPU"), frozenset({"CPU"}))
    assert not unread(TorchImpl("NoSuchKey"), frozenset({"CPU"}))
    assert not unread(TorchImpl(None), frozenset({"CPU"}))


def test_leftovers() -> None:
    nothing, defined = Shown("", {}), Shown("name: x::f\nschema: f() -> ()\n", {})
    typed = Shown("name: x::f\nschema: (none)\nCPU: k [ boxed unboxed ]\n", {})
    pair = TorchDefineWithKernel("f() -> ()")
    assert deviations.half_of_a_failed_definition(pair, nothing, {})
    assert not deviations.half_of_a_failed_definition(pair, defined, {})
    assert not deviations.half_of_a_failed_definition(pair, typed, {})
    many = TorchDefine(f"f({', '.join(['int x'] * 65)}) -> ()")
    assert deviations.an_entry_without_owner(many, nothing, {})
    assert not deviations.an_entry_without_owner(many, defined, {})
    assert not deviations.an_entry_without_owner(TorchDefine("f()"), nothing, {})


@pytest.mark.parametrize(
    ("key", "table", "taken", "verdict"),
    [
        ("CompositeExplicitAutograd", {}, {"Meta": "m"}, True),
        ("CompositeExplicitAutograd", {}, {"CPU": "c", "Meta": "m"}, False),
        ("Autograd", {"AutogradOther": "a"}, {"AutogradCPU": "c"}, False),
        ("CPU", {}, {"CPU": "c"}, False),
        ("FuncTorchBatchedDecomposition", {"FuncTorchBatched": "k"}, {}, False),
    ],
)
def test_half_of_a_failed_fallback(
    key: str, table: dict[str, str], taken: dict[str, str], verdict: bool
) -> None:
    shown = Shown("name: x::f\n", table)
    found = deviations.half_of_a_failed_fallback(TorchFallback(key), shown, taken)
    assert found is verdict
    assert not deviations.half_of_a_failed_fallback(
        TorchFallback(key), Shown("", {}), taken
    )


@pytest.mark.parametrize(
    ("state", "fallbacks", "expected"),
    [
        (STATE, {}, {}),
        (STATE, {"AutogradHIP": "b"}, {"AutogradHIP": "b"}),
        (
            STATE + AUTOGRAD,
            {"AutogradHIP": "b"},
            {"AutogradHIP": "fallthrough a [autograd kernel]"},
        ),
        ("name: x::f\n", {}, {"AutogradHIP": "m [math kernel]"}),
    ],
)
def test_tables(
    state: str, fallbacks: dict[str, str], expected: dict[str, str]
) -> None:
    shown = Shown(state, {"AutogradHIP": "m [math kernel]"})
    assert deviations.autograd_keys_of_forgotten_backends(shown, fallbacks) == expected
