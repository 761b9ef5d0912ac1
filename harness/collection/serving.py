"""The main function of a command's child: collect through pytest, and perform tasks.

Rules:
- every request has one answer, for every exception of the scenarios;
- a session ends when a request needs files that it has not collected, and after an
  exception that left fixtures behind; the next request begins another one;
- a task of the real torch is performed without a session.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import zip_longest

import pytest

from everyorder.harness.base.errors import CannotCollect, HarnessError
from everyorder.harness.collection.listing import items_of, listing_of
from everyorder.harness.collection.recorder import sentence_of
from everyorder.harness.collection.session import CommandSession
from everyorder.harness.collection.tasks import (
    ExploreOptions,
    Exploring,
    Listing,
    Perform,
    Request,
    Selection,
    Task,
    TaskResult,
)
from everyorder.harness.engine import progress
from everyorder.harness.processes.child import Parent
from everyorder.harness.report.verdict import Unexplored


def serve(parent: Parent, effort: ExploreOptions) -> None:
    """Answer the parent's requests until the end."""
    request = _receive(parent)
    while request is not None:
        if isinstance(request, Perform) and request.task.file is None:
            task = request.task
            _answer(parent, task, lambda beats: result_of_torch(effort))
            request = _receive(parent)
        else:
            request = _Server(parent, effort, request).run()


def result_of_torch(effort: ExploreOptions) -> TaskResult:
    """Explore the fault of the real torch."""
    from everyorder.harness.systems.torch import explore_torch

    report = explore_torch(effort.strategy, effort.budget)
    return TaskResult((report,), failed=not report.passed)


def _receive(parent: Parent) -> Request | None:
    """Return the next request; None at the end."""
    try:
        request: Request = parent.receive()
    except EOFError:
        return None
    return request


class _Server:
    """One session of pytest, which begins with the request that needs it."""

    def __init__(self, parent: Parent, effort: ExploreOptions, first: Request) -> None:
        selection = first if isinstance(first, Selection) else first.selection
        self._parent = parent
        self._first = first
        self._session = CommandSession(selection, effort, parent.send)
        self._next: Request | None = None

    def run(self) -> Request | None:
        """Answer requests; return the first one that needs another session."""
        try:
            self._session.run(self._serve)
        except HarnessError as error:
            if isinstance(self._first, Selection):
                self._parent.send(error)
            else:
                _send(self._parent, lost(self._first.task, str(error)))
            return _receive(self._parent)
        return self._next

    def _serve(self) -> None:
        recorder = self._session.recorder
        recorder.announce = lambda subject: self._parent.send(Exploring(subject))
        items = items_of(self._session)
        following = following_items(items)
        request: Request | None = self._first
        is_whole = True
        while request is not None and is_whole:
            if isinstance(request, Selection):
                if request is not self._first:
                    break
                self._parent.send(self._listing())
            else:
                item = items.get(request.task.node)
                if item is not None:
                    is_whole = self._perform(
                        request.task, item, following[request.task.node]
                    )
                elif request is self._first:
                    _send(self._parent, self._without_item(request.task))
                else:
                    break
            request = _receive(self._parent)
        self._next = request

    def _listing(self) -> Listing | HarnessError:
        try:
            return listing_of(self._session)
        except HarnessError as error:
            return error
        except Exception as error:  # of a plugin's items or modules
            return CannotCollect(reason=sentence_of(error))

    def _perform(
        self, task: Task, item: pytest.Item, following: pytest.Item | None
    ) -> bool:
        """Answer a task; return False if an exception left fixtures behind."""
        recorder = self._session.recorder

        def result(beats: progress.ProgressWriter) -> TaskResult:
            recorder.progress = beats.progress
            return recorder.perform(item, following)

        return _answer(self._parent, task, result)

    def _without_item(self, task: Task) -> TaskResult:
        broken = self._session.broken.get(task.subject.source)
        if broken is None:
            return lost(task, "it no longer exists")
        return lost(task, broken.reason, broken.where)


def following_items(
    items: Mapping[str, pytest.Item],
) -> dict[str, pytest.Item | None]:
    """Return the item after each, by node ids, as tasks mostly arrive."""
    return dict(zip_longest(items, list(items.values())[1:]))


def lost(task: Task, reason: str, where: str = "") -> TaskResult:
    """Return the result of a task that could not be collected again."""
    again = f"the second time it was collected: {reason}"
    unexplored = Unexplored(task.path, where or task.subject.source, again)
    return TaskResult((unexplored,), failed=True)


def _answer(
    parent: Parent,
    task: Task,
    result: Callable[[progress.ProgressWriter], TaskResult],
) -> bool:
    """Send the result of a task; return False if it left by an exception."""
    with progress.watched(parent.cells) as beats:
        beats.progress(0, task.planned)
        is_whole = True
        try:
            answer = result(beats)
        except OSError:
            raise
        except BaseException as error:  # KeyboardInterrupt, pytest.exit
            is_whole = False
            reason = sentence_of(error)
            operation, history = task.subject.position(beats.trail())
            unexplored = Unexplored(
                task.path,
                task.subject.source,
                reason,
                operation=operation,
                history=history,
            )
            answer = TaskResult((unexplored,), failed=True)
        beats.rest()
        _send(parent, answer)
    return is_whole


def _send(parent: Parent, result: TaskResult) -> None:
    try:
        parent.send(result)
    except OSError:
        raise
    except Exception as error:  # what pickle and the methods it calls may raise
        reason = f"its report cannot cross to another process: {error!r}"
        failures = (Unexplored(each.scenario, "", reason) for each in result.outcomes)
        with suppress(OSError):
            parent.send(TaskResult(tuple(failures), failed=True))
