"""Probes, the tensors of calls, and effects outside the dispatcher's state.

The arguments of a call are built from the schema that is live, so that a call is
possible at every state. `PROBES` are the kinds of tensors with which every operator of
a scenario is called at every step: several backends, each with its autograd keys and,
as in inference, without. Other kinds are used only if a scenario names them:

| kind             | the tensors are                                             |
|------------------|-------------------------------------------------------------| |
`"CPU+Tracer"`   | plain ones with these keys                                  | |
`"subclass"`     | of `ProbeSubclass`, around one of kind "cpu"                | |
`"handler:NAME"` | of the class that the step `handler(NAME)` defines          | |
`"context:NAME"` | of kind "cpu", in the context that `context(NAME)` opens    |

The last three are *per system*: created by steps, or for one system; tables do not
cache them.

Effects are modes that a thread has entered, classes with handlers, contexts. They are
not part of a `DispatcherState`; a fresh dispatcher does not remove them.

Rules:
- a step passes the function that ends its effect to `hold`; the returned handle stores
  only the number of that function, so dropping the handle ends nothing, and a reset
  ends the remaining effects (`end_all`);
- an undone effect is removed from here at once: only the effect owns its objects.

Completeness of `reading`: modes are read from the thread's stack, keys from the thread,
contexts from themselves; each is named by the step that created it. The reading
contains the order of modes, and for each context everything that it registered for this
dispatcher. Two things are left out. First, which entry of the stack included the keys
of a mode: an entry passes them on when it is left, so only their sum is visible.
Second, the data in objects of a scenario, such as a mode that counts: two modes of
equal description must act alike.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from typing import Any

from everyorder.harness.base.errors import BadScenario
from everyorder.harness.scenario.recorder import LabelRecorder
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.dispatch.registration_record import OperatorSpec
from everyorder.runtime.dispatch.state import fingerprint
from everyorder.runtime.errors.base import EveryorderError, nearest
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.keys import LOCAL, DispatchKey, KeySet
from everyorder.runtime.schema.signature import Argument
from everyorder.runtime.schema.types import ListType, OptionalType, TensorType
from everyorder.runtime.tensors import Tensor
from everyorder.runtime.tensors.keys import HANDLED, STATE
from everyorder.runtime.torch_dispatch import MAIN, Context, current_context

# The kind with a predefined class, and the prefixes of the kinds that steps create.
SUBCLASS = "subclass"
HANDLER, CONTEXT = "handler", "context"

# Keys of the tensors of each kind; "below" leaves out autograd, as inference does.
PROBES: dict[str, tuple[str, ...]] = {
    "cpu": ("CPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU"),
    "cpu below autograd": ("CPU", "AutocastCPU"),
    "cuda": ("CUDA", "ADInplaceOrView", "AutogradCUDA", "AutocastCUDA"),
    "cuda below autograd": ("CUDA", "AutocastCUDA"),
    "meta": ("Meta", "ADInplaceOrView", "AutogradMeta"),
    "sparse": ("SparseCPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU"),
    "mkldnn": ("MkldnnCPU", "ADInplaceOrView", "AutogradOther"),
}


class ProbeTensor(Tensor):
    """A tensor of keys only, without elements; kernels may return it."""

    __slots__ = ("kind",)

    def __init__(self, kind: str, key_bits: int) -> None:
        super().__init__(key_bits=key_bits)
        self.kind = kind

    def __repr__(self) -> str:
        return f"ProbeTensor({self.kind!r})"


@cache
def probe_tensor(kind: str) -> ProbeTensor:
    """Return the tensor of a kind in `PROBES`, or of listed keys, as "CPU+Tracer"."""
    names = PROBES.get(kind) or tuple(kind.split("+"))
    return ProbeTensor(kind, KeySet(DispatchKey.parse(name) for name in names).bits)


def is_per_system(kind: str) -> bool:
    """Return True if tensors of this kind are created for one system, or by steps."""
    return kind == SUBCLASS or kind.partition(":")[0] in (HANDLER, CONTEXT)


def check_probe(kind: str) -> None:
    """Raise `BadScenario` unless `kind` names a kind of tensors."""
    if is_per_system(kind):
        return
    try:
        probe_tensor(kind)
    except EveryorderError:
        kinds = (*PROBES, SUBCLASS)
        near = nearest(kind, kinds)
        raise BadScenario(
            code="UnknownProbe", kind=kind, near=near, known=kinds
        ) from None


# Values for the arguments of a schema that are not tensors, by the type as printed.
_PLAIN: dict[str, object] = {
    "int": 1,
    "SymInt": 1,
    "float": 1.0,
    "bool": True,
    "str": "text",
    "Scalar": 1,
    "complex": 1j,
    "Device": "cpu",
}


Arguments = tuple[tuple[Any, ...], dict[str, Any]]


# One entry for each definition that is being explored.
@lru_cache(maxsize=4096)
def calls_for(
    definition: OperatorSpec, kinds: tuple[str, ...]
) -> tuple[tuple[str, Arguments], ...]:
    """Return pairs of a kind of tensors and the arguments of a call with that kind."""
    return tuple(
        [(kind, arguments_of(definition, probe_tensor(kind))) for kind in kinds]
    )


@lru_cache(maxsize=4096)
def fits(definition: OperatorSpec, kind: str) -> bool:
    """Return False if the call is refused, as a parameter is of a type without values.

    Such a call reaches no kernel.
    """
    positional, named = arguments_of(definition, probe_tensor(kind))
    try:
        definition.schema.bind(positional, named)
    except CallError:
        return False
    return True


def key_bits_of(definition: OperatorSpec, kind: str) -> int:
    """Return the key bits of the tensors in the arguments of a call; 0 without any.

    A tensor with a default is not passed.
    """
    tensors = {TensorType, OptionalType(TensorType)}
    passed = (each.type for each in definition.schema.arguments if not each.has_default)
    dispatched = tensors | {*map(ListType, tensors)}
    return probe_tensor(kind).key_bits if dispatched.intersection(passed) else 0


def arguments_of(definition: OperatorSpec, tensor: Any) -> Arguments:
    """Return arguments for the parameters without a default, by position and by name.

    Every tensor is `tensor`.
    """
    required = [each for each in definition.schema.arguments if not each.has_default]
    return (
        tuple(_argument(each, tensor) for each in required if not each.kwarg_only),
        {each.name: _argument(each, tensor) for each in required if each.kwarg_only},
    )


def _argument(argument: Argument, tensor: Any) -> object:
    text = str(argument.type)
    if text.endswith("?"):
        text = text[:-1]
    if text == "Tensor":
        return tensor
    if text.startswith("Tensor") and text.endswith("[]"):
        return [tensor]
    if text.endswith("[]"):
        return [_PLAIN.get(text[:-2])]
    return _PLAIN.get(text)


# (func, types, args, kwargs) -> what the operator returns, or NotImplemented
Handle = Callable[[Any, Any, Any, Any], Any]


def unwrapped(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Call the operator with the inner tensors."""
    return func(*_plain(args), **kwargs)


