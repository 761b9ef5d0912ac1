"""The root of a project and the folders that modules are imported from, as pytest has
them.

True only here: what pytest would do with the same files, so that a scenario that pytest
explores is found, imported and filed under the same name by the command line.  Nothing
of pytest is imported: its own functions for this are private.

Rules (from https://docs.pytest.org/en/stable/reference/customize.html):
- the root is the nearest folder upwards with a file that configures pytest; without
  one, the nearest with a pyproject.toml; without one, the nearest with a setup.py;
- modules are imported with the ini file's `pythonpath`, and, in the import modes
  "prepend" (pytest's default) and "append", with the first folder above the file that
  is no package;
- a file that cannot be parsed configures nothing: pytest refuses it, in its own words.
"""

import configparser
import os
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PREPEND = "prepend"
APPEND = "append"


@dataclass(frozen=True, slots=True)
class Settings:
    """What of pytest's configuration decides how modules are imported."""

    import_mode: str = PREPEND
    pythonpath: tuple[str, ...] = ()


def root_of(path: Path) -> Path:
    """The root of the project that `path` is in, else its folder."""
    folder = path if path.is_dir() else path.parent
    above = (folder, *folder.parents)
    for candidate in above:
        if _configured(candidate) is not None:
            return candidate
    for name in ("pyproject.toml", "setup.py"):
        for candidate in above:
            if (candidate / name).is_file():
                return candidate
    return folder


def root_of_all(paths: Iterable[Path], start: Path) -> Path:
    """The root of a command that was typed in `start` and names these paths.

    That of their common folder; where nothing marks one, the folder that they and
    `start` have in common.
    """
    folders = [str(path if path.is_dir() else path.parent) for path in paths]
    common = Path(_common(folders) or start)
    root = root_of(common)
    if root == common and not _is_marked(root):
        both = _common([str(start), str(common)])
        # Files that share nothing with `start` but the top are a project of their own.
        return Path(both) if both and len(Path(both).parts) > 1 else common
    return root


def import_folders(file: Path, root: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The folders to put before and after all others on the path of imports."""
    settings = _configured(root) or Settings()
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
    return _configured(folder) is not None or any(
        (folder / name).is_file() for name in names
    )


def _configured(folder: Path) -> Settings | None:
    """The settings of the first file of a folder that configures pytest."""
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


# In the order in which pytest looks for them.
_READERS: Mapping[str, Callable[[Path], Mapping[str, Any] | None]] = {
    "pytest.toml": _pytest_toml,
    ".pytest.toml": _pytest_toml,
    "pytest.ini": _ini("pytest", always=True),
    ".pytest.ini": _ini("pytest", always=True),
    "pyproject.toml": _pyproject,
    "tox.ini": _ini("pytest", always=False),
    "setup.cfg": _ini("tool:pytest", always=False),
}


def _settings(table: Mapping[str, Any]) -> Settings:
    mode = PREPEND
    words = iter(_words(table.get("addopts", ())))
    for word in words:
        if word.startswith("--import-mode="):
            mode = word.partition("=")[2]
        elif word == "--import-mode":
            mode = next(words, mode)
    return Settings(mode, tuple(_words(table.get("pythonpath", ()))))


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        try:
            return shlex.split(value)
        except ValueError:  # a quotation mark that is not closed
            return value.split()
    return [str(each) for each in value] if isinstance(value, (list, tuple)) else []
