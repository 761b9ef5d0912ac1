"""`custom_op`: a Python function becomes an operator.

True only here: what is checked before there is an operator, and what becomes of an
older one of its name.

    @custom_op("mylib::scale", mutates_args=())
    def scale(x: Tensor, factor: float = 2.0) -> Tensor:
        return x * factor

    scale(x)                            # calls the operator `mylib::scale`

Rule: everything about the new operator that can be refused by itself is refused before
the older one of its name is closed.
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from re import DOTALL, fullmatch
from typing import Any, Protocol, overload

from runtime.custom.definition import CustomOpDef, Devices, P, R, keys_of
from runtime.custom.inference import holds_tensors, names_of, schema_of, tag_names
from runtime.custom.kernel import kernel_of
from runtime.custom.live import live
from runtime.custom.selection import selecting, takes_tensors
from runtime.dispatch.arguments import check_kind
from runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from runtime.errors.custom_op import (
    KeywordOnlyTensor,
    MalformedSignature,
    MutationMismatch,
    NotQualified,
)
from runtime.schema.definition import check_definition
from runtime.schema.excerpt import described
from runtime.schema.names import OperatorName
from runtime.schema.parser import parse_name, parse_schema
from runtime.schema.schema import Schema

# Every custom operator has it: its schema says what it does.
COMPLIANT = "pt2_compliant_tag"


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
        tags: of `runtime.schema.tags.TAGS`.
        dispatcher: the default dispatcher if None; on any other one, the operator lives
            as long as what is returned is kept.

    Returns:
        A `CustomOpDef`.

    Raises:
        NotQualified: the name has no namespace.
        InferenceError, SchemaError: the annotations, or the text, are no schema.
        BadMutatesArgs, UnknownMutated, NotMutable, MutationMismatch: `mutates_args`.
        KeywordOnlyTensor: a tensor by name only, without the tag `out`.
        UnfitKernel: `fn` cannot be called as the schema says.
        NoDeviceArgument: for some devices, but no argument says which.
        DuplicateDefinition: a library has defined an operator of that name.
    """
    frame = sys._getframe(1)
    origin = f"registered at {frame.f_code.co_filename}:{frame.f_lineno}"
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


def signature_of(name: OperatorName, text: str) -> Schema:
    """The schema of an operator from its arguments and results, as text.

    Raises `MalformedSignature`, and `SchemaSyntaxError` for what is wrong inside.
    """
    operator, fault = str(name), ""
    if not isinstance(text, str) or not fullmatch(r"\s*\(.*\)\s*->.*", text, DOTALL):
        fault = "is not of the form `(arguments) -> results`, without a name"
        raise MalformedSignature(operator=operator, found=str(text), fault=fault)
    return parse_schema(f"{name}{text.strip()}", type_variables=False)


def qualified(name: str) -> OperatorName:
    """The name of an operator with its namespace.

    Raises `NotQualified`, and `SchemaSyntaxError` for what is no name.
    """
    parsed = parse_name(name) if isinstance(name, str) and name else None
    if parsed is None or parsed.namespace is None:
        raise NotQualified(
            found=repr(name) if isinstance(name, str) else described(name)
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
    schema = signature_of(wanted, text)
    if schema.is_vararg or schema.is_varret:
        fault = "has `...`, but a function has arguments and results that are known"
        raise MalformedSignature(operator=str(wanted), found=text, fault=fault)
    written = {argument.name for argument in schema.arguments if argument.is_write}
    if declared is not None and {*declared} != written:
        raise MutationMismatch(
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
            raise KeywordOnlyTensor(
                operator=str(schema.name), argument=argument.name, schema=str(schema)
            )
    keys_of(devices)
    kernel_of(function, schema)
    if devices is not None and not takes_tensors(schema):
        selecting(schema)
