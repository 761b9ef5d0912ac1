"""Warnings of programs: collected while they run, raised when they are done.

True only here: when a warning of a program becomes one of Python's.

Rules:
- a call from Python begins a run; what programs warn of within it is collected, in
  order, and raised at its end, with the place in the program as its place;
- a node that warns does so once in a run, however often it is run;
- a filter may turn a warning into an error, which takes the place of the result; where
  an error is on its way already, it stays, and all warnings are told;
- calls within a run belong to it, and so do its forked tasks; what they warn of when
  it is over is raised at once.
"""

import threading
import warnings

from runtime.script.ir import Node


class _Local(threading.local):
    """The run that a thread is in."""

    run: "Run | None" = None


RUN = _Local()


class Run:
    """A call from Python, and what was warned of."""

    __slots__ = ("_collected", "_is_over", "_seen")

    def __init__(self) -> None:
        self._collected: list[tuple[str, Node]] = []
        # By identity: a node that is kept here is not another one's.
        self._seen: dict[int, Node] = {}
        self._is_over = False

    def finish(self, is_failing: bool) -> None:
        """Raise what was collected; `is_failing`: an error is on its way.

        Raises:
            Warning: a filter turned a warning into an error, and none is on its way.
        """
        self._is_over = True
        if self._collected:
            self._tell(is_failing)

    def warn(self, message: str, node: Node) -> None:
        """Collect a warning, unless the node has warned."""
        if id(node) in self._seen:
            return
        self._seen[id(node)] = node
        if self._is_over:
            _raise(message, node)
        else:
            self._collected.append((message, node))

    def _tell(self, is_failing: bool) -> None:
        for message, node in self._collected:
            try:
                _raise(message, node)
            except Warning:
                # The error that is on its way is what the caller has to see.
                if not is_failing:
                    raise


def warn(message: str, node: Node) -> None:
    """A program warns, at a node."""
    run = RUN.run
    if run is None:
        _raise(message, node)
    else:
        run.warn(message, node)


def _raise(message: str, node: Node) -> None:
    file, line = "<program>", 1
    if node.place is not None:
        source, (start, _) = node.place
        file, (line, _) = source.file or file, source.place(start)
    warnings.warn_explicit(message, UserWarning, file, line)
