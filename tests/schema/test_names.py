"""Names of operators: parts, text, order."""

import pytest

from runtime.schema.signature import OperatorName


@pytest.mark.parametrize(
    ("name", "text", "namespace", "base"),
    [
        (OperatorName("add"), "add", None, "add"),
        (OperatorName("aten::add"), "aten::add", "aten", "add"),
        (OperatorName("aten::add", "out"), "aten::add.out", "aten", "add"),
        (OperatorName("add", "out"), "add.out", None, "add"),
        (OperatorName(""), "", None, ""),
    ],
)
def test_parts(name: OperatorName, text: str, namespace: str | None, base: str) -> None:
    assert (str(name), name.namespace, name.base) == (text, namespace, base)


def test_with_namespace_sets_or_replaces() -> None:
    assert OperatorName("f", "o").with_namespace("a") == OperatorName("a::f", "o")
    assert OperatorName("b::f").with_namespace("a") == OperatorName("a::f")


def test_order_is_by_name_then_overload() -> None:
    names = [OperatorName("b"), OperatorName("a", "x"), OperatorName("a")]
    assert [str(name) for name in sorted(names)] == ["a", "a.x", "b"]
