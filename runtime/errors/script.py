"""Errors of programs: reading, compiling, tracing, graphs; running, modules, archives.

Who must act: whoever wrote the program (`ScriptError`) or its modules (`ModuleError`),
called it (`RunningError`), or saves and loads it (`ArchiveError`).

Rules: what is wrong at a place of the program is a `ProgramError`, which carries the
source and the span of the place and draws both; places are otherwise texts,
`file:line:column`, or empty if nobody knows them.  Values are told by their types and
short texts, modules by their classes, so that an error keeps none of them; what an
operator raises is no error of this module, and keeps its type.
"""

from typing import NamedTuple

from everyorder.runtime.errors.base import EveryorderError, Sentence, filled, sentences
from everyorder.runtime.errors.source import Since, Source, Span, printable, with_calls


class ScriptError(EveryorderError):
    """Base of the errors of compiling programs."""


class NotScriptable(ScriptError, TypeError):
    """`found` cannot be compiled, or marked, or not be used as what is compiled is.

    Or its source cannot be read.  `reason` says why, `hint` what can be done (it may be
    empty).
    """

    found: str
    reason: str = ""
    hint: str = ""
    call: str = ""
    wanted: str = ""

    words = """
    NotScriptable: {found} is not for scripts: {reason}.
      to do: {hint}
    MarkMisuse: `{call}` was given {found}.
      it takes: {wanted}
    NoSource: {found} cannot be compiled: {reason}.
      to do: {hint}
    """


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
        return filled(self._sentence().head, self)

    def advice(self) -> str:
        """What to write instead; empty if nothing is known."""
        return "".join(filled(text, self) for _, text in self._sentence().rows)

    def _sentence(self) -> Sentence:
        sentence = sentences(self.words).get(self.code)
        if sentence is None:
            raise NotImplementedError(f"{self.code} does not say what is wrong")
        return sentence

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

    words = """
    NotSupported: {construct} is not supported, because {reason}
      write: {hint}
    """


class MalformedProgram(ProgramError, ValueError, TypeError):
    """The text is no program of Python, or what it declares is none for scripts."""

    message: str
    parameter: str = ""
    name: str = ""
    hint: str = ""

    words = """
    MalformedProgram: this is no program of Python: {message}
    UnfitParameter: the parameter `{parameter}` {message}
      write: {hint}
    UnfitClass: the class `{name}` {message}
      write: {hint}
    """


class UnknownName(ProgramError, NameError):
    """A `variable` means nothing where it is used, or may have no value there.

    `near` are names that mean something; `way` is how it comes to have no value,
    `cause` the place of that, if there is one; `span` is the place of the use.
    """

    variable: str
    near: tuple[str, ...] = ()
    way: str = ""
    cause: Span | None = None

    words = """
    UnknownName: `{variable}` means nothing here
      write: {_guess}
    NotDefined: `{variable}` is not defined {way}
    """

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

    words = """
    UnknownAttribute: {owner} has no attribute `{attribute}`
      write: {_guess}
    """

    @property
    def _guess(self) -> str:
        return self.hint or _close(self.near)


class IllTyped(ProgramError, TypeError):
    """A value is of a type that its use does not take; `hint` says what to write.

    `others` are places that have to do with it, with words before each.  Or the
    `arguments` of a call of `callee` fit none of the `candidates`, each of which is a
    schema and why it does not fit.
    """

    message: str = ""
    hint: str = ""
    others: tuple[tuple[str, Source, Span], ...] = ()
    callee: str = ""
    arguments: tuple[str, ...] = ()
    candidates: tuple[tuple[str, str], ...] = ()

    words = """
    IllTyped: {message}
      write: {hint}
    NoSuchCall: {callee} does not take ({arguments:, })
      write: {_forms}
    """

    def place(self) -> str:
        """What does not fit, and where; the other places behind it."""
        lines = [super().place()]
        for words, source, span in self.others:
            lines += [f"{words}:", source.excerpt(span)]
        return "\n".join(lines)

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


class Untraceable(ScriptError, RuntimeError):
    """A trace, or a graph that is built from Python, cannot hold something.

    `path` leads to it in the example or in the result, `source` and `span` are the
    place of a call, if somebody knows it.  Or a trace, run with some `inputs`, is not
    the function: `difference` is what differs in the results, `step` and `place` are
    the first of the trace that differ (both may be empty), `found` is how.
    """

    function: str = ""
    path: str = ""
    reason: str = ""
    advice: str = ""
    call: str = ""
    source: Source | None = None
    span: Span | None = None
    kind: str = ""
    inputs: str = ""
    difference: str = ""
    step: str = ""
    place: str = ""
    found: str = ""

    words = """
    UntraceableInput (TypeError): `{function}` cannot be traced with {path}: {reason}.
      it takes: tensors, and tuples, lists and dictionaries of them
      to do: give everything else to the function before it is traced
    UntraceableOutput (TypeError): {path} of `{function}` cannot be traced: {reason}.
      to do: {advice}
    Untraceable (TypeError): `{call}` cannot be traced: {reason}.
    BuildRefused (TypeError): No node `{kind}` can be built: {reason}.
    TraceDiffers: The trace of `{function}` is not the function for {inputs}.
      results: {difference}
      from: {step}
      at: {place}
      because: {found}
    """

    def render(self) -> str:
        """The sentence, and the place of the call, if it is known."""
        if self.source is None or self.span is None:
            return super().render()
        return f"{super().render()}\n{self.source.excerpt(self.span)}"


