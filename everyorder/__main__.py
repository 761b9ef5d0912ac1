"""The command `everyorder`, also as `python -m everyorder`.

Before the command line is loaded, and after it has ended, there is nothing to clean up:
a signal then ends the process at once.
"""

import os
import signal
from typing import NoReturn

# The exit code of an interrupted command, as in `everyorder.harness.cli.command`.
_INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _end)
    except KeyboardInterrupt:  # the signal came before its handler was replaced
        _end()
    from everyorder.harness.cli import main as command

    command(prog_name="everyorder")


def _end(*_: object) -> NoReturn:
    """End the process without raising.

    An exception here could be raised inside of any import, or at interpreter exit.
    """
    os.write(2, b"\ninterrupted\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
