"""Tags: words that a definition promises about its operator.

True only here: which tags exist, and what `out` and `inplace` demand of a schema.
Tags belong to the definition and go with it.
"""

from runtime.errors.base import nearest
from runtime.errors.schema import SchemaError
from runtime.schema.argument import Argument
from runtime.schema.schema import Schema
from runtime.schema.types import TensorType

# Ours: a `Tensor` argument may be given as a number.
NUMBERS_AS_TENSORS = "numbers_as_tensors"
# Ours: None, the undefined tensor, is no `Tensor` argument, and in no `Tensor[]`.
DEFINED_TENSORS = "defined_tensors"
# Ours: a bool is no `int` argument, and in no `int[]`.
INTEGERS_ONLY = "integers_only"
# Ours: no call whose arguments fit raises.
TOTAL = "total"

# Source: the tags of upstream 2.13, and four of ours.
TAGS: tuple[str, ...] = (
    "core",
    "cudagraph_unsafe",
    "data_dependent_output",
    DEFINED_TENSORS,
    "dynamic_output_shape",
    "flexible_layout",
    "generated",
    "inplace",
    "inplace_view",
    INTEGERS_ONLY,
    "maybe_aliasing_or_mutating",
    "needs_contiguous_strides",
    "needs_exact_strides",
    "needs_fixed_stride_order",
    "nondeterministic_bitwise",
    "nondeterministic_seeded",
    NUMBERS_AS_TENSORS,
    "out",
    "out_variant",
    "pointwise",
    "pt2_compliant_tag",
    "reduction",
    TOTAL,
    "view_copy",
)


def check_tags(schema: Schema, tags: tuple[str, ...]) -> None:
    """Make sure that every tag exists and that the schema keeps its promise.

    Raises:
        SchemaError: there is no such tag.
        SchemaError: the schema is not of the shape that `out` or `inplace` demands.
    """
    for tag in tags:
        if tag not in TAGS:
            raise SchemaError(code="UnknownTag", found=tag, near=nearest(tag, TAGS))
    for tag, fault in (("out", _out_fault), ("inplace", _inplace_fault)):
        found = fault(schema) if tag in tags else None
        if found is not None:
            raise SchemaError(
                code="TagMismatch", tag=tag, schema=str(schema), fault=found
            )


def _out_fault(schema: Schema) -> str | None:
    """Results are exactly the written arguments, keyword-only tensors, in order."""
    written = [argument for argument in schema.arguments if argument.is_write]
    if not written:
        return "it writes to no argument"
    for argument in written:
        if not argument.kwarg_only or argument.type != TensorType:
            return f"it writes to `{argument}`, which is no keyword-only Tensor"
    if len(schema.returns) != len(written):
        return f"it writes to {len(written)} but returns {len(schema.returns)}"
    for index, (argument, result) in enumerate(
        zip(written, schema.returns, strict=True), 1
    ):
        if not _is_same(argument, result):
            return f"result {index} is `{result}`, not the written `{argument}`"
    return None


def _inplace_fault(schema: Schema) -> str | None:
    """Only the first argument is written to, and it is the one result."""
    first = schema.arguments[0] if schema.arguments else None
    if first is None or first.kwarg_only or first.type != TensorType:
        return "its first argument is no positional Tensor"
    if not first.is_write:
        return f"it does not write to its first argument `{first}`"
    for argument in schema.arguments[1:]:
        if argument.is_write:
            return f"it also writes to `{argument}`"
    if len(schema.returns) != 1 or not _is_same(first, schema.returns[0]):
        return f"its one result is not the written `{first}`"
    return None


def _is_same(argument: Argument, result: Argument) -> bool:
    return argument.type == result.type and argument.alias == result.alias
