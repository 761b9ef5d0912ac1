"""The catalogue: every scenario in a set of files, found without pytest.

True only here: the way from a path, a name or a piece of a name to scenarios.  A
scenario is a module-level `Scenario` of a `test_*.py` file; it is named after its
variable, in the order of the file.  A module is imported under the name that pytest's
importlib mode gives it, from its root (the nearest folder above with a
pyproject.toml), and forgotten again, so that a second load sees the file as it is then.
Loading writes nothing, compiled files included.

Rules:
- without a path, scenarios are those of tests/scenarios, or of tests where there is no
  such folder; a scenario's whole path is found wherever its file is;
- a module that cannot be imported is kept as `Broken`, with file and line, and the rest
  of the catalogue is loaded all the same;
- a module that skips itself is kept as `Skipped`, with its reason;
- asking for something that does not exist is an error that names what is near.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

from harness.errors import HarnessError
from harness.scenario import Scenario

# Where scenarios are looked for when no path is given, below the root; the first that
# exists.  A folder of their own spares the import of all other tests.
DEFAULTS = ("tests/scenarios", "tests")
PATTERN = "test_*.py"


@dataclass(frozen=True, slots=True)
class Entry:
    """A scenario and the file and root that it can be loaded from again."""

    scenario: Scenario
    file: Path
    root: Path


@dataclass(frozen=True, slots=True)
class Broken:
    """A module, or a scenario of it, that could not be loaded."""

    source: str
    line: int | None
    reason: str

    @property
    def where(self) -> str:
        """FILE:LINE, or FILE alone."""
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A module that skipped itself when it was imported."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What was found; `entries` by file, then in the order of the file."""

    root: Path
    entries: tuple[Entry, ...] = ()
    broken: tuple[Broken, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The path of every scenario."""
        return tuple(entry.scenario.path for entry in self.entries)


@dataclass(eq=False, kw_only=True)
class NothingThere(HarnessError, LookupError):
    """A path was given that neither is a file or folder nor names a scenario."""

    wanted: str
    near: tuple[str, ...] = ()
    known: int = 0

    def render(self) -> str:
        """What was asked for, and what comes close to it."""
        text = f"there is no file, folder or scenario {self.wanted!r}"
        if self.near:
            return f"{text}; did you mean {' or '.join(self.near)}?"
        if self.known:
            return f"{text} among {self.known} scenarios; `everyorder run` lists them."
        folders = ", or else ".join(DEFAULTS)
        return f"{text}; without a path, scenarios are looked for in {folders}."


def load(paths: Sequence[str] = (), *, start: Path | None = None) -> Catalogue:
    """Load what the paths name; without paths, `default_folder` of the root.

    A path is a file, a folder, `FILE::NAME`, a scenario's path or name, or a piece of
    one.  `start` stands for the current directory.  Raises `NothingThere`.
    """
    start = (start or Path.cwd()).resolve()
    root = root_of(start)
    found = Catalogue(root)
    for path in paths or (str(default_folder(root)),):
        found = _merged(found, _load_one(path, start, root))
    return found


def root_of(path: Path) -> Path:
    """The nearest folder from `path` upwards that has a pyproject.toml, else `path`."""
    folder = path if path.is_dir() else path.parent
    for candidate in (folder, *folder.parents):
        if (candidate / "pyproject.toml").is_file():
            return candidate
    return folder


def default_folder(root: Path) -> Path:
    """Where scenarios are looked for without a path; it need not exist."""
    folders = [root / folder for folder in DEFAULTS]
    return next((folder for folder in folders if folder.is_dir()), folders[-1])


def load_file(file: Path, root: Path) -> Catalogue:
    """The scenarios of one file, in its order; never raises for what is in the file."""
    source = _relative(file, root)
    try:
        module = _imported(file, source, root)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # SystemExit and pytest's outcomes are such, too
        if _is_skip(error):
            return Catalogue(root, skipped=(Skipped(source, str(error)),))
        return Catalogue(root, broken=(_broken(error, file, source),))
    entries = tuple(
        Entry(scenario, file, root) for scenario in scenarios_of(module, source)
    )
    return _merged(Catalogue(root), Catalogue(root, entries))


def scenarios_of(module: ModuleType, source: str) -> Iterator[Scenario]:
    """The module's own scenarios, named after their variables where they have no name.

    A variable with a leading underscore is no scenario; a second variable for the same
    scenario is passed over.
    """
    seen: set[int] = set()
    for variable, value in vars(module).items():
        if isinstance(value, Scenario) and not variable.startswith("_"):
            if id(value) not in seen:
                yield value.named(value.name or variable, source)
            seen.add(id(value))


def find(catalogue: Catalogue, wanted: str) -> tuple[Entry, ...]:
    """The scenarios of that path or name, else those that have the piece in their path.

    Raises `NothingThere`, with the nearest names.
    """
    entries = catalogue.entries
    for matches in (
        lambda path: path == wanted,
        lambda path: path.endswith(f"/{wanted}"),
        lambda path: wanted in path,
    ):
        found = tuple(e for e in entries if matches(e.scenario.path))
        if found:
            return found
    raise NothingThere(
        wanted=wanted, near=nearest(wanted, catalogue.paths), known=len(entries)
    )


def nearest(wanted: str, paths: Iterable[str]) -> tuple[str, ...]:
    """At most three paths of which the whole or the last part is close to `wanted`."""
    from difflib import get_close_matches

    names: dict[str, str] = {}
    for path in paths:
        names[path] = path
        names.setdefault(path.rpartition("/")[2], path)
    close = get_close_matches(wanted, list(names), n=3, cutoff=0.6)
    return tuple(dict.fromkeys(names[name] for name in close))


def _load_one(path: str, start: Path, root: Path) -> Catalogue:
    name, colons, variable = path.partition("::")
    place = (start / name).resolve()
    if place.exists():
        files = sorted(place.rglob(PATTERN)) if place.is_dir() else (place,)
        found = Catalogue(root)
        for file in files:
            home = root if file.is_relative_to(root) else root_of(file)
            found = _merged(found, load_file(file, home))
        return _selected(found, variable) if colons else found
    its_file = None if colons else _file_of(path, root)
    if its_file is not None:
        return _selected(load_file(its_file, root), path)
    folder = default_folder(root)
    if colons or path.endswith(".py") or not folder.is_dir():
        raise NothingThere(wanted=path)
    everything = _load_one(str(folder), start, root)
    return _selected(everything, path)


def _file_of(path: str, root: Path) -> Path | None:
    """The file that a scenario's whole path begins with, as `Scenario.path` says it."""
    parts = path.split("/")
    for count in range(len(parts) - 1, 0, -1):
        for folder in ("tests/", ""):
            file = root / f"{folder}{'/'.join(parts[:count])}.py"
            if file.is_file():
                return file
    return None


def _selected(catalogue: Catalogue, wanted: str) -> Catalogue:
    try:
        entries = find(catalogue, wanted)
    except NothingThere:
        if not catalogue.broken:
            raise
        # What was asked for may be in a module that cannot be loaded.
        return Catalogue(catalogue.root, broken=catalogue.broken)
    return Catalogue(catalogue.root, entries)


def _merged(first: Catalogue, second: Catalogue) -> Catalogue:
    """Both, each scenario once; another scenario of the same path is broken."""
    known = {entry.scenario.path: entry for entry in first.entries}
    broken = [*first.broken, *(b for b in second.broken if b not in first.broken)]
    for entry in second.entries:
        path = entry.scenario.path
        other = known.setdefault(path, entry)
        if other.scenario.digest != entry.scenario.digest or other.file != entry.file:
            reason = f"another scenario is called {path}, too"
            broken.append(Broken(entry.scenario.source, None, reason))
    skipped = tuple(dict.fromkeys(first.skipped + second.skipped))
    return Catalogue(first.root, tuple(known.values()), tuple(broken), skipped)


def _imported(file: Path, source: str, root: Path) -> ModuleType:
    name = source.removesuffix(".py").replace("/", ".")
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{source} is no Python file")
    module = module_from_spec(spec)
    before, writes = sys.modules.get(name), sys.dont_write_bytecode
    sys.modules[name] = module
    sys.dont_write_bytecode = True
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
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


def _broken(error: BaseException, file: Path, source: str) -> Broken:
    line = None
    if isinstance(error, SyntaxError) and error.filename == str(file):
        line = error.lineno
    for frame in extract_tb(error.__traceback__):
        if frame.filename == str(file):
            line = frame.lineno
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return Broken(source, line, f"{type(error).__name__}: {text}".rstrip(": "))


def _relative(file: Path, root: Path) -> str:
    if file.is_relative_to(root):
        return file.relative_to(root).as_posix()
    return file.name
