"""The state of this thread and process that no container shows, by what it is called.

True only here: reading changes nothing, and what is returned keeps nothing alive.

Not here, because nobody can read it back: the umask, the codecs and error handlers
registered, audit hooks.  The audit of C calls tells those who write them.
"""

import _locale
import _thread
import atexit
import contextvars
import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Hashable
from decimal import Context, getcontext
from typing import Any

from harness.heap.in_c import decimal_token

_SIGNALS = tuple(signal.valid_signals())


def thread_state() -> dict[str, Hashable]:
    """What containers do not show, as `{"the current directory": ...}`.

    Context variables are not among it: see `variables`.
    """
    state: dict[str, Hashable] = {
        "the recursion limit": sys.getrecursionlimit(),
        "the trace function": sys.gettrace() is None,
        "the profile function": sys.getprofile() is None,
        "the switch interval": sys.getswitchinterval(),
        "the hooks of async generators": tuple(map(id, sys.get_asyncgen_hooks())),
        "the thresholds of the collector": gc.get_threshold(),
        "the current directory": _directory(),
        "the locale": _locale.setlocale(_locale.LC_ALL, None),
        "the number of atexit callbacks": atexit._ncallbacks(),
        "the number of threads": _thread._count(),
    }
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        # The constants of `signal` are integers made anew at each look.
        state[f"the handler of {_name(number)}"] = (
            int(handler) if isinstance(handler, signal.Handlers) else id(handler)
        )
    # A thread that never divided has no context yet; asking makes the default one.
    state["the decimal context"] = decimal_token(getcontext())
    return state


def variables(excluded: frozenset[int]) -> dict[int, tuple[str, Hashable]]:
    """The context variables of this thread by id: what each is called, and its value.

    Those with an id in `excluded` are left out.
    """
    return {
        id(variable): (f"the context variable {variable.name}", _value(value))
        for variable, value in contextvars.copy_context().items()
        if id(variable) not in excluded and type(value) is not Context
    }


def context_values() -> dict[str, Any]:
    """The values of the context variables of this thread, by the path to each.

    Not the context of decimals, of which each fresh system has one of its own:
    `thread_state` tells what is set in it.
    """
    values: dict[str, Any] = {}
    namesakes: Counter[str] = Counter()
    for variable, value in contextvars.copy_context().items():
        if type(value) is Context:
            continue
        name = f"contextvars[{variable.name!r}]"
        namesakes[name] += 1
        if namesakes[name] > 1:
            name += f" ({namesakes[name]})"
        values[name] = value
    return values


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None  # it was removed


def _value(value: Any) -> Hashable:
    kind = type(value)
    return (id(kind), value) if kind in (int, str, bytes, bool) else id(value)
