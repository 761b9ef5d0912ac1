"""Registrations of contexts, and the choice of a context's kernel for a call.

| context   | its definitions           | its kernels and fallbacks                   |
|-----------|---------------------------|---------------------------------------------|
| main      | define operators          | are registered, each in a router            |
| any other | must be equal to those    | are copies, run by the router of the main   |
|           | of the main context       | context at that operator and key            |

How it works: the main context registers each kernel inside a linked kernel, a *router*.
A call that reaches the router belongs to the context of its tensors, else to the
context of the thread. In the main context the router runs its own kernel; otherwise it
runs the context's copy, of the same operator and key. Both run as if they had been
registered directly, with the kernels below them, and with their context as the current
one.

Every other context has a separate dispatcher for each dispatcher that it takes part in.
Its libraries are ordinary libraries of that dispatcher, with all their checks, and
routers look up copies there. Its registrations are *verified*: they stay if the main
context has registered the same, or does so while the other one waits
(`Context.timeout`).

Rules of calls:
- a tensor with a handler always belongs to the context that created it; other tensors
  do not belong to a context, and tensors of two contexts cannot meet in a call: neither
  context can handle the other's classes;
- a closed context does not get new calls; a call that has its copy runs it to the end;
- as long as there is only one context, calls skip these checks: see `OTHERS`;
- a copy caches its bound kernel, weakly, and calls do not lock.

Rules of registrations:
- a definition counts no matter who registered it; a kernel only if the main context
  did, since only the main context registers routers. A library without a context does
  not end a wait, but is noticed at its end;
- a registration that is not verified is withdrawn; if the main context closes its
  kernel later, the copies stay, and run again when the kernel is registered again;
- claims and reservations of a context do not affect other contexts;
- a rule belongs to a context only by its class, and cannot be a copy of another one;
- waiting is not possible while holding a lock, nor for a dispatcher whose listener is
  running.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from threading import Condition
from typing import Any
from weakref import WeakKeyDictionary, ref

from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.kernel import Kernel, KernelTraits
from everyorder.runtime.dispatch.kernel_lookup import BoundKernel, NextKernel
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

# The contexts other than the main one, closed ones too: a tensor of one may still
# exist, and keeps it alive. A dead reference removes itself.
OTHERS: set[ref[Any]] = set()


def count_context(context: Any) -> None:
    """Check the contexts of tensors in calls as long as `context` exists."""
    OTHERS.add(ref(context, OTHERS.discard))


def context_of(arguments: Sequence[Any], operator: Callable[[], Any]) -> Any:
    """Return the context of the first tensor that has one, else the thread's current
    one.

    `operator` returns the handle, for errors.

    Raises:
        ContextError: the tensors belong to different contexts, or it is closed.
    """
    context = next(_contexts(arguments), None) or STATE.context
    check_contexts(context, arguments, operator)
    return context


def check_contexts(
    context: Any, arguments: Sequence[Any], operator: Callable[[], Any]
) -> None:
    """Check that `context` may handle a call with these arguments.

    Raises:
        ContextError: a tensor belongs to another context, or `context` is closed.
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
    """Yield the context of each tensor with a handler, also inside lists."""
    for each in arguments:
        if isinstance(each, (list, tuple)):
            yield from _contexts(each)
        elif getattr(each, "key_bits", 0) & PYTHON:
            # A tensor whose keys were set by hand does not have a context.
            context = getattr(each, "_context", None)
            if context is not None:
                yield context


Held = Implementation | Fallback


