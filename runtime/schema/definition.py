"""What a schema must satisfy before an operator is defined with it.

True only here: the limits and contradictions that no grammar sees.  Schemas built by
hand pass through here as well, so what the parser already refuses is refused again.
"""

from runtime.errors.schema import SchemaError
from runtime.schema.alias import AliasKind
from runtime.schema.schema import Schema
from runtime.schema.tags import check_tags

# Bits in the set of arguments that a call scans for tensors; source: upstream's limit.
MOST_ARGUMENTS = 64


def check_definition(schema: Schema, tags: tuple[str, ...] = ()) -> None:
    """Make sure that an operator can be defined with `schema` and `tags`.

    Raises:
        CallError: there are more than `MOST_ARGUMENTS`.
        SchemaError: a name is given twice; or arguments, defaults and `...` stand in
            an order in which no call could pass them.
        SchemaError: the alias kind is PURE_FUNCTION, yet something is annotated.
        SchemaError, SchemaError: see `check_tags`.
    """
    count = len(schema.arguments)
    if count > MOST_ARGUMENTS:
        operator = str(schema.name)
        raise SchemaError(
            code="TooManySchemaArguments",
            operator=operator,
            count=count,
            limit=MOST_ARGUMENTS,
        )
    fault = _order_fault(schema)
    if fault is not None:
        raise SchemaError(
            code="ArgumentOrder", schema=str(schema), argument=fault[0], fault=fault[1]
        )
    if schema.alias_kind is AliasKind.PURE_FUNCTION:
        for argument in (*schema.arguments, *schema.returns):
            if argument.alias is not None:
                raise SchemaError(
                    code="ImpureFunction", schema=str(schema), annotated=str(argument)
                )
    check_tags(schema, tags)


def _order_fault(schema: Schema) -> tuple[str, str] | None:
    """The first argument out of order and what is wrong with it."""
    seen: set[str] = set()
    defaulted = kwarg_only = False
    for argument in schema.arguments:
        if argument.name in seen:
            return argument.name, "has the name of another argument"
        if kwarg_only and not argument.kwarg_only:
            return argument.name, "is positional, but follows a keyword-only argument"
        if defaulted and not argument.has_default and not argument.kwarg_only:
            return argument.name, "has no default, but follows one that has"
        if schema.is_vararg and argument.has_default:
            return argument.name, "has a default, but `...` allows none"
        seen.add(argument.name)
        defaulted |= argument.has_default
        kwarg_only |= argument.kwarg_only
    return None
