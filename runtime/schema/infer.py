"""The schema of an annotated Python function.

Two readings exist: a *kernel* has nameless arguments `_0, _1, ..` and plain integers,
an *operator* made of a function has the function's own names, symbolic integers and
defaults.

Rules:
- a kernel that is not annotated whole (`Any`, `*args` and `**kwargs` say nothing) has
  no schema, as one without any annotation: it is called with boxed values;
- an operator made of a function that is annotated in part is an error, never a guess;
- a leading parameter annotated `KeySet` is no argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from runtime.errors.schema import InferenceError
from runtime.keys.keyset import KeySet
from runtime.schema.alias import AliasInfo
from runtime.schema.annotation import annotated_type, result_types, tensor_stand_in
from runtime.schema.annotation import register_annotation as register_annotation
from runtime.schema.argument import NO_DEFAULT, Argument, placed_alias
from runtime.schema.codes import Code
from runtime.schema.device import Device
from runtime.schema.names import OperatorName
from runtime.schema.schema import Schema
from runtime.schema.types import (
    IntType,
    ListType,
    OptionalType,
    SymIntType,
    TensorType,
    Type,
)

if TYPE_CHECKING:
    from inspect import Parameter, Signature

# A kernel's schema has no name until its definition arrives.
NAMELESS = OperatorName("")


class KernelSignature(NamedTuple):
    """What the annotations of a kernel tell.

    `schema` is None unless it is annotated whole; `leading_keyset` says that its first
    parameter is annotated `KeySet`, however that is spelled; `keyword_only` are the
    parameters that must be named, if there is a schema.
    """

    schema: Schema | None
    leading_keyset: bool
    keyword_only: tuple[str, ...]


def kernel_signature(fn: Callable[..., Any]) -> KernelSignature:
    """What the annotations of a kernel tell.

    A callable that shows no signature (a builtin, a ufunc) is not annotated.

    Raises:
        InferenceError: an annotation has no schema type.
    """
    signature = _signature(fn)
    if signature is None:
        return KernelSignature(None, False, ())
    parameters = _parameters(signature)
    leading_keyset = len(parameters) < len(signature.parameters)
    if not _is_whole(signature):
        return KernelSignature(None, leading_keyset, ())
    arguments = tuple(
        Argument(f"_{index}", _parameter_type(fn, parameter))
        for index, parameter in enumerate(parameters)
    )
    results = _results(fn, signature)
    returns = tuple(Argument(f"_{index}", one) for index, one in enumerate(results))
    named = [
        each.name
        for each in signature.parameters.values()
        if each.kind is each.KEYWORD_ONLY
    ]
    schema = Schema(NAMELESS, arguments, returns)
    return KernelSignature(schema, leading_keyset, tuple(named))


def infer_schema_of(fn: Callable[..., Any]) -> Schema | None:
    """The schema of a kernel, or None unless `fn` is annotated whole.

    Raises as `kernel_signature`.
    """
    return kernel_signature(fn).schema


def infer_named_schema(
    fn: Callable[..., Any], *, mutates: Iterable[str] | Literal["unknown"] = ()
) -> Schema:
    """The schema of an operator made of `fn`: own names, symbolic integers, defaults.

    `mutates` names the tensor parameters that `fn` writes to; `"unknown"` means every
    one.  The i-th argument, if written to, belongs to the alias set `a{i}`.

    Raises:
        InferenceError: as for `infer_schema_of`; `fn` is not annotated whole, or takes
            `*args` or `**kwargs`; a default has
            no schema form; `mutates` names no parameter, or one that is no tensor.
    """
    signature = _signature(fn)
    if signature is None or not _is_annotated(signature):
        raise _fault(fn, "return", "", "has no annotation", _ANNOTATE)
    parameters = _parameters(signature)
    written = None if mutates == "unknown" else set(mutates)
    names = {parameter.name for parameter in parameters}
    for name in sorted((written or set()) - names):
        raise _fault(fn, name, "", "is no parameter", "Name parameters in `mutates`.")
    arguments = tuple(
        _named_argument(fn, index, parameter, written)
        for index, parameter in enumerate(parameters)
    )
    results = _results(fn, signature)
    returns = tuple(Argument("", _symbolic(result)) for result in results)
    return Schema(NAMELESS, arguments, returns)


def _named_argument(
    fn: Callable[..., Any], index: int, parameter: Parameter, written: set[str] | None
) -> Argument:
    type = _symbolic(_parameter_type(fn, parameter))  # noqa: A001  # the field's own word
    tensors = _holds_tensors(type)
    alias = None
    if tensors if written is None else parameter.name in written:
        if not tensors:
            reason, remedy = (
                "is written to, but is no tensor",
                "Take it from `mutates`.",
            )
            raise _fault(fn, parameter.name, str(type), reason, remedy)
        alias = placed_alias(type, AliasInfo((f"a{index}",), (f"a{index}",), True))
    return Argument(
        parameter.name,
        type,
        default=_default(fn, parameter),
        kwarg_only=parameter.kind is parameter.KEYWORD_ONLY,
        alias=alias,
    )


def _default(fn: Callable[..., Any], parameter: Parameter) -> Any:
    value = parameter.default
    if value is parameter.empty:
        return NO_DEFAULT
    if isinstance(value, Code):
        return value.code
    if value is None or isinstance(value, bool | str | Device):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    reason, remedy = "has a default no schema has", "Use None, and fill it in inside."
    raise _fault(fn, parameter.name, value.__class__.__name__, reason, remedy)


def _signature(fn: Callable[..., Any]) -> Signature | None:
    """The signature with quoted annotations resolved, or None if there is none."""
    from inspect import signature

    try:
        plain = signature(fn)
    except (TypeError, ValueError):
        return None
    if not any(isinstance(each, str) for each in _annotations(plain)):
        return plain
    names = {"Tensor": tensor_stand_in(), "KeySet": KeySet}
    try:
        return signature(fn, eval_str=True, locals=names)
    except Exception as error:  # the quoted text is code of the user: anything goes
        reason = f"has an annotation that cannot be read: {error}"
        raise _fault(fn, _unreadable(fn, plain, names), "", reason, _QUOTED) from error


def _unreadable(fn: Callable[..., Any], plain: Signature, names: dict[str, Any]) -> str:
    """The first place whose quoted annotation does not evaluate."""
    from inspect import get_annotations, unwrap

    globals_ = getattr(unwrap(fn), "__globals__", {})
    places = {p.name: p.annotation for p in plain.parameters.values()}
    for place, text in places.items():
        probe = type("probe", (), {"__annotations__": {place: text}})
        try:
            get_annotations(probe, globals=globals_, locals=names, eval_str=True)
        except Exception:  # as above: whatever it raises, this is the place
            return place
    return "return"


def _annotations(signature: Signature) -> list[Any]:
    """Of every parameter and of the result; `Signature.empty` where there is none."""
    found = [each.annotation for each in signature.parameters.values()]
    return [*found, signature.return_annotation]


def _is_annotated(signature: Signature) -> bool:
    return any(each is not signature.empty for each in _annotations(signature))


def _is_whole(signature: Signature) -> bool:
    """Whether every argument and the result have an annotation that says something."""
    parameters = _parameters(signature)
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
        return False
    said = (*(each.annotation for each in parameters), signature.return_annotation)
    return not any(each is signature.empty or each is Any for each in said)


def _parameters(signature: Signature) -> list[Parameter]:
    """The parameters that are arguments: all but a leading keyset."""
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].annotation is KeySet:
        return parameters[1:]
    return parameters


def _parameter_type(fn: Callable[..., Any], parameter: Parameter) -> Type:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise _fault(fn, name, "", "takes any number of values", "Name each argument.")
    if parameter.annotation is parameter.empty:
        raise _fault(fn, name, "", "has no annotation, but others have", _ANNOTATE)
    found = annotated_type(parameter.annotation)
    if found is None:
        text = _text(parameter.annotation)
        raise _fault(fn, name, text, "has an annotation without schema type", _TYPES)
    return found


def _results(fn: Callable[..., Any], signature: Signature) -> tuple[Type, ...]:
    annotation = signature.return_annotation
    if annotation is signature.empty:
        raise _fault(fn, "return", "", "has no annotation, but others have", _ANNOTATE)
    found = result_types(annotation)
    if found is None:
        text = _text(annotation)
        raise _fault(
            fn, "return", text, "has an annotation without schema type", _TYPES
        )
    return found


def _symbolic(type: Type) -> Type:  # noqa: A002  # the field's own word
    """`type` with plain integers made symbolic, also in lists and optionals."""
    if type == IntType:
        return SymIntType
    if isinstance(type, ListType | OptionalType):
        return type.__class__(_symbolic(type.element))
    return type


def _holds_tensors(type: Type) -> bool:  # noqa: A002  # the field's own word
    while isinstance(type, ListType | OptionalType):
        type = type.element  # noqa: A001  # the field's own word
    return type == TensorType


def _text(annotation: Any) -> str:
    """The annotation as written, free of addresses and of module paths."""
    if isinstance(annotation, type):
        return annotation.__name__
    return str(annotation)


def _fault(
    fn: Callable[..., Any], place: str, found: str, reason: str, remedy: str
) -> InferenceError:
    name = str(getattr(fn, "__name__", None) or type(fn).__name__)
    return InferenceError(
        function=name, place=place, found=found, reason=reason, remedy=remedy
    )


# What to do, by what is missing.
_ANNOTATE = "Annotate every parameter and the result, or nothing at all."
_QUOTED = "Import the name where the function is defined, or use `Tensor`."
_TYPES = "Use Tensor, int, float, bool, str, or a list, tuple or union of them."
