"""What stands for an operator."""

from typing import Any

import pytest

from runtime import Library, ops
from runtime.custom.registering import custom_of, dispatcher_of, handle_of
from runtime.dispatch.dispatcher import default_dispatcher
from runtime.errors.custom_op import NotAnOperator, NotQualified, OverloadNeeded
from runtime.library import custom_op
from tests.custom.functions import double


def test_every_form_means_the_same() -> None:
    with custom_op("mine::f.by", double, mutates_args=()) as made:
        forms: list[Any] = ["mine::f.by", made, made.handle, ops.mine.f]
        assert all(handle_of("f", form) is made.handle for form in forms)
        assert custom_of(made.handle) is made
    assert custom_of(made.handle) is None
    assert dispatcher_of(made.handle) is default_dispatcher()


def test_several_overloads() -> None:
    with Library("mine", "FRAGMENT") as library:
        for overload in ("", ".b", ".a"):
            library.define(f"f{overload}(Tensor x) -> Tensor")
        with pytest.raises(OverloadNeeded) as refused:
            handle_of("register_fake(...)", ops.mine.f)
        assert str(refused.value) == (
            "register_fake(...): `mine::f` has 3 overloads, and each is an operator of "
            "its\nown.\n"
            "  overloads: default, a, b"
        )


@pytest.mark.parametrize(
    ("given", "found"), [(3, "an int"), (double, "a function"), (None, "None")]
)
def test_what_is_no_operator(given: Any, found: str) -> None:
    with pytest.raises(NotAnOperator) as refused:
        handle_of("register_fake(...)", given)
    assert refused.value.fields() == {
        "call": "register_fake(...)",
        "found": found,
        "library": False,
    }


def test_a_library_in_the_place_of_an_operator() -> None:
    given: Any = Library("mine", "FRAGMENT")
    with given, pytest.raises(NotAnOperator) as refused:
        handle_of("impl(...)", given)
    assert str(refused.value) == (
        "impl(...) needs an operator; found a Library.\n"
        "  give:    'namespace::name', ops.namespace.name.overload, or what custom_op\n"
        "           returned\n"
        "  or call: its own method: library.impl(name, kernel, key)"
    )


def test_the_text() -> None:
    with pytest.raises(TypeError) as refused:
        handle_of("register_fake(...)", 3)  # type: ignore[arg-type]  # the fault
    assert str(refused.value) == (
        "register_fake(...) needs an operator; found an int.\n"
        "  give: 'namespace::name', ops.namespace.name.overload, or what custom_op\n"
        "        returned"
    )
    with pytest.raises(NotQualified):
        handle_of("register_fake(...)", "f")
