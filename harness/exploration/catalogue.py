"""The catalogue: every scenario in a set of files, found without pytest.

A scenario is a module-level `Scenario` of a `test_*.py` file; it is named after its
variable, in the order of the file.  A module is imported under the name that pytest's
importlib mode assigns, from its root and with the folders that pytest imports from, and
removed from `sys.modules` again, so that a second load reads the current file; while
one of its scenarios is played the module is there (`imported`).  Loading writes no
files, not even compiled ones.

Root and folders are those that pytest would have with the same files, so that a
scenario that pytest explores is found, imported and stored under the same name by the
command line.  Pytest is not imported: its own functions for this are private.

Rules of the catalogue:
- without a path, scenarios are those of tests/scenarios, or of tests if there is no
  such folder; a scenario's whole path is found wherever its file is;
- a module that cannot be imported is recorded as a `LoadFailure`, with file and line,
  and the rest of the catalogue is loaded all the same;
- two variables with one name are two scenarios, not two loads of one: the second is a
  failure;
- a module that skips itself is recorded as a `SkippedModule`, with its reason;
- scenarios elsewhere than in public variables are recorded by their places, as
  `UncollectedScenarios`;
- a request for an unknown scenario is an error that names similar ones; if a broken
  module may contain it, the request is recorded as a failure with that module.

Rules of pytest (https://docs.pytest.org/en/stable/reference/customize.html):
- the root is the nearest folder upwards with a file that configures pytest; without
  one, the nearest with a pyproject.toml; without one, the nearest with a setup.py;
- modules are imported with the ini file's `pythonpath`, and, in the import modes
  "prepend" (pytest's default) and "append", with the first folder above the file that
  is not a package;
- a file that cannot be parsed configures nothing: pytest refuses it in its own words.
"""

import configparser
import os
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any, TypeAlias

from everyorder.harness.base.errors import NotFound
from everyorder.harness.exploration.uncollected import (
    UncollectedScenarios,
    assigned_lines,
    uncollected_scenarios,
)
from everyorder.harness.scenario import Scenario
from everyorder.harness.scenario.normalisers import project_chain

PREPEND = "prepend"
APPEND = "append"


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """The part of pytest's configuration that decides how modules are imported.

    `normalisers` are the names of the project's normalisers.
    """

    import_mode: str = PREPEND
    pythonpath: tuple[str, ...] = ()
    normalisers: tuple[str, ...] = ()


def root_of(path: Path) -> Path:
    """Return the root of the project that `path` is in, else its folder."""
    folder = path if path.is_dir() else path.parent
    above = (folder, *folder.parents)
    for candidate in above:
        if _configuration(candidate) is not None:
            return candidate
    for name in ("pyproject.toml", "setup.py"):
        for candidate in above:
            if (candidate / name).is_file():
                return candidate
    return folder


def root_of_all(paths: Iterable[Path], start: Path) -> Path:
    """Return the root of a command that was called in `start` and names these paths.

    That is the root of their common folder; without a marked root, the folder that they
    have in common with `start`.
    """
    folders = [str(path if path.is_dir() else path.parent) for path in paths]
    common = Path(_common(folders) or start)
    root = root_of(common)
    if root == common and not _is_marked(root):
        both = _common([str(start), str(common)])
        # Files that share only the top folder with `start` are a separate project.
        return Path(both) if both and len(Path(both).parts) > 1 else common
    return root


