"""Signatures: what `help()` says of an operator as a function or a method.

True only here: a schema as Python's signature; what it is for says the declaration.
"""

from inspect import Parameter, Signature
from typing import Any

from runtime.operators.public import public
from runtime.schema.schema import Schema


def described(name: str, schema: Schema) -> str:
    """A docstring: what it is for, and the schema."""
    named = public().get(name)
    return f"{named.says if named else ''}\n\nSchema: `{schema}`".lstrip()


def signature_of(schema: Schema) -> Signature:
    """The arguments of a schema as Python's."""
    parameters = []
    for argument in schema.arguments:
        named = argument.kwarg_only
        kind = Parameter.KEYWORD_ONLY if named else Parameter.POSITIONAL_OR_KEYWORD
        default: Any = argument.default if argument.has_default else Parameter.empty
        written = str(argument.type)
        parameters.append(
            Parameter(argument.name, kind, default=default, annotation=written)
        )
    result = ", ".join(str(each.type) for each in schema.returns)
    many = len(schema.returns) != 1
    return Signature(parameters, return_annotation=f"({result})" if many else result)
