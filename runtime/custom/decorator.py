"""`custom_op`: turn a Python function into an operator.

    @custom_op("mylib::scale", mutates_args=())
    def scale(x: Tensor, factor: float = 2.0) -> Tensor:
        return x * factor

    scale(x)                            # calls the operator `mylib::scale`

The schema is derived from the annotations (`runtime.schema.annotation`), from
`mutates_args`, and from the tags `inplace` and `out`; or the caller passes it as text.

Rules:
- every check of the new operator that does not depend on the older one runs before the
  older operator of its name is closed;
- `"unknown"` means every tensor, also optional ones and those in lists;
- the i-th parameter, if it is written to, belongs to the alias set `a{i}`;
- an in-place function returns its first parameter, an out= form its written
  keyword-only parameters, in order; other results must not be arguments.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from re import DOTALL, fullmatch
from typing import Any, Protocol, overload

from everyorder.runtime.custom.definition import (
    CustomOpDef,
    Devices,
    P,
    R,
    keys_of,
    live,
)
from everyorder.runtime.custom.kernel import kernel_of, selecting, takes_tensors
from everyorder.runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from everyorder.runtime.dispatch.library import check_kind, origin_of_caller
from everyorder.runtime.errors.custom import DefinitionRefused
from everyorder.runtime.errors.schema import InferenceError
from everyorder.runtime.schema.annotation import infer_named_schema
from everyorder.runtime.schema.call_errors import describe_value
from everyorder.runtime.schema.parser import parse_name, parse_schema
from everyorder.runtime.schema.schema import Schema, check_definition
from everyorder.runtime.schema.signature import (
    AliasInfo,
    Argument,
    OperatorName,
    placed_alias,
)
from everyorder.runtime.schema.types import TensorType, holds_tensors

# Every custom operator has this tag: its schema describes its behavior.
COMPLIANT = "pt2_compliant_tag"

# The value of `mutates_args` for unknown writes: every tensor may be written to.
UNKNOWN = "unknown"

_ANNOTATE = "Annotate every parameter and the result, or write the schema yourself."


class Custom(Protocol):
    """The decorator that `custom_op` returns without a function; it keeps the
    signature.
    """

    def __call__(self, function: Callable[P, R], /) -> CustomOpDef[P, R]:
        """Return the operator of the function."""


@overload
def custom_op(
    name: str,
    fn: Callable[P, R],
    /,
    *,
    mutates_args: Iterable[str] | str,
    device_types: Devices = None,
    schema: str | None = None,
    tags: str | Iterable[str] | None = None,
    dispatcher: Dispatcher | None = None,
) -> CustomOpDef[P, R]: ...


@overload
def custom_op(
    name: str,
    fn: None = None,
    /,
    *,
    mutates_args: Iterable[str] | str,
    device_types: Devices = None,
    schema: str | None = None,
    tags: str | Iterable[str] | None = None,
    dispatcher: Dispatcher | None = None,
) -> Custom: ...


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Iterable[str] | str,
    device_types: Devices = None,
    schema: str | None = None,
    tags: str | Iterable[str] | None = None,
    dispatcher: Dispatcher | None = None,
) -> Any:
    """Define an operator by a function; without `fn`, return a decorator that does.

    A live custom operator of the same name is closed.

    Args:
        name: `namespace::name`, with `.overload` if it is one of several.
        fn: the kernel; fully annotated, unless `schema` is passed.
        mutates_args: the arguments that `fn` writes to, or `"unknown"`: any tensor.
        device_types: the devices that `fn` is for; all, if None.
        schema: arguments and results, as `"(Tensor x, int n=1) -> Tensor"`.
        tags: of `runtime.schema.schema.TAGS`.
        dispatcher: the default dispatcher if None; on any other one, the operator lives
            as long as the caller holds the returned definition.

    Returns:
        A `CustomOpDef`.

    Raises:
        DefinitionRefused: the name does not have a namespace.
        InferenceError, SchemaError: the annotations, or the text, do not form a schema.
        DefinitionRefused: `mutates_args` is malformed or names an unknown argument.
        DefinitionRefused: a tensor is keyword-only, without the tag `out`.
        DefinitionRefused: `fn` cannot be called according to the schema.
        DefinitionRefused: it is for some devices, but no argument selects the device.
        Conflict: a library has defined an operator of that name.
    """
    origin = origin_of_caller()
    names = tag_names(tags)
    chosen = dispatcher or default_dispatcher()

    def make(function: Callable[P, R]) -> CustomOpDef[P, R]:
        full = _named(name, function, mutates_args, schema, names)
        _check(full, function, device_types, names)
        older = live(chosen, str(full.name))
        if older is not None:
            older.close()
        return CustomOpDef(
            full, function, device_types, (COMPLIANT, *names), chosen, origin
        )

    return make if fn is None else make(fn)


def parse_signature(name: OperatorName, text: str) -> Schema:
    """Return the schema of an operator from the text of its arguments and results.

    Raises:
        DefinitionRefused: the text does not have this form.
        SchemaSyntaxError: an argument or result is malformed.
    """
    operator, fault = str(name), ""
    if not isinstance(text, str) or not fullmatch(r"\s*\(.*\)\s*->.*", text, DOTALL):
        fault = "is not of the form `(arguments) -> results`, without a name"
        raise DefinitionRefused(
            code="MalformedSignature", operator=operator, found=str(text), fault=fault
        )
    return parse_schema(f"{name}{text.strip()}", type_variables=False)


def qualified(name: str) -> OperatorName:
    """Return the name of an operator with its namespace.

    Raises:
        DefinitionRefused: the name does not have a namespace.
        SchemaSyntaxError: the text is not a name.
    """
    parsed = parse_name(name) if isinstance(name, str) and name else None
    if parsed is None or parsed.namespace is None:
        raise DefinitionRefused(
            code="NotQualified",
            found=repr(name) if isinstance(name, str) else describe_value(name),
        )
    return parsed


def _named(
    name: str,
    function: Callable[..., Any],
    mutates_args: Iterable[str] | str,
    text: str | None,
    tags: tuple[str, ...],
) -> Schema:
    """Return the schema, with its name."""
    qualname = qualified(name)
    # Read it once: it may be an iterator.
    declared = names_of(mutates_args)
    if text is None:
        mutated = "unknown" if declared is None else declared
        return replace(schema_of(function, mutated, tags), name=qualname)
    schema = parse_signature(qualname, text)
    if schema.is_vararg or schema.is_varret:
        fault = "has `...`, but a function has arguments and results that are known"
        raise DefinitionRefused(
            code="MalformedSignature", operator=str(qualname), found=text, fault=fault
        )
    written = {argument.name for argument in schema.arguments if argument.is_write}
    if declared is not None and {*declared} != written:
        raise DefinitionRefused(
            code="MutationMismatch",
            operator=str(qualname),
            schema=str(schema),
            declared=tuple(sorted({*declared})),
            written=tuple(sorted(written)),
        )
    return schema


def _check(
    schema: Schema,
    function: Callable[..., Any],
    devices: Devices,
    tags: tuple[str, ...],
) -> None:
    """Check that an operator can be defined from these arguments of `custom_op`.

    Raises the errors of `custom_op`.
    """
    check_kind(schema.name.namespace or "", "FRAGMENT", None)
    check_definition(schema, tags)
    for argument in schema.arguments:
        if argument.kwarg_only and holds_tensors(argument.type) and "out" not in tags:
            raise DefinitionRefused(
                code="KeywordOnlyTensor",
                operator=str(schema.name),
                argument=argument.name,
                schema=str(schema),
            )
    keys_of(devices)
    kernel_of(function, schema)
    if devices is not None and not takes_tensors(schema):
        selecting(schema)


def infer_schema(
    fn: Callable[..., Any],
    /,
    *,
    mutates_args: Iterable[str] | str,
    op_name: str | None = None,
    tags: str | Iterable[str] | None = (),
) -> str:
    """Return the schema that the annotations of `fn` describe, as text.

    Args:
        fn: fully annotated, including its result.
        mutates_args: the parameters that `fn` writes to, or `"unknown"`.
        op_name: the name to put before the arguments, if any.
        tags: `inplace` or `out` turn written arguments into results.

    Raises:
        InferenceError: an annotation is missing or unknown, a default cannot be written
            in a schema, or `fn` accepts any number of arguments.
        DefinitionRefused: `mutates_args` is malformed.
        DefinitionRefused: `fn` does not fit its tag.
    """
    schema = schema_of(fn, mutates_args, tag_names(tags))
    text = str(schema).partition("(")[2]
    return f"{op_name or ''}({text}"


def schema_of(
    fn: Callable[..., Any], mutates_args: Iterable[str] | str, tags: Iterable[str]
) -> Schema:
    """Return the schema of `infer_schema` itself, without a name."""
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
    """Return the names in `mutates_args`, None for "unknown".

    Raises:
        DefinitionRefused: it is neither a list of names nor "unknown".
    """
    if isinstance(mutates_args, str):
        if mutates_args != UNKNOWN:
            raise DefinitionRefused(
                code="BadMutatesArgs", found=f"the text {mutates_args!r}"
            )
        return None
    if not isinstance(mutates_args, Iterable):
        raise DefinitionRefused(
            code="BadMutatesArgs", found=describe_value(mutates_args)
        )
    names = tuple(mutates_args)
    for name in names:
        if not isinstance(name, str):
            raise DefinitionRefused(
                code="BadMutatesArgs", found=f"a list with {describe_value(name)}"
            )
    return names


def tag_names(tags: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return tags as a tuple: none, one, or several."""
    if tags is None:
        return ()
    return (tags,) if isinstance(tags, str) else tuple(tags)


