"""Taking defaults out of a call, and putting them back.

Which values a Python handler is not shown, so that adding an argument with a default
breaks nobody.

Rules:
- positional arguments lose their longest tail of defaults; one before a given value
  stays: `(t, 1, 5)`;
- a keyword-only argument is passed by name, and only if it is not its default;
- "is its default" compares by `values.same`: numbers by kind too, NaN by nothing;
- a handler sees codes as objects and gets fresh lists (`values.present`), but for
  those that are written to;
- surplus values of a schema with `...` keep every positional argument before them.

`fill_defaults` is the inverse: strip(fill(x)) == strip(x), and fill(strip(x)) ==
fill(x), for every call x that fits the schema; -0.0 may come back as 0.0.  Neither
sees more of a schema than it says: that an operator takes numbers for tensors is a tag
of its definition (`OperatorHandle.normalize` knows it).

How it works: `stripper` takes the values of the stack, `presented_stripper` those that
kernels see, and `stripping` calls a function with what is left of these.  They are on
the way of every call of a handler, so they are compiled from text, one for all; for
`f(Tensor x, int n=2, *, Scalar alpha=1)` that is

    def strip(_0, _1, _2, /):
        _named = {}
        if _2 is not _default2 and (type(_2) is not _kind2 or _2 != _default2):
            _named['alpha'] = _2
        if _1 is not _default1 and (type(_1) is not _kind1 or _1 != _default1):
            return (_0, _1), _named
        return (_0,), _named

The text depends on places, names and kinds of defaults alone, and is remembered so.
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
    """A bound call as a Python call: positional and named, as kernels see them.

    `values` is every argument in schema order, and behind them the surplus of a schema
    with `...`, as `bind` gives them.
    """
    arguments = schema.arguments
    seen = [
        value if turn is None else turn(value)
        for turn, value in zip(presenters_of(schema), values, strict=False)
    ]
    start = schema.kwarg_only_start
    names = [argument.name for argument in arguments[start:]]
    surplus = values[len(arguments) :]
    return (*seen[:start], *surplus), dict(zip(names, seen[start:], strict=True))


def stripper(schema: Signature) -> Stripper:
    """The function that strips a bound call of `schema`; for `values` see `spread`.

    Its text is made at the first call: few operators have one.
    """
    strip_presented: PresentedStripper | None = None

    def strip(values: Sequence[Any]) -> Stripped:
        nonlocal strip_presented
        if strip_presented is None:
            strip_presented = _presenting(schema)
        return strip_presented(*values)

    return strip


def _presenting(schema: Signature) -> PresentedStripper:
    """The function that shows every value, and strips what is shown."""
    shown = {
        place: turn
        for place, turn in enumerate(presenters_of(schema))
        if turn is not None
    }
    lines = [f"_{place} = _turn{place}(_{place})" for place in shown]
    turns = {f"_turn{place}": turn for place, turn in shown.items()}
    return _generated(schema, lines, turns)


def presented_stripper(
    schema: Signature, wrapping: type | None = None
) -> PresentedStripper:
    """The function that strips a call whose values are as kernels see them.

    It takes every argument by position, in the order of the schema, then the surplus
    of a schema with `...`; lists are copied, so that a handler may keep them.  What is
    of the class `wrapping` and stands for a number, as its attribute `number` says, is
    shown as that number.
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
    """The function of values as kernels see them that calls `function` stripped.

    Where nothing is ever taken out, named or copied, that is `function` itself.
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
    """Lines that copy the lists among the arguments."""
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
    """The function of every argument that runs `lines`, and strips what they leave.

    It returns that, or calls what is named `call` with it.
    """
    values: dict[str, Any] = {"_same": same, **names}
    start = schema.kwarg_only_start
    named = start < len(schema.arguments)

    def returned(given: str) -> str:
        if call is None:
            return f"return ({given}), _named"
        return f"return {call}({given}{'**_named' if named else ''})"

    given = [f"_{place}" for place in range(len(schema.arguments))]
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
        lines.append(f"    {returned(f'{_listed(given[:start])}*_rest,')}")
    end = start
    while end and schema.arguments[end - 1].has_default:
        lines.append(f"if {_differs(end - 1, schema.arguments[end - 1])}:")
        lines.append(f"    {returned(_listed(given[:end]))}")
        end -= 1
    lines.append(returned(_listed(given[:end])))
    head = f"def strip({_parameters(given, schema.is_vararg)}):"
    strip: PresentedStripper = generated("strip", block(head, lines), values)
    return strip


def _listed(names: Sequence[str]) -> str:
    return "".join(f"{name}, " for name in names)


def _parameters(given: Sequence[str], rest: bool) -> str:
    positional = f"{_listed(given)}/, " if given else ""
    return f"{positional}*_rest" if rest else positional.rstrip(", ")


def _unless_default(place: int, argument: Argument, to: str) -> list[str]:
    """Lines that give the value to something, if it is not the default."""
    if not argument.has_default:
        return [f"{to}_{place}"]
    return [f"if {_differs(place, argument)}:", f"    {to}_{place}"]


def _differs(place: int, argument: Argument) -> str:
    """The condition that a value is not `same` to its default."""
    value, default = f"_{place}", f"_default{place}"
    held = present(argument.type, stored_default(argument))
    if held is None or isinstance(held, bool | EnumConstant):
        # There is one object each.
        return f"{value} is not {default}"
    if type(held) in BY_VALUE:
        differs = f"type({value}) is not _kind{place} or {value} != {default}"
    elif argument.type in _EXACT:
        differs = f"{value} != {default}"
    else:
        differs = f"not _same({value}, {default})"
    # What is not the same as itself (NaN) is not the default either.
    return f"{value} is not {default} and ({differs})" if same(held, held) else differs
