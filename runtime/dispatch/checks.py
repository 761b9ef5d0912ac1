"""What must hold before a definition or a kernel joins an operator.

Definitions are matched with kernels here.  A kernel may come before its schema; its
inferred schema waits with it, and whichever comes second is checked.

Rules:
- kernels are compared with each other by signature, with the definition by schema;
- of several partners in a conflict, the first by key and description is named;
- two types are compared as the boxed stack sees them (`SymInt` as `int`);
- a keyword-only parameter must also fit the argument of its name, which it gets.
"""

from functools import lru_cache
from operator import itemgetter

from runtime.dispatch.kernel import keyword_places
from runtime.dispatch.state import DispatcherState, OperatorEntry
from runtime.dispatch.token import (
    Definition,
    DefinitionReading,
    Implementation,
    KernelReading,
)
from runtime.errors.registration import Conflict
from runtime.schema.compatibility import difference
from runtime.schema.schema import Schema


def check_definition_fits(
    entry: OperatorEntry, token: Definition, merges_alias_kinds: bool
) -> None:
    """Whether `token` may define the operator of `entry`.

    Raises:
        Conflict: a definition is live.
        Conflict: under the 2020 rule, the kinds do not merge.
        Conflict: a live typed kernel differs from the schema.
    """
    if entry.definitions:
        _check_second_definition(entry.definitions[0], token, merges_alias_kinds)
    for kernel in _typed(entry):
        _check_pair(token, kernel)


def check_kernel_fits(entry: OperatorEntry, token: Implementation) -> None:
    """Whether the typed kernel of `token` may join the operator of `entry`.

    Raises:
        Conflict: a live typed kernel has another signature.
        Conflict: the live schema differs from the kernel's.
    """
    facts = token.reading.facts
    for kernels in entry.implementations.values():
        for other in kernels:
            found = other.reading.facts
            if found is not facts and found.signature not in (None, facts.signature):
                _refuse_signature(entry, token)
    for definition in entry.definitions:  # each may be in force one day
        _check_pair(definition, token)


def check_no_override(state: DispatcherState, token: Implementation) -> None:
    """Whether `token` is the first kernel for its key.

    Raises:
        Conflict: it is not.
    """
    entry = state.find(token.reading.namespace, token.reading.text)
    held = None if entry is None else entry.implementations.get(token.key)
    if held is not None:
        raise Conflict(
            code="OverrideForbidden",
            operator=str(token.operator),
            key=token.key.name,
            kernel=token.debug,
            original=held[0].debug,
        )


def _check_second_definition(
    held: Definition, token: Definition, merges_alias_kinds: bool
) -> None:
    if not merges_alias_kinds or held.schema != token.schema:
        raise Conflict(
            code="DuplicateDefinition",
            operator=str(token.operator),
            schema=str(token.schema),
            definition=token.debug,
            original_schema=str(held.schema),
            original=held.debug,
        )
    kind, original = token.schema.alias_kind, held.schema.alias_kind
    if kind is not None and kind is not original:
        raise Conflict(
            code="AliasKindConflict",
            operator=str(token.operator),
            kind=kind.name,
            definition=token.debug,
            original_kind=original.name if original else "unset",
            original=held.debug,
        )


def _check_pair(definition: Definition, token: Implementation) -> None:
    found = _difference(definition.reading, token.reading)
    if found is not None:
        raise Conflict(
            code="SchemaMismatch",
            operator=str(token.operator),
            schema=str(definition.schema),
            definition=definition.debug,
            inferred=str(token.reading.facts.inferred),
            kernel=token.debug,
            key=token.key.name,
            difference=found,
        )


# Readings are compared by identity; few pairs meet again and again.
@lru_cache(maxsize=1024)
def _difference(definition: DefinitionReading, kernel: KernelReading) -> str | None:
    assert kernel.facts.inferred is not None, "asked for typed kernels only"
    inferred = kernel.facts.inferred
    found = difference(definition.schema, inferred, real=True)
    if found is None and kernel.facts.keyword_only:
        by_name = _as_named(definition.schema, inferred, kernel.facts.keyword_only)
        found = difference(definition.schema, by_name, real=True)
    return None if found is None else str(found)


def _as_named(schema: Schema, inferred: Schema, names: tuple[str, ...]) -> Schema:
    """`inferred`, with each parameter that is passed by name where that name stands."""
    arguments = list(inferred.arguments)
    named = dict(zip(names, arguments[-len(names) :], strict=True))
    del arguments[-len(names) :]
    for name, place in sorted(keyword_places(schema, names).items(), key=itemgetter(1)):
        arguments.insert(place, named[name])
    return inferred.clone_with_arguments(tuple(arguments))


def _typed(entry: OperatorEntry) -> list[Implementation]:
    """The live typed kernels, in an order that no history can change."""
    found = [
        token
        for kernels in entry.implementations.values()
        for token in kernels
        if token.reading.facts.signature is not None
    ]
    return sorted(found, key=lambda token: (token.key.value, token.debug))


def _refuse_signature(entry: OperatorEntry, token: Implementation) -> None:
    other = _typed(entry)[0]
    raise Conflict(
        code="SignatureMismatch",
        operator=str(token.operator),
        signature=token.reading.facts.signature or "",
        kernel=token.debug,
        key=token.key.name,
        other_signature=other.reading.facts.signature or "",
        other=other.debug,
        other_key=other.key.name,
    )