def _written(
    function: str, mutates_args: Iterable[str] | str, plain: Schema
) -> frozenset[str]:
    names = names_of(mutates_args)
    types = {argument.name: argument.type for argument in plain.arguments}
    if names is None:
        return frozenset(name for name, kind in types.items() if holds_tensors(kind))
    for name in names:
        if name not in types:
            raise DefinitionRefused(
                code="UnknownMutated",
                function=function,
                name=name,
                parameters=(*types,),
            )
        if not holds_tensors(types[name]):
            raise DefinitionRefused(
                code="NotMutable", function=function, name=name, type=str(types[name])
            )
    return frozenset(names)


def _write(place: int, argument: Argument) -> AliasInfo:
    """Return the annotation of an argument that is written to."""
    own = (f"a{place}",)
    return placed_alias(argument.type, AliasInfo(own, own, True))


def _tagged(function: str, schema: Schema, tags: frozenset[str]) -> Schema:
    """Return the schema with the results that its tag requires.

    Raises:
        DefinitionRefused: the arguments or results do not fit the tag.
    """
    tag = "inplace" if "inplace" in tags else "out"
    if tag not in tags:
        return schema
    written = [argument for argument in schema.arguments if argument.is_write]
    first = schema.arguments[0] if schema.arguments else None
    of_types = [each.type for each in written]
    fault = ""
    if tags >= {"inplace", "out"}:
        fault = "it has the tag out as well, and an operator is one of the two"
    elif tag == "inplace" and ([first] != written or first is None or first.kwarg_only):
        fault = "an in-place function writes to its first parameter alone"
    elif tag == "out" and not (written and all(each.kwarg_only for each in written)):
        fault = "an out= form writes to keyword-only parameters alone"
    elif any(each != TensorType for each in of_types):
        fault = "what it writes to and returns must be of type Tensor"
    elif [each.type for each in schema.returns] != of_types:
        listed = ", ".join([f"`{argument.name}`" for argument in written])
        fault = f"it should return {listed}, and its annotation says otherwise"
    if fault:
        raise DefinitionRefused(
            code="TagRefused", function=function, tag=tag, fault=fault
        )
    returns = tuple(Argument("", each.type, alias=each.alias) for each in written)
    return replace(schema, returns=returns)
