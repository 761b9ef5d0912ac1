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
- an unknown key is an error that names similar ones: a misspelt limit limits nothing;
- options that write or accept something cannot be set: a project from another author
  does not decide about files.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Never

import click

from everyorder.harness.base.errors import BadSetting
from everyorder.harness.base.place import near

FILE = "pyproject.toml"

# Options that a file may set, as on the command line.
NAMES = frozenset(
    {
        *("strategy", "budget", "steps", "jobs", "timeout", "operation-timeout"),
        *("fail-fast", "keep-going", "in-process", "verbose", "full"),
        *("isolation", "watch"),
    }
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a project; `paths` are absolute."""

    file: Path | None = None
    paths: tuple[str, ...] = ()
    # Options without their dashes, for all commands and for each.
    options: Mapping[str, Any] = field(default_factory=dict)
    of_commands: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def for_command(self, command: click.Command) -> dict[str, Any]:
        """Return the settings that this command has options for, by parameters.

        Raises:
            BadSetting: a setting has a wrong value.
        """
        options = options_of(command)
        values = {**self.options, **self.of_commands.get(command.name or "", {})}
        return dict(
            self._converted(key, value, options[key])
            for key, value in values.items()
            if key in options
        )

    def check(self, commands: Mapping[str, click.Command]) -> None:
        """Check the names of all settings against the options of all commands.

        Raises:
            BadSetting: no command, or not the command of its table, has an option.
        """
        names = {name for each in commands.values() for name in options_of(each)}
        for key in self.options:
            self._check(key, sorted(names), "tool.everyorder")
        for name, table in self.of_commands.items():
            self._check(name, sorted(commands), "tool.everyorder")
            for key in table:
                own = sorted(options_of(commands[name]))
                self._check(key, own, f"tool.everyorder.{name}")

    def _check(self, key: str, names: Sequence[str], table: str) -> None:
        if key not in names:
            close = tuple(get_close_matches(key, names, n=2, cutoff=0.6))
            raise BadSetting(
                code="UnknownSetting",
                source=near(self.file or FILE),
                table=table,
                key=key,
                near=close,
            )

    def _converted(self, key: str, value: Any, option: click.Option) -> tuple[str, Any]:
        """Return the parameter and the value of a setting."""
        assert option.name is not None, "options have names"
        if option.is_flag:
            if not isinstance(value, bool):
                self._refuse(key, "true or false")
            is_on = value if f"--{key}" in option.opts else not value
            return option.name, is_on
        values = value if option.multiple and isinstance(value, list) else [value]
        if any(isinstance(each, bool | list | dict) for each in values):
            self._refuse(key, "one value, as on the command line")
        context = click.Context(click.Command(key))
        try:
            converted = [option.type.convert(str(v), option, context) for v in values]
        except click.BadParameter as error:
            self._refuse(key, f"as on the command line: {error.message}")
        if any(each != each for each in converted):  # NaN
            self._refuse(key, "a number")
        return option.name, converted if option.multiple else converted[0]

    def _refuse(self, key: str, wanted: str) -> Never:
        raise BadSetting(
            code="WrongType", source=near(self.file or FILE), key=key, wanted=wanted
        )


def options_of(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command that a file may set, without their dashes."""
    return {
        name.removeprefix("--"): each
        for each in command.params
        if isinstance(each, click.Option)
        for name in (*each.opts, *each.secondary_opts)
        if name.removeprefix("--") in NAMES
    }


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
                code="BadFile", source=near(file), reason=str(error)
            ) from None
        tool = document.get("tool")
        table = tool.get("everyorder") if isinstance(tool, dict) else None
        if table is not None:
            return _settings(file, table)
    return Settings()


def _settings(file: Path, table: Any) -> Settings:
    if not isinstance(table, dict):
        raise BadSetting(
            code="WrongType", source=near(file), key="everyorder", wanted="a table"
        )
    values = dict(table)
    paths = values.pop("paths", [])
    if not isinstance(paths, list) or not all(isinstance(p, str) for p in paths):
        raise BadSetting(
            code="WrongType", source=near(file), key="paths", wanted="a list of texts"
        )
    return Settings(
        file,
        tuple(str(file.parent / path) for path in paths),
        {key: value for key, value in values.items() if not isinstance(value, dict)},
        {key: value for key, value in values.items() if isinstance(value, dict)},
    )
