"""Operators with planted faults, and what `opcheck` says of them."""

from collections.abc import Callable, Sequence
from typing import Any

from everyorder.runtime import Dispatcher, Library, direct
from everyorder.runtime.custom.opcheck import CHECKS, opcheck

Kernel = Callable[..., Any]


class Planted:
    """Defines operators of namespace `check`, which go when it is closed."""

    def __init__(self, dispatcher: Dispatcher | None = None) -> None:
        self.library = Library("check", "DEF", dispatcher=dispatcher, origin="planted")
        self.dispatcher = self.library._dispatcher

    def __call__(
        self, schema: str, kernel: Kernel, tags: Sequence[str] = (), **others: Kernel
    ) -> Any:
        """The handle of an operator; `kernel` runs on the CPU, `others` by key."""
        self.library.define(schema, tags=tags)
        name = schema.partition("(")[0]
        for key, function in {"CPU": kernel, **others}.items():
            self.library.impl(name, direct(function, f"{name}_{key}"), key)
        return self.dispatcher.find_op(f"check::{name}")


def found(
    handle: Any, *args: Any, test: str | None = None, **kwargs: Any
) -> dict[str, str]:
    """What the checks say, by name, successes left out."""
    report = opcheck(
        handle, args, kwargs, test_utils=test or [*CHECKS], raise_exception=False
    )
    return {name: str(each) for name, each in report.items() if each != "SUCCESS"}


def says(handle: Any, *args: Any, test: str, **kwargs: Any) -> str:
    """The text of the one finding of one check."""
    return found(handle, *args, test=test, **kwargs)[test]
