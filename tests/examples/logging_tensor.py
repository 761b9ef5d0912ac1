"""A tensor that writes down every operator that is called with it.

The idea: a `LoggingTensor` *has* a tensor, it is none.  It is made as a wrapper, with a
shape, a dtype and a device, but without elements.  So there is nothing that an operator
could compute with, and every call comes to `__torch_dispatch__`, below autograd.  That
does what nearly every wrapper does:

    unwrap the arguments  ->  call the operator again  ->  wrap the results

What it calls again may be a wrapper itself, whose turn it is then; that is why it
unwraps its own class only.

    x = LoggingTensor(tensor([3.0]), requires_grad=True)
    with capture_logs() as logs:
        log_input("x", x)
        y = x * x

    # logs:  $0: f32[1] = input('x')
    #        $1: f32[1] = everyorder.runtime.ops.core.mul.default($0, $0)

A line reads `results = operator(arguments)`.  A tensor is `$` and a number, given when
the tensor is first printed and kept as long as it lives; results say dtype and shape.
Two habits of the format are older than this module and kept, so that traces compare:
what stands in a list prints as text in quotes, and the result of an operator that
writes is a tensor of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from string import ascii_lowercase
from typing import Any, TypeVar
from weakref import ref

from everyorder.runtime import Tensor

T = TypeVar("T")

# dtype -> its name in a trace, where that is not the first letter and the bits
SHORT = {"bfloat16": "bf16", "bool": "b8"}


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """The value with whatever its lists, tuples and dicts hold replaced."""
    if isinstance(value, (list, tuple)):
        return type(value)([mapped(function, each) for each in value])
    if isinstance(value, dict):
        return {name: mapped(function, each) for name, each in value.items()}
    return function(value)


def found_in(value: Any, kind: type[T]) -> list[T]:
    """What is of a class, in the lists, tuples and dicts of a value."""
    found: list[Any] = []
    mapped(found.append, value)
    return [each for each in found if isinstance(each, kind)]


class LoggingTensor(Tensor):
    """A wrapper around `elem` that logs; `elem` itself never learns of autograd."""

    elem: Tensor

    @staticmethod
    def __new__(
        cls: type["LoggingTensor"], elem: Tensor, *, requires_grad: bool = False
    ) -> "LoggingTensor":
        made: LoggingTensor = Tensor._make_wrapper_subclass(
            cls,
            elem.shape,
            strides=elem.strides,
            storage_offset=elem.offset,
            dtype=elem.dtype,
            device=elem.device,
            requires_grad=requires_grad,
        )
        made.elem = elem.detach() if requires_grad else elem
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}

        def unwrap(value: Any) -> Any:
            return value.elem if isinstance(value, cls) else value

        def wrap(value: Any) -> Any:
            return cls(value) if isinstance(value, Tensor) else value

        found = func(*mapped(unwrap, args), **mapped(unwrap, kwargs))
        results = mapped(wrap, found)
        note(f"{func.__module__}.{func.__name__}", args, kwargs, results)
        return results

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["elem"], None

    @classmethod
    def __tensor_unflatten__(
        cls, inner: dict[str, Tensor], context: None, size: Any, stride: Any
    ) -> "LoggingTensor":
        return cls(inner["elem"])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.elem!r})"


class Log:
    """The lines of one capture, and the numbers of its tensors."""

    def __init__(self, typed: bool, every_tensor: bool) -> None:
        self.lines: list[str] = []
        self.typed = typed
        self.numbered: type[Tensor] = Tensor if every_tensor else LoggingTensor
        # By identity: `==` of tensors compares elements.
        self.numbers: dict[int, tuple[ref[Tensor], int]] = {}
        self.count = 0

    def number(self, tensor: Tensor) -> int:
        """The number of a tensor, a new one at first sight."""
        known = self.numbers.get(id(tensor))
        if known is None or known[0]() is not tensor:
            # Nobody has it, or who had its address is gone.
            known = self.numbers[id(tensor)] = ref(tensor), self.count
            self.count += 1
        return known[1]

    def text(self, value: Any, typed: bool = False) -> str:
        """A value that is no container."""
        if not isinstance(value, Tensor):
            return repr(value)
        if value.number is not None:
            # A number that stands where a tensor does.
            return repr(value.number)
        if not isinstance(value, self.numbered):
            return repr(value)
        kind = f": {short(value.dtype.name)}{list(value.shape)}" if typed else ""
        return f"${self.number(value)}{kind}"

    def note(self, name: str, args: Any, kwargs: Any, results: Any) -> None:
        """Write a line; numbers are given from left to right in the call, then on."""
        given = [str(mapped(self.text, each)) for each in args]
        given += [f"{key}={mapped(self.text, each)}" for key, each in kwargs.items()]
        shown = mapped(lambda each: self.text(each, self.typed), results)
        self.lines.append(f"{shown} = {name}({', '.join(given)})")


def short(dtype: str) -> str:
    """`f32` for `float32`, `i64` for `int64`, ..."""
    return SHORT.get(dtype) or f"{dtype[0]}{dtype.lstrip(ascii_lowercase)}"


# The captures that are running, of this thread or task.
LOGS: ContextVar[tuple[Log, ...]] = ContextVar("LOGS", default=())


def note(name: str, args: Any, kwargs: Any, results: Any) -> None:
    """Let every running capture write a line."""
    for log in LOGS.get():
        log.note(name, args, kwargs, results)


def log_input(name: str, tensor: Tensor) -> None:
    """Write a line that gives a tensor its number, and says what it is."""
    note("input", (name,), {}, tensor)


@contextmanager
def capture_logs(
    types: bool = True, use_shortid_for_all_tensors: bool = False
) -> Iterator[list[str]]:
    """Context: the lines of what happens inside, as a list that grows.

    `types=False` leaves out dtypes and shapes.  Tensors of other classes print in full
    unless `use_shortid_for_all_tensors` is set.
    """
    log = Log(types, use_shortid_for_all_tensors)
    token = LOGS.set((*LOGS.get(), log))
    try:
        yield log.lines
    finally:
        LOGS.reset(token)
