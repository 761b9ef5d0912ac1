"""Python annotations as schema types, and annotated Python functions as schemas.

Which annotation denotes which type; higher areas add their classes with
`register_annotation`, and their generic classes with `register_wrapper`, when they are
imported.  A function has two readings: a *kernel* has nameless arguments `_0, _1, ..`
and plain integers, an *operator* inferred from a function has the function's own names,
symbolic integers and defaults.

Rules of annotations:
- an annotation without schema type gives None; the caller reports its place;
- a name in quotes is looked up among the registered names, so `"Tensor"` always works;
- with a resolver the annotation belongs to a program: the resolver defines names in
  quotes and classes, a union is a union (without, `int | float` is any number), a tuple
  of any length is not a type (without, a list), and keys of dictionaries are those
  of the schema language.

Rules of functions:
- a kernel without complete annotations (`Any`, `*args` and `**kwargs` do not count) has
  no schema, like one without any annotation: it is called with boxed values;
- a partly annotated function as an operator is an error, never a guess;
- a leading parameter annotated `KeySet` is not an argument.
"""

import types
import typing
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from inspect import Parameter, Signature, get_annotations, signature, unwrap
from math import isfinite
from typing import Any, ForwardRef, Literal, NamedTuple, Protocol, get_args, get_origin

from everyorder.runtime.base.registry import Registry, RegistryHandle
from everyorder.runtime.errors.registration import AlreadyRegistered
from everyorder.runtime.errors.schema import InferenceError, SchemaError
from everyorder.runtime.keys.keyset import KeySet
from everyorder.runtime.schema.enums import Device, EnumConstant
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import (
    NO_DEFAULT,
    AliasInfo,
    Argument,
    OperatorName,
    placed_alias,
)
from everyorder.runtime.schema.subtyping import optional, union
from everyorder.runtime.schema.types import (
    DICT_KEYS,
    AnyType,
    AwaitType,
    BoolType,
    ComplexType,
    DictType,
    FloatType,
    FutureType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    RRefType,
    StrType,
    SymIntType,
    TensorType,
    TupleType,
    Type,
    holds_tensors,
    replace_type,
)
from everyorder.runtime.schema.values import INT_END, INT_FIRST

T = typing.TypeVar("T")

Wrapper = type[FutureType] | type[AwaitType] | type[RRefType]


class Resolver(Protocol):
    """Defines the annotations of one program."""

    def written(self, text: str) -> Type | None:
        """Return the type of an annotation in quotes."""

    def declared(self, python: type) -> Type | None:
        """Return the type of a class that is not registered."""


class TensorStandIn:
    """Denotes Tensor if no class of tensors is imported, as in quoted annotations."""


# Class -> type; compared exactly, because bool is a subclass of int.
_BUILTIN: dict[type, Type] = {
    int: IntType,
    float: FloatType,
    bool: BoolType,
    complex: ComplexType,
    str: StrType,
    type(None): NoneType_,
}
# Classes of higher areas; a subclass has the type of its base.
_REGISTERED: Registry[type, Type] = Registry(
    "annotations", {TensorStandIn: TensorType}, shared=True
)
# Generic class -> the wrapper of its subscripts, and the element of the bare class.
_WRAPPERS: Registry[Any, tuple[Wrapper, Type | None]] = Registry(
    "generic annotations", shared=True
)
# Other generic annotations, and their number of parameters; None for any number.
_GENERICS: tuple[tuple[Any, int | None], ...] = (
    *((each, None) for each in (tuple, typing.Union, typing.Annotated)),
    *((each, 1) for each in (list, Sequence, typing.Optional, typing.Final)),
    (dict, 2),
)
# Names that denote a type in every quoted annotation.
_NAMES: dict[str, Type] = {
    "Tensor": TensorType,
    **{kind.__name__: base for kind, base in _BUILTIN.items()},
    "None": NoneType_,
}
# Further names in quoted annotations of kernels.
_KERNEL_NAMES = {"Tensor": TensorStandIn, "KeySet": KeySet}
# A union with these two, and no more than these four, is any number.
_LEAST_NUMBER = frozenset({IntType, FloatType})
_MOST_NUMBER = _LEAST_NUMBER | {BoolType, ComplexType}


