"""Locks of the whole process: of loading, and those that a forked child gets anew.

What is held while a module of ours loads, and what a fork does to locks that another
thread holds at that moment: the child has no such thread, so nobody would ever release
them.

Rules:
- a module that loads when it is first asked for is loaded by `load`, or with `LOADING`
  held: two threads that enter a package at two of its modules would each wait for what
  the other one loads;
- nothing that holds another lock loads a module for the first time;
- `waited_for` is for locks of long work that must not be cut in two (loading,
  compiling): a fork waits until they are free; they are reentrant, as the thread that
  forks may hold them;
- `renewed` is for locks of a few steps, each of which leaves things whole: the child
  finds them free;
- `reentered` is for those of them under which objects are made: the garbage collector
  or a signal may then run code of anybody in the very thread that holds the lock.  Who
  holds one makes first, looks again, and only then sets.
"""

import os
from importlib import import_module
from threading import Lock, RLock
from types import ModuleType
from typing import Any
from weakref import WeakSet

# In any order: `_before` holds none of them while it waits for another one.
_AWAITED: list[RLock] = []
_RENEWED: WeakSet[Any] = WeakSet()


def waited_for() -> RLock:
    """A reentrant lock that a fork waits for; for modules, which make it once."""
    made = RLock()
    _AWAITED.append(made)
    return made


def renewed() -> Lock:
    """A lock that is free in a forked child, whoever held it."""
    made = Lock()
    _RENEWED.add(made)
    return made


def reentered() -> RLock:
    """As `renewed`, and a thread that holds it may take it again."""
    made = RLock()
    _RENEWED.add(made)
    return made


# Held while a module of ours loads.
LOADING = waited_for()


def load(name: str) -> ModuleType:
    """A module of ours, its packages first, by one thread at a time."""
    with LOADING:
        parts = name.split(".")
        for count in range(1, len(parts)):
            import_module(".".join(parts[:count]))
        return import_module(name)


def _before() -> None:
    """Acquire every awaited lock, in an order that no other thread has to know.

    Waiting for one lock while holding another would deadlock with a thread that takes
    the same two the other way round: a compile holds the compiler's lock and loads.
    """
    first = 0
    while True:
        _AWAITED[first].acquire()
        acquired = [first]
        for number, lock in enumerate(_AWAITED):
            if number == first:
                continue
            if not lock.acquire(blocking=False):
                first = number
                break
            acquired.append(number)
        else:
            return
        for number in acquired:
            _AWAITED[number].release()


def _after() -> None:
    for lock in reversed(_AWAITED):
        lock.release()


def _in_child() -> None:
    _after()
    for lock in _RENEWED:
        lock._at_fork_reinit()


# Some systems have no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after, after_in_child=_in_child
    )
