"""The command line: `everyorder run` and the other commands that `--help` lists."""

from everyorder.harness.cli.group import main

__all__ = ["main"]
