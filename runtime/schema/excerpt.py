"""Values in words, for the fields of errors: short, on one line, without addresses.

True only here: how much of a foreign value an error repeats.  The same call must give
the same words in every process, so nothing here depends on identity or memory.
"""

from collections.abc import Iterable, Mapping

# A value gets most of a line of its own, and less inside of a written call.
VALUE_WIDTH, ARGUMENT_WIDTH = 60, 24


def described(value: object) -> str:
    """The kind of a value: `None`, `a str`, `a list of int and str`."""
    if value is None:
        return "None"
    name = type(value).__name__
    if isinstance(value, list | tuple) and value:
        kinds = dict.fromkeys(type(element).__name__ for element in value)
        name = f"{name} of {' and '.join(kinds)}"
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def shortened(value: object, width: int = VALUE_WIDTH) -> str:
    """The repr of a value on one line, at most `width` characters long."""
    from re import sub

    try:
        text = " ".join(repr(value).split())
    except Exception as error:  # an error about a value must not fail on its repr
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    text = sub(r" at 0x[0-9a-fA-F]+", "", text)
    return text if len(text) <= width else f"{text[: width - 3]}..."


def written_call(
    operator: str, args: Iterable[object], kwargs: Mapping[str, object]
) -> str:
    """A call as a reader would write it; a tensor is named by its class only."""
    parts = [_argument(value) for value in args]
    parts += [f"{name}={_argument(value)}" for name, value in kwargs.items()]
    return f"{operator}({', '.join(parts)})"


def _argument(value: object) -> str:
    if hasattr(value, "key_bits"):
        return f"<{type(value).__name__}>"
    if isinstance(value, list) and any(hasattr(each, "key_bits") for each in value):
        return f"[{', '.join(map(_argument, value))}]"
    return shortened(value, ARGUMENT_WIDTH)
