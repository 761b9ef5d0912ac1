"""What contexts register, and whose kernel a call runs.

| context   | what it defines           | its kernels and fallbacks                   |
|-----------|---------------------------|---------------------------------------------|
| main      | is defined                | are registered, each in a router            |
| any other | must be defined, equally  | are copies, which the router of the main    |
|           |                           | one at that operator and key runs           |

How it works: what the main context registers is a linked kernel around its own, a
*router*.  A call that gets there is of the context of its tensors, else of that of the
thread.  If that is the main one, its own kernel runs; else the context is asked for its
copy, of the same operator and key.  Both run as if they had been registered themselves,
with what lies below them, and with their context as the current one.

Every other context has a dispatcher of its own beside each one that it takes part in.
There its libraries are ordinary ones, with all their checks, and there its copies are
found.  What they register is *verified*: it stays if the main context has registered
the same, or does so while the other one waits (`Context.timeout`).

Rules of calls:
- a tensor with a handler is of the context that made it, for ever; other tensors are of
  none, and tensors of two contexts meet in no call: neither knows the other's classes;
- a closed context is asked nothing; a call that has its copy runs it to the end;
- as long as there is one context, nothing is asked at all: see `OTHERS`;
- a copy's bound kernel is remembered by the copy, weakly, and no lock is taken.

Rules of registrations:
- a definition counts whoever made it; a kernel only if the main context did, since
  another one asks for no copies.  A library that is no context's ends no wait, but is
  seen at the end of it;
- what is not verified is taken back; what the main context takes down later leaves the
  copies where they are, and they run again when it is back;
- claims and reservations are the context's own affair;
- a rule is of no context but by its class, and no copy of another one;
- nobody waits while holding a lock, nor for a dispatcher whose listener is running.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from threading import Condition
from typing import Any
from weakref import WeakKeyDictionary, ref

from everyorder.runtime.dispatch.call import BoundKernel, NextKernel
from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.kernel import Kernel, KernelTraits
from everyorder.runtime.dispatch.library import KeyLike, Library
from everyorder.runtime.dispatch.registration import Registration
from everyorder.runtime.dispatch.registration_record import (
    REMEMBERED,
    Definition,
    Fallback,
    Implementation,
    RegistrationRecord,
    read_kernel,
)
from everyorder.runtime.dispatch.state import DispatcherState
from everyorder.runtime.dispatch.transition import check_kernel_fits
from everyorder.runtime.errors.registration import LibraryMisuse
from everyorder.runtime.errors.torch_dispatch import ContextError
from everyorder.runtime.keys import SLOTS, DispatchKey, KeySet, slot_of
from everyorder.runtime.schema.signature import OperatorName
from everyorder.runtime.tensors.keys import PYTHON, STATE

# The contexts beside the main one, closed ones too: a tensor of one may be anywhere,
# and keeps it.  A reference takes itself out.
OTHERS: set[ref[Any]] = set()


def context_of(arguments: Sequence[Any], operator: Callable[[], Any]) -> Any:
    """The context of the first tensor that has one, else the thread's current one.

    `operator` gives the handle, for errors.  Raises `ContextError`.
    """
    found = next(_contexts(arguments), None) or STATE.context
    check_contexts(found, arguments, operator)
    return found


def check_contexts(
    context: Any, arguments: Sequence[Any], operator: Callable[[], Any]
) -> None:
    """Whether `context` may handle the call, as far as tensors tell.

    Raises `ContextError`.
    """
    for other in _contexts(arguments):
        if other is not context:
            raise ContextError(
                code="MixedContexts",
                context=context.name,
                other=other.name,
                operator=str(operator()),
            )
    if not context.alive:
        raise ContextError(
            code="ContextClosed", context=context.name, asked=str(operator())
        )


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

    def __call__(self, below: NextKernel, keyset: KeySet) -> BoundKernel:
        """The function of all arguments, for one keyset of one entry."""
        key = self._place[2] if self._place else SLOTS[slot_of(keyset.bits)]
        fallback = self._place is None
        main = below.bind(self._kernel, keyset, key, fallback)
        copies: WeakKeyDictionary[Held, BoundKernel] = WeakKeyDictionary()

        def routed(*arguments: Any) -> Any:
            if not OTHERS:
                return main(*arguments)
            context = context_of(arguments, below.operator)
            run = main
            if not context.registrar:
                held = self._copy(context, key, below.operator)
                run = copies.get(held) or copies.setdefault(
                    held, below.bind(held.kernel, keyset, key, fallback)
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
        """The kernel that the context registered here.  Raises `ContextError`."""
        dispatcher = self._dispatcher()
        own = None if dispatcher is None else context.own(dispatcher)
        held = None if own is None else self._held(own.state, key)
        if held is not None:
            return held
        context.check_open(str(operator()))
        raise ContextError(
            code="NoCopy", context=context.name, operator=str(operator()), key=key.name
        )

    def _held(self, state: DispatcherState, key: DispatchKey) -> Held | None:
        if self._place is None:
            assert key.slot is not None, "calls are dispatched by runtime keys"
            return state.fallbacks.slots[key.slot]
        entry = state.find(self._place[0], self._place[1])
        tokens = None if entry is None else entry.implementations.get(key)
        return tokens[0] if tokens else None


@lru_cache(maxsize=REMEMBERED)
def _standing(facts: KernelTraits) -> KernelTraits:
    """The facts of a router: those of its kernel, but for the kind.

    One object for each kernel, as what is remembered of an operator goes by it.
    """
    return replace(facts, kind="linked")


def routed(token: RegistrationRecord, dispatcher: Dispatcher) -> RegistrationRecord:
    """The token that is registered instead of `token`; it reads the same."""
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


# Told when the main context has registered something, or another one was closed.  Its
# lock is reentrant: a finalizer may close a context wherever it runs.
CHANGED = Condition()
# Some systems have no fork; in a child, nobody waits and nobody holds the lock.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CHANGED._at_fork_reinit)  # type: ignore[attr-defined]  # as `threading` does with its own


class MainLibrary(Library):
    """A library of the main context; see `Library`."""

    __slots__ = ()

    def _register(
        self, tokens: tuple[RegistrationRecord, ...], exclusive: bool = False
    ) -> Registration:
        standing = tuple([routed(token, self._dispatcher) for token in tokens])
        made = super()._register(standing, exclusive)
        with CHANGED:
            CHANGED.notify_all()
        return made


class VerifiedLibrary(Library):
    """A library of another context; see `Library`, which it is in `own`.

    Besides, whatever registers raises:
        ContextError: the main context did not do the same in time.
        ContextError: it defined the operator otherwise.
        ContextError: the context is closed, or was while it waited.
        Conflict: a typed kernel does not fit there.
        LibraryMisuse: called by a listener of the dispatcher.
    """

    __slots__ = ("_context", "_main")

    def __init__(
        self,
        context: Any,
        main: Dispatcher,
        own: Dispatcher,
        ns: str,
        kind: str,
        dispatch_key: KeyLike | None,
        origin: str | None,
    ) -> None:
        self._context = context
        self._main = main
        super().__init__(ns, kind, dispatch_key, dispatcher=own, origin=origin)

    def _register(
        self, tokens: tuple[RegistrationRecord, ...], exclusive: bool = False
    ) -> Registration:
        self._main.check_writable("a library of a context")
        try:
            made = super()._register(tokens, exclusive)
        except LibraryMisuse as error:
            if error.code != "LibraryClosed":
                raise
            self._context.check_open("a registration")
            raise
        try:
            _verify(self._context, self._main, tokens)
        except BaseException:
            made.close()
            raise
        return made

    def rule(
        self,
        op: str | OperatorName | OperatorHandle,
        cls: type,
        fn: Callable[..., Any],
        *,
        debug: str | None = None,
    ) -> Registration:
        """Refuse: calls ask for rules in the dispatcher that all contexts share.

        Raises:
            LibraryMisuse: always.
        """
        raise LibraryMisuse(
            code="CallRefused",
            call=f"rule({str(op)!r}, ...)",
            library=repr(self),
            reason="a rule is of the operator, which all contexts share",
            remedy="Use register_torch_dispatch(op, cls, fn).",
        )

    def _check_open(self, call: str) -> None:
        self._context.check_open(call)
        super()._check_open(call)


def _verify(
    context: Any, main: Dispatcher, tokens: Sequence[RegistrationRecord]
) -> None:
    """Wait until the main context has registered the same."""
    state, missing = main.state, [*tokens]

    def settled() -> bool:
        nonlocal state, missing
        state = main.state
        missing = [token for token in tokens if not _is_met(state, token)]
        return not missing or not context.alive

    with CHANGED:
        timeout = context.timeout
        CHANGED.wait_for(settled, timeout)
    context.check_open("a registration")
    if missing:
        raise _unmet(context.name, state, missing[0], timeout)
    for token in tokens:
        _check_fits(context.name, state, token)


def _is_met(state: DispatcherState, token: RegistrationRecord) -> bool:
    """Whether the same is registered."""
    if isinstance(token, Definition):
        entry = state.entry(token.operator)
        return entry is not None and bool(entry.definitions)
    if not isinstance(token, (Implementation, Fallback)):
        return True
    through = token.kernel.function is None
    return all(
        any(is_routed(e) or (through and e.kernel.function is None) for e in held)
        for held in _kernel_places(state, token)
    )


def _kernel_places(
    state: DispatcherState, token: RegistrationRecord
) -> list[tuple[Implementation | Fallback, ...]]:
    """The tokens at each place of a kernel; no places for other tokens."""
    if isinstance(token, Implementation):
        entry = state.entry(token.operator)
        return [() if entry is None else entry.implementations.get(token.key, ())]
    if isinstance(token, Fallback):
        slots = state.fallbacks.slots
        found = [slots[key.slot] for key in token.keys if key.slot is not None]
        return [() if each is None else (each,) for each in found]
    return []


def _unmet(
    context: str, state: DispatcherState, token: RegistrationRecord, timeout: float
) -> ContextError:
    operator, key = "_", ""
    if isinstance(token, Implementation):
        operator, key = str(token.operator), token.key.name
    elif isinstance(token, Fallback):
        key = ", ".join(each.name for each in token.keys)
    else:
        assert isinstance(token, Definition), "nothing is asked of other tokens"
        operator = str(token.operator)
    return ContextError(
        code="NotVerified",
        context=context,
        operator=operator,
        key=key,
        timeout=timeout,
        beside=any(_kernel_places(state, token)),
    )


def _check_fits(
    context: str, state: DispatcherState, token: RegistrationRecord
) -> None:
    """Whether the main context's operator is defined so, and can have that kernel."""
    if not isinstance(token, (Definition, Implementation)):
        return
    entry = state.entry(token.operator)
    assert entry is not None, "the main context has registered the same"
    if isinstance(token, Implementation):
        if token.reading.facts.signature is not None:
            check_kernel_fits(entry, token)
        return
    known = [each.schema for each in entry.definitions]
    if known and token.schema not in known:
        raise ContextError(
            code="SchemaDiffers",
            context=context,
            operator=str(token.operator),
            schema=str(token.schema),
            expected=str(known[0]),
        )
