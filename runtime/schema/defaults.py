"""Stripping defaults from a call, and filling them in.

Which values a Python handler does not get, so that adding an argument with a default
does not break handlers.

Rules:
- positional arguments lose their longest tail of defaults; a default before a passed
  value stays: `(t, 1, 5)`;
- a keyword-only argument is passed by name, and only if it differs from its default;
- values are compared with defaults by `values.same`: numbers by kind too, NaN equals
  nothing;
- a handler gets enum constants as objects and fresh lists (`values.present`), except
  for lists that are written to;
- surplus values of a schema with `...` keep every positional argument before them.

`fill_defaults` is the inverse: strip(fill(x)) == strip(x), and fill(strip(x)) ==
fill(x), for every call x that fits the schema; -0.0 may come back as 0.0.  Both use the
schema alone: that an operator accepts numbers for tensors is a tag of its definition
(`OperatorHandle.normalize` handles it).

How it works: `stripper` takes the values of the stack, `presented_stripper` those that
kernels see, and `stripping` calls a function with the rest of these.  Every call of a
handler runs them, so they are compiled from text, one for all; for `f(Tensor x, int
n=2, *, Scalar alpha=1)` that is

    def strip(_0, _1, _2, /):
        _named = {}
        if _2 is not _default2 and (type(_2) is not _kind2 or _2 != _default2):
            _named['alpha'] = _2
        if _1 is not _default1 and (type(_1) is not _kind1 or _1 != _default1):
            return (_0, _1), _named
        return (_0,), _named

The text depends on places, names and kinds of defaults alone, and is cached by them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from everyorder.runtime.base.codegen import block, generated
from everyorder.runtime.schema.binding import presenters_of, stored_default
from everyorder.runtime.schema.enums import EnumConstant
from everyorder.runtime.schema.signature import Argument, Signature
from everyorder.runtime.schema.types import (
    BoolType,
    FloatType,
    IntType,
    ListType,
    SymIntType,
    TensorType,
)
from everyorder.runtime.schema.values import BY_VALUE, present, same

Stripped = tuple[tuple[Any, ...], dict[str, Any]]
Stripper = Callable[[Sequence[Any]], Stripped]
PresentedStripper = Callable[..., Stripped]

# Lists whose elements are of one kind once they are converted: `==` is `same`.
_EXACT = tuple(map(ListType, (IntType, SymIntType, FloatType, BoolType)))


def spread(schema: Signature, values: Sequence[Any]) -> Stripped:
    """Return a bound call as a Python call: positional and named, as kernels see them.

    `values` is every argument in schema order, then the surplus of a schema with `...`,
    as `bind` returns them.
    """
    arguments = schema.arguments
    presented = [
        value if turn is None else turn(value)
        for turn, value in zip(presenters_of(schema), values, strict=False)
    ]
    start = schema.kwarg_only_start
    names = [argument.name for argument in arguments[start:]]
    surplus = values[len(arguments) :]
    return (*presented[:start], *surplus), dict(
        zip(names, presented[start:], strict=True)
    )


def stripper(schema: Signature) -> Stripper:
    """Return the function that strips a bound call of `schema`; see `spread`.

    Its text is generated at the first call: few operators need one.
    """
    strip_presented: PresentedStripper | None = None

    def strip(values: Sequence[Any]) -> Stripped:
        nonlocal strip_presented
        if strip_presented is None:
            strip_presented = _presenting(schema)
        return strip_presented(*values)

    return strip


def _presenting(schema: Signature) -> PresentedStripper:
    """Return the function that presents every value, and strips the result."""
    turns_by_place = {
        place: turn
        for place, turn in enumerate(presenters_of(schema))
        if turn is not None
    }
    lines = [f"_{place} = _turn{place}(_{place})" for place in turns_by_place]
    turns = {f"_turn{place}": turn for place, turn in turns_by_place.items()}
    return _generated(schema, lines, turns)


def presented_stripper(
    schema: Signature, wrapping: type | None = None
) -> PresentedStripper:
    """Return the function that strips a call whose values are as kernels see them.

    It takes every argument by position, in the order of the schema, then the surplus of
    a schema with `...`; lists are copied, so that a handler may keep them.  An object
    of the class `wrapping` with a number in its attribute `number` is passed as that
    number.
    """
    lines = _copied(schema)
    if wrapping is not None:
        for place, argument in enumerate(schema.arguments):
            if argument.type == TensorType:
                _0 = f"_{place}"
                lines.append(f"if type({_0}) is _wrapping and {_0}.number is not None:")
                lines.append(f"    {_0} = {_0}.number")
    return _generated(schema, lines, {"_wrapping": wrapping})


def stripping(schema: Signature, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of values as kernels see them that calls `function` stripped.

    If nothing is ever removed, named or copied, that is `function` itself.
    """
    arguments = schema.arguments
    if not (
        schema.is_vararg
        or schema.kwarg_only_start < len(arguments)
        or any(each.has_default for each in arguments)
        or any(presenters_of(schema))
    ):
        return function
    return _generated(
        schema, _copied(schema), {"_function": function}, call="_function"
    )


