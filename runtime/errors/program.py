"""Errors of programs that run, their values, modules and archives.

Who must act: whoever called the program, wrote its modules, or saves and loads it.

Rules: values are told by their types and short texts, modules by their classes, so that
an error keeps none of them; what an operator raises is no error of this module, and
keeps its type.
"""

from typing import ClassVar

from runtime.errors.base import EveryorderError, Row, Words, page


class RunningError(EveryorderError, RuntimeError):
    """A program cannot go on: a class, a method or values are missing."""

    qualname: str = ""
    method: str = ""
    manager: str = ""
    error: str = ""

    words: ClassVar[Words] = {
        "ClassGone": (
            "No object of `{qualname}` can be made: its Python class is gone.",
            ("to do", "keep a reference to the class as long as programs use it"),
        ),
        "MethodMissing": ("`{qualname}` has no compiled method `{method}`.",),
        "ErrorSwallowed": (
            "`__exit__` of {manager} swallowed {error}, and variables that the "
            "block assigns are used behind it.",
            ("to do", "return False from `__exit__`, or use none of them"),
        ),
    }


class ScriptRaised(RunningError):
    """A program raised an exception whose class is not to be had here.

    `kind` is the name of the class as the program says it.
    """

    kind: str
    message: str

    words: ClassVar[Words] = {
        "ScriptRaised": ("{kind}: {message}"),
    }


class TooDeep(RunningError, RecursionError):
    """`function` was called when no room was left for another call."""

    function: str

    words: ClassVar[Words] = {
        "TooDeep": (
            "`{function}` was called too deeply within other calls.",
            ("to do", "end the recursion earlier, or make it a loop"),
        ),
    }


class NotOfType(RunningError, TypeError):
    """Something that Python gave to a program is not of the type that it says.

    `what` tells what gave it.
    """

    what: str
    expected: str
    found: str
    value: str

    words: ClassVar[Words] = {
        "NotOfType": (
            "{what} gave no `{expected}`, but {found}.",
            ("value", "{value}"),
        ),
    }


class ExecutorRefused(RunningError, ValueError):
    """An `option` of the executor cannot have such a value, or does not exist.

    `found` is empty for one that does not exist.
    """

    option: str
    found: str
    wanted: str

    words: ClassVar[Words] = {
        "ExecutorRefused": (
            "The option `{option}` of the executor {_given}.",
            ("it takes", "{wanted}"),
        ),
    }

    @property
    def _given(self) -> str:
        if self.found:
            return f"was given {self.found}"
        return "is given, and there is none"


class ScriptValueError(EveryorderError, ValueError):
    """`operator` has no result for `operands` that is of the type that the program has.

    Whatever Python itself refuses raises what Python raises; in these cases Python has
    a result and a program, whose types are settled before it runs, has none.
    """

    operator: str
    operands: tuple[str, ...]
    expected: str = ""
    found: str = ""
    field: str = ""

    rows: ClassVar[tuple[Row, ...]] = (("operands", "{operands:, }"),)

    words: ClassVar[Words] = {
        "ResultOfOtherType": (
            "`{operator}` gives {found} for these operands, where the script has "
            "{expected}.",
            ("to do", "convert an operand first, so that the result is {found}"),
        ),
        "AttributeInFormat": (
            "`{operator}` was given the field {{{field}}}: a format shows "
            "values, and looks into none.",
            ("to do", "pass the attribute itself as an argument"),
        ),
    }


class IntegerOverflow(EveryorderError, OverflowError):
    """`operator` gives an integer that does not fit 64 bits."""

    operator: str
    operands: tuple[str, ...]

    rows: ClassVar[tuple[Row, ...]] = (("operands", "{operands:, }"),)

    words: ClassVar[Words] = {
        "IntegerOverflow": (
            "`{operator}` gives an integer that does not fit 64 bits.",
            ("fits", "integers from -2**63 to 2**63 - 1"),
            ("to do", "use smaller operands, or floats"),
        ),
    }


