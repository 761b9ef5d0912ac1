"""test_faketensor: without elements, an operator makes what it makes with them.

True only here: what is compared.  The sample is called once as it is and once with
every tensor on meta, then again with other sizes, as far as the operator takes them.

Rules:
- a device among the arguments becomes meta; of a call with neither tensor nor device
  nothing can be said;
- strides are compared where they matter: where there are elements, and more than one
  in the dimension; offsets where a result shares the memory of an argument;
- an operator whose tag says that results depend on elements is not checked;
- a size that depends on elements (`runtime.custom.sizes`) is that of the real result.
"""

from collections.abc import Sequence
from typing import Any

from runtime.custom.opcheck.copier import META, Copier
from runtime.custom.opcheck.growth import grown
from runtime.custom.opcheck.memory import shared
from runtime.custom.opcheck.outcome import equal, told
from runtime.custom.opcheck.sample import Part, Sample
from runtime.custom.opcheck.trial import Trial
from runtime.custom.sizes import Drawn, drawing
from runtime.errors.call import MissingKernel
from runtime.errors.custom_op import MissingFake
from runtime.errors.opcheck import (
    FakeDiffers,
    FakeHasElements,
    FakeMissing,
    FakeRaised,
    FakeReadsElements,
    OpCheckError,
)
from runtime.errors.operands import NoDataToRead
from runtime.errors.tensor import NoData
from runtime.schema.types import DeviceType, unwrap_optional
from runtime.tensors.tensor import Tensor

TEST = "test_faketensor"
# Say that no fake kernel can know the results.
DEPENDENT = frozenset({"data_dependent_output", "dynamic_output_shape"})


def check_fake(sample: Sample) -> OpCheckError | None:
    """The first disagreement of the fake kernel with the real one."""
    if DEPENDENT & {*sample.tags}:
        return None
    found = _compared(sample, sample.values, "the sample")
    if found is not None:
        return found
    for words, values in grown(sample):
        try:
            found = _compared(sample, values, words)
        except Exception:  # noqa: S112  # other sizes need not be a call that works
            continue
        if found is not None:
            return found
    return None


def _compared(sample: Sample, values: Sequence[Any], words: str) -> OpCheckError | None:
    """Raises what the real kernel raises."""
    real = Trial(sample, Copier().values(values))
    on_meta = _faked(sample, values)
    if on_meta is None:
        return None
    about = sample.about(TEST)
    try:
        with drawing(Drawn()) as drawn:
            fake = Trial(sample, on_meta)
        if drawn.bounds:
            known = _known(real, fake, drawn)
            again = _faked(sample, values)
            assert again is not None, "it was not before"
            with drawing(Drawn(known)):
                fake = Trial(sample, again)
            for size, (least, most) in zip(known, drawn.bounds, strict=True):
                if not least <= size <= most:
                    where, bound = "new_dynamic_size", f"{least} to {most}"
                    seen = {"real": str(size), "fake": bound, "sample": words}
                    return FakeDiffers(**about, where=where, aspect="size", **seen)
    except Exception as error:  # whatever it is, it is the finding
        return _raised(about, error, words)
    for part in fake.results:
        device = part.tensor.device
        if device != META:
            at = {"where": part.label, "device": str(device)}
            return FakeHasElements(**about, **at, sample=words)
    difference = _difference(real, fake)
    if difference is None:
        return None
    where, aspect, one, other = difference
    return FakeDiffers(
        **about, where=where, aspect=aspect, real=one, fake=other, sample=words
    )


def _known(real: Trial, fake: Trial, drawn: Drawn) -> tuple[int, ...]:
    """The sizes that real results have where the fake ones have those drawn."""
    found: dict[int, int] = {}
    for one, other in zip(real.results, fake.results, strict=False):
        for size, mark in zip(one.tensor.shape, other.tensor.shape, strict=False):
            found.setdefault(mark, size)
    least = [low for low, _ in drawn.bounds]
    return tuple(
        [found.get(mark, low) for mark, low in zip(drawn.known, least, strict=False)]
    )


