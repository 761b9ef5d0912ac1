"""The group of commands behind `everyorder`.

A command is imported when it is used, because each needs different modules.
"""

import sys
from difflib import get_close_matches
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Never

import click

from everyorder.coded_error import CodedError
from everyorder.harness.base.columns import wrap_lines
from everyorder.harness.base.errors import HarnessError
from everyorder.harness.cli.command import INTERRUPTED, CommandError, raise_interrupts

# In the order in which a new user needs them.
COMMANDS = (
    "run",
    "gate",
    "review",
    "replay",
    "show",
    "list",
    "imports",
    "write",
    "worker",
    "runtime",
    "completion",
)

# Commands whose options a project may set; `settings.py` reads them.
CONFIGURABLE = ("run", "gate", "review", "replay", "show", "list", "imports")


def _import_command(name: str) -> click.Command:
    """Import the command of that name."""
    module: Any
    if name in ("run", "gate"):
        from everyorder.harness.cli import run as module
    elif name in ("replay", "show"):
        from everyorder.harness.cli import replay as module
    elif name in ("imports", "write"):
        from everyorder.harness.cli import modules as module
    elif name == "review":
        from everyorder.harness.cli import review as module
    elif name in ("list", "completion"):
        from everyorder.harness.cli import listing as module
    elif name == "worker":
        from everyorder.harness.cli import worker as module
    else:
        from everyorder.harness.cli import runtime as module
    command: click.Command = getattr(module, "list_" if name == "list" else name)
    return command


class Commands(click.Group):
    """A group whose commands exit with a message if they cannot be carried out."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and import the command that they name.

        The import happens here because Ctrl-C ends the process at once until a command
        runs; as an exception it could interrupt an import at any point.
        """
        for name in args:
            if self.get_command(ctx, name) is not None:
                break
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors of the harness become click's."""
        _escape_unencodable()
        try:
            with raise_interrupts():
                return super().invoke(ctx)
        except HarnessError as error:
            if error.code == "AcceptInterrupted":
                click.echo(str(error), err=True)
                raise SystemExit(INTERRUPTED) from None
            raise CommandError(str(error)) from None
        except click.UsageError as error:
            head = "Error: "  # before it, click prints how to call the command
            text = wrap_lines(error.format_message(), head=head, indent="  ")
            raise click.UsageError(text.removeprefix(head), error.ctx) from None
        except ImportError as error:
            # A missing extra of the runtime.
            if isinstance(error, CodedError):
                raise CommandError(str(error)) from None
            raise
        except (KeyboardInterrupt, click.Abort):
            click.echo("\ninterrupted", err=True)
            raise SystemExit(INTERRUPTED) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name; read the project's settings."""
        if not ctx.resilient_parsing and args[0] not in COMMANDS:
            _refuse(ctx, args[0])
        name, command, rest = super().resolve_command(ctx, args)
        # Help and completion work whatever a file says.
        is_asking = ctx.resilient_parsing or {"-h", "--help"} & {*rest}
        if name in CONFIGURABLE and not is_asking:
            _configure(ctx, name)
        return name, command, rest

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, which is imported now."""
        if cmd_name not in COMMANDS:
            return None
        return _import_command(cmd_name)


def _refuse(ctx: click.Context, name: str) -> Never:
    """Raise `click.UsageError` for a name that is not a command."""
    near = get_close_matches(name, COMMANDS, n=2)
    if near:
        advice = f"did you mean {' or '.join(near)}?"
    elif Path(name.partition("::")[0]).exists():
        advice = f"did you mean `everyorder run {name}`?"
    else:
        advice = "`everyorder --help` lists them."
    raise click.UsageError(f"there is no command {name!r}; {advice}", ctx)


def _configure(ctx: click.Context, name: str) -> None:
    """Read the project's settings of a command.

    Raises:
        BadSetting: a setting is wrong.
    """
    from everyorder.harness.cli.settings import read_settings

    settings = read_settings(Path.cwd())
    ctx.obj = settings
    if settings.options or settings.of_commands:
        commands = {each: _import_command(each) for each in CONFIGURABLE}
        settings.check(commands)
        ctx.default_map = {name: settings.for_command(commands[name])}


def _escape_unencodable() -> None:
    """Print characters that a terminal's encoding lacks as escapes.

    No encoding contains half of a surrogate pair, which observations may contain.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _print_version(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    if not requested or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        text = version("everyorder")
    except PackageNotFoundError:
        text = "(from its source tree, not installed)"
    click.echo(f"everyorder {text}")
    ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Prove that a registry does not care in which order things are registered.

    A scenario lists steps that register something, and uses of the registry.
    everyorder does and undoes the steps in every order that its strategy promises,
    with uses in between, and says what that shows: for histories of any length, or up
    to a stated length.

    PATHS are files, folders, FILE::NAME, or (parts of) paths of scenarios. They are
    collected through pytest: conftest files, fixtures and marks apply. Default: paths
    of [tool.everyorder] in pyproject.toml, else everything that pytest collects.
    """
