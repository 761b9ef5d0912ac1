"""Settings of the command line in `pyproject.toml`.

    [tool.everyorder]
    paths = ["tests/scenarios"]
    budget = 30

    [tool.everyorder.gate]
    timeout = 600

A key is an option of a command without its dashes; a table with a command's name is for
that command only.  `paths` are what a command explores that names no PATHS.  A flag
comes before a setting.

Rules:
- the file is the nearest `pyproject.toml` upwards that has the table;
- an unknown key is an error that names similar ones: a misspelt limit limits nothing.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from everyorder.harness.base.errors import BadSetting

FILE = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a project; `paths` are absolute."""

    file: Path | None = None
    paths: tuple[str, ...] = ()
    # Options by their names in Python, for all commands and for each.
    options: Mapping[str, Any] = field(default_factory=dict)
    of_commands: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def for_command(self, command: click.Command) -> dict[str, Any]:
        """Return the settings that this command has options for.

        Raises:
            BadSetting: a setting of the command's own table is not one of its options.
        """
        names = option_names(command)
        own = self.of_commands.get(command.name or "", {})
        for key in own:
            self._check(key, names, f"tool.everyorder.{command.name}")
        shared = {key: value for key, value in self.options.items() if key in names}
        return {**shared, **own}

    def check(self, commands: Mapping[str, Sequence[str]]) -> None:
        """Check the names of all settings against the options of all commands.

        Raises:
            BadSetting: no command has an option, or no command has the name.
        """
        names = {name for options in commands.values() for name in options}
        for key in self.options:
            self._check(key, sorted(names), "tool.everyorder")
        for name in self.of_commands:
            self._check(name, sorted(commands), "tool.everyorder")

    def _check(self, key: str, names: Sequence[str], table: str) -> None:
        if key not in names:
            near = get_close_matches(key, names, n=2, cutoff=0.6)
            raise BadSetting(
                code="UnknownSetting",
                source=str(self.file),
                table=table,
                key=key.replace("_", "-"),
                near=tuple(name.replace("_", "-") for name in near),
            )


def option_names(command: click.Command) -> list[str]:
    """Return the options of a command that a file may set, by their names in Python."""
    return [
        each.name
        for each in command.params
        if isinstance(each, click.Option) and each.name is not None
    ]


def default_paths() -> tuple[str, ...]:
    """Return the paths of the running command when it names none."""
    settings = click.get_current_context().find_object(Settings)
    return () if settings is None else settings.paths


def read_settings(start: Path) -> Settings:
    """Return the settings of the project that a folder is in.

    Raises:
        BadSetting: the file cannot be parsed, or a value has a wrong type.
    """
    for folder in (start, *start.parents):
        file = folder / FILE
        if not file.is_file():
            continue
        try:
            document = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BadSetting(
                code="BadFile", source=str(file), reason=str(error)
            ) from None
        table = document.get("tool", {}).get("everyorder")
        if table is not None:
            return _settings(file, table)
    return Settings()


def _settings(file: Path, table: Any) -> Settings:
    if not isinstance(table, dict):
        raise BadSetting(
            code="WrongType", source=str(file), key="everyorder", wanted="a table"
        )
    values = {key.replace("-", "_"): value for key, value in table.items()}
    paths = values.pop("paths", [])
    if not isinstance(paths, list) or not all(isinstance(p, str) for p in paths):
        raise BadSetting(
            code="WrongType", source=str(file), key="paths", wanted="a list of texts"
        )
    return Settings(
        file,
        tuple(str(file.parent / path) for path in paths),
        {key: value for key, value in values.items() if not isinstance(value, dict)},
        {
            key: {name.replace("-", "_"): each for name, each in value.items()}
            for key, value in values.items()
            if isinstance(value, dict)
        },
    )