def _faked(sample: Sample, values: Sequence[Any]) -> list[Any] | None:
    """The values without elements; None where nothing would be on meta."""
    made = Copier(meta=True).values(values)
    tensors = bool(sample.arguments(values))
    placed = False
    for place, argument in enumerate(sample.schema.arguments):
        is_device = unwrap_optional(argument.type) == DeviceType
        if is_device and (made[place] is not None or not tensors):
            made[place], placed = META, True
    return made if tensors or placed else None


def _raised(about: dict[str, str], error: Exception, words: str) -> OpCheckError:
    cause: BaseException | None = error
    while cause is not None:
        asked = ""
        if isinstance(cause, NoData):
            asked = f"it asks for {cause.asked}"
        elif isinstance(cause, NoDataToRead):
            asked = f"`{cause.operator}` {cause.asked}"
        if asked:
            return FakeReadsElements(**about, asked=asked, sample=words)
        if isinstance(cause, MissingFake) or (
            isinstance(cause, MissingKernel) and cause.key == "Meta"
        ):
            return FakeMissing(**about, missing=cause.operator)
        cause = cause.__cause__
    kind = type(error).__name__
    return FakeRaised(**about, kind=kind, text=told(error), sample=words)


Difference = tuple[str, str, str, str]


def _difference(real: Trial, fake: Trial) -> Difference | None:
    """Where the two differ, in what, and both sides."""
    labels = real.sample.result_labels(len(real.returned))
    pair = real.returned, fake.returned
    if len(pair[0]) != len(pair[1]):
        return "all results", "length", str(len(pair[0])), str(len(pair[1]))
    for label, one, other in zip(labels, *pair, strict=True):
        found = _unlike(label, one, other)
        if found is not None:
            return found
    for one, other in zip(real.parts, fake.parts, strict=True):
        label = f"argument `{one.label}` after the call"
        found = _unlike(label, one.tensor, other.tensor)
        if found is not None:
            return found
    return _shared_otherwise(real, fake)


def _unlike(label: str, one: Any, other: Any) -> Difference | None:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        for aspect, left, right in _aspects(one, other):
            if left != right:
                return label, aspect, str(left), str(right)
        return None
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        if len(one) != len(other):
            return label, "length", str(len(one)), str(len(other))
        for number, pair in enumerate(zip(one, other, strict=True)):
            found = _unlike(f"{label}[{number}]", *pair)
            if found is not None:
                return found
        return None
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return label, "kind", type(one).__name__, type(other).__name__
    return None if equal(one, other) else (label, "value", repr(one), repr(other))


def _aspects(one: Tensor, other: Tensor) -> tuple[tuple[str, Any, Any], ...]:
    strides = _strides(one), _strides(other)
    return (
        ("dtype", one.dtype, other.dtype),
        ("shape", one.shape, other.shape),
        ("strides", *strides),
    )


def _strides(tensor: Tensor) -> tuple[int, ...]:
    """The strides, 0 where a stride makes no difference."""
    if not tensor.numel():
        return (0,) * tensor.ndim
    pairs = zip(tensor.shape, tensor.strides, strict=True)
    return tuple(stride if size > 1 else 0 for size, stride in pairs)


def _shared_otherwise(real: Trial, fake: Trial) -> Difference | None:
    """Whether results share memory with other arguments, or at another place."""
    for one, other in zip(real.results, fake.results, strict=True):
        with_real, with_fake = _sharing(one, real), _sharing(other, fake)
        if with_real != with_fake:
            return one.label, "aliasing", _with(with_real), _with(with_fake)
        if with_real and one.tensor.offset != other.tensor.offset:
            offsets = str(one.tensor.offset), str(other.tensor.offset)
            return one.label, "offset", *offsets
    return None


def _sharing(result: Part, trial: Trial) -> tuple[str, ...]:
    return tuple(
        part.label for part in trial.parts if shared(result.tensor, part.tensor)
    )


def _with(labels: tuple[str, ...]) -> str:
    names = ", ".join(f"`{label}`" for label in labels)
    return f"shares memory with {names}" if names else "memory of its own"
