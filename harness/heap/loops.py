"""How event loops of asyncio are read: by what they still have to do.

A loop between two operations is what waits in it: callbacks, timers, asynchronous
generators, file descriptors that it watches.  Its sockets, its selector and its clock
are the loop's own business, and nobody's state.
"""

import sys
from typing import Any

from harness.heap.known import ABSENT, Known, Parts, Unreadable
from harness.heap.layout import layout_of, module_of, mro_of

_READ = (
    "_ready",
    "_scheduled",
    "_asyncgens",
    "_closed",
    "_stopping",
    "_debug",
    "_exception_handler",
    "_task_factory",
    "_default_executor",
    "_signal_handlers",
)
# The loop watches a pipe of its own, to be woken up by.
_OWN_PIPES = 1


def loop_reader(kind: type) -> Known | None:
    """How to read a loop that is written in Python."""
    if module_of(kind).partition(".")[0] != "asyncio":
        return None
    events = sys.modules.get("asyncio.base_events")
    base = getattr(events, "BaseEventLoop", None)
    if not any(each is base for each in mro_of(kind)):
        return None
    return Known(parts=_loop, alone=True)


def _loop(o: Any) -> Parts:
    attributes = _attributes(o)
    selector = attributes.get("_selector")
    if selector is not None:
        watched = _attributes(selector).get("_fd_to_key")
        if type(watched) is not dict or len(watched) > _OWN_PIPES:
            raise Unreadable
    return [(name, attributes.get(name, ABSENT)) for name in _READ]


def _attributes(o: Any) -> dict[str, Any]:
    dict_of = layout_of(type(o)).dict_of
    if dict_of is None:
        raise Unreadable
    attributes: dict[str, Any] = dict_of(o)
    return attributes
