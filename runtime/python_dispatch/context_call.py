"""Whose call it is: the context of its tensors, else that of the thread.

True only here: how a call finds its context, and what makes it nobody's.

Rules:
- a tensor with a handler is of the context that made it, for ever; other tensors are of
  none;
- tensors of two contexts meet in no call: neither knows the other's classes;
- a closed context is asked nothing;
- as long as there is one context, nothing is asked at all: see `OTHERS`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import ref

from runtime.errors.context import ContextClosed, MixedContexts
from runtime.tensors.keys import PYTHON, STATE

# The contexts beside the main one, closed ones too: a tensor of one may be anywhere,
# and keeps it.  A reference takes itself out.
OTHERS: set[ref[Any]] = set()


def context_of(arguments: Sequence[Any], operator: Callable[[], Any]) -> Any:
    """The context of the first tensor that has one, else the thread's current one.

    `operator` gives the handle, for errors.  Raises `MixedContexts`, `ContextClosed`.
    """
    found = next(_contexts(arguments), None) or STATE.context
    check_contexts(found, arguments, operator)
    return found


def check_contexts(
    context: Any, arguments: Sequence[Any], operator: Callable[[], Any]
) -> None:
    """Whether `context` may handle the call, as far as tensors tell.

    Raises `MixedContexts`, `ContextClosed`.
    """
    for other in _contexts(arguments):
        if other is not context:
            raise MixedContexts(
                context=context.name, other=other.name, operator=str(operator())
            )
    if not context.alive:
        raise ContextClosed(context=context.name, asked=str(operator()))


def _contexts(arguments: Sequence[Any]) -> Iterator[Any]:
    """The context of each tensor with a handler, lists looked into."""
    for each in arguments:
        if isinstance(each, (list, tuple)):
            yield from _contexts(each)
        elif getattr(each, "key_bits", 0) & PYTHON:
            # One whose keys were set by hand has none.
            context = getattr(each, "_context", None)
            if context is not None:
                yield context
