"""Errors of programs: reading, compiling, tracing, graphs.

Who must act: whoever wrote the program; all are `ScriptError`, one class for each thing
that one can do about it.

Rules: what is wrong at a place of the program is a `ProgramError`, which carries the
source and the span of the place and draws both; places are otherwise texts,
`file:line:column`, or empty if nobody knows them.
"""

from typing import ClassVar, NamedTuple

from runtime.errors.base import EveryorderError, Words, filled
from runtime.errors.source import Since, Source, Span, printable, with_calls


class ScriptError(EveryorderError):
    """Base of the errors of compiling programs."""


class NoSource(ScriptError, TypeError):
    """The source of `found` cannot be read.

    `reason` says why, `hint` what can be done (it may be empty).
    """

    found: str
    reason: str
    hint: str = ""

    words: ClassVar[Words] = {
        "NoSource": (
            "{found} cannot be compiled: {reason}.",
            ("to do", "{hint}"),
        ),
    }


class NotScriptable(ScriptError, TypeError):
    """`found` cannot be compiled, or marked, or not be used as what is compiled is.

    `reason` says why, `hint` what can be done (it may be empty).
    """

    found: str
    reason: str = ""
    hint: str = ""
    call: str = ""
    wanted: str = ""

    words: ClassVar[Words] = {
        "NotScriptable": (
            "{found} is not for scripts: {reason}.",
            ("to do", "{hint}"),
        ),
        "MarkMisuse": (
            "`{call}` was given {found}.",
            ("it takes", "{wanted}"),
        ),
    }


