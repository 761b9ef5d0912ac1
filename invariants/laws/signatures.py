"""Laws of signatures: typed kernels agree with each other and with the schema.

True only here: only kernels that tell a signature are compared.  A schema and an
inferred schema fit if they have as many arguments and results, of types that print
alike, a symbolic integer being an integer; names, defaults, sizes and annotations may
differ.
"""

from collections.abc import Sequence

from invariants.law import Finding, law
from invariants.live import described
from invariants.placed import Placed
from runtime.dispatch.token import Implementation
from runtime.schema.argument import Argument
from runtime.schema.schema import Schema


@law("state", per_operator=True)
def typed_kernels_agree(operator: Placed) -> list[Finding]:
    """All live typed kernels of an operator have one signature."""
    typed = _typed(operator)
    if len(typed) < 2:
        return []
    first = typed[0].kernel.facts.signature
    return [
        (f"{operator.entry.name}, {described(token)}", str(first), str(signature))
        for token in typed[1:]
        if (signature := token.kernel.facts.signature) != first
    ]


@law("state", per_operator=True)
def typed_kernels_fit_the_schema(operator: Placed) -> list[Finding]:
    """Every live typed kernel takes and returns what the schema says."""
    entry = operator.entry
    if not entry.definitions:
        return []
    schema = entry.definitions[0].schema
    return [
        (f"{entry.name}, {described(token)}", str(schema), str(inferred))
        for token in _typed(operator)
        if (inferred := token.kernel.facts.inferred) and not _fits(schema, inferred)
    ]


def _typed(operator: Placed) -> list[Implementation]:
    return [
        token
        for held in operator.entry.implementations.values()
        for token in held
        if token.kernel.facts.signature is not None
    ]


def _fits(schema: Schema, inferred: Schema) -> bool:
    return _types(schema.arguments) == _types(inferred.arguments) and _types(
        schema.returns
    ) == _types(inferred.returns)


def _types(arguments: Sequence[Argument]) -> list[str]:
    return [str(argument.type).replace("SymInt", "int") for argument in arguments]