def register_annotation(python_type: type, schema_type: Type) -> RegistryHandle:
    """Let the class `python_type`, and its subclasses, denote `schema_type`.

    Registering the same again is harmless; the last handle to be closed ends it.

    Raises:
        SchemaError: the class already denotes another type.
    """
    meaning = _BUILTIN.get(python_type, schema_type)
    if meaning == schema_type:
        with suppress(AlreadyRegistered):
            return _REGISTERED.register(python_type, schema_type, stacklevel=2)
        meaning = _REGISTERED.rows[python_type]
    raise _taken(python_type, meaning, schema_type)


def register_wrapper(
    python: type, kind: Wrapper, bare: Type | None = None
) -> RegistryHandle:
    """Let `python[T]` denote the kind of `T`; without a subscript, that of `bare`.

    Registering the same again is harmless; the last handle to be closed ends it.

    Raises:
        SchemaError: the class already denotes another type.
    """
    with suppress(AlreadyRegistered):
        return _WRAPPERS.register(python, (kind, bare), stacklevel=2)
    first, element = _WRAPPERS.rows[python]
    raise _taken(python, first(element or AnyType), kind(bare or AnyType))


def _taken(python: type, current: Type | None, requested: Type) -> SchemaError:
    name = python.__name__
    return SchemaError(
        code="AnnotationTaken", name=name, known=str(current), wanted=str(requested)
    )


def annotated_type(annotation: Any, resolver: Resolver | None = None) -> Type | None:
    """Return the schema type that `annotation` denotes, or None."""
    if annotation is None:
        return NoneType_
    if annotation is Any:
        return AnyType
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        read = named_type if resolver is None else resolver.written
        return read(annotation)
    if isinstance(annotation, Type):
        return annotation
    origin, parameters = get_origin(annotation), get_args(annotation)
    if origin is None:
        return _class_type(annotation, resolver)
    if origin is typing.Annotated:
        parameters = parameters[:1]
    inner = []
    for each in parameters:
        parameter = each if each is Ellipsis else annotated_type(each, resolver)
        if parameter is None:
            return None
        inner.append(parameter)
    return generic_type(origin, tuple(inner), resolver)


def result_types(annotation: Any) -> tuple[Type, ...] | None:
    """Return the types of the results that a return annotation denotes, or None.

    None is no result, a tuple of known length is several, all else is one.
    """
    schema_type = annotated_type(annotation)
    if schema_type is None:
        return None
    if get_origin(annotation) is tuple and isinstance(schema_type, TupleType):
        return schema_type.elements
    return () if schema_type == NoneType_ else (schema_type,)


def named_type(name: str) -> Type | None:
    """Return the type of a registered name."""
    return _NAMES.get(name)


def generic_type(
    origin: Any, parameters: tuple[Any, ...], resolver: Resolver | None = None
) -> Type | None:
    """Return the type of `origin[parameters]` (types, perhaps an ellipsis) or None."""
    if origin is tuple and parameters[1:] == (Ellipsis,) and resolver is None:
        origin, parameters = list, parameters[:1]
    if Ellipsis in parameters:
        return None
    if origin is tuple:
        return TupleType(parameters) if parameters or resolver is not None else None
    if origin is typing.Union or origin is types.UnionType:
        return _union_type(parameters, resolver) if parameters else None
    if origin is dict:
        fits = len(parameters) == 2
        fits = fits and (resolver is None or parameters[0] in DICT_KEYS)
        return DictType(*parameters) if fits else None
    if len(parameters) != 1:
        return None
    element: Type = parameters[0]
    if origin is typing.Annotated or origin is typing.Final:
        return element
    if origin is typing.Optional:
        return optional(element)
    if origin in _WRAPPERS.rows:
        return _WRAPPERS.rows[origin][0](element)
    return ListType(element) if origin in (list, Sequence) else None


def wanted_parameters(origin: Any) -> int | None:
    """Return the number of types in a subscript of `origin`, None for any number.

    It is 0 for an object that is not generic.
    """
    # By identity: `origin` may be any object of a program, and its `==` foreign code.
    for each, count in _GENERICS:
        if origin is each:
            return count
    hash_method: object = type(origin).__hash__
    return int(hash_method is object.__hash__ and origin in _WRAPPERS.rows)


