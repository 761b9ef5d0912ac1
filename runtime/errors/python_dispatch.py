"""Errors of dispatch to Python: handlers, modes, and the classes of tensors.

Who must act: the author of a handler (`HandlerError` and its leaves), of a class of
tensors (`SubclassError` and its leaves), or whoever enters modes (`ModeStackError`).

Rules: classes, modes and tensors are named by text, so that an error keeps nothing
alive; an exception that a handler raises is never wrapped, but for endless recursion.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


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
class NoImplementation(HandlerError, TypeError):
    """All handlers of a call returned NotImplemented.

    `handler` is the operator as a handler sees it; `asked` are the mode and the classes
    that were asked, in that order.
    """

    asked: tuple[str, ...]

    def render(self) -> str:
        """The operator and who was asked."""
        return page(
            f"Nobody handles `{self.handler}`: every `__torch_dispatch__` that was "
            "asked returned NotImplemented.",
            ("asked", ", ".join(self.asked)),
            ("to do", "return a result for the operator from one of them"),
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
class RuleTaken(HandlerError, ValueError):
    """The class has a rule for that operator already."""

    operator: str

    def render(self) -> str:
        """The class and the operator."""
        return page(
            f"`{self.handler}` has a rule for `{self.operator}` already.",
            ("to do", "close the handle of the first one"),
        )


@dataclass(eq=False, kw_only=True)
class OutsideOfHandler(HandlerError, RuntimeError):
    """What only makes sense inside of a handler was asked for outside."""

    def render(self) -> str:
        """What was asked, and where it belongs."""
        return page(
            f"`{self.handler}` brings back what held when dispatch to Python began, "
            "and no handler runs in this thread.",
            ("to do", "call it inside of a `__torch_dispatch__`"),
        )


@dataclass(eq=False, kw_only=True)
class NothingToHandle(HandlerError, RuntimeError):
    """The Python key is included by hand, and there is neither mode nor subclass."""

    def render(self) -> str:
        """The operator, and how it got there."""
        return page(
            f"`{self.handler}` was dispatched to Python, but no mode is entered and no "
            "argument is of a class with a `__torch_dispatch__`.",
            ("to do", "enter a mode instead of including the key Python"),
        )


@dataclass(eq=False, kw_only=True)
class ModeStackError(PythonDispatchError, RuntimeError):
    """The stack of modes is not as it has to be; `stack` names them, outermost first.

    `problem` says what was found, `remedy` what to do.
    """

    problem: str
    stack: tuple[str, ...]
    remedy: str = ""

    def render(self) -> str:
        """What was found, and the stack."""
        rows = [("modes", ", ".join(self.stack) or "none are entered")]
        if self.remedy:
            rows.append(("to do", self.remedy))
        return page(self.problem, *rows)


@dataclass(eq=False, kw_only=True)
class ModeStackChanged(ModeStackError):
    """A handler entered or left modes and did not put them back; they are put back."""


@dataclass(eq=False, kw_only=True)
class EmptyModeStack(ModeStackError):
    """A mode was asked for, and none is entered."""


@dataclass(eq=False, kw_only=True)
class ModeNotInnermost(ModeStackError):
    """A mode is left that is not the innermost one, or was not entered here."""


@dataclass(eq=False, kw_only=True)
class ModeSlotTaken(ModeStackError):
    """There is one place for an infra mode of that kind, and another one has it."""


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
            ("to do", "read what it wraps, or what `no_dispatch()` makes of it"),
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
