"""The dispatcher: a lock, a reference to the current state, and its listeners.

A writer computes the new state, tells the listeners, and publishes by one assignment.
A reader takes the reference once and then holds a value: it never waits, never sees a
mix, and never a state that is taken back.

Rules:
- an exception of a listener abandons a registration, and those already told are told
  the reverse; a removal always completes, and the exceptions are raised after it;
- listeners are called from C, one after the other: at every line of Python's where an
  interrupt can come, each of them either heard of something or did not;
- no kernel runs while the lock is held; a listener that registers is refused;
- a library that is lost only goes to `dropped`, and so do tokens that a finalizer
  closes while its thread registers; the next writer takes them down;
- a forked child finds the lock free, and the state as it was published last: what
  another thread was about to publish did not happen.

Everything cached for calling lives on an entry; nothing subscribes to invalidation.
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

# A call of a listener; what listeners are told, and the reverse of each.
Telling = Callable[[], None]
Additions = list[tuple[Telling, Telling]]

# What a call passes when nothing handles it: these two are included in every call, the
# vmap modes are entered for the whole thread, and autocast keys are on every tensor.
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
    (`PASSED`, and those of autocast); `builtin_fallbacks=False` leaves them out.
    `merges_alias_kinds=True` turns on the 2020 rule: a second, equal definition of an
    operator is accepted if it leaves the alias analysis kind out.
    `warns_of_overrides=False` silences `KernelOverridden`.  `state` is the published
    state; assign to it nowhere but here.
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
        # The libraries that are not closed; and those that were lost, or their tokens.
        self.owners: set[ref[object]] = set()
        self.dropped: deque[Sequence[RegistrationRecord] | Owner] = deque()

    def snapshot(self) -> DispatcherState:
        """The current state; costs nothing and never changes."""
        return self.state

    def entry(self, name: str) -> OperatorEntry | None:
        """The entry of the operator called `name`, None if there is none.

        A name with rules alone is no operator.

        Raises:
            SchemaSyntaxError: `name` is no operator name.
        """
        entry = self.state.entry(parse_name(name))
        return None if entry is None or not entry.total else entry

    def dump_state(self, name: str) -> str:
        """What is registered for `name`; empty for an unknown operator."""
        entry = self.entry(name)
        return "" if entry is None else dump_state(entry)

    def dump_table(self, name: str) -> str:
        """The live table of `name`, one line a slot; empty for an unknown operator."""
        entry = self.entry(name)
        return "" if entry is None else dump_table(entry)

    def find_schema(self, name: str) -> Schema | None:
        """The schema of `name`, None if it has none."""
        entry = self.entry(name)
        return None if entry is None else entry.schema

    def find_schema_or_raise(self, name: str) -> Schema:
        """The schema of `name`.

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
        """The names of all operators, sorted: rules alone make none."""
        return tuple(str(e.name) for e in self.state.entries() if e.total)

    def dangling_impls(self) -> tuple[str, ...]:
        """The names of operators that have kernels and no schema, sorted."""
        return tuple(
            str(entry.name)
            for entry in self.state.entries()
            if entry.implementations and not entry.definitions
        )

    def registrations_for(
        self, key: DispatchKey | str | None = None
    ) -> tuple[str, ...]:
        """The names of operators with a kernel at exactly `key` (None: all), sorted.

        Raises:
            LookupFailed: `key` is a text that names no key.
        """
        if key is None:
            return self.op_names()
        wanted = DispatchKey.parse(key) if isinstance(key, str) else key
        return tuple(
            str(entry.name)
            for entry in self.state.entries()
            if wanted in entry.implementations
        )

    def register(
        self, tokens: Sequence[RegistrationRecord], exclusive: bool = False
    ) -> None:
        """Make all of `tokens` live, or none; `exclusive` kernels override nothing.

        Raises:
            Conflict: one of them cannot be live beside the others.
            LibraryMisuse: called by a listener.
            Exception: whatever a listener raised.
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
        """Take down those of `tokens` that are live, last first.

        Called by a finalizer or signal handler that runs inside of a registration of
        its own thread, it leaves them to the next writer.

        Raises:
            LibraryMisuse: called by a listener.
            ExceptionGroup: listeners raised; everything was taken down all the same.
            KeyboardInterrupt, SystemExit: a listener raised it; likewise.
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
        """Tell `listener` of every definition that is live, comes or goes.

        Keep the registration: nothing else can end it, and losing it ends nothing.

        Raises:
            Exception: whatever the listener raised; it is not added then.
        """
        name = debug or type(listener).__name__
        return register_tokens(self, {}, (Subscription(listener, name),))

    def find_op(self, name: str) -> OperatorHandle | None:
        """A handle of the operator, None if nothing is registered for it."""
        entry = self.entry(name)
        return None if entry is None else OperatorHandle(self, entry.name)

    def drain(self) -> None:
        """Take down what garbage-collected libraries left behind."""
        if self.dropped:
            self.unregister(())

    def own(self, library: object, ledger: OwnedRegistrations) -> None:
        """Take down what stands in a ledger when its library is lost."""
        owner = Owner(library, self.dropped.append)
        owner.ledger = ledger
        self.owners.add(owner)

    def disown(self, library: object) -> None:
        """Forget a library that has nothing left to take down."""
        self.owners.discard(ref(library))

    def check_writable(self, call: str) -> None:
        """Whether this thread may deregister now.

        Raises:
            LibraryMisuse: it is a listener's thread, being told.
        """
        if self._telling and self._is_writer():
            raise LibraryMisuse(code="WriteInsideListener", call=call)

    def __reduce__(self) -> tuple[Callable[[], "Dispatcher"], tuple[()]]:
        """Pickle the default dispatcher: the one of whoever unpickles it.

        Raises:
            LibraryMisuse: it is another one.
        """
        if self is not default_dispatcher():
            raise LibraryMisuse(code="PrivateDispatcher")
        return default_dispatcher, ()

    def trace(self) -> AbstractContextManager[list[str]]:
        """Context: the dispatch trace of the calls inside, as a growing list.

        Calls are watched by the process: those of other threads and dispatchers that
        run meanwhile are in the list, too.
        """
        return WATCH.tracing()

    def _is_writer(self) -> bool:
        """Whether this thread is publishing something."""
        # After a fork the lock is free, and the number of a thread that is gone may
        # come again.
        return self._writer == get_ident() and self._lock.locked()

    def _end_writing(self) -> None:
        """Leave the lock to be released."""
        if not self._lock.locked():
            # As in a child that a listener forked; it is about to be given back.
            self._lock.acquire(blocking=False)
        self._writer, self._telling = 0, False

    def _publish(self, after: DispatcherState, additions: Additions) -> None:
        """Publish a state of which the listeners are told, or tell them the reverse."""
        told: list[None] = []
        try:
            # No line of Python's runs between a call and its entry in the list.
            told.extend(map(call, [tell for tell, _ in additions]))
            self.state = after
        except BaseException as error:
            if self.state is not after:
                for _, reverse in reversed(additions[: len(told)]):
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

        `errors` get what the listeners raise; an interrupt goes on after all of them
        were told and the state is published.
        """
        after, calls = without(self.state, tokens)
        if not calls:
            self.state = after
            return
        self._telling, left = True, iter(calls)
        try:
            try:
                _tell_all(left, errors)
            finally:
                self.state = after
        finally:
            _tell_all(left, errors)
            self.state = after
            self._telling = False

    def _drained(self, freed: list[Sequence[RegistrationRecord]]) -> DispatcherState:
        """The current state, after taking down what was `dropped`.

        `freed` keeps the tokens alive until the lock is free: the end of a kernel may
        run arbitrary code.
        """
        while self.dropped:
            left = self.dropped[0]
            if isinstance(left, Owner):
                freed.append([each for held in left.ledger.values() for each in held])
            else:
                freed.append(left)
            errors: list[BaseException] = []
            self._take_down(freed[-1], errors)
            if isinstance(left, Owner):
                left.ledger.clear()
                self.owners.discard(left)
            # Last: a child that is forked before finds it here.
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
) -> tuple[DispatcherState, list[Telling]]:
    """The state without those of `tokens` that are live, last first.

    Besides, what the listeners are told of schemas that go, in order.
    """
    calls: list[Telling] = []
    for token in reversed(tokens):
        if token not in LIVE[type(token)](state, token):
            continue
        if (
            state.subscriptions
            and isinstance(token, Definition)
            and LIVE[Definition](state, token) == (token,)
        ):
            calls += [
                partial(_GOES(token.operator, token.schema), held.listener)
                for held in state.subscriptions
            ]
        state = REMOVE[type(token)](state, token)
    return state, calls


def _additions(
    before: DispatcherState,
    after: DispatcherState,
    tokens: Sequence[RegistrationRecord],
) -> Additions:
    """What listeners are told of new definitions, and new listeners of all."""
    told: list[tuple[Listener, OperatorName, Schema]] = []
    for token in tokens:
        if isinstance(token, Definition) and not LIVE[Definition](before, token):
            told += [
                (held.listener, token.operator, token.schema)
                for held in before.subscriptions
            ]
        elif isinstance(token, Subscription):
            told += [
                (token.listener, entry.name, entry.schema)
                for entry in after.entries()
                if entry.schema is not None
            ]
    return [
        (partial(_COMES(*schema), listener), partial(_GOES(*schema), listener))
        for listener, *schema in told
    ]


# Looked up when it is called, from C.
_COMES = partial(methodcaller, "on_operator_registered")
_GOES = partial(methodcaller, "on_operator_deregistered")


def _tell_all(calls: Iterator[Telling], errors: list[BaseException]) -> None:
    """Make all calls; `errors` get what they raise."""
    while True:
        try:
            deque(map(call, calls), 0)
            return
        except BaseException as error:
            errors.append(error)


def _combined(errors: list[BaseException]) -> BaseException:
    """What listeners raised, as one exception: what interrupts comes by itself."""
    for error in errors:
        if not isinstance(error, Exception):
            for other in errors:
                if other is not error:
                    error.add_note(f"and a listener failed: {other!r}")
            return error
    return BaseExceptionGroup("listeners failed while being told", errors)


def report_unraisable(error: BaseException, where: object) -> None:
    """Report an exception that no caller is there to receive."""
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
    """The dispatcher that `Library` uses when none is given; made when first asked."""
    with _DEFAULT_LOCK:
        if not _DEFAULT:
            _DEFAULT.append(Dispatcher())
        return _DEFAULT[0]


def release(dispatcher: Dispatcher, key: str) -> None:
    """Take the built-in fallback of one name of `PASSED` off a dispatcher.

    Whoever registers a fallback of its own for such a key has it released first; the
    runtime does so on the default dispatcher for the Autograd keys.  Nothing happens if
    it was taken off before, or never was there.
    """
    token = _BUILTIN_TOKENS[key]
    if token in dispatcher.state.fallbacks.tokens:
        dispatcher.unregister((token,))