class TraceWarning(UserWarning):
    """What a trace keeps may be otherwise the next time."""


class RunningError(EveryorderError):
    """A program cannot go on, where Python itself could, or would raise something else.

    A class, a method or values are missing; a program raised a `kind` of exception that
    is not to be had here; no room was left for another call of `function`; `what` gave
    something of another type than it says; or `operator` has a result in Python that is
    not of the type that the program has, whose types are settled before it runs.
    """

    qualname: str = ""
    method: str = ""
    manager: str = ""
    error: str = ""
    kind: str = ""
    message: str = ""
    function: str = ""
    what: str = ""
    expected: str = ""
    found: str = ""
    value: str = ""
    operator: str = ""
    operands: tuple[str, ...] = ()
    field: str = ""

    words = """
    ClassGone (RuntimeError): No object of `{qualname}` can be made: its Python class is
        gone.
      to do: keep a reference to the class as long as programs use it
    MethodMissing (RuntimeError): `{qualname}` has no compiled method `{method}`.
    ErrorSwallowed (RuntimeError): `__exit__` of {manager} swallowed {error}, and
        variables that the block assigns are used behind it.
      to do: return False from `__exit__`, or use none of them
    ScriptRaised (RuntimeError) | {kind}: {message}
    TooDeep (RecursionError): `{function}` was called too deeply within other calls.
      to do: end the recursion earlier, or make it a loop
    NotOfType (RuntimeError, TypeError): {what} gave no `{expected}`, but {found}.
      value: {value}
    ResultOfOtherType (ValueError): `{operator}` gives {found} for these operands, where
        the script has {expected}.
      operands: {operands:, }
      to do: convert an operand first, so that the result is {found}
    AttributeInFormat (ValueError): `{operator}` was given the field {{{field}}}: a
        format shows values, and looks into none.
      operands: {operands:, }
      to do: pass the attribute itself as an argument
    """


class ModuleError(EveryorderError):
    """A module of class `module` has no such member, cannot have one, or is called and
    does not say what it computes.
    """

    module: str
    wanted: str = ""
    path: str = ""
    near: tuple[str, ...] = ()
    member: str = ""
    reason: str = ""
    index: str = ""
    length: int = 0

    words = """
    NoSuchMember (AttributeError): `{module}` has no {wanted} `{path}`.
      similar: {near:, }
    ModuleNotInitialized (AttributeError): `{member}` was given to a `{module}` that has
        no place for it.
      to do: call `super().__init__()` first
    UnfitMember (TypeError, KeyError, IndexError) |
        `{member}` cannot be a member of `{module}`: {reason}.
    UnfitIndex (TypeError, KeyError, IndexError) |
        `{module}` has no module at {index}; {_there}.
    NoForward (NotImplementedError): `{module}` was called and has no `forward`.
      to do: define `forward(self, ...)` in the class
    """

    @property
    def _there(self) -> str:
        return f"the last is {self.length - 1}" if self.length else "it is empty"


class ArchiveError(EveryorderError):
    """A program cannot be saved or loaded; of a file nothing has been run, or stays.

    `archive` is the path, or a word for a buffer; `member` is the file within.  What
    cannot be saved is `found` at `place`.
    """

    archive: str = ""
    member: str = ""
    reason: str = ""
    found: int | str = 0
    known: int = 0
    what: str = ""
    limit: int = 0
    place: str = ""
    hint: str = ""
    operator: str = ""

    words = """
    DamagedArchive (ValueError): The archive {archive} is damaged: {reason}.
      in: {member}
    NotAnArchive (ValueError) | {archive} is no archive of a program: {reason}.
    NewerArchive (ValueError): {archive}: format {found}, this reader knows up to
        {known}: it may mean something else.
      to do: Load it with a newer version, or save it again with this one.
    ArchiveTooLarge (ValueError) |
        The archive {archive} is refused: {what}, {found}, is above the limit of \\
        {limit}.
    NotSaveable (TypeError): {found} cannot be saved: {reason}.
      at: {place}
      to do: {hint}
    OperatorNotHere (LookupError): {archive} needs the operator {operator}, which is not
        here.
      called in: {member}
      to do: Import what registers it, and load again.
    """
