"""Kernels of every convention see the same values (spec 7.5), however called."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from everyorder.runtime.dispatch import Dispatcher, Library, boxed, direct, linked
from everyorder.runtime.keys import KeySet
from everyorder.runtime.schema.defaults import presented_stripper
from tests.dispatch.samples import op
from tests.schema.example_calls import Call, calls
from tests.schema.test_defaults import alike

# The types of arguments that an annotation can say.
ANNOTATED = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "Scalar": "int | float | bool | complex",
    "complex": "complex",
    "int?": "int | None",
    "str?": "str | None",
    "Tensor?": "Tensor | None",
    "int[]": "list[int]",
    "float[]": "list[float]",
    "bool[]": "list[bool]",
    "Tensor": "Tensor",
    "Tensor[]": "list[Tensor]",
    "int[2]": "list[int]",
}


def typed(call: Call, seen: list[Any]) -> Callable[..., None]:
    """A function annotated as the schema is, that notes what it gets."""
    parameters = [
        f"{argument.name}: {ANNOTATED[str(argument).split()[0]]!r}"
        for argument in call.schema.arguments
    ]
    names = ", ".join(argument.name for argument in call.schema.arguments)
    text = f"def kernel({', '.join(parameters)}) -> None:\n    note([{names}])"
    values: dict[str, Any] = {"note": seen.append}
    exec(text, values)
    kernel: Callable[..., None] = values["kernel"]
    return kernel


@pytest.mark.parametrize("often", [1, 12])
@settings(max_examples=60)
@given(call=calls(tuple(ANNOTATED)))
def test_kernels_of_every_convention_see_the_same(often: int, call: Call) -> None:
    schema, args, kwargs = call
    positional, named = schema.fill_defaults(args, kwargs)
    everything = [*positional, *named.values()]
    stripped = schema.strip_defaults(args, kwargs)
    strip = presented_stripper(schema)
    seen: list[Any] = []

    def stack(operator: Any, keyset: KeySet, values: list[Any]) -> None:
        seen.append([values.pop() for _ in schema.arguments][::-1])

    def factory(below: Any, keyset: KeySet) -> Callable[..., Any]:
        return lambda *values: seen.append(strip(*values))

    kernels: dict[str, tuple[Any, Any]] = {
        "direct": (direct(lambda *values: seen.append([*values])), everything),
        "typed": (typed(call, seen), everything),
        "stack": (boxed(stack), everything),
        "python": (lambda *a, **k: seen.append((a, k)), stripped),
        "linked": (linked(factory, "linked"), stripped),
    }
    dispatcher = Dispatcher()
    with Library("t", "DEF", dispatcher=dispatcher) as library:
        library.define(schema)
        for name, (kernel, expected) in kernels.items():
            with library.impl("f", kernel, "CompositeExplicitAutograd"):
                handle = op(dispatcher, "t::f")
                for _ in range(often):
                    # As written, filled, and stripped: one and the same call.
                    handle(*args, **kwargs)
                    handle(*positional, **named)
                    handle(*stripped[0], **stripped[1])
            assert len(seen) == 3 * often, name
            assert all(alike(each, expected) for each in seen), name
            seen.clear()
