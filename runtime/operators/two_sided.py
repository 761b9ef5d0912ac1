"""Two sides: `x + y`, `x += 1`, `2 - x`, `x < y` and `x @ y` as methods of tensors.

True only here: what the other side may be, and the short way of two tensors.

Rules:
- the other side is a tensor, a number, or a NumPy array, which becomes a tensor; for
  anything else Python asks that side, and a comparison with a list is refused;
- two tensors bind and convert nothing, so such a call finds its link on the published
  entry, where the front of the operator has put it (`runtime.dispatch.front`); it keeps
  nothing of an entry.  Where it finds none, and while somebody watches, the call is an
  ordinary one.
"""

from collections.abc import Callable
from typing import Any

from runtime.dispatch.call_stub import LOOK, bits_of, remembered
from runtime.dispatch.handle import OperatorHandle
from runtime.dispatch.watch import WATCH
from runtime.errors.tensor import UnfitValue
from runtime.generated import block, numbered, template
from runtime.keys import LOCAL
from runtime.operators.call import NAMESPACE, core, found
from runtime.operators.words import read_operand
from runtime.schema.binding import stored_default
from runtime.schema.device import Device
from runtime.schema.returns import returner
from runtime.schema.values import present
from runtime.tensors.tensor import Tensor

Method = Callable[[Tensor, Any], Any]

# What is the same with its sides exchanged: a number goes to the right, where most do.
COMMUTATIVE = frozenset(
    {"add", "mul", "bitwise_and", "bitwise_or", "bitwise_xor"},
)
_NUMBERS = frozenset({bool, int, float, complex})
_ABSENT = object()


def arithmetic(symbol: str, name: str) -> Method:
    """The method `symbol` of tensors, which calls the operator `name`."""
    run = found(name)
    return _method(symbol, run, _read(run))


def comparison(symbol: str, name: str) -> Method:
    """The method `symbol` of tensors, which calls the comparison `name`.

    It raises `UnfitValue` for a list or tuple.
    """
    run = found(name)
    read = _read(run)

    def other_side(self: Tensor, other: Any) -> Any:
        if isinstance(other, (list, tuple)):
            raise UnfitValue(
                asked=f"Tensor.{symbol}",
                found=f"a {type(other).__name__}",
                fits="a tensor, a number or an array",
                remedy="runtime.tensor(...) of it, or `.tolist()` of the tensor",
            )
        return read(self, other)

    return _method(symbol, run, other_side)


def reflected(symbol: str, name: str) -> Method:
    """The method `symbol` of tensors that are on the right of the operator `name`."""
    run = found(name)

    def exchanged(self: Tensor, other: Any) -> Any:
        ready = operand(other, self.device)
        return NotImplemented if ready is _ABSENT else run(ready, self)

    method = _read(run) if name in COMMUTATIVE else exchanged
    method.__name__ = method.__qualname__ = symbol
    return method


def matmul(self: Tensor, other: Any) -> Any:
    """`self @ other`."""
    ready = read_operand(other, self.device)
    return core.matmul(self, ready) if isinstance(ready, Tensor) else NotImplemented


def matmul_reflected(self: Tensor, other: Any) -> Any:
    """`other @ self`, of an array."""
    ready = read_operand(other, self.device)
    return core.matmul(ready, self) if isinstance(ready, Tensor) else NotImplemented


def operand(value: Any, device: Device) -> Any:
    """A tensor or a number to compute with: of NumPy's, arrays become tensors.

    Anything else gives the mark of absence.  Raises `UnsupportedData` for an array
    of a dtype that tensors lack.
    """
    if hasattr(value, "key_bits") or isinstance(value, (int, float, complex)):
        return value
    ready = read_operand(value, device)
    return _ABSENT if ready is value else ready


def _read(run: OperatorHandle) -> Method:
    """A method that runs the operator on whatever operand the other side makes."""

    def method(self: Tensor, other: Any) -> Any:
        ready = operand(other, self.device)
        return NotImplemented if ready is _ABSENT else run(self, ready)

    return method


def _method(symbol: str, run: OperatorHandle, other_side: Method) -> Method:
    """A method that leaves what is neither a tensor nor a number to `other_side`."""
    place = run._place
    schema = run._schema
    key = place.keyring.key(place.caller(place.published()).reading)
    rest = [present(each.type, stored_default(each)) for each in schema.arguments[2:]]
    method: Method = _sides(len(rest))(
        *(place.dispatcher, NAMESPACE, place.text, key, run, returner(schema)),
        *(other_side, rest),
    )
    method.__name__ = method.__qualname__ = symbol
    return method


@template(
    "two sides",
    "_dispatcher, place, text, _key, run, _returns, other_side, rest",
    NUMBERS=_NUMBERS,
    Tensor=Tensor,
    _AttributeError=AttributeError,
    _LOCAL=LOCAL,
    _WATCH=WATCH,
)
def _sides(count: int) -> list[str]:
    """The method of operators that take `count` more than the two sides."""
    more = numbered(count)
    bits = bits_of(("self", "other"))
    body = [
        *block("try:", remembered("[place][text]", bits)),
        "except (AttributeError, KeyError):",
        "    return run(self, other)",
        "if _WATCH.active:",
        "    return run(self, other)",
        f"_result = _link(self, other, {more})",
        *LOOK,
        "return _result",
    ]
    body = [
        *block("if isinstance(other, Tensor):", body),
        "if type(other) in NUMBERS:",
        "    return run(self, other)",
        "return other_side(self, other)",
    ]
    unpacked = [f"{more}, = rest"] if count else []
    return [*unpacked, *block("def method(self, other):", body)]
