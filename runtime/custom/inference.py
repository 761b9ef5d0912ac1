"""The schema of a custom operator, from its function.

True only here: what `mutates_args` and the tags `inplace` and `out` add to what the
annotations say (`runtime.schema.infer`).

Rules:
- `"unknown"` means every tensor, also optional ones and those in lists;
- the i-th parameter, if it is written to, belongs to the alias set `a{i}`;
- an in-place function returns its first parameter, an out= form its keyword-only
  written ones, in order; nothing else that is returned is an argument.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from runtime.errors.custom_op import (
    BadMutatesArgs,
    NotMutable,
    TagRefused,
    UnknownMutated,
)
from runtime.errors.schema import InferenceError
from runtime.schema.alias import AliasInfo
from runtime.schema.argument import Argument, placed_alias
from runtime.schema.excerpt import described
from runtime.schema.infer import infer_named_schema
from runtime.schema.names import OperatorName
from runtime.schema.schema import Schema
from runtime.schema.types import ListType, OptionalType, TensorType, Type

# The word for: nobody knows, so every tensor may be written to.
UNKNOWN = "unknown"
_ANNOTATE = "Annotate every parameter and the result, or write the schema yourself."


def infer_schema(
    fn: Callable[..., Any],
    /,
    *,
    mutates_args: Iterable[str] | str,
    op_name: str | None = None,
    tags: str | Iterable[str] | None = (),
) -> str:
    """The schema that the annotations of `fn` mean, as text.

    Args:
        fn: annotated whole, its result too.
        mutates_args: the parameters that `fn` writes to, or `"unknown"`.
        op_name: stands before the arguments, if given.
        tags: `inplace` or `out` make written arguments results.

    Raises:
        InferenceError: an annotation is missing or means nothing, a default has no
            schema form, or `fn` takes any number of arguments.
        BadMutatesArgs, UnknownMutated, NotMutable: see `mutates_args`.
        TagRefused: `fn` is not what its tag says.
    """
    schema = schema_of(fn, mutates_args, tag_names(tags))
    text = str(schema).partition("(")[2]
    return f"{op_name or ''}({text}"


def schema_of(
    fn: Callable[..., Any], mutates_args: Iterable[str] | str, tags: Iterable[str]
) -> Schema:
    """As `infer_schema`: the schema itself, without a name."""
    try:
        plain = infer_named_schema(fn)
    except InferenceError as error:
        if "no annotation" in error.reason:
            error.remedy = _ANNOTATE
        raise
    function = str(getattr(fn, "__name__", type(fn).__name__))
    written = _written(function, mutates_args, plain)
    arguments = tuple(
        replace(argument, alias=_write(place, argument))
        if argument.name in written
        else argument
        for place, argument in enumerate(plain.arguments)
    )
    schema = replace(plain, name=OperatorName(""), arguments=arguments)
    return _tagged(function, schema, frozenset(tags))


def names_of(mutates_args: Iterable[str] | str) -> tuple[str, ...] | None:
    """The names in `mutates_args`, None for "unknown".  Raises `BadMutatesArgs`."""
    if isinstance(mutates_args, str):
        if mutates_args != UNKNOWN:
            raise BadMutatesArgs(found=f"the text {mutates_args!r}")
        return None
    if not isinstance(mutates_args, Iterable):
        raise BadMutatesArgs(found=described(mutates_args))
    names = tuple(mutates_args)
    for name in names:
        if not isinstance(name, str):
            raise BadMutatesArgs(found=f"a list with {described(name)}")
    return names


def tag_names(tags: str | Iterable[str] | None) -> tuple[str, ...]:
    """Tags as they may be given: none, one, or several."""
    if tags is None:
        return ()
    return (tags,) if isinstance(tags, str) else tuple(tags)


def holds_tensors(kind: Type) -> bool:
    """Whether a type is that of a tensor, or of optional or several ones."""
    while isinstance(kind, ListType | OptionalType):
        kind = kind.element
    return kind == TensorType


def _written(
    function: str, mutates_args: Iterable[str] | str, plain: Schema
) -> frozenset[str]:
    names = names_of(mutates_args)
    types = {argument.name: argument.type for argument in plain.arguments}
    if names is None:
        return frozenset(name for name, kind in types.items() if holds_tensors(kind))
    for name in names:
        if name not in types:
            raise UnknownMutated(function=function, name=name, parameters=(*types,))
        if not holds_tensors(types[name]):
            raise NotMutable(function=function, name=name, type=str(types[name]))
    return frozenset(names)


def _write(place: int, argument: Argument) -> AliasInfo:
    """The annotation of an argument that is written to."""
    own = (f"a{place}",)
    return placed_alias(argument.type, AliasInfo(own, own, True))


def _tagged(function: str, schema: Schema, tags: frozenset[str]) -> Schema:
    """The schema with the results that a tag asks for.  Raises `TagRefused`."""
    if tags >= {"inplace", "out"}:
        fault = "it has the tag out as well, and an operator is one of the two"
        raise TagRefused(function=function, tag="inplace", fault=fault)
    written = [argument for argument in schema.arguments if argument.is_write]
    if "inplace" in tags:
        first = schema.arguments[0] if schema.arguments else None
        if [first] != written or first is None or first.kwarg_only:
            fault = "an in-place function writes to its first parameter alone"
            raise TagRefused(function=function, tag="inplace", fault=fault)
        tag = "inplace"
    elif "out" in tags:
        if not written or not all(each.kwarg_only for each in written):
            fault = "an out= form writes to keyword-only parameters alone"
            raise TagRefused(function=function, tag="out", fault=fault)
        tag = "out"
    else:
        return schema
    if any(each.type != TensorType for each in written):
        fault = "what it writes to and returns must be of type Tensor"
        raise TagRefused(function=function, tag=tag, fault=fault)
    if [each.type for each in schema.returns] != [each.type for each in written]:
        fault = (
            f"it should return {_listed(written)}, and its annotation says otherwise"
        )
        raise TagRefused(function=function, tag=tag, fault=fault)
    returns = tuple(Argument("", each.type, alias=each.alias) for each in written)
    return replace(schema, returns=returns)


def _listed(written: list[Argument]) -> str:
    return ", ".join(f"`{argument.name}`" for argument in written)
