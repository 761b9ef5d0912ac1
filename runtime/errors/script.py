"""Errors of reading programs: no source, no program, not supported, not defined.

Who must act: whoever wrote the program; all are `ScriptError`, one class for each thing
that one can do about it.

Rules: what is wrong at a place of the program is a `ProgramError`, which carries the
source and the span of the place and draws both.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page
from runtime.errors.source import Since, Source, Span, with_calls


@dataclass(eq=False, kw_only=True)
class ScriptError(EveryorderError):
    """Base of the errors of compiling programs."""


@dataclass(eq=False, kw_only=True)
class NoSource(ScriptError, TypeError):
    """The source of `found` cannot be read.

    `reason` says why, `hint` what can be done (it may be empty).
    """

    found: str
    reason: str
    hint: str = ""

    def render(self) -> str:
        """What was to be compiled, why it cannot be read, and what to do."""
        rows = [("to do", self.hint)] if self.hint else []
        return page(f"{self.found} cannot be compiled: {self.reason}.", *rows)


@dataclass(eq=False, kw_only=True)
class MarkMisuse(ScriptError, TypeError):
    """`call` marks what it cannot mark; `wanted` says what it takes."""

    call: str
    found: str
    wanted: str

    def render(self) -> str:
        """The mark, what was found, and what belongs there."""
        return page(f"`{self.call}` was given {self.found}.", ("it takes", self.wanted))


@dataclass(eq=False, kw_only=True)
class ProgramError(ScriptError):
    """Base of the errors at a place of a program: `span` of `source`.

    `since` are the calls because of which the function is compiled, innermost first:
    the name of what is called, and the place of the call.
    """

    source: Source
    span: Span
    since: Since = ()

    def __str__(self) -> str:
        return with_calls(self.render(), self.since)

    def complaint(self) -> str:
        """What is wrong, without a full stop."""
        raise NotImplementedError(f"{type(self).__name__} does not say what is wrong")

    def advice(self) -> str:
        """What to write instead; empty if nothing is known."""
        return ""

    def render(self) -> str:
        """The complaint, the source with a marker, and what to write."""
        text = f"{self.complaint()}:\n{self.source.excerpt(self.span)}"
        advice = self.advice()
        return f"{text}\n{advice}" if advice else text


@dataclass(eq=False, kw_only=True)
class NotSupported(ProgramError, NotImplementedError):
    """The language does not have the `construct`, for a `reason`.

    `hint` says what to write instead.
    """

    construct: str
    reason: str
    hint: str

    def complaint(self) -> str:
        """The construct and the reason."""
        return f"{self.construct} is not supported, because {self.reason}"

    def advice(self) -> str:
        """What to write instead."""
        return self.hint


@dataclass(eq=False, kw_only=True)
class MalformedProgram(ProgramError, ValueError):
    """The text is no program of Python, which says the `message`."""

    message: str

    def complaint(self) -> str:
        """What Python says."""
        return f"this is no program of Python: {self.message}"


@dataclass(eq=False, kw_only=True)
class NotDefined(ProgramError, NameError):
    """A variable is used that may have no value.

    `way` is how it comes to have none, `cause` the place of that, if there is one;
    `span` is the place of the use.
    """

    variable: str
    way: str
    cause: Span | None

    def complaint(self) -> str:
        """The variable, and how it comes to have no value."""
        return f"`{self.variable}` is not defined {self.way}"

    def render(self) -> str:
        """How the variable comes to have no value, and where it is used."""
        used = self.source.excerpt(self.span)
        if self.cause is None:
            return f"{self.complaint()}:\n{used}"
        cause = self.source.excerpt(self.cause)
        return f"{self.complaint()}:\n{cause}\nand is used here:\n{used}"


@dataclass(eq=False, kw_only=True)
class UnfitParameter(ProgramError, ValueError):
    """No schema follows from a `parameter`; `hint` says what to write instead."""

    parameter: str
    message: str
    hint: str

    def complaint(self) -> str:
        """The parameter and what is wrong with it."""
        return f"the parameter `{self.parameter}` {self.message}"

    def advice(self) -> str:
        """What to write instead."""
        return self.hint


@dataclass(eq=False, kw_only=True)
class UnfitClass(ProgramError, TypeError):
    """A class of Python, `name`, is none for scripts; `hint` says what to write."""

    name: str
    message: str
    hint: str = ""

    def complaint(self) -> str:
        """The class and what is wrong with it."""
        return f"the class `{self.name}` {self.message}"

    def advice(self) -> str:
        """What to write instead."""
        return self.hint


@dataclass(eq=False, kw_only=True)
class UnknownName(ProgramError, NameError):
    """A `variable` means nothing where it is used; `near` are names that do."""

    variable: str
    near: tuple[str, ...] = ()

    def complaint(self) -> str:
        """The name."""
        return f"`{self.variable}` means nothing here"

    def advice(self) -> str:
        """The nearest names."""
        return f"Did you mean {_either(self.near)}?" if self.near else ""


@dataclass(eq=False, kw_only=True)
class UnknownAttribute(ProgramError, AttributeError):
    """The `owner`, in words, has no such `attribute`; `near` are those that it has."""

    owner: str
    attribute: str
    near: tuple[str, ...] = ()
    hint: str = ""

    def complaint(self) -> str:
        """The object and the attribute."""
        return f"{self.owner} has no attribute `{self.attribute}`"

    def advice(self) -> str:
        """The nearest names."""
        if self.hint:
            return self.hint
        return f"Did you mean {_either(self.near)}?" if self.near else ""


@dataclass(eq=False, kw_only=True)
class IllTyped(ProgramError, TypeError):
    """A value is of a type that its use does not take; `hint` says what to write.

    `others` are places that have to do with it, with words before each.
    """

    message: str
    hint: str = ""
    others: tuple[tuple[str, Source, Span], ...] = ()

    def complaint(self) -> str:
        """What does not fit."""
        return self.message

    def advice(self) -> str:
        """What to write instead."""
        return self.hint

    def render(self) -> str:
        """What does not fit, and where; the other places behind it."""
        lines = [f"{self.complaint()}:", self.source.excerpt(self.span)]
        for words, source, span in self.others:
            lines += [f"{words}:", source.excerpt(span)]
        return "\n".join([*lines, self.hint] if self.hint else lines)


@dataclass(eq=False, kw_only=True)
class NoSuchCall(ProgramError, TypeError):
    """The `arguments` of a call fit none of the `candidates`.

    `callee` says what is called; each candidate is a schema and why it does not fit.
    """

    callee: str
    arguments: tuple[str, ...]
    candidates: tuple[tuple[str, str], ...]

    def complaint(self) -> str:
        """What is called, and with what."""
        given = f"({', '.join(self.arguments)})"
        return f"{self.callee} does not take {given}"

    def advice(self) -> str:
        """The candidates, each with its reason."""
        lines = []
        for schema, reason in self.candidates:
            lines.append(f"  {schema}")
            lines.append(f"    {reason}")
        many = len(self.candidates) > 1
        head = "It has these forms:" if many else "It is:"
        return "\n".join([head, *lines]) if lines else ""


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(f"`{each}`" for each in names)
