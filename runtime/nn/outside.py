"""Layers, which are not here, and what to use instead."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Raise AttributeError with the replacement; the package imports this function."""
    text = f"module 'everyorder.runtime.nn' has no attribute {name!r}"
    if not name.startswith("_"):
        text += (
            ": there are no layers; write a `Module` with its parameters that calls a "
            "function, such as `runtime.linear`, `conv2d`, `layer_norm` or `dropout`"
        )
    raise AttributeError(text, name=name)
