"""The derivatives of the operators of namespace `core`, by family."""

from runtime.autograd.formulas.table import (
    CONSTANT_OPERATORS,
    CONSTANT_RESULTS,
    FORMULAS,
)

__all__ = ["CONSTANT_OPERATORS", "CONSTANT_RESULTS", "FORMULAS"]
