"""The dispatcher: a lock, a reference to the current state, and its listeners.

A writer computes the new state, notifies the listeners, and publishes by one
assignment.  A reader reads the reference once and then holds a value: it never waits,
never sees a mix of two states, and never a state that is withdrawn.

Rules:
- an exception of a listener abandons a registration, and the listeners already notified
  are notified of the reverse; a removal always completes, and the exceptions are raised
  after it;
- listeners are called from C, one after the other: at every Python line where an
  interrupt can arrive, each of them was either notified or not;
- no kernel runs while the lock is held; a listener that registers is refused;
- a lost library is only appended to `dropped`, and so are tokens that a finalizer
  closes while its thread registers; the next writer removes them;
- a forked child finds the lock free, and the last published state: a publication that
  another thread had begun did not happen.

Everything cached for calls is stored on an entry; nothing subscribes to invalidation.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial, reduce
from operator import call, methodcaller
from threading import get_ident
from types import SimpleNamespace
from typing import cast
from weakref import ref

from everyorder.runtime.base.locks import renewed
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.kernel import fallthrough
from everyorder.runtime.dispatch.registration import (
    HandleCache,
    OwnedRegistrations,
    Owner,
    Registration,
    register_tokens,
)
from everyorder.runtime.dispatch.registration_record import (
    Definition,
    Fallback,
    Implementation,
    Listener,
    RegistrationRecord,
    Subscription,
)
from everyorder.runtime.dispatch.state import (
    EMPTY,
    DispatcherState,
    OperatorEntry,
    dump_state,
    dump_table,
)
from everyorder.runtime.dispatch.transition import ADD, LIVE, REMOVE, check_no_override
from everyorder.runtime.dispatch.watch import WATCH
from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.registration import LibraryMisuse, LookupFailed
from everyorder.runtime.keys import AUTOCAST_KEYS, DispatchKey, fallback_keys
from everyorder.runtime.schema.parser import parse_name
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import OperatorName

# A call of a listener; notifications, each with its reverse.
Notification = Callable[[], None]
Additions = list[tuple[Notification, Notification]]

# Keys that a call passes when nothing handles them: the first two are included in every
# call, the vmap modes are entered for the whole thread, and autocast keys are on every
# tensor.
PASSED = (
    "BackendSelect",
    "ADInplaceOrView",
    "Autograd",
    "FuncTorchVmapMode",
    "VmapMode",
)
_BUILTIN_TOKENS = {
    name: Fallback(fallback_keys(DispatchKey.parse(name)), fallthrough, "built in")
    for name in (*PASSED, *(key.name for key in AUTOCAST_KEYS))
}
# The state that new dispatchers start from.
BUILTIN = reduce(ADD[Fallback], _BUILTIN_TOKENS.values(), EMPTY)


class Dispatcher:
    """A registry of operators; programs usually share `default_dispatcher()`.

    It starts with fallbacks that let a call pass the keys that nothing handles
    (`PASSED`, and those of autocast); `builtin_fallbacks=False` omits them.
    `merges_alias_kinds=True` turns on the 2020 rule: a second, equal definition of an
    operator is accepted if it omits the alias analysis kind. `warns_of_overrides=False`
    silences `KernelOverridden`.  `state` is the published state; only this class
    assigns to it.
    """

    __slots__ = (
        "__weakref__",
        "_lock",
        "_telling",
        "_writer",
        "dropped",
        "keyring",
        "owners",
        "state",
        "warns_of_overrides",
    )

    def __init__(
        self,
        *,
        builtin_fallbacks: bool = True,
        merges_alias_kinds: bool = False,
        warns_of_overrides: bool = True,
    ) -> None:
        state = BUILTIN if builtin_fallbacks else EMPTY
        if merges_alias_kinds:
            state = state._replace(merges_alias_kinds=True)
        self.state = state
        self.keyring = HandleCache()
        self._lock = renewed()
        self._writer = 0
        self._telling = False
        self.warns_of_overrides = warns_of_overrides
        # The libraries that are not closed; then lost libraries, or their tokens.
        self.owners: set[ref[object]] = set()
        self.dropped: deque[Sequence[RegistrationRecord] | Owner] = deque()

    def snapshot(self) -> DispatcherState:
        """Return the current state, an immutable value, in constant time."""
        return self.state

    def entry(self, name: str) -> OperatorEntry | None:
        """Return the entry of the operator called `name`, or None if there is none.

        A name that has only class rules is not an operator.

        Raises:
            SchemaSyntaxError: `name` is not an operator name.
        """
        entry = self.state.entry(parse_name(name))
        return None if entry is None or not entry.total else entry

    def dump_state(self, name: str) -> str:
        """Return the registrations of `name` as text; empty for an unknown operator."""
        entry = self.entry(name)
        return "" if entry is None else dump_state(entry)

    def dump_table(self, name: str) -> str:
        """Return the live table of `name`, one line a slot; empty if it is unknown."""
        entry = self.entry(name)
        return "" if entry is None else dump_table(entry)

    def find_schema(self, name: str) -> Schema | None:
        """Return the schema of `name`, or None if it has none."""
        entry = self.entry(name)
        return None if entry is None else entry.schema

    def find_schema_or_raise(self, name: str) -> Schema:
        """Return the schema of `name`.

        Raises:
            LookupFailed: the operator is unknown, or has kernels and no schema.
        """
        entry = self.entry(name)
        if entry is not None and entry.schema is not None:
            return entry.schema
        defined = tuple([str(e.name) for e in self.state.entries() if e.definitions])
        raise LookupFailed(
            code="SchemaNotFound",
            operator=name,
            implemented=entry is not None and bool(entry.implementations),
            near=() if entry is not None else nearest(name, defined),
        )

    def op_names(self) -> tuple[str, ...]:
        """Return the names of all operators, sorted, without those of rules alone."""
        return tuple(str(e.name) for e in self.state.entries() if e.total)

    def dangling_impls(self) -> tuple[str, ...]:
        """Return the names of operators that have kernels and no schema, sorted."""
        return tuple(
            str(entry.name)
            for entry in self.state.entries()
            if entry.implementations and not entry.definitions
        )

    def registrations_for(
        self, key: DispatchKey | str | None = None
    ) -> tuple[str, ...]:
        """Return the sorted names of operators with a kernel at `key` (None: all).

        Only a kernel at exactly `key` counts, not one at an alias of it.

        Raises:
            LookupFailed: `key` is a text that does not name a key.
        """
        if key is None:
            return self.op_names()
        parsed = DispatchKey.parse(key) if isinstance(key, str) else key
        return tuple(
            str(entry.name)
            for entry in self.state.entries()
            if parsed in entry.implementations
        )

    def register(
        self, tokens: Sequence[RegistrationRecord], exclusive: bool = False
    ) -> None:
        """Make all of `tokens` live, or none; `exclusive` kernels override nothing.

        Raises:
            Conflict: one of them conflicts with a live registration.
            LibraryMisuse: called by a listener.
            Exception: raised by a listener.
        """
        if self._writer and self._is_writer():
            raise LibraryMisuse(
                code="WriteInsideListener", call="Dispatcher.register(...)"
            )
        freed: list[Sequence[RegistrationRecord]] = []
        with self._lock:
            self._writer, self._telling = get_ident(), False
            try:
                before = after = self._drained(freed) if self.dropped else self.state
                for token in tokens:
                    if exclusive and isinstance(token, Implementation):
                        check_no_override(after, token)
                    after = ADD[type(token)](after, token)
                if after.subscriptions:
                    self._telling = True
                    self._publish(after, _additions(before, after, tokens))
                else:
                    self.state = after
            finally:
                self._end_writing()

    def unregister(self, tokens: Sequence[RegistrationRecord]) -> None:
        """Remove those of `tokens` that are live, last first.

        If a finalizer or signal handler calls it inside of a registration of its own
        thread, it leaves them to the next writer.

        Raises:
            LibraryMisuse: called by a listener.
            ExceptionGroup: listeners raised; everything was removed all the same.
            KeyboardInterrupt, SystemExit: a listener raised it; everything was removed.
        """
        if self._writer and self._is_writer():
            self.check_writable("Dispatcher.unregister(...)")
            self.dropped.append([*tokens])
            return
        freed: list[Sequence[RegistrationRecord]] = []
        errors: list[BaseException] = []
        with self._lock:
            self._writer, self._telling = get_ident(), False
            try:
                if self.dropped:
                    self._drained(freed)
                self._take_down(tokens, errors)
            finally:
                self._end_writing()
        if errors:
            raise _combined(errors)

    def add_listener(self, listener: Listener, debug: str = "") -> Registration:
        """Notify `listener` of every live, new or removed definition.

        Keep the registration: nothing else can end it, and losing it ends nothing.

        Raises:
            Exception: raised by the listener; it is not added then.
        """
        name = debug or type(listener).__name__
        return register_tokens(self, {}, (Subscription(listener, name),))

    def find_op(self, name: str) -> OperatorHandle | None:
        """Return a handle of the operator, or None if nothing is registered for it."""
        entry = self.entry(name)
        return None if entry is None else OperatorHandle(self, entry.name)

    def drain(self) -> None:
        """Remove the registrations of garbage-collected libraries."""
        if self.dropped:
            self.unregister(())

    def own(self, library: object, ledger: OwnedRegistrations) -> None:
        """Remove the registrations of a ledger when its library is lost."""
        owner = Owner(library, self.dropped.append)
        owner.ledger = ledger
        self.owners.add(owner)

    def disown(self, library: object) -> None:
        """Forget a library that has nothing left to remove."""
        self.owners.discard(ref(library))

    def check_writable(self, call: str) -> None:
        """Check that this thread may deregister now.

        Raises:
            LibraryMisuse: the dispatcher is notifying a listener in this thread.
        """
        if self._telling and self._is_writer():
            raise LibraryMisuse(code="WriteInsideListener", call=call)

    def __reduce__(self) -> tuple[Callable[[], "Dispatcher"], tuple[()]]:
        """Pickle the default dispatcher by reference: it unpickles to the local one.

        Raises:
            LibraryMisuse: it is another one.
        """
        if self is not default_dispatcher():
            raise LibraryMisuse(code="PrivateDispatcher")
        return default_dispatcher, ()

    def trace(self) -> AbstractContextManager[list[str]]:
        """Return a context that collects the dispatch trace of the calls inside it.

        The list grows while the block runs.  Calls are watched by the process: those of
        other threads and dispatchers that run meanwhile are in the list, too.
        """
        return WATCH.tracing()

    def _is_writer(self) -> bool:
        """Return True if this thread is publishing a state."""
        # After a fork the lock is free, and the number of a dead thread may be reused.
        return self._writer == get_ident() and self._lock.locked()

    def _end_writing(self) -> None:
        """Prepare the lock for its release."""
        if not self._lock.locked():
            # In a child that a listener forked the lock is free, but the `with` of the
            # caller will release it.
            self._lock.acquire(blocking=False)
        self._writer, self._telling = 0, False

    def _publish(self, after: DispatcherState, additions: Additions) -> None:
        """Notify the listeners and publish a state; on an error, notify the reverse."""
        returned: list[None] = []
        try:
            # No Python line runs between a call and its entry in the list.
            returned.extend(map(call, [notify for notify, _ in additions]))
            self.state = after
        except BaseException as error:
            if self.state is not after:
                for _, reverse in reversed(additions[: len(returned)]):
                    try:
                        reverse()
                    except BaseException as second:
                        error.add_note(
                            f"and a listener failed at the reverse: {second!r}"
                        )
            raise

    def _take_down(
        self, tokens: Sequence[RegistrationRecord], errors: list[BaseException]
    ) -> None:
        """Publish the state without those of the tokens that are live.

        Exceptions of listeners are appended to `errors`; an interrupt continues after
        all of them were notified and the state is published.
        """
        after, calls = without(self.state, tokens)
        if not calls:
            try:
                self.state = after
            finally:
                self._forget(tokens)
            return
        self._telling, left = True, iter(calls)
        try:
            try:
                _notify_all(left, errors)
            finally:
                self.state = after
        finally:
            try:
                _notify_all(left, errors)
                self.state = after
            finally:
                self._forget(tokens)
                self._telling = False

    def _forget(self, tokens: Sequence[RegistrationRecord]) -> None:
        for token in tokens:
            if isinstance(token, Definition):
                self.keyring.forget(token.operator)

    def _drained(self, freed: list[Sequence[RegistrationRecord]]) -> DispatcherState:
        """Return the current state, after removing the `dropped` registrations.

        `freed` keeps the tokens alive until the lock is free: the end of a kernel may
        run arbitrary code.
        """
        while self.dropped:
            lost = self.dropped[0]
            if isinstance(lost, Owner):
                freed.append(
                    [token for group in lost.ledger.values() for token in group]
                )
            else:
                freed.append(lost)
            errors: list[BaseException] = []
            self._take_down(freed[-1], errors)
            if isinstance(lost, Owner):
                lost.ledger.clear()
                self.owners.discard(lost)
            # Last: a child that is forked earlier still finds the tokens here.
            self.dropped.popleft()
            for error in errors:
                if isinstance(error, Exception):
                    report_unraisable(error, self)
            interrupts = [each for each in errors if not isinstance(each, Exception)]
            if interrupts:
                raise _combined(interrupts)
        return self.state


def without(
    state: DispatcherState, tokens: Sequence[RegistrationRecord]
) -> tuple[DispatcherState, list[Notification]]:
    """Return the state without those of `tokens` that are live, last first.

    The second result are the notifications of removed schemas, in order.
    """
    calls: list[Notification] = []
    for token in reversed(tokens):
        if token not in LIVE[type(token)](state, token):
            continue
        if (
            state.subscriptions
            and isinstance(token, Definition)
            and LIVE[Definition](state, token) == (token,)
        ):
            calls += [
                partial(_GOES(token.operator, token.schema), subscription.listener)
                for subscription in state.subscriptions
            ]
        state = REMOVE[type(token)](state, token)
    return state, calls


def _additions(
    before: DispatcherState,
    after: DispatcherState,
    tokens: Sequence[RegistrationRecord],
) -> Additions:
    """Return the notifications of new definitions, and of all for new listeners."""
    events: list[tuple[Listener, OperatorName, Schema]] = []
    for token in tokens:
        if isinstance(token, Definition) and not LIVE[Definition](before, token):
            events += [
                (subscription.listener, token.operator, token.schema)
                for subscription in before.subscriptions
            ]
        elif isinstance(token, Subscription):
            events += [
                (token.listener, entry.name, entry.schema)
                for entry in after.entries()
                if entry.schema is not None
            ]
    return [
        (partial(_COMES(*schema), listener), partial(_GOES(*schema), listener))
        for listener, *schema in events
    ]


# The methods are looked up when they are called, from C.
_COMES = partial(methodcaller, "on_operator_registered")
_GOES = partial(methodcaller, "on_operator_deregistered")


def _notify_all(calls: Iterator[Notification], errors: list[BaseException]) -> None:
    """Make all calls; append their exceptions to `errors`."""
    while True:
        try:
            deque(map(call, calls), 0)
            return
        except BaseException as error:
            errors.append(error)


def _combined(errors: list[BaseException]) -> BaseException:
    """Return the exceptions of listeners as one: an interrupt, else a group."""
    for error in errors:
        if not isinstance(error, Exception):
            for other in errors:
                if other is not error:
                    error.add_note(f"and a listener failed: {other!r}")
            return error
    return BaseExceptionGroup("listeners failed while being notified", errors)


def report_unraisable(error: BaseException, where: object) -> None:
    """Report an exception that cannot be raised to a caller."""
    sys.unraisablehook(
        cast(
            "sys.UnraisableHookArgs",
            SimpleNamespace(
                exc_type=type(error),
                exc_value=error,
                exc_traceback=error.__traceback__,
                err_msg="A listener failed while a dropped library was taken down",
                object=where,
            ),
        )
    )


_DEFAULT: list[Dispatcher] = []
_DEFAULT_LOCK = renewed()


def default_dispatcher() -> Dispatcher:
    """Return the default dispatcher of `Library`; create it on first use."""
    with _DEFAULT_LOCK:
        if not _DEFAULT:
            _DEFAULT.append(Dispatcher())
        return _DEFAULT[0]


def release(dispatcher: Dispatcher, key: str) -> None:
    """Remove the built-in fallback of one name of `PASSED` from a dispatcher.

    A caller that registers another fallback for such a key releases it first; the
    runtime does so on the default dispatcher for the Autograd keys.  Nothing happens if
    it was removed before, or never was there.
    """
    token = _BUILTIN_TOKENS[key]
    if token in dispatcher.state.fallbacks.tokens:
        dispatcher.unregister((token,))