class ProbeSubclass(Tensor):
    """A tensor of a class with a handler, around a plain probe; see the module."""

    __slots__ = ("inner", "label", "recorder")

    handle: Handle = staticmethod(unwrapped)

    def __init__(self, label: str, recorder: LabelRecorder, kind: str = "cpu") -> None:
        self.inner = probe_tensor(kind)
        super().__init__(key_bits=self.inner.key_bits | HANDLED)
        self._context = current_context()
        self.label = label
        self.recorder = recorder

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Note that the class was asked, and `handle`."""
        for each in _tensors(args):
            if type(each) is cls:
                each.recorder.note(each.label)
                break
        return cls.handle(func, types, args, kwargs or {})


def _tensors(values: Any) -> Iterator[Any]:
    for each in values:
        if isinstance(each, (list, tuple)):
            yield from _tensors(each)
        else:
            yield each


def _plain(values: Any) -> Any:
    """Return the values with each wrapping tensor replaced by its inner one."""
    return [
        _plain(each)
        if isinstance(each, (list, tuple))
        else getattr(each, "inner", each)
        for each in values
    ]


# Kind of effect, its name and owner, and the fingerprint of a context's copies.
Row = tuple[Any, ...]


class EffectHandle:
    """The undo handle of a step that has an effect; it registers nothing."""

    __slots__ = ("__weakref__", "_effects", "_place")

    # Effects are not registrations of the dispatcher.
    tokens = ()

    def __init__(self, effects: "Effects", place: int) -> None:
        self._effects = effects
        self._place = place

    def close(self) -> None:
        """End the effect; a second call does nothing."""
        self._effects.end(self._place)


class Effects:
    """The effects of the active steps of one system, and the objects they created."""

    __slots__ = (
        "_count",
        "_ends",
        "_view",
        "contexts",
        "libraries",
        "opens",
        "recorder",
        "tensors",
    )

    def __init__(self, recorder: LabelRecorder) -> None:
        self.recorder = recorder
        self._ends: dict[int, Callable[[], object]] = {}
        self._count = 0
        self._view = LOCAL.view
        # Opens the libraries of steps; see `opening`.
        self.opens: Callable[..., Library] = Library
        # Libraries that the steps of a group share, and their origin.
        self.libraries: dict[object, tuple[str, dict[Any, Library]]] = {}
        self.contexts: dict[str, Context] = {}
        # A tensor of each class with a handler, by the name of the class.
        self.tensors: dict[str, Any] = {}

    def hold(self, end: Callable[[], object]) -> EffectHandle:
        """Store the function that ends an effect; return the handle that calls it."""
        self._count += 1
        self._ends[self._count] = end
        return EffectHandle(self, self._count)

    def end(self, place: int) -> None:
        """End one effect, once."""
        end = self._ends.pop(place, None)
        if end is not None:
            end()

    def end_all(self) -> None:
        """End the remaining effects, last first.

        An effect that can no longer be ended was reported before, by a law or by its
        state.
        """
        while self._ends:
            with suppress(EveryorderError):
                self._ends.popitem()[1]()
        # The libraries refer to the dispatcher; with this object they would form a
        # cycle.
        self.libraries.clear()

    def tensor(self, kind: str) -> Any:
        """Return the tensor of a per-system kind (`is_per_system`).

        Returns None if the step that defines its class is not active.
        """
        if kind == SUBCLASS:
            return ProbeSubclass(SUBCLASS, self.recorder)
        return self.tensors.get(kind.partition(":")[2])

    @contextmanager
    def opening(self, opens: Callable[..., Library]) -> Iterator[None]:
        """Context: steps that are prepared inside open libraries by `opens`."""
        before, self.opens = self.opens, opens
        try:
            yield
        finally:
            self.opens = before

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """Context: the thread is in the context `name`; an empty name does nothing.

        Raises:
            LookupError: the step of the context is not active.
        """
        if not name:
            yield
            return
        if name not in self.contexts:
            raise LookupError(f"there is no context {name!r} now")
        with self.contexts[name]:
            yield

    def reading(self, dispatcher: Any) -> tuple[Row, ...]:
        """Return all effects as text and numbers; empty if there are none."""
        view, stack = LOCAL.view, STATE.stack
        if view is self._view and not (stack or self._ends):
            return ()
        rows: list[Row] = [
            ("mode", _labelled(entered.mode), _of(entered.context)) for entered in stack
        ]
        if view is not self._view:
            rows += _changed("included", self._view.included, view.included)
            rows += _changed("excluded", self._view.excluded, view.excluded)
        rows += [
            (HANDLER, name, tensor.label, _of(tensor._context))
            for name, tensor in sorted(self.tensors.items())
        ]
        for name, context in sorted(self.contexts.items()):
            own = context.own(dispatcher)
            copies = None if own is None else fingerprint(own.snapshot())
            rows.append((CONTEXT, name, "open" if context.alive else "closed", copies))
        return tuple(rows)


def reading_text(rows: tuple[Row, ...]) -> str:
    """Return a reading as text: one line for each effect."""
    lines = []
    for what, *rest in rows:
        words = rest[:2] if what == CONTEXT else rest
        lines.append(f"{what} {', '.join(filter(None, words))}\n")
    return "".join(lines)


def effects_of(target: Any) -> Effects:
    """Return the effects of a system's dispatcher."""
    effects: Effects = target.effects
    return effects


def _labelled(mode: Any) -> str:
    """Return the name of a mode, with its step if it has one."""
    return str(getattr(mode, "label", None) or getattr(mode, "__name__", type(mode)))


def _of(context: Any) -> str:
    """Return the owning context in words; empty for the main context."""
    if context is MAIN:
        return ""
    return f"of {context.name}" + ("" if context.alive else ", which is closed")


def _changed(what: str, before: int, now: int) -> Iterator[Row]:
    """Yield the keys that the thread has gained or lost since the start."""
    for how, bits in (("also", now & ~before), ("no longer", before & ~now)):
        if bits:
            named = ", ".join(key.name for key in KeySet.from_bits(bits))
            yield (what, f"{how} {named}")