class Router:
    """The factory of a linked kernel that selects the kernel of the call's context.

    `token` is the registration of the main context, in that dispatcher.
    """

    __slots__ = ("_dispatcher", "_kernel", "_place")

    def __init__(self, token: Held, dispatcher: Dispatcher) -> None:
        self._kernel = token.kernel
        # None for a fallback, whose copies are at the key of the call.
        self._place: tuple[str, str, DispatchKey] | None = None
        if isinstance(token, Implementation):
            reading = token.reading
            self._place = reading.namespace, reading.text, reading.key
        self._dispatcher = ref(dispatcher)

    def __call__(self, below: NextKernel, keyset: KeySet) -> BoundKernel:
        """Return the function of all arguments, for one keyset of one entry."""
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
                copy = self._copy(context, key, below.operator)
                run = copies.get(copy) or copies.setdefault(
                    copy, below.bind(copy.kernel, keyset, key, fallback)
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
        """Return the kernel that the context registered here.

        Raises:
            ContextError: the context is closed, or has no copy.
        """
        dispatcher = self._dispatcher()
        own = None if dispatcher is None else context.own(dispatcher)
        copy = None if own is None else self._find_copy(own.state, key)
        if copy is not None:
            return copy
        context.check_open(str(operator()))
        raise ContextError(
            code="NoCopy", context=context.name, operator=str(operator()), key=key.name
        )

    def _find_copy(self, state: DispatcherState, key: DispatchKey) -> Held | None:
        if self._place is None:
            assert key.slot is not None, "calls are dispatched by runtime keys"
            return state.fallbacks.slots[key.slot]
        entry = state.find(self._place[0], self._place[1])
        tokens = None if entry is None else entry.implementations.get(key)
        return tokens[0] if tokens else None


@lru_cache(maxsize=REMEMBERED)
def _standing(facts: KernelTraits) -> KernelTraits:
    """Return the traits of a router: those of its kernel, except for the kind.

    There is one object for each kernel, because caches of an operator compare it.
    """
    return replace(facts, kind="linked")


def routed(token: RegistrationRecord, dispatcher: Dispatcher) -> RegistrationRecord:
    """Return the record to register instead of `token`; it has the same reading."""
    if isinstance(token, (Implementation, Fallback)):
        kernel = token.kernel
        if kernel.function is not None:
            facts = _standing(kernel.facts)
            standing = Kernel(Router(token, dispatcher), facts)
            if isinstance(token, Fallback):
                return Fallback(token.keys, standing, token.debug)
            original = token.reading
            reading = read_kernel(
                original.operator,
                original.key,
                facts,
                original.debug,
                kernel.with_keyset,
            )
            return Implementation(reading, standing)
    return token


def is_routed(token: Held) -> bool:
    """Return True if contexts can have copies of the registration `token`."""
    return isinstance(token.kernel.function, Router)


# Notified when the main context has registered something, or another one was closed.
# Its lock is reentrant: a finalizer may close a context at any point.
CHANGED = Condition()
# Some systems do not have fork. In a child there are no waiters and no lock owner.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CHANGED._at_fork_reinit)  # type: ignore[attr-defined]  # as `threading` does with its own


class MainLibrary(Library):
    """A library of the main context; see `Library`."""

    __slots__ = ()

    def _register(
        self, tokens: tuple[RegistrationRecord, ...], exclusive: bool = False
    ) -> Registration:
        standing = tuple([routed(token, self._dispatcher) for token in tokens])
        registration = super()._register(standing, exclusive)
        with CHANGED:
            CHANGED.notify_all()
        return registration


class VerifiedLibrary(Library):
    """A library of another context; its base `Library` is one of the dispatcher `own`.

    Registering methods raise, in addition to the errors of `Library`:

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
            registration = super()._register(tokens, exclusive)
        except LibraryMisuse as error:
            if error.code != "LibraryClosed":
                raise
            self._context.check_open("a registration")
            raise
        try:
            _verify(self._context, self._main, tokens)
        except BaseException:
            registration.close()
            raise
        return registration

    def rule(
        self,
        op: str | OperatorName | OperatorHandle,
        cls: type,
        fn: Callable[..., Any],
        *,
        debug: str | None = None,
    ) -> Registration:
        """Refuse: calls look up rules in the dispatcher that all contexts share.

        Raises:
            LibraryMisuse: always.
        """
        raise LibraryMisuse(
            code="CallRefused",
            call=f"rule({str(op)!r}, ...)",
            library=repr(self),
            reason="a rule belongs to the operator, which all contexts share",
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
    """Return True if the main context has registered the same."""
    if isinstance(token, Definition):
        entry = state.entry(token.operator)
        return entry is not None and bool(entry.definitions)
    if not isinstance(token, (Implementation, Fallback)):
        return True
    through = token.kernel.function is None
    return all(
        any(is_routed(e) or (through and e.kernel.function is None) for e in tokens)
        for tokens in _kernel_places(state, token)
    )


def _kernel_places(
    state: DispatcherState, token: RegistrationRecord
) -> list[tuple[Implementation | Fallback, ...]]:
    """Return the tokens at each place of a kernel; no places for other tokens."""
    if isinstance(token, Implementation):
        entry = state.entry(token.operator)
        return [() if entry is None else entry.implementations.get(token.key, ())]
    if isinstance(token, Fallback):
        slots = state.fallbacks.slots
        fallbacks = [slots[key.slot] for key in token.keys if key.slot is not None]
        return [() if each is None else (each,) for each in fallbacks]
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
    """Check that the main context's definition is equal, and accepts that kernel.

    Raises:
        ContextError: the definitions differ.
        Conflict: the typed kernel does not fit.
    """
    if not isinstance(token, (Definition, Implementation)):
        return
    entry = state.entry(token.operator)
    assert entry is not None, "the main context has registered the same"
    if isinstance(token, Implementation):
        if token.reading.facts.signature is not None:
            check_kernel_fits(entry, token)
        return
    schemas = [each.schema for each in entry.definitions]
    if schemas and token.schema not in schemas:
        raise ContextError(
            code="SchemaDiffers",
            context=context,
            operator=str(token.operator),
            schema=str(token.schema),
            expected=str(schemas[0]),
        )
