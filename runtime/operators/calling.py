"""How people call operators: functions and methods over the handles of `core`.

True only here: what a call may say that a schema does not: sizes as separate numbers,
`out=`, dtypes by name, numbers where an overload takes them.

Rule: nothing is computed here; every function ends in a call of an operator, so that
dispatch, autograd and the harness see everything.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from runtime.errors.call import CallError
from runtime.operators.call import found, sought
from runtime.operators.signatures import described, signature_of
from runtime.operators.words import again
from runtime.schema.device import Device
from runtime.tensors.elements import supported

Function = Callable[..., Any]
_ABSENT = object()


def sizes(given: tuple[Any, ...]) -> Sequence[int]:
    """`(2, 3)` of either `f(2, 3)` or `f((2, 3))`."""
    if len(given) == 1 and not hasattr(given[0], "__index__"):
        only: Sequence[int] = given[0]
        return only
    return given


@cache
def function(name: str) -> Function:
    """The operator as a function; `out=` chooses the overload that writes there."""
    if sought(f"{name}_out") is None:
        return named(name, plain(name))
    return named(name, alone(name) if takes_one(name) else writing(name))


def plain(name: str) -> Function:
    """The operator, its arguments in other words if they do not fit."""
    run = found(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return run(*args, **kwargs)
        except CallError as error:
            return again(run, args, kwargs, error)

    return call


def alone(name: str) -> Function:
    """The operator of one tensor, with `out=`."""
    run, into = found(name), found(f"{name}_out")

    def reread(given: dict[str, Any]) -> Any:
        """A call by other words than the schema's."""
        spoken = {
            word: value
            for word, value in given.items()
            if value is not _ABSENT and value is not None
        }
        return writing(name)(**spoken)

    def call(
        self: Any = _ABSENT,
        *,
        out: Any = None,
        input: Any = _ABSENT,  # noqa: A002  # upstream's name
        inplace: bool | None = None,
    ) -> Any:
        if self is _ABSENT or inplace is not None:
            return reread(
                {"self": self, "input": input, "inplace": inplace, "out": out}
            )
        try:
            return run(self) if out is None else into(self, out=out)
        except CallError as error:
            if out is None:
                return again(run, (self,), {}, error)
            return again(into, (self,), {"out": out}, error)

    return call


def writing(name: str) -> Function:
    """The operator, with `out=`."""
    run, into = found(name), found(f"{name}_out")

    def call(*args: Any, **kwargs: Any) -> Any:
        ready = run
        if "out" in kwargs:
            if kwargs["out"] is None:
                del kwargs["out"]
            else:
                ready = into
        try:
            return ready(*args, **kwargs)
        except CallError as error:
            return again(ready, args, kwargs, error)

    return call


def takes_one(name: str) -> bool:
    """Whether the operator takes one argument, so that nothing needs to be read."""
    return len(found(name).schema.arguments) == 1


def spelled(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments, a dtype or device found as written."""
    dtype, device = kwargs.get("dtype"), kwargs.get("device")
    if dtype is not None:
        kwargs["dtype"] = supported(dtype)
    if isinstance(device, str):
        kwargs["device"] = Device.parse(device)
    return kwargs


def named(name: str, made: Function) -> Function:
    """The function, called `name` and described by its operator's schema."""
    schema = found(name).schema
    made.__name__ = made.__qualname__ = name
    made.__doc__ = described(name, schema)
    made.__signature__ = signature_of(schema)  # type: ignore[attr-defined]  # for help()
    return made