def _copied(schema: Signature) -> list[str]:
    """Return lines that copy the lists among the arguments."""
    lists = [
        f"_{place}"
        for place, turn in enumerate(presenters_of(schema))
        if turn is not None
    ]
    return [f"if type({name}) is list: {name} = {name}.copy()" for name in lists]


def _generated(
    schema: Signature,
    lines: Sequence[str],
    names: Mapping[str, Any],
    call: str | None = None,
) -> PresentedStripper:
    """Return the function of every argument that runs `lines`, and strips the result.

    It returns the stripped call, or calls the function named `call` with it.
    """
    values: dict[str, Any] = {"_same": same, **names}
    start = schema.kwarg_only_start
    named = start < len(schema.arguments)

    def returned(arguments: str) -> str:
        if call is None:
            return f"return ({arguments}), _named"
        return f"return {call}({arguments}{'**_named' if named else ''})"

    parameters = [f"_{place}" for place in range(len(schema.arguments))]
    for place, argument in enumerate(schema.arguments):
        if argument.has_default:
            default = present(argument.type, stored_default(argument))
            values[f"_default{place}"] = default
            values[f"_kind{place}"] = type(default)
    lines = [*lines, *(["_named = {}"] if named or call is None else [])]
    for place, argument in enumerate(schema.arguments[start:], start):
        lines += _unless_default(place, argument, f"_named[{argument.name!r}] = ")
    if schema.is_vararg:
        lines.append("if _rest:")
        lines.append(f"    {returned(f'{_listed(parameters[:start])}*_rest,')}")
    end = start
    while end and schema.arguments[end - 1].has_default:
        lines.append(f"if {_differs(end - 1, schema.arguments[end - 1])}:")
        lines.append(f"    {returned(_listed(parameters[:end]))}")
        end -= 1
    lines.append(returned(_listed(parameters[:end])))
    head = f"def strip({_parameters(parameters, schema.is_vararg)}):"
    strip: PresentedStripper = generated("strip", block(head, lines), values)
    return strip


def _listed(names: Sequence[str]) -> str:
    return "".join(f"{name}, " for name in names)


def _parameters(names: Sequence[str], rest: bool) -> str:
    positional = f"{_listed(names)}/, " if names else ""
    return f"{positional}*_rest" if rest else positional.rstrip(", ")


def _unless_default(place: int, argument: Argument, to: str) -> list[str]:
    """Return lines that assign the value to `to`, if it differs from the default."""
    if not argument.has_default:
        return [f"{to}_{place}"]
    return [f"if {_differs(place, argument)}:", f"    {to}_{place}"]


def _differs(place: int, argument: Argument) -> str:
    """Return the condition that a value is not `same` as its default."""
    value, default = f"_{place}", f"_default{place}"
    default_value = present(argument.type, stored_default(argument))
    if default_value is None or isinstance(default_value, bool | EnumConstant):
        # These values have one object each.
        return f"{value} is not {default}"
    if type(default_value) in BY_VALUE:
        differs = f"type({value}) is not _kind{place} or {value} != {default}"
    elif argument.type in _EXACT:
        differs = f"{value} != {default}"
    else:
        differs = f"not _same({value}, {default})"
    # A NaN is not the same as itself, and so never the default.
    return (
        f"{value} is not {default} and ({differs})"
        if same(default_value, default_value)
        else differs
    )
