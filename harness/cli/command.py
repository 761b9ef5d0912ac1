"""The command `everyorder`: its parts, and what an error looks like.

True only here: errors that somebody can act on are one message without a traceback, and
exit code 2; Ctrl-C and SIGTERM are exit code 130; any other exception is a defect of
this package and stays as it is.  A command is imported when it is asked for, because
each needs something else.
"""

import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from harness.cli.exits import INTERRUPTED, REFUSED, answered
from harness.errors import HarnessError

# In the order in which one needs them, each with the module that has it.
COMMANDS = {
    "run": "run",
    "gate": "run",
    "review": "review",
    "replay": "replay",
    "show": "replay",
    "imports": "imports",
    "write": "write",
    "worker": "worker",
}


class Refused(click.ClickException):
    """A command that cannot be carried out as typed."""

    exit_code = REFUSED


class Commands(click.Group):
    """A group whose commands end by a message where they cannot be carried out."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the arguments, and import the command that they name.

        Here, because Ctrl-C ends the process at once until a command runs; an exception
        may come up anywhere in an import.
        """
        for name in args:
            if self.get_command(ctx, name) is not None:
                break
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors of the harness become click's."""
        _speak_all()
        try:
            with answered():
                return super().invoke(ctx)
        except HarnessError as error:
            raise Refused(str(error)) from None
        except (KeyboardInterrupt, click.Abort):
            click.echo("\ninterrupted", err=True)
            raise SystemExit(INTERRUPTED) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which one needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"harness.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name)
        return command


def _speak_all() -> None:
    """Have what a terminal's encoding cannot say written as its escape.

    Half of a surrogate pair is none in any; what is observed may hold one.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _tell_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if not asked or ctx.resilient_parsing:
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
    callback=_tell_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Prove that a registry does not care in which order things are registered.

    A scenario lists registrations. everyorder executes them and takes them back in
    every order that its strategy promises, with calls in between, and says what that
    shows: for every history of any length, or for histories up to a stated length.

    PATHS are files, folders, FILE::NAME, or (a piece of) a scenario's path; without
    them, tests/scenarios is meant, or tests where there is no such folder.
    """
