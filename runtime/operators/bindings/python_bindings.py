"""Functions and methods for Python code, over the operator handles of `core`.

Declarations define which operators are public (`public`): one with a description is a
function, and a method if its first argument is the tensor `self`, or one of both if
`only` restricts it; an in-place form is a method; an out= form is the argument `out` of
the function.  An overload adds no name, and a name that starts with `_` is not public.

A call is tried unchanged first; only if it does not match its schema, its arguments are
translated (`normalize_torch_call`), so that a call in the schema's terms costs nothing
extra:

=================== ============================= ==============================
written             where the schema has          becomes
=================== ============================= ==============================
input=              `self` or `indices`           that argument
inplace=            no such argument              the result, copied to the first
axis=, axes=        `dim` or `dims`               that argument
keepdims=, ddof=    `keepdim`, `correction`       that argument
out=, dtype=None    no such argument              nothing
an int              a list of ints                the list of it
a NumPy array       a tensor, tensors             a tensor on the others' device
a NumPy number      a tensor, tensors             the Python number
float, np.float32   a dtype                       the dtype
"gpu"               a device                      `UnknownDevice`
=================== ============================= ==============================

Rules:
- nothing is computed here; every function ends in a call of an operator, so that
  dispatch, autograd and the harness see everything;
- a call that does not match runs nothing, so the second call repeats nothing;
- functions that choose among several operators, or take other arguments than their
  operator, are written in `runtime.operators.bindings.python_api`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from numpy import generic, ndarray

from everyorder.runtime.errors.call import CallError
from everyorder.runtime.operators.declare.handles import find_handle, handle_of
from everyorder.runtime.operators.declare.plan import bad_option
from everyorder.runtime.operators.install import FAMILIES
from everyorder.runtime.schema.binding import python_signature
from everyorder.runtime.schema.call_errors import renamed, shortened
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import Argument
from everyorder.runtime.tensors.construction import share_array
from everyorder.runtime.tensors.dtype_info import parse_dtype
from everyorder.runtime.tensors.from_data import as_operand
from everyorder.runtime.tensors.tensor import Tensor

# The first argument is a tensor called `self`, in any alias set.
_OF_SELF = re.compile(r"Tensor(\([^)]*\))? self\b")


class PublicOperator(NamedTuple):
    """A public operator: its description, and whether it is a function and a method."""

    name: str
    says: str
    function: bool
    method: bool


@cache
def public() -> dict[str, PublicOperator]:
    """Return the public operators, in-place forms included, by name."""
    return {each.name: each for each in _public()}


def _public() -> Iterator[PublicOperator]:
    for family in FAMILIES:
        for declaration in family:
            for schema in declaration.schemas() if declaration.says else ():
                name, _, arguments = schema.partition("(")
                if "." in name or name.startswith("_"):
                    continue
                in_place, only = name.endswith("_"), declaration.only
                says = declaration.says
                if in_place and not declaration.name.endswith("_"):
                    says = f"{says.removesuffix('.')}, in place."
                yield PublicOperator(
                    name,
                    says,
                    function=not in_place and only != "method",
                    method=only != "function" and bool(_OF_SELF.match(arguments)),
                )


def docstring(name: str, schema: Schema) -> str:
    """Return a docstring: the operator's description and its schema."""
    named = public().get(name)
    return f"{named.says if named else ''}\n\nSchema: `{schema}`".lstrip()


# Arguments that NumPy passes as None when it calls a method of the same name.
UNSAID = frozenset({"out", "dtype"})

# The functions that layers may ask to overwrite their input.
ACTIVATIONS = frozenset({"relu", "silu", "elu", "leaky_relu"})


def normalize_torch_call(
    run: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: CallError
) -> Any:
    """Call the operator with torch-style arguments translated to the schema's.

    Raises:
        CallError: `error`, if there is nothing to translate.
        UnfitValue, UnknownDevice: a dtype or a device does not exist.
    """
    if "inplace" in kwargs and run.schema.name.base in ACTIVATIONS:
        rest = {name: value for name, value in kwargs.items() if name != "inplace"}
        if "input" in rest and "self" not in rest:
            rest["self"] = rest.pop("input")
        first = args[0] if args else rest.pop("self", None)
        if not kwargs["inplace"] or not isinstance(first, Tensor):
            return run(*(args or (first,)), **rest)
        # The input of an operation that is run backwards must not change.
        source = first.clone() if first.requires_grad else first
        return first.copy_(run(source, *args[1:], **rest))
    arguments = {argument.name: argument for argument in run.schema.arguments}
    named = _renamed(kwargs, arguments)
    place = next((each.device for each in args if isinstance(each, Tensor)), None)
    listed = [
        value if argument is None else _read(argument, value, place)
        for argument, value in zip(
            [*arguments.values(), *[None] * len(args)], args, strict=False
        )
    ]
    spoken = {
        name: _read(arguments[name], value, place) if name in arguments else value
        for name, value in named.items()
    }
    same = all(one is other for one, other in zip(listed, args, strict=True))
    if same and spoken.keys() == kwargs.keys():
        same = all(value is kwargs[name] for name, value in spoken.items())
        if same:
            raise error
    return run(*listed, **spoken)


