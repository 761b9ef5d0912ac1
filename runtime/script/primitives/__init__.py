"""Primitives: the operators that scripts call on numbers, strings, lists and dicts."""

from everyorder.runtime.script.primitives.primitive_row import NAMESPACE, PrimitiveRow
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
