"""Options of the executor: how programs are run, for the whole process.

Rules:
- options are a frozen value, replaced as a whole; a plan remembers the value that it
  was made with, and is made anew for another one;
- whatever is chosen, results are the same.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

from runtime.errors.tensor import WrongOption

# From so many runs on, the generated text has paid for its compiling, of any size:
# 112 to 169 runs, or 195 to 266 trips of loops; measured.  Who waits that long pays for
# both at most twice what the better of the two costs.
RUNS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions:
    """How programs are run.

    `optimize`: whether passes change the copy that runs.  `text_after`: after how many
    runs, trips of loops counted, the program is turned into text of Python's; None for
    never.  `fuse`: whether chains of operators become one kernel, `fuse_after` how many
    runs are looked at before.  `threads`: how many threads run what is forked at most.

    Raises:
        WrongOption: a value is none that the option takes.
    """

    optimize: bool = True
    text_after: int | None = RUNS
    fuse: bool = True
    fuse_after: int = 2
    threads: int = os.cpu_count() or 1

    def __post_init__(self) -> None:
        for option in ("optimize", "fuse"):
            self._check(option, bool, 0, "True or False")
        self._check("fuse_after", int, 0, "a number of runs")
        self._check("threads", int, 1, "a number of threads, from 1 on")
        if self.text_after is not None:
            self._check("text_after", int, 0, "a number of runs, or None for never")

    def _check(self, option: str, kind: type, least: int, wanted: str) -> None:
        value: Any = getattr(self, option)
        fits = value.__class__ is kind
        if not fits or value < least:
            raise WrongOption(
                code="ExecutorRefused", option=option, found=repr(value), wanted=wanted
            )


class _Chosen:
    """What is chosen now."""

    __slots__ = ("options",)

    def __init__(self) -> None:
        self.options = ExecutorOptions()


CHOSEN = _Chosen()


def executor_options() -> ExecutorOptions:
    """The options that hold now."""
    return CHOSEN.options


def set_executor(
    options: ExecutorOptions | None = None, **changes: object
) -> ExecutorOptions:
    """Choose options, or change some of them; gives those that held before.

    Raises:
        WrongOption: a value is none that the option takes, or there is no such
            option.
    """
    before = CHOSEN.options
    try:
        chosen = replace(options or before, **changes)  # type: ignore[arg-type]  # checked by the class itself
    except TypeError:
        known = [each.name for each in fields(ExecutorOptions)]
        wrong = next(name for name in changes if name not in known)
        *most, last = known
        wanted = f"{', '.join(most)} and {last}"
        raise WrongOption(
            code="ExecutorRefused", option=wrong, found="", wanted=wanted
        ) from None
    if chosen != before:
        CHOSEN.options = chosen
    return before


@contextmanager
def executor(**changes: object) -> Iterator[ExecutorOptions]:
    """Change options for a while; raises as `set_executor`."""
    before = set_executor(None, **changes)
    try:
        yield CHOSEN.options
    finally:
        CHOSEN.options = before
