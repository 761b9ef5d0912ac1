"""Locks of the whole process: for loading modules, and for use across forks.

The lock that is held while a module of the package loads, and the handling of locks
that another thread holds at a fork: the child does not have that thread, so these locks
would never be released.

Rules:
- a module that is loaded on first use is loaded by `load`, or with `LOADING` held: two
  threads that enter a package at two of its modules would each wait for the module that
  the other one loads;
- a thread that holds another lock never loads a module for the first time;
- `waited_for` is for locks of long work that a fork must not interrupt (loading,
  compiling): a fork waits until they are free; they are reentrant, as the thread that
  forks may hold them;
- `renewed` is for locks of a few steps, after each of which the state is consistent:
  the child finds them free;
- `reentered` is for such locks under which objects are created: the garbage collector
  or a signal may then run arbitrary code in the very thread that holds the lock.  The
  holder creates first, checks again, and only then assigns.
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
    """Return a reentrant lock that a fork waits for; modules create it once."""
    lock = RLock()
    _AWAITED.append(lock)
    return lock


def renewed() -> Lock:
    """Return a lock that is free in a forked child, even if another thread held it."""
    lock = Lock()
    _RENEWED.add(lock)
    return lock


def reentered() -> RLock:
    """Return a lock as `renewed` does that its holder may acquire again."""
    lock = RLock()
    _RENEWED.add(lock)
    return lock


# Held while a module of the package loads.
LOADING = waited_for()


def load(name: str) -> ModuleType:
    """Import a module of the package, its parents first, by one thread at a time."""
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


# `os.fork` does not exist on every system.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after, after_in_child=_in_child
    )
