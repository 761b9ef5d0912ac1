"""Libraries of contexts: one registers, the others do the same and are held to it.

True only here: what `Library.define`, `impl` and `fallback` mean in a context.

| context   | what it defines           | its kernels and fallbacks                   |
|-----------|---------------------------|---------------------------------------------|
| main      | is defined                | are registered, each in a router            |
| any other | must be defined, equally  | are copies, which the router of the main    |
|           |                           | one at that operator and key runs           |

How it works: every other context has a dispatcher of its own beside each one that it
takes part in.  There its libraries are ordinary ones, with all their checks, and there
its copies are found.  What they register is *verified*: it stays if the main context
has registered the same, or does so while the other one waits (`Context.timeout`).

Rules:
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
from collections.abc import Callable, Sequence
from threading import Condition
from typing import Any

from runtime.dispatch.arguments import KeyLike
from runtime.dispatch.checks import check_kernel_fits
from runtime.dispatch.dispatcher import Dispatcher
from runtime.dispatch.handle import OperatorHandle
from runtime.dispatch.library import Library
from runtime.dispatch.registration import Registration
from runtime.dispatch.state import DispatcherState
from runtime.dispatch.token import Definition, Fallback, Implementation, Token
from runtime.errors.context import NotVerified, SchemaDiffers
from runtime.errors.registration import CallRefused, LibraryClosed
from runtime.python_dispatch.context_router import is_routed, routed
from runtime.schema.names import OperatorName

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
        self, tokens: tuple[Token, ...], exclusive: bool = False
    ) -> Registration:
        standing = tuple([routed(token, self._dispatcher) for token in tokens])
        made = super()._register(standing, exclusive)
        with CHANGED:
            CHANGED.notify_all()
        return made


class VerifiedLibrary(Library):
    """A library of another context; see `Library`, which it is in `own`.

    Besides, whatever registers raises:
        NotVerified: the main context did not do the same in time.
        SchemaDiffers: it defined the operator otherwise.
        ContextClosed: the context is closed, or was while it waited.
        SchemaMismatch, SignatureMismatch: a typed kernel does not fit there.
        WriteInsideListener: called by a listener of the dispatcher.
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
        self, tokens: tuple[Token, ...], exclusive: bool = False
    ) -> Registration:
        self._main.check_writable("a library of a context")
        try:
            made = super()._register(tokens, exclusive)
        except LibraryClosed:
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
            CallRefused: always.
        """
        raise CallRefused(
            call=f"rule({str(op)!r}, ...)",
            library=repr(self),
            reason="a rule is of the operator, which all contexts share",
            remedy="Use register_torch_dispatch(op, cls, fn).",
        )

    def _check_open(self, call: str) -> None:
        self._context.check_open(call)
        super()._check_open(call)


def _verify(context: Any, main: Dispatcher, tokens: Sequence[Token]) -> None:
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


def _is_met(state: DispatcherState, token: Token) -> bool:
    """Whether the same is registered."""
    if isinstance(token, Definition):
        entry = state.entry(token.operator)
        return entry is not None and bool(entry.definitions)
    if not isinstance(token, (Implementation, Fallback)):
        return True
    through = token.kernel.function is None
    return all(
        any(is_routed(e) or (through and e.kernel.function is None) for e in held)
        for held in _beside(state, token)
    )


def _beside(
    state: DispatcherState, token: Token
) -> list[tuple[Implementation | Fallback, ...]]:
    """What stands in each of the places of a kernel; no places for other tokens."""
    if isinstance(token, Implementation):
        entry = state.entry(token.operator)
        return [() if entry is None else entry.implementations.get(token.key, ())]
    if isinstance(token, Fallback):
        slots = state.fallbacks.slots
        found = [slots[key.slot] for key in token.keys if key.slot is not None]
        return [() if each is None else (each,) for each in found]
    return []


def _unmet(
    context: str, state: DispatcherState, token: Token, timeout: float
) -> NotVerified:
    operator, key = "_", ""
    if isinstance(token, Implementation):
        operator, key = str(token.operator), token.key.name
    elif isinstance(token, Fallback):
        key = ", ".join(each.name for each in token.keys)
    else:
        assert isinstance(token, Definition), "nothing is asked of other tokens"
        operator = str(token.operator)
    return NotVerified(
        context=context,
        operator=operator,
        key=key,
        timeout=timeout,
        beside=any(_beside(state, token)),
    )


def _check_fits(context: str, state: DispatcherState, token: Token) -> None:
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
        raise SchemaDiffers(
            context=context,
            operator=str(token.operator),
            schema=str(token.schema),
            expected=str(known[0]),
        )