class ModuleError(EveryorderError):
    """Base of the errors of modules."""


class NoSuchMember(ModuleError, AttributeError):
    """A module of class `module` has no such member, or no place for one yet."""

    module: str
    wanted: str = ""
    path: str = ""
    near: tuple[str, ...] = ()
    member: str = ""

    words: ClassVar[Words] = {
        "NoSuchMember": (
            "`{module}` has no {wanted} `{path}`.",
            ("similar", "{near:, }"),
        ),
        "ModuleNotInitialized": (
            "`{member}` was given to a `{module}` that has no place for it.",
            ("to do", "call `super().__init__()` first"),
        ),
    }


class UnfitMember(ModuleError, TypeError, KeyError, IndexError):
    """A module of class `module` cannot have `member`, or has none at `index`."""

    module: str
    member: str = ""
    reason: str = ""
    index: str = ""
    length: int = 0

    words: ClassVar[Words] = {
        "UnfitMember": ("`{member}` cannot be a member of `{module}`: {reason}."),
        "UnfitIndex": ("`{module}` has no module at {index}; {_there}."),
    }

    @property
    def _there(self) -> str:
        return f"the last is {self.length - 1}" if self.length else "it is empty"


class NoForward(ModuleError, NotImplementedError):
    """A module of class `module` was called, which does not say what it computes."""

    module: str

    words: ClassVar[Words] = {
        "NoForward": (
            "`{module}` was called and has no `forward`.",
            ("to do", "define `forward(self, ...)` in the class"),
        ),
    }


class StateMismatch(ModuleError, RuntimeError):
    """A state does not fit a module of class `module`, which stays as it was.

    `missing` are names that the state lacks, `unexpected` are those that the module
    lacks, `unfit` are sentences about others.
    """

    module: str
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    unfit: tuple[str, ...] = ()

    def render(self) -> str:
        """The class, and the names by what is wrong with them."""
        rows = [
            ("missing", ", ".join(self.missing)),
            ("unexpected", ", ".join(self.unexpected)),
            *[("unfit", each) for each in self.unfit],
        ]
        told = [row for row in rows if row[1]]
        return page(f"The state does not fit `{self.module}`.", *told)


class ArchiveError(EveryorderError):
    """Base of the errors of saving and loading."""


class NotSaveable(ArchiveError, TypeError):
    """The value `found` at `place` has no form in an archive, for a `reason`."""

    place: str
    found: str
    reason: str
    hint: str = ""

    words: ClassVar[Words] = {
        "NotSaveable": (
            "{found} cannot be saved: {reason}.",
            ("at", "{place}"),
            ("to do", "{hint}"),
        ),
    }


class DamagedArchive(ArchiveError, ValueError):
    """A file is no archive that this reader takes; nothing of it has been run, or
    stays.

    `archive` is the path, or a word for a buffer; `member` is the file within.
    """

    archive: str
    member: str = ""
    reason: str = ""
    found: int = 0
    known: int = 0
    what: str = ""
    limit: int = 0

    words: ClassVar[Words] = {
        "DamagedArchive": (
            "The archive {archive} is damaged: {reason}.",
            ("in", "{member}"),
        ),
        "NotAnArchive": ("{archive} is no archive of a program: {reason}."),
        "NewerArchive": (
            "{archive}: format {found}, this reader knows up to {known}: it may "
            "mean something else.",
            ("to do", "Load it with a newer version, or save it again with this one."),
        ),
        "ArchiveTooLarge": (
            "The archive {archive} is refused: {what}, {found}, is above the "
            "limit of {limit}."
        ),
    }


class OperatorNotHere(ArchiveError, LookupError):
    """A program in the archive calls an operator that nobody has registered."""

    archive: str
    member: str
    operator: str

    words: ClassVar[Words] = {
        "OperatorNotHere": (
            "{archive} needs the operator {operator}, which is not here.",
            ("called in", "{member}"),
            ("to do", "Import what registers it, and load again."),
        ),
    }
