"""The errors that the harness raises on purpose, grouped by the reaction they call for.

An error is data.  A class is one reaction that a caller can have; its `code` names the
sentence of the class, and its fields hold the facts.  People read `str()`.  Pickling
uses the fields, because errors cross the boundary of child processes and of the workers
of pytest-xdist.  A violation is not an error, it is a result
(`harness.engine.Violation`): errors are for questions that cannot be answered.

Rules:
- a class annotates its fields, and `words` is the table of its sentences (see
  `everyorder.coded_error`), without rows and builtin classes; the code of a class with
  one sentence defaults to the name of the class;
- a field that some sentences do not use is declared with a default;
- a field holds text and numbers only, never a system, a handle or another live object;
- no import in this file is slow: the processes that import modules in some order load
  it (`ScenarioSkipped`, which needs `unittest`, is in `systems/outcomes.py`).
"""

from collections.abc import Callable, Sequence
from typing import Any

from everyorder.coded_error import CodedError


class HarnessError(CodedError):
    """Base of all errors of `harness`; the code and the fields hold the facts."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        names = (*cls._required, *vars(cls).get("__annotations__", ()))
        cls._required = tuple(name for name in names if not hasattr(cls, name))

    def fields(self) -> dict[str, Any]:
        """Return the fields of the sentence by name, as passed to the constructor."""
        others = ("code", "__notes__")
        return {name: value for name, value in vars(self).items() if name not in others}

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


class NotAScenario(HarnessError, TypeError):
    """An argument of a scenario has a wrong type or a wrong form."""

    found: str
    wanted: str

    words = """
    NotAScenario: a scenario cannot use {found}; expected {wanted}.
    WrongCall: {found}; expected {wanted}.
    """


class BadScenario(HarnessError, ValueError):
    """The scenario's declaration is wrong; fix the scenario."""

    kind: str = ""
    near: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    one: str = ""
    other: str = ""
    strategy: str = ""
    path: str = ""
    reason: str = ""

    words = """
    UnknownProbe: there are no tensors of kind {kind!r}.[[ Near: {near!r:, }.]] Kinds:
        {known!r:, }; or name keys, as 'CPU+Tracer'.
    NotSymmetric: {one} and {other} are declared symmetric, but are not: {reason}.
        Remove symmetric=True, or make them equivalent; a use that asks for only one of
        them also distinguishes them, and so does a value that is read as something
        else.
    NoFingerprint: {strategy!r} compares complete states, but the system's state() is
        None. Return the whole state from it, or explore with 'walk:1' or 'kA:1', which
        need none.
    BadFingerprint: the system's state() cannot be a complete state: {reason}. Return
        all that later steps may read, copied into tuples and texts, or None if it is
        unavailable.
    BadScenarioPath: no expect file can belong to the scenario {path!r}: {reason}.
    """


class BadStrategy(HarnessError, ValueError):
    """A strategy that does not exist, or is too large to run: choose another one."""

    name: str = ""
    known: tuple[str, ...] = ()
    what: str = ""
    size: int = 0
    limit: int = 0

    words = """
    UnknownStrategy: no strategy is called {name!r}; there are {known:, }. Join several
        by '+', as in 'graph+walk:2'.
    TooLarge: {what}: {size:,} exceeds the limit of {limit:,}. Choose a smaller
        parameter or another strategy, or 'auto' with a budget.
    """


class CannotReplay(HarnessError, ValueError):
    """The argument to replay or show is not of this scenario, or has no history."""

    text: str = ""
    reason: str = ""
    history: tuple[int, ...] = ()
    operation: int = 0
    operations: int = 0
    steps: int = 0
    scenario: str = ""
    option: str = ""
    parts: int = 0

    words = """
    BadReplayId: replay id {text!r}: {reason}
    ForeignReplayId: replay id {text!r} is not of [[{scenario}||this scenario]], nor of
        any part of it that was looked at ({parts}); its ids begin with {reason!r}. Pass
        the scenario that the failure printed as code.
    UnknownOperation: operation {operation} of the history [{history:, }] is out of
        range 0..{last}; was the scenario changed since?
    BadState: invalid step list {text!r}: expected distinct numbers from 1 to {steps},
        joined by commas, as in '3,1'; '' is the empty list.
    SkipsItself: {scenario} cannot be played here: it skips itself[[: {reason}]]
    NotADispatcher: {option} shows the internals of a dispatcher, but {scenario}
        explores another registry; without {option}, the observations are shown.
    """

    @property
    def last(self) -> int:
        """Return the number of the last operation."""
        return self.operations - 1


