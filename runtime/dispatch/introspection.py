"""Introspection: what `inspect.signature` and `help` are told of an operator.

True only here: the Python signature of a schema.  Both are asked of an object when
somebody looks at it, and take from its live schemas; a call pays nothing for them.

Rules:
- an operator with one schema shows its parameters; one with several, or with none any
  more, takes anything;
- parameters have no annotations: an operator that is registered as a kernel is one that
  says nothing about its types, whatever its schema is;
- a name that Python does not take for a parameter gets an underscore;
- the class itself keeps its own text, and the signature of its constructor.
"""

from collections.abc import Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Protocol

from runtime.schema.schema import Schema
from runtime.schema.values import present

if TYPE_CHECKING:
    from inspect import Signature


class Shown(Protocol):
    """An operator, or all overloads of one."""

    def __str__(self) -> str: ...

    def schemas(self) -> tuple[Schema, ...]:
        """The schemas that are live."""


class SignatureOf:
    """`__signature__` of an operator."""

    def __get__(self, shown: Shown | None, owner: type) -> "Signature":
        if shown is None:
            # Whoever asks a class for it takes the constructor's then.
            raise AttributeError("__signature__")
        return signature_of(shown.schemas())


class DocumentationOf:
    """`__doc__` of an operator, and the `text` of its class."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __get__(self, shown: Shown | None, owner: type) -> str | None:
        if shown is None:
            return self.text
        schemas = shown.schemas()
        if not schemas:
            return f"{shown}: not registered."
        return "\n".join((f"{shown}{signature_of(schemas)}", "", *map(str, schemas)))


def signature_of(schemas: Sequence[Schema]) -> "Signature":
    """The signature that calls may have, as Python says it."""
    from inspect import Parameter, Signature

    if len(schemas) != 1:
        anything = {"args": Parameter.VAR_POSITIONAL, "kwargs": Parameter.VAR_KEYWORD}
        return Signature([Parameter(name, kind) for name, kind in anything.items()])
    (schema,) = schemas
    parameters = []
    # What stands before a required argument has no default for Python.
    optional = True
    for argument in reversed(schema.arguments):
        named = argument.kwarg_only
        optional = optional and (named or argument.has_default)
        default: Any = Parameter.empty
        if argument.has_default and (named or optional):
            default = present(argument.type, argument.default)
        kind = Parameter.KEYWORD_ONLY if named else Parameter.POSITIONAL_OR_KEYWORD
        name = f"{argument.name}_" if iskeyword(argument.name) else argument.name
        parameters.append(Parameter(name, kind, default=default))
    parameters.reverse()
    if schema.is_vararg:
        rest = Parameter("args", Parameter.VAR_POSITIONAL)
        parameters.insert(schema.kwarg_only_start, rest)
    return Signature(parameters)