def _class_type(annotation: Any, resolver: Resolver | None) -> Type | None:
    if not isinstance(annotation, type):
        return None
    if annotation in _BUILTIN:
        return _BUILTIN[annotation]
    if annotation in _WRAPPERS.rows:
        kind, bare = _WRAPPERS.rows[annotation]
        return None if bare is None else kind(bare)
    rows = _REGISTERED.rows
    for base in annotation.__mro__:
        if base in rows:
            return rows[base]
    return None if resolver is None else resolver.declared(annotation)


def _union_type(members: tuple[Type, ...], resolver: Resolver | None) -> Type:
    values = set(members) - {NoneType_}
    number = values >= _LEAST_NUMBER and values <= _MOST_NUMBER
    if number and resolver is None:
        return optional(NumberType) if NoneType_ in members else NumberType
    return union(members)


# A kernel's schema has no name until its definition arrives.
NAMELESS = OperatorName("")


class KernelSignature(NamedTuple):
    """The information in the annotations of a kernel.

    `schema` is None unless it is annotated completely; `leading_keyset` is true if its
    first parameter is annotated `KeySet`, however that is spelled; `keyword_only` are
    the keyword-only parameters, if there is a schema.
    """

    schema: Schema | None
    leading_keyset: bool
    keyword_only: tuple[str, ...]


def kernel_signature(fn: Callable[..., Any]) -> KernelSignature:
    """Read the annotations of a kernel.

    A callable without a readable signature (a builtin, a ufunc) is not annotated.

    Raises:
        InferenceError: an annotation has no schema type.
    """
    form = _signature(fn)
    if form is None:
        return KernelSignature(None, False, ())
    parameters = _parameters(form)
    leading_keyset = len(parameters) < len(form.parameters)
    if not _is_whole(form):
        return KernelSignature(None, leading_keyset, ())
    arguments = [_parameter_type(fn, parameter) for parameter in parameters]
    schema = Schema(NAMELESS, _nameless(arguments), _nameless(_results(fn, form)))
    named = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    return KernelSignature(schema, leading_keyset, tuple(named))


def _nameless(kinds: Iterable[Type]) -> tuple[Argument, ...]:
    return tuple(Argument(f"_{index}", kind) for index, kind in enumerate(kinds))


def infer_named_schema(
    fn: Callable[..., Any], *, mutates: Iterable[str] | Literal["unknown"] = ()
) -> Schema:
    """Infer the schema of an operator from `fn`: names, symbolic integers, defaults.

    `mutates` names the tensor parameters that `fn` writes to; `"unknown"` means every
    one.  The i-th argument, if written to, belongs to the alias set `a{i}`.

    Raises:
        InferenceError: as for `kernel_signature`; `fn` is not annotated completely, or
            takes `*args` or `**kwargs`; a default has no schema form; `mutates` names
            a parameter that does not exist, or is not a tensor.
    """
    form = _signature(fn)
    if form is None or all(each is form.empty for each in _annotations(form)):
        raise _fault(fn, "return", "", "has no annotation", _ANNOTATE)
    parameters = _parameters(form)
    written = None if mutates == "unknown" else set(mutates)
    names = {parameter.name for parameter in parameters}
    for name in sorted((written or set()) - names):
        raise _fault(
            fn, name, "", "is not a parameter", "Name parameters in `mutates`."
        )
    arguments = tuple(
        _named_argument(fn, index, parameter, written)
        for index, parameter in enumerate(parameters)
    )
    returns = tuple(Argument("", _symbolic(result)) for result in _results(fn, form))
    return Schema(NAMELESS, arguments, returns)


def _named_argument(
    fn: Callable[..., Any], index: int, parameter: Parameter, written: set[str] | None
) -> Argument:
    kind = _symbolic(_parameter_type(fn, parameter))
    tensors = holds_tensors(kind)
    alias = None
    if tensors if written is None else parameter.name in written:
        if not tensors:
            reason, remedy = (
                "is written to, but is not a tensor",
                "Remove it from `mutates`.",
            )
            raise _fault(fn, parameter.name, str(kind), reason, remedy)
        alias = placed_alias(kind, AliasInfo((f"a{index}",), (f"a{index}",), True))
    return Argument(
        parameter.name,
        kind,
        default=_default(fn, parameter),
        kwarg_only=parameter.kind is parameter.KEYWORD_ONLY,
        alias=alias,
    )


