"""Probes: the tensors that operators are called with, and all other arguments.

True only here: what a call looks like to the harness.  Its arguments are made from the
schema that is live, so that a call is possible at every state.

`PROBES` are the kinds of tensors that every operator of a scenario is called with at
every step: several backends, each with its autograd keys and, as in inference, without.
Other kinds are asked for by name:

| kind             | the tensors are                                             |
|------------------|-------------------------------------------------------------|
| `"CPU+Tracer"`   | plain ones with these keys                                  |
| `"subclass"`     | of `ProbeSubclass`, around one of kind "cpu"                |
| `"handler:NAME"` | of the class that the step `handler(NAME)` made             |
| `"context:NAME"` | of kind "cpu", in the context that `context(NAME)` made      |

The last three are *beside*: made by steps, or for one system; nothing here keeps them.
"""

from functools import cache, lru_cache
from typing import Any

from harness.errors import UnknownProbe
from runtime.dispatch.token import DefinitionReading
from runtime.errors.base import EveryorderError, nearest
from runtime.keys import DispatchKey, KeySet
from runtime.schema.argument import Argument
from runtime.tensors import Tensor

# The kind that has a class of its own, and the first words of those that steps make.
SUBCLASS = "subclass"
HANDLER, CONTEXT = "handler", "context"

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
    """The tensor of a kind in `PROBES`; any other text lists keys, as "CPU+Tracer"."""
    names = PROBES.get(kind) or tuple(kind.split("+"))
    return ProbeTensor(kind, KeySet(DispatchKey.parse(name) for name in names).bits)


def is_beside(kind: str) -> bool:
    """Whether tensors of a kind are made for one system, or by its steps."""
    return kind == SUBCLASS or kind.partition(":")[0] in (HANDLER, CONTEXT)


def check_probe(kind: str) -> None:
    """Whether there are tensors of a kind.  Raises `UnknownProbe`."""
    if is_beside(kind):
        return
    try:
        probe_tensor(kind)
    except EveryorderError:
        known = (*PROBES, SUBCLASS)
        near = nearest(kind, known)
        raise UnknownProbe(kind=kind, near=near, known=known) from None


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
    return arguments_of(definition, probe_tensor(kind))


def arguments_of(definition: DefinitionReading, tensor: Any) -> tuple[Any, ...]:
    """The same, all of them this tensor."""
    return tuple(
        _argument(argument, tensor)
        for argument in definition.schema.arguments
        if not argument.has_default and not argument.kwarg_only
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
