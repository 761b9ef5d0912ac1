"""Every error that the harness raises on purpose, by who has to act.

An error is data.  A class is one reaction that a caller can have; its `code` says which
sentence of the class it is, and its fields hold what happened.  People read `str()`,
and pickling goes by the fields, because errors come from child processes and from the
workers of pytest-xdist.  A violation is not an error: it is a result
(`harness.engine.Violation`); errors are for questions that cannot be asked.

Rules:
- a class annotates its fields, and `words` has a template for each of its codes; a
  class of one sentence, which has the name of the class, need not be told its code;
- a field that not every sentence has is declared with a default;
- a field never holds a system, a handle or another live object: text and numbers only;
- nothing is imported that takes time: the processes that import modules in some order
  load this file (`ScenarioSkipped`, which needs `unittest`, is in `systems.outcomes`).

In a template, `{name}` is a field or a property of the error, `{names:, }` a tuple and
what stands between its parts, and `[[text||other]]` is the text if all that it names is
there, else the other one, or nothing.

It has the shape of `runtime.errors.base` and shares no code with it: a registry of
somebody's own is explored without `runtime`, and what lays out the runtime's pages is
not needed for sentences.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, dataclass_transform, get_origin

# The template of each code.
Words: TypeAlias = Mapping[str, str]

_OPTIONAL = re.compile(r"\[\[(.*?)(?:\|\|(.*?))?\]\]", re.DOTALL)


@dataclass_transform(eq_default=False, kw_only_default=True)
class _DeclaredError(Exception):
    """An error is made of what its class annotates, for type checkers."""


class HarnessError(_DeclaredError):
    """Base of all errors of `harness`; its code and its fields say what happened."""

    code: str = "HarnessError"

    words: ClassVar[Words] = {}
    # The names of all fields.
    declared: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self, name, value)
        missing = [name for name in self.declared if not hasattr(self, name)]
        if missing:
            raise TypeError(f"{type(self).__name__} has no {', '.join(missing)}")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "code" not in vars(cls):
            cls.code = cls.__name__
        notes = vars(cls).get("__annotations__", {})
        own = [name for name, note in notes.items() if get_origin(note) is not ClassVar]
        cls.declared = (*cls.declared, *own)

    def render(self) -> str:
        """The whole text shown to a person."""
        if self.code not in self.words:
            raise NotImplementedError(f"{self.code} does not say what happened")
        return _filled(self.words[self.code], self)

    def fields(self) -> dict[str, Any]:
        """The fields of the sentence by name, as they were given."""
        others = ("code", "__notes__")
        return {name: value for name, value in vars(self).items() if name not in others}

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        values = {"code": self.code, **self.fields()}
        parts = ", ".join(f"{name}={value!r}" for name, value in values.items())
        return f"{type(self).__name__}({parts})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
        notes = getattr(self, "__notes__", None)
        state = {"__notes__": notes} if notes else None
        return _rebuild, (type(self), {"code": self.code, **self.fields()}), state


def _rebuild(kind: type[HarnessError], values: dict[str, Any]) -> HarnessError:
    return kind(**values)


def _filled(template: str, error: HarnessError) -> str:
    """The template with the fields and properties of the error."""
    from string import Formatter

    class Words(Formatter):
        def get_value(self, key: int | str, *_: object) -> object:
            return getattr(error, str(key))

        def convert_field(self, value: object, conversion: Any) -> Any:
            if conversion and isinstance(value, (tuple, list)):
                return tuple(map(repr, value))
            return super().convert_field(value, conversion)

        def format_field(self, value: object, form: str) -> str:
            if isinstance(value, (tuple, list)):
                return form.join(map(str, value))
            return format(value, form)

    def chosen(part: re.Match[str]) -> str:
        names = [name for _, name, _, _ in Formatter().parse(part[1]) if name]
        there = all(getattr(error, name) for name in names)
        return part[1] if there else part[2] or ""

    return Words().vformat(_OPTIONAL.sub(chosen, template), (), {})


class NotAScenario(HarnessError, TypeError):
    """A scenario was given something that it cannot be made of."""

    found: str
    wanted: str

    words: ClassVar[Words] = {
        "NotAScenario": "a scenario cannot take {found}; it wants {wanted}."
    }


class BadScenario(HarnessError, ValueError):
    """A scenario says what does not hold of it; its author changes it."""

    kind: str = ""
    near: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    one: str = ""
    other: str = ""
    strategy: str = ""
    path: str = ""
    reason: str = ""

    words: ClassVar[Words] = {
        "UnknownProbe": (
            "there are no tensors of kind {kind!r}.[[ Near: {near!r:, }.]] Kinds: "
            "{known!r:, }; or name keys, as 'CPU+Tracer'."
        ),
        "NotSymmetric": (
            "{one} and {other} are told to be symmetric, and are not: {reason}. Leave "
            "symmetric=True out, or make them alike; a use that asks for one of them "
            "tells them apart, too, and so does a value that is read as another thing."
        ),
        "NoFingerprint": (
            "{strategy!r} compares complete states, but the system's state() is None. "
            "Return the whole state from it, or explore with 'walk:1' or 'kA:1', which "
            "need none."
        ),
        "BadFingerprint": (
            "the system's state() cannot be a complete state: {reason}. Return all "
            "that later steps may read, copied into tuples and texts, or None where "
            "that cannot be had."
        ),
        "BadScenarioPath": (
            "no expect file can belong to the scenario {path!r}: {reason}"
        ),
    }


class BadStrategy(HarnessError, ValueError):
    """A strategy that does not exist, or is too large to run: choose another one."""

    name: str = ""
    known: tuple[str, ...] = ()
    what: str = ""
    size: int = 0
    limit: int = 0

    words: ClassVar[Words] = {
        "UnknownStrategy": (
            "no strategy is called {name!r}; there are {known:, }. Join several by "
            "'+', as in 'graph+walk:2'."
        ),
        "TooLarge": (
            "{what} comes to {size:,}, above the limit of {limit:,}. Choose a smaller "
            "parameter or another strategy, or 'auto' with a budget."
        ),
    }


class CannotReplay(HarnessError, ValueError):
    """What is to be played or shown is not of this scenario, or has no history."""

    text: str = ""
    reason: str = ""
    history: tuple[int, ...] = ()
    operation: int = 0
    operations: int = 0
    steps: int = 0
    scenario: str = ""
    option: str = ""

    words: ClassVar[Words] = {
        "BadReplayId": "replay id {text!r}: {reason}",
        "UnknownOperation": (
            "operation {operation} of the history [{history:, }] is none of "
            "0..{last}; was the scenario changed since?"
        ),
        "BadState": (
            "{text!r} is no list of steps: write numbers from 1 to {steps}, each at "
            "most once, joined by commas, as in '3,1'; '' is nothing."
        ),
        "SkipsItself": (
            "{scenario} cannot be played here: it skips itself[[: {reason}]]"
        ),
        "NotADispatcher": (
            "{option} shows the inside of a dispatcher, and {scenario} is a scenario "
            "of another registry; without it, what is observed is shown."
        ),
    }

    @property
    def last(self) -> int:
        """The number of the last operation."""
        return self.operations - 1


class ExplorationRestart(HarnessError):
    """The states seen so far cannot be compared with those to come.

    The caller explores again, with the same system, which has learnt from it.
    """

    packages: tuple[str, ...] = ()

    words: ClassVar[Words] = {
        "OlderGarbage": (
            "something became garbage that was there before the first registry: the "
            "exploration has to begin again"
        ),
        "ScopeGrown": (
            "undo handles come from {packages:, }: the exploration has to begin again"
        ),
        "CachesWarm": (
            "abstract classes remembered answers from before: the exploration has to "
            "begin again"
        ),
    }


class DamagedExpectFile(HarnessError, ValueError):
    """An expect file cannot be parsed: restore it, or accept what is observed now.

    `line` counts from 1.
    """

    source: str
    line: int
    reason: str
    found: str

    words: ClassVar[Words] = {
        "DamagedExpectFile": (
            "{damage}. Restore the file from version control, or accept what is "
            "observed now with --everyorder-update=all, which writes it anew."
        )
    }

    @property
    def damage(self) -> str:
        """The place and the line as found."""
        return (
            f"{self.source}:{self.line}: {self.reason}; the line reads {self.found!r}"
        )


class FileError(HarnessError, OSError):
    """A file cannot be read or written; `done` has those that were written before."""

    source: str = ""
    reason: str = ""
    done: tuple[str, ...] = ()

    words: ClassVar[Words] = {
        "CannotReadExpectFile": (
            "{source} is there and cannot be read: {reason}. Make it a file that may "
            "be read, or remove it."
        ),
        "CannotWriteExpectFile": (
            "{source} cannot be written: {reason}; "
            "[[written before: {done:, }||no expect file was written]]."
        ),
        "CannotWriteReport": "no report can be written to {source}: {reason}",
        "CannotWriteScenario": "{source} cannot be written: {reason}",
    }


class FileExists(FileError, FileExistsError):
    """A file is there and would be lost; who asked says whether it may be."""

    source: str

    words: ClassVar[Words] = {
        "FileExists": "{source} is there already; --force writes over it."
    }


class WritesForbidden(FileError, PermissionError):
    """Under continuous integration nothing is written: a person accepts changes."""

    variable: str
    value: str

    words: ClassVar[Words] = {
        "WritesForbidden": (
            "expect files are never written while {variable}={value!r} is set. Accept "
            "the change on a developer's machine and commit the files, or set "
            "{variable}=0 if this is one."
        )
    }


class NotFound(HarnessError, LookupError):
    """Nothing is called what was asked for, or several things are; `near` come close.

    Whoever asked corrects the name, or the place to look.
    """

    wanted: str = ""
    near: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    reason: str = ""
    # Where was looked, and how many scenarios there are.
    where: str = ""
    folders: tuple[str, ...] = ()
    known: int = 0
    # What looks like registering: what was looked for, tried in vain, did not return.
    pairs: str = ""
    tried: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    words: ClassVar[Words] = {
        "NoHistory": "replay id {wanted}: {reason}",
        "NoScenarios": (
            "there are no scenarios in {where}. A scenario is a module-level "
            "`Scenario` of a file called test_*.py."
        ),
        "SeveralScenarios": (
            "{wanted!r} fits several scenarios: {found:, }. Name one of them."
        ),
        "NotLoaded": (
            "[[{wanted!r} could not be loaded:\n{reasons:\n}||"
            "there are no scenarios in {wanted}]]"
        ),
        "NoSuchPath": (
            "there is no Python file, folder or scenario {wanted!r}; without a path, "
            "scenarios are looked for in {folders:, or else }."
        ),
        "NoSuchScenario": (
            "there is no Python file, folder or scenario {wanted!r}"
            "[[; did you mean {near: or }?||; scenarios looked at: {known}; "
            "`everyorder run` lists them.]]"
        ),
        "NothingToAccept": (
            "--accept {wanted}: no scenario has this path, name or pattern"
            "[[; did you mean {near: or }?||; `everyorder review` lists what can be "
            "accepted.]]"
        ),
        "UnknownOperator": (
            "the default dispatcher has no operator {wanted!r}"
            "[[; did you mean {near: or }?||; those of a scenario are shown by the "
            "scenario's name or path, see `everyorder show --help`.]]"
        ),
        "NoSuchModule": (
            "there is no module {wanted!r} in {where} or on Python's path"
            "[[; did you mean {near: or }?||; --path names the folder that it is in.]]"
        ),
        "NeverImported": (
            "--watch {wanted}: nothing imports a module of this name"
            "[[; did you mean {near: or }?||; name it beside the modules, and it is "
            "imported.]]"
        ),
        "NoTarget": (
            "{wanted}: {reason}"
            "[[; did you mean {near: or }?||. Name a class as in "
            "package.module:Class, or a module.]]"
        ),
        "NothingRegisters": (
            "{wanted} has nothing that registers. Looked for: {pairs}."
            "[[ No call came back of: {lost:; }.]]"
            "[[ Tried, without effect: {tried:; }.]]"
            "[[ These have such names: {near:, }.]]"
        ),
    }


class BadArgument(HarnessError, ValueError):
    """What was named exists, and the question cannot be asked about it."""

    name: str = ""
    modules: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    text: str = ""
    tried: tuple[str, ...] = ()
    reason: str = ""
    place: str = ""

    words: ClassVar[Words] = {
        "NamedTwice": "{name} is named twice; a process imports a module only once.",
        "NothingToOrder": (
            "[[{modules:, }||nothing]] has no order to be imported in; name two "
            "modules at least."
        ),
        "OtherModules": (
            "{modules:,} and {other:,} are no orders of the same modules; only those "
            "can be compared."
        ),
        "NotAnExpression": (
            "{text!r} is no expression: {reason}. A use is evaluated when all is "
            "imported, as in --use 'shop.formats()'."
        ),
        "CannotCreate": (
            "{name} could not be made: tried {tried:, }; the last said: {reason}. "
            "Name a function without parameters that makes one, as in "
            "package.module:make."
        ),
        "ActsOutside": (
            "{name} acts on files, processes or the network, so nothing of it is "
            "called to see what it does; write its scenario by hand."
        ),
        "HiddenModule": (
            "{name} is taken: {reason} is what runs here, so {place} cannot be "
            "imported beside it; give yours another name."
        ),
    }


class TrialEnded(HarnessError, RuntimeError):
    """The process in which a registry was tried did not come to a result."""

    target: str
    reason: str

    words: ClassVar[Words] = {
        "TrialEnded": (
            "{target} could not be tried: {reason}. --timeout gives it more time."
        )
    }


class ProcessError(HarnessError, RuntimeError):
    """A process of ours ended, could not start, or cannot do what it was asked."""

    operation: str = ""
    exit_code: int | None = None
    signal: str = ""
    error: str = ""
    text: str = ""
    traceback: str = ""
    name: str = ""
    reason: str = ""

    words: ClassVar[Words] = {
        "ChildDied": (
            "the process ended [[by {signal}||with exit code {exit_code}]] during "
            "{operation}"
        ),
        "ChildFailed": "{operation} failed: {error}[[: {text}]][[\n{traceback}]]",
        "CannotLoad": (
            "the process that loads the scenarios ended ({reason}) before it had "
            "imported any of them; --in-process does without it"
        ),
        "CannotServe": "worker[[ {name}]] could not start: {reason}",
        "NoDebugger": (
            "breakpoint() was called in a child process, which has no terminal; "
            "explore with --in-process (pytest: --everyorder-in-process, or --pdb)"
        ),
    }


class ExplorationDied(HarnessError):
    """The child that explored a scenario has crashed, or was killed because it hung.

    The fields are those of `harness.report.outcome.Unexplored`; `report` is its text.
    """

    scenario: str
    verdict: str
    sentence: str
    operation: str
    report: str

    words: ClassVar[Words] = {"ExplorationDied": "{sentence}\n{report}"}


class NotInstalled(HarnessError, ImportError):
    """Something was asked for that needs an extra which is not installed."""

    words: ClassVar[Words] = {
        "NoTorch": (
            "--system torch needs torch itself, the extra `torch`: "
            "python -m pip install 'everyorder[torch]'"
        )
    }


def near_modules(name: str, folder: str) -> tuple[str, ...]:
    """At most three names of modules that can be found, close to this one.

    Nothing is imported: the first part of the name that cannot be found is compared
    with the files beside it.
    """
    import sys
    from difflib import get_close_matches
    from importlib.machinery import PathFinder
    from pkgutil import iter_modules

    places: Sequence[str] = [folder, *sys.path]
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        prefix = ".".join(parts[:count])
        spec = PathFinder.find_spec(prefix, places)
        if spec is None:
            known = sorted({found.name for found in iter_modules(places)})
            if count == 1:
                known += sys.builtin_module_names
            before = [*parts[: count - 1]]
            close = get_close_matches(parts[count - 1], known, n=3)
            return tuple(".".join((*before, each)) for each in close)
        places = spec.submodule_search_locations or ()
    return ()


def check_not_hidden(name: str, folder: str) -> None:
    """Raise `BadArgument` for a module of the folder that is called like this package.

    This package is imported already, so an import of the name never reaches the folder.
    """
    import os
    import sys
    from importlib.machinery import PathFinder

    top = name.partition(".")[0]
    if top != "everyorder":
        return
    ours = getattr(getattr(sys.modules.get(top), "__spec__", None), "origin", None)
    spec = PathFinder.find_spec(top, [folder])
    if ours is None or spec is None or spec.origin is None:
        return
    ours, theirs = os.path.realpath(ours), os.path.realpath(spec.origin)
    if ours != theirs:
        raise BadArgument(code="HiddenModule", name=top, reason=ours, place=theirs)
