"""Uses of the dispatcher: calls and look-ups that must not change anything.

True only here: what a call looks like to the harness.  Its arguments are made from the
schema that is live (so a call is possible at every state), its answer is the kernels
that ran, or the error.

`PROBES` are the kinds of tensors that every operator of a scenario is called with at
every step: several backends, each with its autograd keys and, as in inference, without.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from harness.errors import UnknownProbe
from harness.scenario.recorder import Recorder
from harness.scenario.step import UseStep
from invariants.run import Call
from invariants.surroundings import Lockable, Surroundings, surroundings
from runtime.dispatch.dispatcher import Dispatcher
from runtime.dispatch.handle import OperatorHandle
from runtime.dispatch.reading import DefinitionReading
from runtime.dispatch.watch import DEPTH
from runtime.errors.base import EveryorderError, nearest
from runtime.errors.call import MissingKernel
from runtime.keys import LOCAL, DispatchKey, KeySet
from runtime.schema.argument import Argument
from runtime.schema.parser import parse_name

# What a tensor of each kind carries; "below" leaves out autograd, as inference does.
PROBES: dict[str, tuple[str, ...]] = {
    "cpu": ("CPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU"),
    "cpu below autograd": ("CPU", "AutocastCPU"),
    "cuda": ("CUDA", "ADInplaceOrView", "AutogradCUDA", "AutocastCUDA"),
    "cuda below autograd": ("CUDA", "AutocastCUDA"),
    "meta": ("Meta", "ADInplaceOrView", "AutogradMeta"),
    "sparse": ("SparseCPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU"),
    "mkldnn": ("MkldnnCPU", "ADInplaceOrView", "AutogradOther"),
}


@dataclass(frozen=True, slots=True)
class ProbeTensor:
    """The least that the dispatcher takes for a tensor; kernels may return it."""

    kind: str
    key_bits: int


@cache
def probe_tensor(kind: str) -> ProbeTensor:
    """The tensor of a kind in `PROBES`; any other text lists keys, as "CPU+Tracer"."""
    names = PROBES.get(kind) or tuple(kind.split("+"))
    return ProbeTensor(kind, KeySet(DispatchKey.parse(name) for name in names).bits)


def check_probe(kind: str) -> None:
    """Whether there are tensors of a kind.  Raises `UnknownProbe`."""
    try:
        probe_tensor(kind)
    except EveryorderError:
        near = nearest(kind, tuple(PROBES))
        raise UnknownProbe(kind=kind, near=near, known=tuple(PROBES)) from None


# Values for the arguments of a schema that are no tensors, by the type as printed.
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


# One for each definition that is being explored.
@lru_cache(maxsize=4096)
def calls_for(
    definition: DefinitionReading, kinds: tuple[str, ...]
) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """The arguments of a call with each kind of tensors, after the kind."""
    return tuple([(kind, arguments_for(definition, kind)) for kind in kinds])


def arguments_for(definition: DefinitionReading, kind: str) -> tuple[Any, ...]:
    """Arguments for the positional parameters without a default, all tensors alike."""
    return tuple(
        _argument(argument, probe_tensor(kind))
        for argument in definition.schema.arguments
        if not argument.has_default and not argument.kwarg_only
    )


def _argument(argument: Argument, tensor: ProbeTensor) -> object:
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


def answers(
    target: Dispatcher, handle: OperatorHandle, kinds: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Call an operator with each kind of tensors; which kernels ran, or the error.

    Without a schema there are no arguments to make: one call answers for all kinds.
    """
    ran: list[str] = target.recorder.ran  # type: ignore[attr-defined]  # the system's dispatcher has one
    entry = target.state.entry(handle.name)
    if entry is None or not entry.definitions:
        found = _answer(handle.call, (), ran)
        return [(kind, found) for kind in kinds]
    call = handle.call
    return [
        (kind, _answer(call, arguments, ran))
        for kind, arguments in calls_for(entry.definitions[0].reading, kinds)
    ]


def watched(
    target: Dispatcher, handle: OperatorHandle, kinds: tuple[str, ...]
) -> tuple[list[tuple[str, str]], tuple[Call, ...]]:
    """`answers`, and each call with what surrounded it, for the laws of a run."""
    recorder: Recorder = target.recorder  # type: ignore[attr-defined]  # the system's dispatcher has one
    lock: Lockable = target.lock  # type: ignore[attr-defined]  # and this

    def sample() -> Surroundings:
        return surroundings(LOCAL, DEPTH, lock)

    found: list[tuple[str, str]] = []
    calls = []
    for kind in kinds:
        state = target.state
        entry = state.entry(handle.name)
        bits = 0
        if entry is not None and (entry.extractor.tensors or entry.extractor.lists):
            bits = probe_tensor(kind).key_bits
        recorder.sample = sample
        before = sample()
        try:
            found += answers(target, handle, (kind,))
        finally:
            recorder.sample = None
        inside = tuple(recorder.inside)
        recorder.inside.clear()
        ran = recorder.ran[0] if inside else None
        calls.append(Call(str(handle.name), state, bits, before, sample(), inside, ran))
    return found, tuple(calls)


def _answer(
    call: Callable[..., object], arguments: tuple[Any, ...], ran: list[str]
) -> str:
    ran.clear()
    try:
        call(*arguments)
    except MissingKernel as error:
        ran.append(f"MissingKernel: {error.reason}")
    except EveryorderError as error:
        ran.append(type(error).__name__)
    except Exception as error:  # a kernel's own error is an answer like any other
        ran.append(f"raises {type(error).__name__}")
    if len(ran) == 1:
        return ran[0]
    return " > ".join(ran) or "ran no step's kernel"


def call(op: str, kind: str = "cpu") -> UseStep:
    """Call an operator with tensors of a kind (`PROBES`), or of keys ("CPU+Tracer").

    Raises:
        UnknownProbe: `kind` is neither.
    """
    name = parse_name(op)
    check_probe(kind)

    def perform(target: Dispatcher) -> Hashable:
        return answers(target, OperatorHandle(target, name), (kind,))[0][1]

    return UseStep(f'call("{op}", "{kind}")', perform, (op,))


def look_up(op: str) -> UseStep:
    """Find an operator's schema, as `Dispatcher.find_schema` does."""

    def perform(target: Dispatcher) -> Hashable:
        return str(target.find_schema(op))

    return UseStep(f'look_up("{op}")', perform, (op,))
