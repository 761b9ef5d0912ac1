"""The command line: `everyorder run`, `gate`, `review`, `replay` and `show`."""

from harness.cli.command import main

__all__ = ["main"]
