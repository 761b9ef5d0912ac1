"""Errors of programs that run: raised by them, or by what they were given.

Who must act: whoever called the program, or wrote it; all are `RunningError`, one class
for each thing that one can do about it.

Rules: values are told by their types and short texts, so that an error keeps none of
them; what an operator raises is no error of this module, and keeps its type.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


@dataclass(eq=False, kw_only=True)
class RunningError(EveryorderError):
    """Base of the errors of programs that run."""


@dataclass(eq=False, kw_only=True)
class ScriptRaised(RunningError, RuntimeError):
    """A program raised an exception whose class is not to be had here.

    `kind` is the name of the class as the program says it.
    """

    kind: str
    message: str

    def render(self) -> str:
        """The class and the message."""
        return f"{self.kind}: {self.message}"


@dataclass(eq=False, kw_only=True)
class TooDeep(RunningError, RecursionError):
    """`function` was called when no room was left for another call."""

    function: str

    def render(self) -> str:
        """The function, and what to do."""
        return page(
            f"`{self.function}` was called too deeply within other calls.",
            ("to do", "end the recursion earlier, or make it a loop"),
        )


@dataclass(eq=False, kw_only=True)
class NotOfType(RunningError, TypeError):
    """Something that Python gave to a program is not of the type that it says.

    `what` tells what gave it.
    """

    what: str
    expected: str
    found: str
    value: str

    def render(self) -> str:
        """What gave it, what was expected and what came."""
        return page(
            f"{self.what} gave no `{self.expected}`, but {self.found}.",
            ("value", self.value),
        )


@dataclass(eq=False, kw_only=True)
class ClassGone(RunningError, RuntimeError):
    """An object of a class was to be made, and its Python class does not exist."""

    qualname: str

    def render(self) -> str:
        """The class, and how to hold it."""
        return page(
            f"No object of `{self.qualname}` can be made: its Python class is gone.",
            ("to do", "keep a reference to the class as long as programs use it"),
        )


@dataclass(eq=False, kw_only=True)
class MethodMissing(RunningError, RuntimeError):
    """A method of a type is to run, and nobody compiled it for `qualname`."""

    qualname: str
    method: str

    def render(self) -> str:
        """The type and the method."""
        return page(f"`{self.qualname}` has no compiled method `{self.method}`.")


@dataclass(eq=False, kw_only=True)
class ErrorSwallowed(RunningError, RuntimeError):
    """A context manager swallowed an `error`, and values of the block are missing."""

    manager: str
    error: str

    def render(self) -> str:
        """The manager, the error, and what to write."""
        return page(
            f"`__exit__` of {self.manager} swallowed {self.error}, and variables that "
            "the block assigns are used behind it.",
            ("to do", "return False from `__exit__`, or use none of them"),
        )


@dataclass(eq=False, kw_only=True)
class ExecutorRefused(RunningError, ValueError):
    """An `option` of the executor cannot have such a value, or does not exist.

    `found` is empty for one that does not exist.
    """

    option: str
    found: str
    wanted: str

    def render(self) -> str:
        """The option, what was given, and what it takes."""
        given = (
            f"was given {self.found}" if self.found else "is given, and there is none"
        )
        head = f"The option `{self.option}` of the executor {given}."
        return page(head, ("it takes", self.wanted))
