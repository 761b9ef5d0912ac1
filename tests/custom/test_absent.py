"""Names of torch.library that nothing stands for."""

from typing import Any

import pytest

import runtime.library
from runtime.custom.definition import ABSENT
from runtime.library import custom_op
from tests.custom.functions import double


@pytest.mark.parametrize("name", ABSENT)
def test_why_a_name_is_not_there(name: str) -> None:
    assert name not in dir(runtime.library)
    with custom_op("mine::f", double, mutates_args=()) as made:
        owners: list[tuple[Any, str]] = [
            (runtime.library, "module 'runtime.library'"),
            (made, "'CustomOpDef' object"),
        ]
        for owner, shown in owners:
            with pytest.raises(AttributeError) as refused:
                getattr(owner, name)
            assert str(refused.value) == (
                f"{shown} has no attribute {name!r}: {ABSENT[name]}"
            )
            assert refused.value.name == name


def test_any_other_name() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        with pytest.raises(AttributeError) as refused:
            made.register_nothing  # type: ignore[attr-defined]  # noqa: B018  # asked for, not used
        assert str(refused.value) == (
            "'CustomOpDef' object has no attribute 'register_nothing'"
        )
        assert not hasattr(made, "__len__")
