"""Taking defaults out of a call, and putting them back.

True only here: which values a Python handler is not shown, so that adding an argument
with a default breaks nobody.

Rules:
- positional arguments lose their longest tail of defaults; one before a given value
  stays: `(t, 1, 5)`;
- a keyword-only argument is passed by name, and only if it is not its default;
- "is its default" compares stack values (`values.same`): numbers by kind too;
- a handler sees codes as objects and gets fresh lists (`values.present`).

`fill_defaults` is the inverse: strip(fill(strip(x))) == strip(x), and filling a
stripped call gives the stack it came from, up to values that are `same`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runtime.schema.binding import bind, stored_default
from runtime.schema.schema import Schema
from runtime.schema.values import presenter, same

Stripped = tuple[tuple[Any, ...], dict[str, Any]]
Stripper = Callable[[Sequence[Any]], Stripped]

# Stands where an argument has no default; `same` to no value of a call.
_REQUIRED = object()


def strip_defaults(schema: Schema, values: Sequence[Any]) -> Stripped:
    """The positional and keyword arguments that a Python handler is called with.

    `values` is a bound call: every argument in schema order, and behind them the
    surplus of a schema with `...`.
    """
    return stripper(schema)(values)


def fill_defaults(
    schema: Schema, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """The bound call of a stripped one; total on what `strip_defaults` gives.

    Raises what `bind` raises, for a call that does not fit the schema.
    """
    return bind(schema, args, kwargs)


def stripper(schema: Schema) -> Stripper:
    """The function that strips calls of `schema`; see `strip_defaults`."""
    arguments = schema.arguments
    count = len(arguments)
    positional = schema.kwarg_only_start
    names = tuple(argument.name for argument in arguments)
    shown = tuple(
        (index, turn)
        for index, argument in enumerate(arguments)
        if (turn := presenter(argument.type)) is not None
    )
    defaults = tuple(
        stored_default(argument) if argument.has_default else _REQUIRED
        for argument in arguments
    )

    def strip(values: Sequence[Any]) -> Stripped:
        seen = list(values[:count])
        for index, turn in shown:
            seen[index] = turn(seen[index])
        surplus = values[count:]
        end = positional
        while not surplus and end and same(values[end - 1], defaults[end - 1]):
            end -= 1
        kwargs = {
            names[index]: seen[index]
            for index in range(positional, count)
            if not same(values[index], defaults[index])
        }
        return (*seen[:end], *surplus), kwargs

    return strip
