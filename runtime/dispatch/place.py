"""Places: where an operator stands, and how calls get there.

True only here: how the two ways of a call meet.  The plain way looks the entry up in
the published state and uses its caller; every call can go it.  From the `WARM`th call
on the operator has a *front*: a function with the operator's own parameters, compiled
once for each definition (`runtime.dispatch.front`), which finds what it needs on the
entry, too, and goes the plain way whenever something is out of the ordinary.

Rules:
- a front keeps nothing of an entry: it asks the published state at every call, and what
  is remembered for it lies on the entry, under a key of this dispatcher and definition;
- a place keeps its dispatcher, and neither is kept by an entry;
- whoever shows a place to the world (`owner`) is a partial object, whose function is
  changed from `start` to the front: nothing calls faster.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol
from weakref import ref

from runtime.dispatch.caller import COLD, WARM, Caller, caller_of
from runtime.dispatch.entry import OperatorEntry
from runtime.dispatch.interned import Interned
from runtime.dispatch.links import Link
from runtime.dispatch.reading import DefinitionReading, namespace_of
from runtime.dispatch.state import DispatcherState
from runtime.errors.call import OperatorGone
from runtime.keys import LOCAL
from runtime.schema.names import OperatorName


class Keyring:
    """What belongs to one dispatcher and keeps nothing: the keys of its fronts.

    And the handles of its operators and their packets, as long as somebody has them.
    """

    __slots__ = ("handles", "keys", "packets")

    def __init__(self) -> None:
        self.keys: dict[DefinitionReading, object] = {}
        self.handles: Interned[Any] = Interned()
        self.packets: Interned[Any] = Interned()

    def key(self, reading: DefinitionReading) -> object:
        """The key under which entries remember the links of a front."""
        return self.keys.setdefault(reading, object())


class Published(Protocol):
    """Whoever publishes a state: a dispatcher."""

    state: DispatcherState
    keyring: Keyring


class Place:
    """One operator of one dispatcher.

    `handle` makes an `OperatorHandle` of a dispatcher and a name.
    """

    __slots__ = ("dispatcher", "handle", "name", "namespace", "owner", "text")

    def __init__(
        self,
        dispatcher: Published,
        name: OperatorName,
        handle: Callable[[Published, OperatorName], Any],
    ) -> None:
        self.dispatcher = dispatcher
        self.name = name
        self.handle = handle
        # Where the operator stands in a state.
        self.namespace = namespace_of(name)
        self.text = str(name)
        self.owner: Callable[[], partial[Any] | None] = _nobody

    def show(self, owner: "partial[Any]") -> None:
        """Let `owner` call the operator; its front as soon as there is one."""
        self.owner = ref(owner)

    def start(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the operator the plain way."""
        try:
            entry = self.dispatcher.state.namespaces[self.namespace][self.text]
            caller: Caller | None = entry.memo["caller"]
        except KeyError:
            caller = None
        if caller is None:
            caller = self.caller(self.published())
        caller.calls += 1
        if caller.calls == WARM or not caller.calls % COLD:
            self._settle(caller)
        return caller.call(self, args, kwargs)

    def slow(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """As `start`, for a front."""
        return self.start(*args, **kwargs)

    def published(self) -> OperatorEntry | None:
        """The entry in the published state: one reference, taken once."""
        return self.dispatcher.state.find(self.namespace, self.text)

    def caller(self, entry: OperatorEntry | None) -> Caller:
        """The caller of an entry.  Raises `OperatorGone`, `CallWithoutSchema`."""
        if entry is None:
            raise OperatorGone(operator=self.text)
        found: Caller | None = entry.memo.get("caller")
        return found or caller_of(entry, self.text)

    @property
    def keyring(self) -> Keyring:
        """The keyring of the dispatcher."""
        return self.dispatcher.keyring

    def operator(self) -> Any:
        """A handle of the operator, for kernels that are given one."""
        return self.owner() or self.handle(self.dispatcher, self.name)

    def weak(self) -> Callable[[], Any]:
        """`operator`, for what is kept on an entry: it keeps no dispatcher."""
        dispatcher, name, make = ref(self.dispatcher), self.name, self.handle
        handles, text = self.keyring.handles, self.text

        def again() -> Any:
            made = handles.get(text)
            if made is not None:
                return made
            found = dispatcher()
            assert found is not None, "whoever calls an operator has its dispatcher"
            return make(found, name)

        return again

    def _settle(self, caller: Caller) -> None:
        """Give the owner the front of the definition, if it has one."""
        owner, reading = self.owner(), caller.reading
        maker = reading.maker
        if owner is None or maker is None:
            return
        key = self.dispatcher.keyring.key(reading)

        def resolve(bits: int) -> Link | None:
            entry = self.published()
            if entry is None or not entry.definitions:
                return None
            caller = self.caller(entry)
            if caller.reading is not reading:
                return None
            link = caller.link(self, bits)
            views = entry.memo.setdefault(key, {})
            views.setdefault(LOCAL.view, {})[bits] = link
            return link

        front = maker(self.dispatcher, key, resolve, self.slow)
        # The one way to give a partial object another function; it takes the
        # attributes, too, and would forget them.
        setstate: Callable[..., None] = partial.__dict__["__setstate__"]
        setstate(owner, (front, (), {}, vars(owner)))


def _nobody() -> None:
    return None