def read_operand(value: Any, device: Device) -> Any:
    """Return an array as a tensor, a NumPy number as Python's, others unchanged."""
    if isinstance(value, generic) or (isinstance(value, ndarray) and not value.shape):
        return value.item()
    if isinstance(value, ndarray):
        return as_operand(value, device=device)
    return value


def _renamed(kwargs: dict[str, Any], arguments: dict[str, Argument]) -> dict[str, Any]:
    """Return the keyword arguments under the schema's names, without those `UNSAID`."""
    passed = {
        name: value
        for name, value in kwargs.items()
        if value is not None or name not in UNSAID or name in arguments
    }
    return renamed(passed, arguments)


def _read(argument: Argument, value: Any, device: Device | None) -> Any:
    """Return an argument's value translated for its type, or unchanged."""
    kind = str(argument.type).removesuffix("?")
    if kind == "ScalarType" and value is not None:
        return parse_dtype(value)
    if kind == "Device" and isinstance(value, str):
        return Device.parse(value)
    if kind == "int[]" and isinstance(value, int) and not isinstance(value, bool):
        return [value]
    place = device or Device("cpu")
    if kind == "Tensor" and isinstance(value, (ndarray, generic)):
        return _operand(argument, value, place)
    many = kind in ("Tensor[]", "Tensor?[]") and isinstance(value, (list, tuple))
    if many and any(isinstance(each, ndarray) for each in value):
        return [_operand(argument, each, place) for each in value]
    return value


def _operand(argument: Argument, value: Any, device: Device) -> Any:
    """Return an operand; one to write to shares the array's memory or is refused."""
    if argument.is_write and isinstance(value, ndarray):
        return share_array(value)
    return read_operand(value, device)


Function = Callable[..., Any]
_ABSENT = object()


def sizes(values: tuple[Any, ...]) -> Sequence[int]:
    """Return `(2, 3)` for the arguments of `f(2, 3)` and of `f((2, 3))`."""
    if len(values) == 1 and not hasattr(values[0], "__index__"):
        only: Sequence[int] = values[0]
        return only
    return values


@cache
def function(name: str) -> Function:
    """Return the operator as a function; `out=` selects the out= overload."""
    if find_handle(f"{name}_out") is None:
        return describe(name, plain(name))
    return describe(name, unary(name) if takes_one(name) else with_out(name))


def plain(name: str) -> Function:
    """Return the operator with its arguments translated if they do not match."""
    run = handle_of(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return run(*args, **kwargs)
        except CallError as error:
            return normalize_torch_call(run, args, kwargs, error)

    return call


def unary(name: str) -> Function:
    """Return the operator of one tensor, with `out=`."""
    run, into = handle_of(name), handle_of(f"{name}_out")

    def by_other_words(arguments: dict[str, Any]) -> Any:
        """Call the operator with arguments outside of the schema."""
        spoken = {
            word: value
            for word, value in arguments.items()
            if value is not _ABSENT and value is not None
        }
        return with_out(name)(**spoken)

    def call(
        self: Any = _ABSENT,
        *,
        out: Any = None,
        input: Any = _ABSENT,  # noqa: A002  # upstream's name
        inplace: bool | None = None,
    ) -> Any:
        if self is _ABSENT or inplace is not None:
            return by_other_words(
                {"self": self, "input": input, "inplace": inplace, "out": out}
            )
        try:
            return run(self) if out is None else into(self, out=out)
        except CallError as error:
            if out is None:
                return normalize_torch_call(run, (self,), {}, error)
            return normalize_torch_call(into, (self,), {"out": out}, error)

    return call


def with_out(name: str) -> Function:
    """Return the operator, with `out=`."""
    run, into = handle_of(name), handle_of(f"{name}_out")

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
            return normalize_torch_call(ready, args, kwargs, error)

    return call


def targets_of(name: str, out: Any, fields: Sequence[str]) -> dict[str, Any]:
    """Return the targets of several results as arguments of an out= form.

    Raises:
        WrongOption: `out` is not a tuple or a list with a target for each result.
    """
    if not isinstance(out, (tuple, list)) or len(out) != len(fields):
        fits = f"a tuple of {len(fields)} tensors: {', '.join(fields)}"
        raise bad_option("out", shortened(out), fits, call=name)
    return dict(zip(fields, out, strict=True))


def takes_one(name: str) -> bool:
    """Return True if the operator takes one argument, which needs no translation."""
    return len(handle_of(name).schema.arguments) == 1


def parse_options(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return keyword arguments with the dtype and the device converted."""
    dtype, device = kwargs.get("dtype"), kwargs.get("device")
    if dtype is not None:
        kwargs["dtype"] = parse_dtype(dtype)
    if isinstance(device, str):
        kwargs["device"] = Device.parse(device)
    return kwargs


def describe(name: str, call: Function) -> Function:
    """Return the function, named `name` and documented by its operator's schema."""
    schema = handle_of(name).schema
    call.__name__ = call.__qualname__ = name
    call.__doc__ = docstring(name, schema)
    signature = python_signature([schema], annotated=True)
    call.__signature__ = signature  # type: ignore[attr-defined]  # for help()
    return call
