"""Primitives: the operators that scripts call on numbers, strings, lists and dicts."""

from everyorder.runtime.script.primitives.primitive_table import (
    ROWS,
    by_attribute,
    by_form,
    by_function,
    by_method,
    by_name,
    by_operator,
    install,
    methods_of,
    widened,
)
from everyorder.runtime.script.primitives.row import NAMESPACE, PrimitiveRow

__all__ = [
    "NAMESPACE",
    "ROWS",
    "PrimitiveRow",
    "by_attribute",
    "by_form",
    "by_function",
    "by_method",
    "by_name",
    "by_operator",
    "install",
    "methods_of",
    "widened",
]
