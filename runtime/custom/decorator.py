"""`custom_op`: a Python function becomes an operator.

    @custom_op("mylib::scale", mutates_args=())
    def scale(x: Tensor, factor: float = 2.0) -> Tensor:
        return x * factor

    scale(x)                            # calls the operator `mylib::scale`

The schema is what the annotations say (`runtime.schema.annotation`), and what
`mutates_args` and the tags `inplace` and `out` add to it; or it is given as text.

Rules:
- everything about the new operator that can be refused by itself is refused before the
  older one of its name is closed;
- `"unknown"` means every tensor, also optional ones and those in lists;
- the i-th parameter, if it is written to, belongs to the alias set `a{i}`;
- an in-place function returns its first parameter, an out= form its keyword-only
  written ones, in order; nothing else that is returned is an argument.
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

# Every custom operator has it: its schema says what it does.
COMPLIANT = "pt2_compliant_tag"

# The word for: nobody knows, so every tensor may be written to.
UNKNOWN = "unknown"

_ANNOTATE = "Annotate every parameter and the result, or write the schema yourself."


class Custom(Protocol):
    """What `custom_op` without a function is: it keeps the signature."""

    def __call__(self, function: Callable[P, R], /) -> CustomOpDef[P, R]:
        """The operator of the function."""


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
    """Make an operator of a function; without `fn`, a decorator that does.

    A live custom operator of the same name is closed.

    Args:
        name: `namespace::name`, with `.overload` if it is one of several.
        fn: the kernel; annotated whole, unless `schema` is given.
        mutates_args: the arguments that `fn` writes to, or `"unknown"`: any tensor.
        device_types: the devices that `fn` is for; all, if None.
        schema: arguments and results, as `"(Tensor x, int n=1) -> Tensor"`.
        tags: of `runtime.schema.schema.TAGS`.
        dispatcher: the default dispatcher if None; on any other one, the operator lives
            as long as what is returned is kept.

    Returns:
        A `CustomOpDef`.

    Raises:
        DefinitionRefused: the name has no namespace.
        InferenceError, SchemaError: the annotations, or the text, are no schema.
        DefinitionRefused: `mutates_args`.
        DefinitionRefused: a tensor by name only, without the tag `out`.
        DefinitionRefused: `fn` cannot be called as the schema says.
        DefinitionRefused: for some devices, but no argument says which.
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
    """The schema of an operator from its arguments and results, as text.

    Raises `DefinitionRefused`, and `SchemaSyntaxError` for what is wrong inside.
    """
    operator, fault = str(name), ""
    if not isinstance(text, str) or not fullmatch(r"\s*\(.*\)\s*->.*", text, DOTALL):
        fault = "is not of the form `(arguments) -> results`, without a name"
        raise DefinitionRefused(
            code="MalformedSignature", operator=operator, found=str(text), fault=fault
        )
    return parse_schema(f"{name}{text.strip()}", type_variables=False)


def qualified(name: str) -> OperatorName:
    """The name of an operator with its namespace.

    Raises `DefinitionRefused`, and `SchemaSyntaxError` for what is no name.
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
    """The schema, with its name."""
    wanted = qualified(name)
    # Given as an iterator, it is read once.
    declared = names_of(mutates_args)
    if text is None:
        mutated = "unknown" if declared is None else declared
        return replace(schema_of(function, mutated, tags), name=wanted)
    schema = parse_signature(wanted, text)
    if schema.is_vararg or schema.is_varret:
        fault = "has `...`, but a function has arguments and results that are known"
        raise DefinitionRefused(
            code="MalformedSignature", operator=str(wanted), found=text, fault=fault
        )
    written = {argument.name for argument in schema.arguments if argument.is_write}
    if declared is not None and {*declared} != written:
        raise DefinitionRefused(
            code="MutationMismatch",
            operator=str(wanted),
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
    """Whether an operator can be made of these.  Raises as `custom_op`."""
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
    """The schema that the annotations of `fn` mean, as text.

    Args:
        fn: annotated whole, its result too.
        mutates_args: the parameters that `fn` writes to, or `"unknown"`.
        op_name: stands before the arguments, if given.
        tags: `inplace` or `out` make written arguments results.

    Raises:
        InferenceError: an annotation is missing or means nothing, a default has no
            schema form, or `fn` takes any number of arguments.
        DefinitionRefused: see `mutates_args`.
        DefinitionRefused: `fn` is not what its tag says.
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
    """The names in `mutates_args`, None for "unknown".  Raises `DefinitionRefused`."""
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
    """Tags as they may be given: none, one, or several."""
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
    """The annotation of an argument that is written to."""
    own = (f"a{place}",)
    return placed_alias(argument.type, AliasInfo(own, own, True))


def _tagged(function: str, schema: Schema, tags: frozenset[str]) -> Schema:
    """The schema with the results that a tag asks for.  Raises `DefinitionRefused`."""
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