class ProgramError(ScriptError):
    """Base of the errors at a place of a program: `span` of `source`.

    `words` has the complaint of each, without a full stop, and what to write instead.
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
        return filled(self._words()[0], self)

    def advice(self) -> str:
        """What to write instead; empty if nothing is known."""
        return filled(self._words()[1], self)

    def _words(self) -> tuple[str, str]:
        words = self.words.get(self.code)
        if not isinstance(words, tuple):
            raise NotImplementedError(f"{self.code} does not say what is wrong")
        complaint, advice = map(str, words)
        return complaint, advice

    def place(self) -> str:
        """The source with a marker."""
        return f"{self.complaint()}:\n{self.source.excerpt(self.span)}"

    def render(self) -> str:
        """The complaint, the source with a marker, and what to write."""
        return "\n".join(filter(None, (self.place(), self.advice())))


class NotSupported(ProgramError, NotImplementedError):
    """The language does not have the `construct`, for a `reason`.

    `hint` says what to write instead.
    """

    construct: str
    reason: str
    hint: str

    words: ClassVar[Words] = {
        "NotSupported": (
            "{construct} is not supported, because {reason}",
            "{hint}",
        )
    }


class MalformedProgram(ProgramError, ValueError, TypeError):
    """The text is no program of Python, or what it declares is none for scripts."""

    message: str
    parameter: str = ""
    name: str = ""
    hint: str = ""

    words: ClassVar[Words] = {
        "MalformedProgram": ("this is no program of Python: {message}", ""),
        "UnfitParameter": ("the parameter `{parameter}` {message}", "{hint}"),
        "UnfitClass": ("the class `{name}` {message}", "{hint}"),
    }


class UnknownName(ProgramError, NameError):
    """A `variable` means nothing where it is used, or may have no value there.

    `near` are names that mean something; `way` is how it comes to have no value,
    `cause` the place of that, if there is one; `span` is the place of the use.
    """

    variable: str
    near: tuple[str, ...] = ()
    way: str = ""
    cause: Span | None = None

    words: ClassVar[Words] = {
        "UnknownName": ("`{variable}` means nothing here", "{_guess}"),
        "NotDefined": ("`{variable}` is not defined {way}", ""),
    }

    @property
    def _guess(self) -> str:
        return _close(self.near)

    def place(self) -> str:
        """How the variable comes to have no value, and where it is used."""
        if self.cause is None:
            return super().place()
        cause, used = map(self.source.excerpt, (self.cause, self.span))
        return f"{self.complaint()}:\n{cause}\nand is used here:\n{used}"


class UnknownAttribute(ProgramError, AttributeError):
    """The `owner`, in words, has no such `attribute`; `near` are those that it has."""

    owner: str
    attribute: str
    near: tuple[str, ...] = ()
    hint: str = ""

    words: ClassVar[Words] = {
        "UnknownAttribute": ("{owner} has no attribute `{attribute}`", "{_guess}"),
    }

    @property
    def _guess(self) -> str:
        return self.hint or _close(self.near)


class IllTyped(ProgramError, TypeError):
    """A value is of a type that its use does not take; `hint` says what to write.

    `others` are places that have to do with it, with words before each.
    """

    message: str
    hint: str = ""
    others: tuple[tuple[str, Source, Span], ...] = ()

    words: ClassVar[Words] = {"IllTyped": ("{message}", "{hint}")}

    def place(self) -> str:
        """What does not fit, and where; the other places behind it."""
        lines = [super().place()]
        for words, source, span in self.others:
            lines += [f"{words}:", source.excerpt(span)]
        return "\n".join(lines)


class NoSuchCall(ProgramError, TypeError):
    """The `arguments` of a call fit none of the `candidates`.

    `callee` says what is called; each candidate is a schema and why it does not fit.
    """

    callee: str
    arguments: tuple[str, ...]
    candidates: tuple[tuple[str, str], ...]

    words: ClassVar[Words] = {
        "NoSuchCall": ("{callee} does not take ({arguments:, })", "{_forms}")
    }

    @property
    def _forms(self) -> str:
        lines = [f"  {schema}\n    {reason}" for schema, reason in self.candidates]
        head = "It has these forms:" if len(lines) > 1 else "It is:"
        return "\n".join([head, *lines]) if lines else ""


def _close(near: tuple[str, ...]) -> str:
    return f"Did you mean {' or '.join(f'`{each}`' for each in near)}?" if near else ""


class GraphFault(NamedTuple):
    """A law that is broken, the number of the line of the text where, and how."""

    law: str
    line: int
    fault: str


class BrokenGraph(EveryorderError, RuntimeError):
    """A graph breaks laws, each of `faults` one.

    `stage` says after what it was looked at (it may be empty), `text` is the graph;
    lines count from 1.
    """

    graph: str
    stage: str
    faults: tuple[GraphFault, ...]
    text: str

    def render(self) -> str:
        """The number of faults, and the text with each fault under its line."""
        count = len(self.faults)
        name = f" `{self.graph}`" if self.graph else ""
        stage = f" after {self.stage}" if self.stage else ""
        drawn = [f"The graph{name} has {count} fault{'s'[: count != 1]}{stage}:"]
        for number, line in enumerate(self.text.rstrip("\n").split("\n"), 1):
            drawn.append(f"  {printable(line)}")
            indent = " " * (len(line) - len(line.lstrip()))
            drawn += [
                f"  {indent}^ {each.law}: {each.fault}"
                for each in self.faults
                if each.line == number
            ]
        return "\n".join(drawn)


class Untraceable(ScriptError, TypeError, RuntimeError):
    """A trace, or a graph that is built from Python, cannot hold something.

    `path` leads to it in the example or in the result, `source` and `span` are the
    place of a call, if somebody knows it.
    """

    function: str = ""
    path: str = ""
    reason: str
    advice: str = ""
    call: str = ""
    source: Source | None = None
    span: Span | None = None
    kind: str = ""

    words: ClassVar[Words] = {
        "UntraceableInput": (
            "`{function}` cannot be traced with {path}: {reason}.",
            ("it takes", "tensors, and tuples, lists and dictionaries of them"),
            ("to do", "give everything else to the function before it is traced"),
        ),
        "UntraceableOutput": (
            "{path} of `{function}` cannot be traced: {reason}.",
            ("to do", "{advice}"),
        ),
        "Untraceable": ("`{call}` cannot be traced: {reason}.",),
        "BuildRefused": ("No node `{kind}` can be built: {reason}.",),
    }

    def render(self) -> str:
        """The sentence, and the place of the call, if it is known."""
        if self.source is None or self.span is None:
            return super().render()
        return f"{super().render()}\n{self.source.excerpt(self.span)}"


class TraceWarning(UserWarning):
    """What a trace keeps may be otherwise the next time."""


class TraceDiffers(ScriptError, RuntimeError):
    """A trace, run with some inputs, is not the function that was traced.

    `inputs` says which, `difference` what differs in the results, `step` and `place`
    are the first of the trace that differ (both may be empty), `found` is how it
    differs.
    """

    function: str
    inputs: str
    difference: str
    step: str
    place: str
    found: str

    words: ClassVar[Words] = {
        "TraceDiffers": (
            "The trace of `{function}` is not the function for {inputs}.",
            ("results", "{difference}"),
            ("from", "{step}"),
            ("at", "{place}"),
            ("because", "{found}"),
        ),
    }