def import_folders(file: Path, root: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the folders to put before and after all others on the path of imports."""
    settings = _configuration(root) or ImportSettings()
    before = [root / each for each in settings.pythonpath]
    own = file.parent
    while (own / "__init__.py").is_file() and own != own.parent:
        own = own.parent
    if settings.import_mode == PREPEND:
        before.insert(0, own)
    after = (own,) if settings.import_mode == APPEND else ()
    return (*before, root), after


def _common(folders: list[str]) -> str | None:
    try:
        return os.path.commonpath(folders)
    except ValueError:  # there are none, or they are on several drives
        return None


def _is_marked(folder: Path) -> bool:
    names = ("pyproject.toml", "setup.py")
    return _configuration(folder) is not None or any(
        (folder / name).is_file() for name in names
    )


def _configuration(folder: Path) -> ImportSettings | None:
    """Return the settings of the first file of a folder that configures pytest."""
    for name, read in _READERS.items():
        file = folder / name
        if file.is_file():
            try:
                table = read(file)
            except (OSError, ValueError, configparser.Error):
                continue
            if table is not None:
                return _settings(table)
    return None


def _ini(section: str, *, always: bool) -> Callable[[Path], Mapping[str, Any] | None]:
    def read(file: Path) -> Mapping[str, Any] | None:
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.read_string(file.read_text(encoding="utf-8"))
        if parser.has_section(section):
            return dict(parser[section])
        return {} if always else None

    return read


def _pytest_toml(file: Path) -> Mapping[str, Any] | None:
    table = tomllib.loads(file.read_text(encoding="utf-8")).get("pytest", {})
    return table if isinstance(table, dict) else {}


def _pyproject(file: Path) -> Mapping[str, Any] | None:
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    tool = document.get("tool", {})
    table = tool.get("pytest", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        return None
    return table.get("ini_options") or ({**table} or None)


# In the order of pytest's search.
_READERS: Mapping[str, Callable[[Path], Mapping[str, Any] | None]] = {
    "pytest.toml": _pytest_toml,
    ".pytest.toml": _pytest_toml,
    "pytest.ini": _ini("pytest", always=True),
    ".pytest.ini": _ini("pytest", always=True),
    "pyproject.toml": _pyproject,
    "tox.ini": _ini("pytest", always=False),
    "setup.cfg": _ini("tool:pytest", always=False),
}


def _settings(table: Mapping[str, Any]) -> ImportSettings:
    mode = PREPEND
    words = iter(_words(table.get("addopts", ())))
    for word in words:
        if word.startswith("--import-mode="):
            mode = word.partition("=")[2]
        elif word == "--import-mode":
            mode = next(words, mode)
    return ImportSettings(
        mode,
        tuple(_words(table.get("pythonpath", ()))),
        tuple(_words(table.get("everyorder_normalisers", ()))),
    )


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        try:
            return shlex.split(value)
        except ValueError:  # a quotation mark that is not closed
            return value.split()
    return [str(each) for each in value] if isinstance(value, (list, tuple)) else []


# The folder of scenarios when no path is named, below the root; the first that exists.
# A separate folder avoids importing all other tests.
DEFAULTS = ("tests/scenarios", "tests")
PATTERN = "test_*.py"


@dataclass(frozen=True, slots=True)
class Entry:
    """A scenario and the file, root and variable that it can be loaded from again."""

    scenario: Scenario
    file: Path
    root: Path
    variable: str = ""
    module: ModuleType | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class LoadFailure:
    """A module, or the scenario of that path, that could not be loaded."""

    source: str
    line: int | None
    reason: str
    scenario: str = ""

    @property
    def where(self) -> str:
        """Return FILE:LINE, or FILE alone; "" for a scenario without a known file."""
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, slots=True)
class SkippedModule:
    """A module that skipped itself when it was imported."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Scenarios and modules; `entries` by file, then in the order of the file."""

    root: Path
    entries: tuple[Entry, ...] = ()
    broken: tuple[LoadFailure, ...] = ()
    skipped: tuple[SkippedModule, ...] = ()
    uncollected: tuple[UncollectedScenarios, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the path of every scenario."""
        return tuple(entry.scenario.path for entry in self.entries)


# Loads one file: (file, root, source).
Read: TypeAlias = Callable[[Path, Path, str], Catalogue]


def load(
    paths: Sequence[str] = (),
    *,
    start: Path | None = None,
    read: Read | None = None,
) -> Catalogue:
    """Load the scenarios that the paths name; without paths, those of `default_folder`.

    A path is a file, a folder, `FILE::NAME`, a scenario's path or name, or a part of
    one.  `start` replaces the current directory; `read` loads one file in place of
    `load_file`, and also receives its source.

    Raises:
        NotFound: a path names no file, folder or scenario.
    """
    read = read or _read
    start = (start or Path.cwd()).resolve()
    places = [(start / path.partition("::")[0]).resolve() for path in paths]
    root = root_of_all([each for each in places if each.exists()], start)
    merged = Catalogue(root)
    for path in paths or (str(default_folder(root)),):
        merged = _merge(merged, _load_one(path, start, root, read))
    return merged


def _read(file: Path, root: Path, source: str) -> Catalogue:
    return load_file(file, root)


def default_folder(root: Path) -> Path:
    """Return the folder to load if no path is named; it need not exist."""
    folders = [root / folder for folder in DEFAULTS]
    return next((folder for folder in folders if folder.is_dir()), folders[-1])


def load_file(file: Path, root: Path) -> Catalogue:
    """Return the scenarios of one file, in its order; record errors of the file."""
    source = _relative(file, root)
    try:
        module = _import(file, source, root)
        chain = project_chain((_configuration(root) or ImportSettings()).normalisers)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # includes SystemExit and pytest's outcomes
        if _is_skip(error):
            return Catalogue(root, skipped=(SkippedModule(source, str(error)),))
        return Catalogue(root, broken=(_failure_of(error, file, source),))
    entries = tuple(
        Entry(scenario.normalised_by(chain), file, root, variable, module)
        for variable, scenario in _variables(module, source)
    )
    others = uncollected_scenarios(module, file, source)
    catalogue = Catalogue(root, entries, uncollected=(others,) if others else ())
    return _merge(Catalogue(root), catalogue)


def _variables(module: ModuleType, source: str) -> Iterator[tuple[str, Scenario]]:
    """Yield the module's own scenarios, by default named after their variables.

    A variable with a leading underscore is not a scenario; a second variable for the
    same scenario is skipped.
    """
    visited: set[int] = set()
    for variable, value in vars(module).items():
        # Check the type, not the value: `__class__` may run code of the module.
        if issubclass(type(value), Scenario) and not variable.startswith("_"):
            if id(value) not in visited:
                yield variable, value.named(value.name or variable, source)
            visited.add(id(value))


def find(catalogue: Catalogue, query: str) -> tuple[Entry, ...]:
    """Return the scenarios with that path or name, else those whose path contains it.

    Raises:
        NotFound: there is none; the error has the nearest names.
    """
    entries = catalogue.entries
    for matches in (
        lambda path: path == query,
        lambda path: path.endswith(f"/{query}"),
        lambda path: query in path,
    ):
        matching = tuple(e for e in entries if matches(e.scenario.path))
        if matching:
            return matching
    if not entries:
        raise NotFound(code="NoSuchPath", wanted=query, folders=DEFAULTS)
    near = nearest(query, catalogue.paths)
    raise NotFound(code="NoSuchScenario", wanted=query, near=near, known=len(entries))


def nearest(query: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return at most three paths that, or whose last parts, resemble `query`."""
    from difflib import get_close_matches

    names: dict[str, str] = {}
    for path in paths:
        names[path] = path
        names.setdefault(path.rpartition("/")[2], path)
    close = get_close_matches(query, list(names), n=3, cutoff=0.6)
    return tuple(dict.fromkeys(names[name] for name in close))


def _load_one(path: str, start: Path, root: Path, read: Read) -> Catalogue:
    name, colons, variable = path.partition("::")
    place = (start / name).resolve()
    if place.exists():
        files = sorted(place.rglob(PATTERN)) if place.is_dir() else (place,)
        merged = Catalogue(root)
        for file in files:
            home = root if file.is_relative_to(root) else root_of(file)
            merged = _merge(merged, read(file, home, _relative(file, home)))
        return _select(merged, variable, single=place.is_file()) if colons else merged
    its_file = None if colons else file_of(path, root, least=1)[0]
    if its_file is not None:
        loaded = read(its_file, root, _relative(its_file, root))
        return _select(loaded, path, single=True)
    folder = default_folder(root)
    if colons or path.endswith(".py") or not folder.is_dir():
        raise NotFound(code="NoSuchPath", wanted=path, folders=DEFAULTS)
    everything = _load_one(str(folder), start, root, read)
    return _select(everything, path)


def file_of(path: str, root: Path, least: int = 0) -> tuple[Path | None, list[str]]:
    """Return the file that a scenario's whole path begins with, and the rest of it.

    `Scenario.path` defines the form.  At least `least` parts are left for the rest; the
    file is None if there is no such file.
    """
    parts = path.split("/")
    for count in range(len(parts) - least, 0, -1):
        for folder in ("tests/", ""):
            file = root / f"{folder}{'/'.join(parts[:count])}.py"
            if file.is_file():
                return file, parts[count:]
    return None, parts


def _select(catalogue: Catalogue, query: str, *, single: bool = False) -> Catalogue:
    """Return the entries with that name; `single` if no other file may have it."""
    unsearched = tuple(each for each in catalogue.broken if not each.scenario)
    try:
        entries = find(catalogue, query)
    except NotFound as error:
        if not unsearched:
            raise
        # The requested scenario may be in a module that cannot be loaded.
        if not single:
            files = ", ".join(dict.fromkeys(each.source for each in unsearched))
            reason = f"{str(error).rstrip('.')}; {files} could not be searched"
            unsearched += (LoadFailure("", None, reason, query),)
        return Catalogue(catalogue.root, broken=unsearched)
    # A failure with the path of a selected scenario is selected, too.
    paths = {entry.scenario.path for entry in entries}
    broken = tuple(each for each in catalogue.broken if each.scenario in paths)
    return Catalogue(catalogue.root, entries, broken)


def _merge(first: Catalogue, second: Catalogue) -> Catalogue:
    """Return the union; a second scenario with the same path is recorded as broken."""
    scenarios = {entry.scenario.path: entry for entry in first.entries}
    broken = [*first.broken, *(b for b in second.broken if b not in first.broken)]
    for entry in second.entries:
        path = entry.scenario.path
        other = scenarios.setdefault(path, entry)
        if (other.file, other.variable) == (entry.file, entry.variable):
            continue
        twin = _twin(entry, other)
        if twin not in broken:
            broken.append(twin)
    skipped = tuple(dict.fromkeys(first.skipped + second.skipped))
    others = tuple(dict.fromkeys(first.uncollected + second.uncollected))
    return Catalogue(
        first.root, tuple(scenarios.values()), tuple(broken), skipped, others
    )


def _twin(entry: Entry, other: Entry) -> LoadFailure:
    """Return the failure of a scenario whose path another one has."""
    path, source = entry.scenario.path, entry.scenario.source
    line = assigned_lines(other.file).get(other.variable)
    place = other.scenario.source + ("" if line is None else f":{line}")
    reason = (
        f"{entry.variable} is called {path} like {other.variable} ({place}), so only "
        "that one is explored; give one of them another name"
    )
    line = assigned_lines(entry.file).get(entry.variable)
    return LoadFailure(source, line, reason, path)


@contextmanager
def imported(entry: Entry | None) -> Iterator[None]:
    """Put the scenario's module into `sys.modules`, as steps that pickle need it.

    A module that had the name before, such as an import by another file, is restored.
    Its packages are imported before any step is played, if possible.  `None` is a
    scenario without a file.
    """
    if entry is None or entry.module is None:
        yield
        return
    name = entry.module.__name__
    packages = [name[:end] for end, letter in enumerate(name) if letter == "."]
    if packages:
        try:
            import_module(packages[-1])
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException:  # noqa: S110  # SystemExit and pytest's outcomes, too
            pass
    # As in pytest: a parent that is not a package and cannot be found is an empty
    # module.
    ours = {each: ModuleType(each) for each in packages if each not in sys.modules}
    ours[name] = entry.module
    before = {each: sys.modules.get(each) for each in ours}
    sys.modules.update(ours)
    try:
        yield
    finally:
        for each, module in before.items():
            if sys.modules.get(each) is not ours[each]:
                continue
            if module is None:
                del sys.modules[each]
            else:
                sys.modules[each] = module


def _import(file: Path, source: str, root: Path) -> ModuleType:
    name = source.removesuffix(".py").replace("/", ".")
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{source} is not a Python file")
    module = module_from_spec(spec)
    before, writes = sys.modules.get(name), sys.dont_write_bytecode
    sys.modules[name] = module
    sys.dont_write_bytecode = True
    before_all, after_all = import_folders(file, root)
    for folder in reversed(before_all):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    for folder in after_all:
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = writes
        if before is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = before
    return module


def _is_skip(error: BaseException) -> bool:
    outcomes = sys.modules.get("_pytest.outcomes")
    return outcomes is not None and isinstance(error, outcomes.Skipped)


def _failure_of(error: BaseException, file: Path, source: str) -> LoadFailure:
    line = None
    if isinstance(error, SyntaxError) and error.filename == str(file):
        line = error.lineno
    for frame in extract_tb(error.__traceback__):
        if frame.filename == str(file):
            line = frame.lineno
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return LoadFailure(source, line, f"{type(error).__name__}: {text}".rstrip(": "))


def _relative(file: Path, root: Path) -> str:
    if file.is_relative_to(root):
        return file.relative_to(root).as_posix()
    return file.name
