"""Errors of programs: reading, compiling, tracing, graphs; running, modules, archives.

Who must act: the author of the program (`ScriptError`) or of its modules
(`ModuleError`), the caller (`RunningError`), or the code that saves and loads programs
(`ArchiveError`).

Rules: an error at a place of the program is a `ProgramError`, which carries the source
and the span of the place and draws both; other places are texts, `file:line:column`, or
empty if unknown.  Values are described by their types and short texts, modules by their
classes, so that an error keeps none of them alive; an exception of an operator is not
converted: it keeps its type.
"""

from typing import NamedTuple

from everyorder.coded_error import filled
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.source import Since, Source, Span, printable, with_calls


class ScriptError(EveryorderError, RuntimeError):
    """Base of the errors of compiling programs.

    All of them are RuntimeErrors, the class that torch raises; most derive from the
    class of the same mistake in Python as well.
    """


class NotScriptable(ScriptError, TypeError):
    """`found` cannot be compiled, marked, or used as a compiled function.

    Or its source cannot be read.  `reason` says why, `hint` what to do (it may be
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
    the name of the called function, and the place of the call.
    """

    source: Source
    span: Span
    since: Since = ()

    def __str__(self) -> str:
        return with_calls(self.render(), self.since)

    def complaint(self) -> str:
        """Return what is wrong, without a full stop."""
        return filled(self._sentence().head, self)

    def advice(self) -> str:
        """Return what to write instead, or "" if nothing is known."""
        return "".join(filled(text, self) for _, text in self._sentence().rows)

    def place(self) -> str:
        """Return the complaint and the source with a marker."""
        return f"{self.complaint()}:\n{self.source.excerpt(self.span)}"

    def render(self) -> str:
        """Return the complaint, the source with a marker, and what to write."""
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
    """The text is not a Python program, or declares something unfit for scripts."""

    message: str
    parameter: str = ""
    name: str = ""
    hint: str = ""

    words = """
    MalformedProgram: this is not a Python program: {message}
    UnfitParameter: the parameter `{parameter}` {message}
      write: {hint}
    UnfitClass: the class `{name}` {message}
      write: {hint}
    """


class UnknownName(ProgramError, NameError):
    """A `variable` is not defined where it is used, or may have no value there.

    `near` are similar names that are defined; `way` says how the variable can have no
    value, `cause` is the place of that, if there is one; `span` is the place of the
    use.
    """

    variable: str
    near: tuple[str, ...] = ()
    way: str = ""
    cause: Span | None = None

    words = """
    UnknownName: `{variable}` means nothing here
      write: [[Did you mean `{near:` or `}`?]]
    NotDefined: `{variable}` is not defined {way}
    """

    def place(self) -> str:
        """Return how the variable can have no value, and where it is used."""
        if self.cause is None:
            return super().place()
        cause, used = map(self.source.excerpt, (self.cause, self.span))
        return f"{self.complaint()}:\n{cause}\nand is used here:\n{used}"


class UnknownAttribute(ProgramError, AttributeError):
    """The `owner`, a description, lacks the `attribute`; `near` are similar ones."""

    owner: str
    attribute: str
    near: tuple[str, ...] = ()
    hint: str = ""

    words = """
    UnknownAttribute: {owner} has no attribute `{attribute}`
      write: [[{hint}||{_guess}]]
    """

    @property
    def _guess(self) -> str:
        return f"Did you mean `{'` or `'.join(self.near)}`?" if self.near else ""