class ExplorationRestart(HarnessError):
    """The states so far cannot be compared with later ones; explore again.

    The caller repeats the exploration with the same system, which has learnt from the
    first attempt.
    """

    packages: tuple[str, ...] = ()

    words = """
    OlderGarbage: objects older than the first registry became garbage: the exploration
        must be restarted
    ScopeGrown: undo handles come from {packages:, }: the exploration must be restarted
    WeaklyTracked: {packages:, } track objects of the registry: the exploration must be
        restarted
    PartsChanged: objects changed that all states shared until now: the exploration must
        be restarted
    CodeRan: code ran that did not run before, and what it reads is state: the
        exploration must be restarted
    CacheFull: caches of {packages:, } may drop an entry, and their order is state: the
        exploration must be restarted
    CachesWarm: abstract classes held answers cached earlier: the exploration must be
        restarted
    """


class DamagedExpectFile(HarnessError, ValueError):
    """An expect file cannot be parsed: restore it, or accept what is observed now.

    A file of an older format is not damaged, but has to be rewritten as well.

    `line` counts from 1.
    """

    source: str
    line: int
    reason: str
    found: str

    words = """
    DamagedExpectFile: {damage}. Restore the file from version control, or accept what
        is observed now with --everyorder-update=all, which rewrites it.
    OldExpectFile: {damage}. Rewrite it with --everyorder-update=all, and review the
        difference in version control.
    """

    @property
    def damage(self) -> str:
        """Return the place, the reason and the damaged line."""
        return (
            f"{self.source}:{self.line}: {self.reason}; the line reads {self.found!r}"
        )


class FileError(HarnessError, OSError):
    """A file cannot be read or written.

    Of `planned` files those in `done` were written before, each of them whole.
    """

    source: str = ""
    scenario: str = ""
    reason: str = ""
    done: tuple[str, ...] = ()
    planned: int = 0

    words = """
    CannotReadExpectFile: {source} exists but cannot be read: {reason}. Make it a
        readable file, or remove it.
    CannotWriteExpectFile: {source} cannot be written: {reason}; {written}. Remove the
        cause, and accept again.
    AcceptInterrupted: interrupted; {written}. Accept again to write the rest, or
        restore the files from version control.
    CannotRewriteArgument: {source}: expect= of {scenario} cannot be rewritten:
        {reason}. Write expect="" in the call that makes the scenario, or omit expect=
        for an expect file.
    CannotWriteReport: no report can be written to {source}: {reason}
    CannotWriteScenario: {source} cannot be written: {reason}
    """

    @property
    def written(self) -> str:
        """Return how many files were written, and which."""
        if not self.done:
            return "no expect file was written"
        names = ", ".join(self.done)
        return f"{len(self.done)} of {self.planned} files written: {names}"


class FileExists(FileError, FileExistsError):
    """Writing would overwrite an existing file; the caller decides whether to."""

    source: str

    words = """
    FileExists: {source} already exists; --force overwrites it.
    """


class WritesForbidden(FileError, PermissionError):
    """Under continuous integration no file is written: a person accepts changes."""

    variable: str
    value: str

    words = """
    WritesForbidden: expect files are never written while {variable}={value!r} is set.
        Accept the change on a developer's machine and commit the files, or set
        {variable}=0 if this is one.
    """


class NotFound(HarnessError, LookupError):
    """No item, or more than one, matches a name; `near` holds similar names.

    The caller corrects the name or the place to search.
    """

    wanted: str = ""
    near: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    reason: str = ""
    # The searched place, and the number of scenarios there.
    where: str = ""
    known: int = 0
    # Calls that look like a registration: searched pairs, calls without effect, calls
    # that did not return.
    pairs: str = ""
    tried: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    words = """
    NoHistory: replay id {wanted}: {reason}
    NoScenarios: there are no scenarios in {where}. A scenario is a module-level
        `Scenario` of a test file, or is explored by a test with the fixture `explore`.
    SeveralScenarios: {wanted!r} fits several scenarios: {found:, }. Name one of them.
    NotLoaded |
        [[{wanted!r} could not be loaded:
        {reasons:
        }||there are no scenarios in {wanted}]]
    NoSuchPath: there is no Python file, folder or scenario {wanted!r}; without a path,
        everything that pytest collects is searched.
    NoSuchScenario: there is no Python file, folder or scenario {wanted!r}[[; did you
        mean {near: or }?||; scenarios looked at: {known}; `everyorder list` shows
        them.]]
    NothingToAccept: --accept {wanted}: no scenario has this path, name or pattern[[;
        did you mean {near: or }?||; `everyorder review` lists what can be accepted.]]
    NoSuchChange: --accept {wanted}: no change has this id now. An id belongs to the
        whole content of a change; `everyorder review` prints those of today.
    UnknownOperator: the default dispatcher has no operator {wanted!r}[[; did you mean
        {near: or }?||; those of a scenario are shown by the scenario's name or path,
        see `everyorder show --help`.]]
    NoSuchModule: there is no module {wanted!r} in {where} or on Python's path[[; did
        you mean {near: or }?||; --path names the folder that it is in.]]
    NeverImported: --watch {wanted}: nothing imports a module of this name[[; did you
        mean {near: or }?||; add it to the modules to import it.]]
    NoTarget: {wanted}: {reason}[[; did you mean {near: or }?||. Name a class as in
        package.module:Class, or a module.]]
    NothingRegisters: {wanted} has nothing that registers. Looked for: {pairs}.[[ These
        calls did not return: {lost:; }.]][[ Tried, without effect: {tried:; }.]][[
        These have such names: {near:, }.]]
    """


