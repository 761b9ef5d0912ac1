"""The listing of a session: its items as tasks, and modules without items.

Of all items only module-level scenarios and tests that use the fixture `explore` are
tasks.  Two items with one path are reported, because they would share an expect file.
"""

import pytest

from everyorder.harness.base.errors import NotFound
from everyorder.harness.collection.recorder import Recorder, line_of
from everyorder.harness.collection.selection import Query, select
from everyorder.harness.collection.session import CommandSession, is_exploring
from everyorder.harness.collection.tasks import Listing, Task, size_of
from everyorder.harness.exploration.explore_scenario import subject_of
from everyorder.harness.exploration.paths import path_of
from everyorder.harness.exploration.uncollected import uncollected_scenarios
from everyorder.harness.processes.watch import Subject
from everyorder.harness.pytest_plugin.plugin import ScenarioItem
from everyorder.harness.report.verdict import Unexplored


def items_of(session: CommandSession) -> dict[str, pytest.Item]:
    """Return the items that explore, by their node ids, in pytest's order."""
    items = filter(is_exploring, session.session.items)
    return {item.nodeid: item for item in items}


def listing_of(session: CommandSession) -> Listing:
    """Return the tasks that the PATHS of a session select, and its modules.

    Raises:
        NotFound: a path does not select anything.
        BadStrategy: the strategy is unknown.
    """
    tasks, twins = _tasks(session)
    broken = [
        *session.broken.values(),
        *(
            death
            for death in session.selection.deaths.values()
            if death not in session.broken.values()
        ),
    ]
    chosen = [*tasks]
    if session.queries:
        selected = dict[str, Task]()
        failures: list[Unexplored] = []
        for query in session.queries:
            found, missed = _selected(query, tasks, broken)
            selected.update((task.node, task) for task in found)
            failures += missed
            if not query.name:
                failures += [*broken, *twins]
            else:
                paths = {task.path for task in found}
                failures += [each for each in twins if each.scenario in paths]
        chosen, reported = list(selected.values()), list(dict.fromkeys(failures))
    else:
        reported = [*broken, *twins]
    uncollected = (
        uncollected_scenarios(module.obj, module.path, module.nodeid)
        for module in session.modules
    )
    return Listing(
        session.root,
        session.recorder.options.limits,
        tuple(chosen),
        tuple(reported),
        tuple(session.skipped.items()),
        frozenset(module.nodeid for module in session.modules),
        tuple(
            path_of(item.nodeid)
            for item in session.session.items
            if not is_exploring(item)
        ),
        tuple(each for each in uncollected if each is not None),
        session.deselected,
    )


def _selected(
    query: Query, tasks: list[Task], broken: list[Unexplored]
) -> tuple[tuple[Task, ...], list[Unexplored]]:
    """Return the tasks of a query; without any, the modules that may have hidden them.

    Raises:
        NotFound: nothing is selected, and every module was collected.
    """
    try:
        return select(query, tasks), []
    except NotFound as error:
        if not broken:
            raise
        failures = [*broken]
        if not query.is_exact:
            files = ", ".join(dict.fromkeys(each.where for each in broken))
            reason = f"{str(error).rstrip('.')}; {files} could not be searched"
            failures.append(Unexplored(query.name, "", reason))
        return (), failures


def _tasks(session: CommandSession) -> tuple[list[Task], list[Unexplored]]:
    """Return the tasks, and a failure for each item whose path another one has."""
    tasks: dict[str, Task] = {}
    twins: list[Unexplored] = []
    for item in items_of(session).values():
        task = task_of(item, session.recorder)
        other = tasks.setdefault(task.path, task)
        if other is not task:
            twins.append(_twin(task, other))
    return list(tasks.values()), twins


def task_of(item: pytest.Item, recorder: Recorder) -> Task:
    """Return the task of an item."""
    root, line = item.config.rootpath, line_of(item)
    if isinstance(item, ScenarioItem):
        size = size_of(item.scenario, recorder.strategy, recorder.budget)
        subject = subject_of(item.scenario, root)
        path = item.scenario.path
        return Task(path, item.nodeid, item.path, size, subject, line=line)
    path, source = path_of(item.nodeid), item.nodeid.partition("::")[0]
    subject = Subject(path, source, (), (), root)
    return Task(path, item.nodeid, item.path, 0, subject, is_test=True, line=line)


def _twin(task: Task, other: Task) -> Unexplored:
    """Return the failure of an item whose path another one has."""
    variable, place = _variable_and_place(task)
    other_variable, other_place = _variable_and_place(other)
    reason = (
        f"{variable} is called {task.path} like {other_variable} ({other_place}), so "
        "only that one is explored; give one of them another name"
    )
    return Unexplored(task.path, place, reason)


def _variable_and_place(task: Task) -> tuple[str, str]:
    source, _, name = task.node.partition("::")
    return name, source if task.line is None else f"{source}:{task.line}"
