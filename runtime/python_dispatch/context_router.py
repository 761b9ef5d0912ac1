"""Routers: the kernels of the main context, which run those of the other ones.

True only here: how one kernel in the dispatcher stands for one of each context.

How it works: what the main context registers is a linked kernel around its own.  A call
that gets there is of some context (`runtime.python_dispatch.context_call`); if that is
the main one, its own kernel runs; else the context is asked for its copy, which it
registered with a dispatcher of its own, for the same operator and key.  Both run as if
they had been registered themselves, with what lies below them, and with their context
as the current one.  A call without tensors of any context is the thread's: the copy of
its current context runs, and that is all there is to it.

Rules:
- a copy's bound kernel is remembered by the copy, weakly: nothing here keeps it alive;
- no lock is taken; a call that has its copy runs it to the end, whatever is closed.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary, ref

from runtime.dispatch.call import Below, BoundKernel
from runtime.dispatch.dispatcher import Dispatcher
from runtime.dispatch.kernel import Facts, Kernel
from runtime.dispatch.state import DispatcherState
from runtime.dispatch.token import (
    REMEMBERED,
    Fallback,
    Implementation,
    Token,
    read_kernel,
)
from runtime.errors.context import ContextClosed, NoCopy
from runtime.keys import SLOTS, DispatchKey, KeySet, slot_of
from runtime.python_dispatch.context_call import OTHERS, context_of
from runtime.tensors.keys import STATE

Held = Implementation | Fallback


class Router:
    """The factory of a linked kernel that stands for one of each context.

    `token` is what the main context registers, in that dispatcher.
    """

    __slots__ = ("_dispatcher", "_kernel", "_place")

    def __init__(self, token: Held, dispatcher: Dispatcher) -> None:
        self._kernel = token.kernel
        # None: a fallback, whose copies stand at the key of the call.
        self._place: tuple[str, str, DispatchKey] | None = None
        if isinstance(token, Implementation):
            reading = token.reading
            self._place = reading.namespace, reading.text, reading.key
        self._dispatcher = ref(dispatcher)

    def __call__(self, below: Below, keyset: KeySet) -> BoundKernel:
        """The function of all arguments, for one keyset of one entry."""
        key = self._place[2] if self._place else SLOTS[slot_of(keyset.bits)]
        fallback = self._place is None
        main = below.instead(self._kernel, keyset, key, fallback)
        copies: WeakKeyDictionary[Held, BoundKernel] = WeakKeyDictionary()

        def routed(*arguments: Any) -> Any:
            if not OTHERS:
                return main(*arguments)
            context = context_of(arguments, below.operator)
            run = main
            if not context.registrar:
                held = self._copy(context, key, below.operator)
                run = copies.get(held) or copies.setdefault(
                    held, below.instead(held.kernel, keyset, key, fallback)
                )
            before = STATE.context
            if context is before:
                return run(*arguments)
            STATE.context = context
            try:
                return run(*arguments)
            finally:
                STATE.context = before

        return routed

    def _copy(
        self, context: Any, key: DispatchKey, operator: Callable[[], Any]
    ) -> Held:
        """What the context registered here.  Raises `NoCopy`, `ContextClosed`."""
        dispatcher = self._dispatcher()
        own = None if dispatcher is None else context.own(dispatcher)
        held = None if own is None else self._held(own.state, key)
        if held is not None:
            return held
        if not context.alive:
            raise ContextClosed(context=context.name, asked=str(operator()))
        raise NoCopy(context=context.name, operator=str(operator()), key=key.name)

    def _held(self, state: DispatcherState, key: DispatchKey) -> Held | None:
        if self._place is None:
            assert key.slot is not None, "calls are dispatched by runtime keys"
            return state.fallbacks.slots[key.slot]
        entry = state.find(self._place[0], self._place[1])
        tokens = None if entry is None else entry.implementations.get(key)
        return tokens[0] if tokens else None


@lru_cache(maxsize=REMEMBERED)
def _standing(facts: Facts) -> Facts:
    """What a router tells about itself: all that its kernel does, but for the kind.

    One object for each kernel, as what is remembered of an operator goes by it.
    """
    return replace(facts, kind="linked")


def routed(token: Token, dispatcher: Dispatcher) -> Token:
    """What is registered instead of `token`; it reads the same."""
    if isinstance(token, (Implementation, Fallback)):
        kernel = token.kernel
        if kernel.function is not None:
            facts = _standing(kernel.facts)
            standing = Kernel(Router(token, dispatcher), facts)
            if isinstance(token, Fallback):
                return Fallback(token.keys, standing, token.debug)
            told = token.reading
            reading = read_kernel(
                told.operator, told.key, facts, told.debug, kernel.with_keyset
            )
            return Implementation(reading, standing)
    return token


def is_routed(token: Held) -> bool:
    """Whether contexts can have copies of what is registered by `token`."""
    return isinstance(token.kernel.function, Router)