class BadArgument(HarnessError, ValueError):
    """The name in the question exists, but the question does not apply to it."""

    name: str = ""
    modules: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    text: str = ""
    tried: tuple[str, ...] = ()
    reason: str = ""
    place: str = ""

    words = """
    NamedTwice: {name} is named twice; a process imports a module only once.
    NothingToOrder: cannot order [[{modules:, }||no modules]]: name at least two
        modules.
    OtherModules: {modules:,} and {other:,} do not order the same modules; only orders
        of the same modules can be compared.
    NotAnExpression: {text!r} is not an expression: {reason}. A use is evaluated after
        all imports, as in --use 'shop.formats()'.
    CannotCreate: could not create {name}: tried {tried:, }; the last attempt failed
        with: {reason}. Name a function without parameters that creates one, as in
        package.module:make.
    ActsOutside: {name} acts on files, processes or the network, so none of its
        functions is called on trial; write its scenario by hand.
    HiddenModule: the name {name} is taken: {reason} is imported already, so {place}
        cannot be imported; rename yours.
    """


class TrialEnded(HarnessError, RuntimeError):
    """The process that tried a registry ended without a result."""

    target: str
    reason: str

    words = """
    TrialEnded: {target} could not be tried: {reason}. --timeout allows more time.
    """


class BadSetting(HarnessError, ValueError):
    """A setting of the project is wrong; fix the file."""

    source: str
    key: str = ""
    table: str = ""
    wanted: str = ""
    reason: str = ""
    near: tuple[str, ...] = ()

    words = """
    BadFile: {source} cannot be parsed: {reason}
    WrongType: {source}: {key} has to be {wanted}
    UnknownSetting: {source}: [{table}] has no setting {key!r}[[; did you mean
        {near!r: or }?||. Settings are options that explore, without their dashes.]]
    """


class CannotCollect(HarnessError, RuntimeError):
    """Pytest refuses to start or to collect; `reason` is its own text."""

    reason: str

    words = """
    CannotCollect: pytest cannot collect the scenarios: {reason}
    """


class ProcessError(HarnessError, RuntimeError):
    """A child process ended, could not start, or cannot do the requested operation."""

    operation: str = ""
    exit_code: int | None = None
    signal: str = ""
    error: str = ""
    text: str = ""
    traceback: str = ""
    name: str = ""
    reason: str = ""
    limit: str = ""

    words = """
    ChildDied: the process ended [[by {signal}||with exit code {exit_code}]] during
        {operation}
    ChildFailed |
        {operation} failed: {error}[[: {text}]][[
        {traceback}]]
    CannotLoad: the process that loads the scenarios ended ({reason}) before it had
        imported any of them; use --in-process to load them without it
    CannotServe: worker[[ {name}]] could not start: {reason}
    CannotStart: the process of a fresh registry could not start: {reason}; explore
        fewer scenarios at once (--jobs)[[, or raise the limit with `{limit}`]]
    NoDebugger: breakpoint() was called in a child process, which has no terminal;
        explore with --in-process (pytest: --everyorder-in-process, or --pdb)
    """


class ExplorationDied(HarnessError):
    """The child that explored a scenario crashed, or was killed because it hung.

    The fields are those of `harness.report.verdict.Unexplored`; `report` is its text.
    """

    scenario: str
    verdict: str
    sentence: str
    operation: str
    report: str

    words = """
    ExplorationDied |
        {sentence}
        {report}
    """


class NotInstalled(HarnessError, ImportError):
    """A requested feature needs an extra that is not installed."""

    words = """
    NoTorch: --system torch needs torch itself, the extra `torch`: python -m pip install
        'everyorder[torch]'
    NoHypothesis: strategies need Hypothesis, the extra `hypothesis`: python -m pip
        install 'everyorder[hypothesis]'
    """


def near_modules(name: str, folder: str) -> tuple[str, ...]:
    """Return at most three names of importable modules similar to `name`.

    No module is imported: the first part of the name that cannot be found is compared
    with the modules in the same package.
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
            names = sorted({module.name for module in iter_modules(places)})
            if count == 1:
                names += sys.builtin_module_names
            before = [*parts[: count - 1]]
            close = get_close_matches(parts[count - 1], names, n=3)
            return tuple(".".join((*before, each)) for each in close)
        places = spec.submodule_search_locations or ()
    return ()


def check_not_hidden(name: str, folder: str) -> None:
    """Raise `BadArgument` if the folder has a module with the name of this package.

    This package is imported already, so importing the name never reaches the folder.
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
