"""Errors of dispatch to Python: handlers, and the classes of tensors.

Who must act: the author of a handler (`HandlerError` and its leaves), or of a class of
tensors (`SubclassError` and its leaves).  What whoever enters modes does wrong is said
by `runtime.errors.mode_stack`.

Rules: classes, modes and tensors are named by text, so that an error keeps nothing
alive; an exception that a handler raises is never wrapped, but for endless recursion.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page
from runtime.errors.registration import Conflict


@dataclass(eq=False, kw_only=True)
class PythonDispatchError(EveryorderError):
    """Dispatch to Python is used as it cannot be."""


@dataclass(eq=False, kw_only=True)
class HandlerError(PythonDispatchError):
    """A `__torch_dispatch__` is not what it has to be; `handler` names it."""

    handler: str


@dataclass(eq=False, kw_only=True)
class PlainHandler(HandlerError, TypeError):
    """The handler of a class of tensors is a plain method: make it a classmethod."""

    def render(self) -> str:
        """The handler, and how it is to be written."""
        return page(
            f"`{self.handler}` is a plain method: it would be called with a class for "
            "`self`.",
            ("to do", "put `@classmethod` above it, and call its first parameter cls"),
        )


@dataclass(eq=False, kw_only=True)
class ClassHandler(HandlerError, TypeError):
    """The handler of a mode is a classmethod or staticmethod: make it a method."""

    found: str

    def render(self) -> str:
        """The handler, what it is, and how it is to be written."""
        return page(
            f"`{self.handler}` is a {self.found}, but modes are objects: their handler "
            "is called on the one that was entered.",
            (
                "to do",
                f"take `@{self.found}` away: `def __torch_dispatch__(self, ...)`",
            ),
        )


@dataclass(eq=False, kw_only=True)
class HandlerNotCallable(HandlerError, TypeError):
    """The handler of a class of tensors is no function: `found`."""

    found: str

    def render(self) -> str:
        """The handler, what it is, and what it can be."""
        return page(
            f"`{self.handler}` is {self.found}, which cannot be called.",
            ("to do", "make it a classmethod, or `disabled` for no handler at all"),
        )


@dataclass(eq=False, kw_only=True)
class ModeWithoutHandler(HandlerError, TypeError):
    """A mode has no handler, or one that cannot be called."""

    def render(self) -> str:
        """The handler, and how it is written."""
        return page(
            f"There is no `{self.handler}` that could be asked: the mode cannot be "
            "entered.",
            (
                "to do",
                "define `def __torch_dispatch__(self, func, types, args=(), "
                "kwargs=None)`",
            ),
        )


@dataclass(eq=False, kw_only=True)
class NoImplementation(PythonDispatchError, TypeError):
    """All handlers of a call returned NotImplemented.

    `operator` is the one that was called, as a handler sees it; `asked` are the mode
    and the classes that were asked, in that order.
    """

    operator: str
    asked: tuple[str, ...]

    def render(self) -> str:
        """The operator and who was asked."""
        return page(
            f"Nobody handles `{self.operator}`: every `__torch_dispatch__` that was "
            "asked returned NotImplemented.",
            ("asked", ", ".join(self.asked)),
            ("to do", "return a result for the operator from one of them"),
        )


@dataclass(eq=False, kw_only=True)
class UndefinedResult(PythonDispatchError, RuntimeError):
    """A gradient needs a result of its operator, and a handler returned None for it."""

    operator: str
    result: str

    def render(self) -> str:
        """The operator, the result, and what to return."""
        return page(
            f"The gradient of `{self.operator}` is computed from its result "
            f"`{self.result}`, and a `__torch_dispatch__` returned None for that.",
            ("to do", "return a tensor, or call the operator in no_grad()"),
        )


@dataclass(eq=False, kw_only=True)
class WrongHandlerResult(HandlerError, TypeError):
    """A handler returned what its operator does not return."""

    operator: str
    problem: str
    schema: str

    def render(self) -> str:
        """The handler, the operator, and what does not fit."""
        return page(
            f"`{self.handler}` handled `{self.operator}`, and its result is not what "
            "the operator returns.",
            ("found", self.problem),
            ("schema", self.schema),
        )


@dataclass(eq=False, kw_only=True)
class WrongDetach(HandlerError, TypeError):
    """A handler detached a tensor and returned something else: `found`."""

    operator: str
    found: str

    def render(self) -> str:
        """The handler, who asked, and what came."""
        return page(
            f"`{self.handler}` was asked to detach a tensor for {self.operator} and "
            f"returned {self.found}, which is no tensor.",
            ("to do", "return a tensor on the same elements for `core::detach`"),
        )


@dataclass(eq=False, kw_only=True)
class EndlessDispatch(HandlerError, RecursionError):
    """A handler called its own operator on its own tensors, until Python gave up.

    `depth` counts the handlers that were running.
    """

    operator: str
    depth: int

    def render(self) -> str:
        """The handler, the operator, and how such a call is ended."""
        return page(
            f"`{self.handler}` handled `{self.operator}` inside of itself {self.depth} "
            "times, and Python's recursion ends there.",
            (
                "to do",
                "call the operator on what the tensor wraps, or call "
                "`super().__torch_dispatch__`, or call it inside of `no_dispatch()`",
            ),
        )


@dataclass(eq=False, kw_only=True)
class WrongSuperCall(HandlerError, TypeError):
    """The arguments of the call above come in something that is no list or tuple."""

    argument: str
    expected: str
    found: str

    def render(self) -> str:
        """The handler, the argument, and what it is."""
        return page(
            f"`{self.handler}` takes {self.expected} as `{self.argument}`, and was "
            f"given {self.found}.",
        )


@dataclass(eq=False, kw_only=True)
class RuleTaken(HandlerError, Conflict, ValueError):
    """The class has a rule for that operator already."""

    operator: str
    rule: str
    original: str

    def render(self) -> str:
        """The class and the operator, and both rules."""
        return page(
            f"`{self.handler}` has a rule for `{self.operator}` already.",
            ("live", self.original),
            ("refused", self.rule),
            (
                "to do",
                "close the registration of the live one, or the library that owns it",
            ),
        )


@dataclass(eq=False, kw_only=True)
class OutsideOfHandler(PythonDispatchError, RuntimeError):
    """What only makes sense inside of a handler was asked for outside, by `call`."""

    call: str

    def render(self) -> str:
        """What was asked, and where it belongs."""
        return page(
            f"`{self.call}` brings back what held when dispatch to Python began, "
            "and no handler runs in this thread.",
            ("to do", "call it inside of a `__torch_dispatch__`"),
        )


@dataclass(eq=False, kw_only=True)
class NothingToHandle(PythonDispatchError, RuntimeError):
    """The Python key is included by hand, and there is neither mode nor subclass."""

    operator: str

    def render(self) -> str:
        """The operator, and how it got there."""
        return page(
            f"`{self.operator}` was dispatched to Python, but no mode is entered and "
            "no argument is of a class with a `__torch_dispatch__`.",
            ("to do", "enter a mode instead of including the key Python"),
        )


@dataclass(eq=False, kw_only=True)
class NotATensorClass(PythonDispatchError, TypeError):
    """What tensors are to be made of is no class of tensors, or no tensor."""

    call: str
    argument: str
    expected: str
    found: str

    def render(self) -> str:
        """The call, the argument, and what it is."""
        return page(
            f"`{self.call}` takes {self.expected} as `{self.argument}`, and was given "
            f"{self.found}.",
        )


@dataclass(eq=False, kw_only=True)
class SubclassError(PythonDispatchError, TypeError):
    """A class of tensors is not made as it has to be; `cls` names it."""

    cls: str


@dataclass(eq=False, kw_only=True)
class NoHandler(SubclassError):
    """A wrapper has no elements, so its class must have a handler."""

    def render(self) -> str:
        """The class, and what it lacks."""
        return page(
            f"`{self.cls}` defines no `__torch_dispatch__`, and a wrapper without one "
            "could do nothing: it has no elements.",
            ("to do", "define the handler, or call `_make_subclass` on a tensor"),
        )


@dataclass(eq=False, kw_only=True)
class AlreadyWrapped(SubclassError):
    """A tensor that is of a class with a handler cannot become one of another."""

    found: str

    def render(self) -> str:
        """Both classes."""
        return page(
            f"The tensor is a `{self.found}` already, and its handler gave a "
            f"`{self.found}` when it was detached; it cannot become a `{self.cls}`.",
            (
                "to do",
                f"let `{self.cls}` wrap it: `_make_wrapper_subclass` and an attribute",
            ),
        )


@dataclass(eq=False, kw_only=True)
class NotMade(SubclassError):
    """A class of tensors was called that does not say how its tensors are made."""

    def render(self) -> str:
        """The class, and how tensors of it are made."""
        remedy = (
            f"call `tensor.as_subclass({self.cls})`, or define `__new__` with "
            "`Tensor._make_subclass` or `Tensor._make_wrapper_subclass`"
        )
        if self.cls == "Tensor":
            remedy = "call `runtime.tensor(data)`, `runtime.empty(sizes)`, ..."
        return page(f"`{self.cls}(...)` makes no tensor by itself.", ("to do", remedy))


@dataclass(eq=False, kw_only=True)
class NoElements(SubclassError):
    """The elements of a wrapper were asked for: it has none of its own."""

    def render(self) -> str:
        """The class, and where its elements are to be asked for."""
        return page(
            f"The elements of a `{self.cls}` were asked for, which is a wrapper and "
            "has none of its own.",
            (
                "to do",
                "let its `__torch_dispatch__` compute with what it wraps; kernels, and "
                "calls with the handler switched off, know nothing of that",
            ),
        )


@dataclass(eq=False, kw_only=True)
class NotForSubclasses(SubclassError):
    """The elements of a tensor with a handler do not leave behind its back."""

    asked: str

    def render(self) -> str:
        """What was asked, and the class."""
        return page(
            f"{self.asked} would read a `{self.cls}` behind the back of its "
            "`__torch_dispatch__`.",
            (
                "to do",
                "read what it wraps; where it has elements of its own, inside of "
                "`no_dispatch()` what `clone()` returns",
            ),
        )


@dataclass(eq=False, kw_only=True)
class UnknownPolicy(SubclassError, ValueError):
    """`dispatch_sizes_strides_policy` is one of a few words."""

    found: str
    known: tuple[str, ...]

    def render(self) -> str:
        """What was given, and the words."""
        known = " or ".join(repr(each) for each in self.known)
        return page(
            f"`{self.cls}` was made with dispatch_sizes_strides_policy="
            f"{self.found!r}; it is {known}, or left out.",
        )


@dataclass(eq=False, kw_only=True)
class WrongMetadata(SubclassError, ValueError):
    """What a tensor was told of its sizes or strides is not what these can be.

    `operator` asked, and `found` is the answer.
    """

    operator: str
    found: str

    def render(self) -> str:
        """The class, the operator, the answer, and what it can be."""
        return page(
            f"A `{self.cls}` asked `{self.operator}` and was told {self.found}: no "
            "size, stride, offset or number of dimensions is negative.",
            (
                "to do",
                "answer in its handler with what it has, or None for the default",
            ),
        )
