"""The command `everyorder`: its parts, and what an error looks like.

True only here: errors that somebody can act on are one message without a traceback, and
exit code 2; Ctrl-C is exit code 130; any other exception is a defect of this package
and stays as it is.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from harness.cli.exit_code import INTERRUPTED, REFUSED
from harness.cli.gate import gate
from harness.cli.replay import replay
from harness.cli.review import review
from harness.cli.run import run
from harness.cli.show import show
from harness.errors import HarnessError


class Refused(click.ClickException):
    """A command that cannot be carried out as typed."""

    exit_code = REFUSED


class Commands(click.Group):
    """A group whose commands end by a message where they cannot be carried out."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors of the harness become click's."""
        try:
            return super().invoke(ctx)
        except HarnessError as error:
            raise Refused(str(error)) from None
        except (KeyboardInterrupt, click.Abort):
            click.echo("\ninterrupted", err=True)
            raise SystemExit(INTERRUPTED) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which one needs them."""
        return list(self.commands)


def _version() -> str:
    try:
        return version("everyorder")
    except PackageNotFoundError:
        return "(from its source tree, not installed)"


@click.group(
    cls=Commands,
    commands=[run, gate, review, replay, show],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(_version(), message="everyorder %(version)s")
def main() -> None:
    """Prove that a registry does not care in which order things are registered.

    A scenario lists registrations. everyorder executes them and takes them back in
    every order that its strategy promises, with calls in between, and says what that
    shows: for every history of any length, or for histories up to a stated length.

    PATHS are files, folders, FILE::NAME, or (a piece of) a scenario's path; without
    them, tests/scenarios is meant, or tests where there is no such folder.
    """