def _default(fn: Callable[..., Any], parameter: Parameter) -> Any:
    value = parameter.default
    if value is parameter.empty:
        return NO_DEFAULT
    if isinstance(value, EnumConstant):
        return value.code
    if value is None or isinstance(value, bool | str | Device):
        return value
    if isinstance(value, int) and INT_FIRST <= value < INT_END:
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    reason, remedy = "has a default no schema has", "Use None, and fill it in inside."
    raise _fault(fn, parameter.name, value.__class__.__name__, reason, remedy)


def _signature(fn: Callable[..., Any]) -> Signature | None:
    """Return the signature, quoted annotations resolved, or None if there is none."""
    try:
        plain = signature(fn)
    except (TypeError, ValueError):
        return None
    if not any(isinstance(each, str) for each in _annotations(plain)):
        return plain
    try:
        return signature(fn, eval_str=True, locals=_KERNEL_NAMES)
    except Exception as error:  # evaluating the user's text may raise anything
        reason = f"has an annotation that cannot be read: {error}"
        raise _fault(fn, _unreadable(fn, plain), "", reason, _QUOTED) from error


def _unreadable(fn: Callable[..., Any], plain: Signature) -> str:
    """Return the first place whose quoted annotation does not evaluate."""
    globals_ = getattr(unwrap(fn), "__globals__", {})
    for place, parameter in plain.parameters.items():
        probe = type("probe", (), {"__annotations__": {place: parameter.annotation}})
        try:
            get_annotations(
                probe, globals=globals_, locals=_KERNEL_NAMES, eval_str=True
            )
        except Exception:  # as above
            return place
    return "return"


def _annotations(form: Signature) -> list[Any]:
    """Return the annotations of parameters and result; `Signature.empty` for none."""
    every = [each.annotation for each in form.parameters.values()]
    return [*every, form.return_annotation]


def _is_whole(form: Signature) -> bool:
    """Return True if every argument and the result have an informative annotation."""
    parameters = _parameters(form)
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
        return False
    annotations = (*(each.annotation for each in parameters), form.return_annotation)
    return not any(each is form.empty or each is Any for each in annotations)


def _parameters(form: Signature) -> list[Parameter]:
    """Return the parameters that are arguments: all except a leading keyset."""
    parameters = list(form.parameters.values())
    if parameters and parameters[0].annotation is KeySet:
        return parameters[1:]
    return parameters


def _parameter_type(fn: Callable[..., Any], parameter: Parameter) -> Type:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise _fault(fn, name, "", "takes any number of values", "Name each argument.")
    return _meant(fn, name, parameter.annotation, annotated_type)


def _results(fn: Callable[..., Any], form: Signature) -> tuple[Type, ...]:
    return _meant(fn, "return", form.return_annotation, result_types)


def _meant(
    fn: Callable[..., Any], place: str, annotation: Any, read: Callable[[Any], T | None]
) -> T:
    """Return the result of `read` for the annotation of a place."""
    if annotation is Signature.empty:
        raise _fault(fn, place, "", "has no annotation, but others have", _ANNOTATE)
    result = read(annotation)
    if result is None:
        # As written, free of addresses and of module paths.
        text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
        raise _fault(fn, place, text, "has an annotation without schema type", _TYPES)
    return result


def _symbolic(kind: Type) -> Type:
    return replace_type(kind, IntType, SymIntType)


def _fault(
    fn: Callable[..., Any], place: str, found: str, reason: str, remedy: str
) -> InferenceError:
    name = str(getattr(fn, "__name__", None) or type(fn).__name__)
    return InferenceError(
        function=name, place=place, found=found, reason=reason, remedy=remedy
    )


# Advice in errors.
_ANNOTATE = "Annotate every parameter and the result, or nothing at all."
_QUOTED = "Import the name where the function is defined, or use `Tensor`."
_TYPES = "Use Tensor, int, float, bool, str, or a list, tuple or union of them."
