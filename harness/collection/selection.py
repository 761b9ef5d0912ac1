"""PATHS of a command: files, folders, FILE::NAME, and (parts of) paths of scenarios.

Pytest collects the files; of the collected items, these rules select:
- a file or folder selects everything below it;
- FILE::NAME selects the test or class of that node id, else scenarios of that name;
- a scenario's whole path selects it wherever its file is; a part of a path selects all
  scenarios whose paths contain it;
- a name that selects nothing is an error that names similar ones.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from everyorder.harness.base.errors import NotFound
from everyorder.harness.collection.tasks import Task
from everyorder.harness.exploration.paths import is_below


@dataclass(frozen=True, slots=True)
class Query:
    """One of the PATHS: an existing file or folder, and a name in it or anywhere."""

    place: Path | None
    name: str

    @property
    def is_exact(self) -> bool:
        """Return True if no other file may have what the name selects."""
        return self.place is not None and self.place.is_file()


def queries_of(paths: Iterable[str]) -> tuple[Query, ...]:
    """Return the queries of PATHS in the current folder.

    Raises:
        NotFound: a path has the form of a file that does not exist.
    """
    return tuple(map(_query, paths))


def _query(path: str) -> Query:
    name, colons, rest = path.partition("::")
    # As pytest: without following links, so that all names are below its root.
    place = Path(os.path.abspath(name))
    if place.exists():
        return Query(place, rest)
    if colons or path.endswith(".py"):
        raise NotFound(code="NoSuchPath", wanted=path)
    return Query(None, path)


def select(query: Query, tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Return the tasks that a query selects.

    Raises:
        NotFound: there are none for a name; the error has the nearest names.
    """
    place, name = query.place, query.name
    if place is not None:
        tasks = [
            task
            for task in tasks
            if task.file is not None and task.file.is_relative_to(place)
        ]
        if not name:
            return tuple(tasks)
        by_node = tuple(task for task in tasks if _is_node(task, name))
        if by_node:
            return by_node
    return find(tasks, name)


def _is_node(task: Task, name: str) -> bool:
    rest = task.node.partition("::")[2]
    return rest == name or rest.startswith((f"{name}::", f"{name}["))


def find(tasks: Sequence[Task], query: str) -> tuple[Task, ...]:
    """Return the tasks with that path or name, else those whose path contains it.

    Raises:
        NotFound: there is none; the error has the nearest names.
    """
    for matches in (
        lambda task: (
            task.path == query or (task.is_test and is_below(query, task.path))
        ),
        lambda task: task.path.endswith(f"/{query}"),
        lambda task: query in task.path,
    ):
        matching = tuple(filter(matches, tasks))
        if matching:
            return matching
    if not tasks:
        raise NotFound(code="NoSuchPath", wanted=query)
    near = nearest(query, [task.path for task in tasks])
    raise NotFound(code="NoSuchScenario", wanted=query, near=near, known=len(tasks))


def nearest(query: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return at most three paths that, or whose last parts, resemble `query`."""
    from difflib import get_close_matches

    names: dict[str, str] = {}
    for path in paths:
        names[path] = path
        names.setdefault(path.rpartition("/")[2], path)
    close = get_close_matches(query, list(names), n=3, cutoff=0.6)
    return tuple(dict.fromkeys(names[name] for name in close))
