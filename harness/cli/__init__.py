"""The command line: `everyorder run` and the other commands that `--help` tells."""

from harness.cli.command import main

__all__ = ["main"]