class IllTyped(ProgramError, TypeError):
    """A value is of a type that its use does not accept; `hint` says what to write.

    `others` are related places, each with an introduction.  Or the `arguments` of a
    call of `callee` fit none of the `candidates`, each of which is a schema and why it
    does not fit.
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
        """Return what does not fit, and where; then the related places."""
        lines = [super().place()]
        for words, source, span in self.others:
            lines += [f"{words}:", source.excerpt(span)]
        return "\n".join(lines)

    @property
    def _forms(self) -> str:
        lines = [f"  {schema}\n    {reason}" for schema, reason in self.candidates]
        head = "It has these forms:" if len(lines) > 1 else "It is:"
        return "\n".join([head, *lines]) if lines else ""


class GraphFault(NamedTuple):
    """A law that is broken, the number of the line of the text where, and how."""

    law: str
    line: int
    fault: str


class BrokenGraph(EveryorderError, RuntimeError):
    """A graph breaks laws; each of `faults` is one violation.

    `stage` names the compiler stage before the check (it may be empty), `text` is the
    graph; lines count from 1.
    """

    graph: str
    stage: str
    faults: tuple[GraphFault, ...]
    text: str

    def render(self) -> str:
        """Return the number of faults, and the text with each fault under its line."""
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


class Untraceable(ScriptError):
    """A trace, or a graph that is built from Python, cannot represent a value.

    `path` leads to it in the example or in the result, `source` and `span` are the
    place of a call, if known.  Or a trace, run with some `inputs`, differs from the
    function: `difference` is the difference of the results, `step` and `place` are the
    first step of the trace that differs (both may be empty), `found` is how.
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
      to do: bind everything else to the function before it is traced
    UntraceableOutput (TypeError): {path} of `{function}` cannot be traced: {reason}.
      to do: {advice}
    Untraceable (TypeError): `{call}` cannot be traced: {reason}.
    BuildRefused (TypeError): No node `{kind}` can be built: {reason}.
    TraceDiffers: The trace of `{function}` differs from the function for {inputs}.
      results: {difference}
      from: {step}
      at: {place}
      because: {found}
    """

    def render(self) -> str:
        """Return the sentence, and the place of the call if it is known."""
        if self.source is None or self.span is None:
            return super().render()
        return f"{super().render()}\n{self.source.excerpt(self.span)}"


class TraceWarning(UserWarning):
    """The trace recorded a value that another run of the function may change."""


class RunningError(EveryorderError):
    """A program cannot continue where Python could, or would raise another exception.

    A class, a method or values are missing; a program raised a `kind` of exception that
    is not available here; the stack is too full for another call of `function`; `what`
    returned a value of another type than declared; or `operator` has a result in Python
    whose type differs from the program's, where types are fixed before it runs.
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
    ClassGone (RuntimeError): No object of `{qualname}` can be created: its Python class
        does not exist any more.
      to do: keep a reference to the class as long as programs use it
    MethodMissing (RuntimeError): `{qualname}` has no compiled method `{method}`.
    ErrorSwallowed (RuntimeError): `__exit__` of {manager} swallowed {error}, and
        variables that the block assigns are used behind it.
      to do: return False from `__exit__`, or use none of them
    ScriptRaised (RuntimeError) | {kind}: {message}
    TooDeep (RecursionError): `{function}` was called too deeply within other calls.
      to do: end the recursion earlier, or make it a loop
    NotOfType (RuntimeError, TypeError): {what} returned {found}, expected `{expected}`.
      value: {value}
    AttributeNotOfType (RuntimeError, TypeError): The attribute `{what}` is {found},
        expected `{expected}`.
      value: {value}
      to do: assign a value of the declared type before the call
    ResultOfOtherType (ValueError): `{operator}` returns {found} for these operands,
        where the script has {expected}.
      operands: {operands:, }
      to do: convert an operand first, so that the result is {found}
    AttributeInFormat (ValueError): `{operator}` was given the field {{{field}}}: a
        format cannot read attributes or items of values.
      operands: {operands:, }
      to do: pass the attribute itself as an argument
    """


class ModuleError(EveryorderError):
    """A module of class `module` lacks or rejects a member, or has no `forward`."""

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
    ModuleNotInitialized (AttributeError): `{member}` was assigned to a `{module}` that
        is not initialized.
      to do: call `super().__init__()` first
    UnfitMember (TypeError, KeyError, IndexError, RuntimeError) |
        `{member}` cannot be a member of `{module}`: {reason}.
    UnfitIndex (TypeError, KeyError, IndexError) |
        `{module}` has no module at {index}; {_there}.
    NoForward (NotImplementedError): `{module}` was called and has no `forward`.
      to do: define `forward(self, ...)` in the class
    """

    @property
    def _there(self) -> str:
        return f"the last is {self.length - 1}" if self.length else "it is empty"


class ArchiveError(EveryorderError, RuntimeError):
    """A program cannot be saved or loaded; nothing of a rejected file was run or kept.

    `archive` is the path, or a word for a buffer; `member` is the file within.  The
    value that cannot be saved is `found` at `place`.
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
    NotAnArchive (ValueError) | {archive} is not an archive of a program: {reason}.
    NewerArchive (ValueError): {archive} has format {found}; this reader supports up to
        {known}.
      to do: Load it with a newer version, or save it again with this one.
    ArchiveTooLarge (ValueError) |
        The archive {archive} is refused: {what}, {found}, is above the limit of \\
        {limit}.
    NotSaveable (TypeError): {found} cannot be saved: {reason}.
      at: {place}
      to do: {hint}
    OperatorNotHere (LookupError): {archive} needs the operator {operator}, which is not
        registered.
      called in: {member}
      to do: Import the module that registers it, and load again.
    """
