"""test_faketensor and test_functionalization: calls on meta, and calls on clones.

The first checks that an operator computes the same shapes without elements as with
them. It calls the sample once unchanged and once with every tensor on meta, then again
with other sizes, if the operator accepts them, to distinguish a rule from a constant.
Equal sizes count as one unknown, as in tracers, and grow together, by one; the added
part repeats the last elements, so that indices stay in range.

- A device among the arguments becomes meta; a call with neither tensor nor device is
  not checked.
- Strides are compared where they have an effect: if there are elements, and more than
  one in the dimension; offsets where a result shares the memory of an argument.
- An operator with a tag for results that depend on elements is not checked; a size that
  depends on elements (`get_ctx`) is that of the real result.
- Sizes 0 and 1 do not change. A grown tensor has the order of the original's strides,
  and repeats the same dimensions; if different tensors share a storage, nothing grows,
  as they could not share one afterwards.

The second checks that an operator can run on clones of its written arguments, as
functionalization does. Each argument is cloned, on a separate storage; the operator
runs on the clones; the arguments declared as written are copied back. The results and
arguments must equal those of the call in place.

- An operator whose results differ between two equal calls, or that has the tag
  `nondeterministic_bitwise`, is not checked.
- Values are compared as by `assert_close`, with the tolerances of the caller or of the
  dtype.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from everyorder.runtime.autograd.methods import set_source
from everyorder.runtime.custom.kernel import DynamicSizes, dynamic_sizes
from everyorder.runtime.custom.opcheck.sample import (
    META,
    Copier,
    Sample,
    SampleCall,
    TensorPart,
    equal,
    facts_of,
    first_paragraph,
    shared,
)
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.errors.call import MissingKernel
from everyorder.runtime.errors.custom import MissingFake, OpCheckError
from everyorder.runtime.errors.tensor import NoData
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.schema.types import DeviceType, unwrap_optional
from everyorder.runtime.tensors.construction import from_numpy, place_on, view_of
from everyorder.runtime.tensors.shape import span
from everyorder.runtime.tensors.storage import Storage, memory_of
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import array_of, ensure_place, host_copy
from everyorder.runtime.testing import NotAlike, NotClose, assert_close

TEST = "test_faketensor"

# Tags of operators whose results a fake kernel cannot compute.
DEPENDENT = frozenset({"data_dependent_output", "dynamic_output_shape"})


def check_fake(sample: Sample) -> OpCheckError | None:
    """Return the first disagreement of the fake kernel with the real one."""
    if DEPENDENT & {*sample.tags}:
        return None
    finding = _compared(sample, sample.values, "the sample")
    if finding is not None:
        return finding
    for words, values in grown_samples(sample):
        try:
            finding = _compared(sample, values, words)
        except Exception:  # noqa: S112  # a call with other sizes may be invalid
            continue
        if finding is not None:
            return finding
    return None


def _compared(sample: Sample, values: Sequence[Any], words: str) -> OpCheckError | None:
    """Compare the fake kernel with the real one; raise the errors of the real one."""
    real = SampleCall(sample, Copier().values(values))
    on_meta = _faked(sample, values)
    if on_meta is None:
        return None
    about = sample.about(TEST)
    difference: Difference | None = None
    try:
        with dynamic_sizes(DynamicSizes()) as drawn:
            fake = SampleCall(sample, on_meta)
        if drawn.bounds:
            sizes = _real_sizes(real, fake, drawn)
            repeated = _faked(sample, values)
            assert repeated is not None, "it was not before"
            with dynamic_sizes(DynamicSizes(sizes)):
                fake = SampleCall(sample, repeated)
            for size, (least, most) in zip(sizes, drawn.bounds, strict=True):
                if not least <= size <= most and difference is None:
                    bounds = f"{least} to {most}"
                    difference = "new_dynamic_size", "size", str(size), bounds
    except Exception as error:  # whatever it is, it is the finding
        return _raised(about, error, words)
    for part in fake.results:
        device = part.tensor.device
        if device != META and difference is None:
            at: dict[str, Any] = {"where": part.label, "device": str(device)}
            return OpCheckError(code="FakeHasElements", **about, **at, sample=words)
    difference = difference or _difference(real, fake)
    if difference is None:
        return None
    where, aspect, one, other = difference
    return OpCheckError(
        code="FakeDiffers",
        **about,
        where=where,
        aspect=aspect,
        real=one,
        fake=other,
        sample=words,
    )


def _real_sizes(
    real: SampleCall, fake: SampleCall, drawn: DynamicSizes
) -> tuple[int, ...]:
    """Return the sizes of real results where the fake results have drawn sizes."""
    sizes: dict[int, int] = {}
    for one, other in zip(real.results, fake.results, strict=False):
        for size, mark in zip(one.tensor.shape, other.tensor.shape, strict=False):
            sizes.setdefault(mark, size)
    least = [low for low, _ in drawn.bounds]
    return tuple(
        [sizes.get(mark, low) for mark, low in zip(drawn.known, least, strict=False)]
    )


def _faked(sample: Sample, values: Sequence[Any]) -> list[Any] | None:
    """Return the values without elements; None if no value would be on meta."""
    copies = Copier(meta=True).values(values)
    tensors = bool(sample.arguments(values))
    placed = False
    for place, argument in enumerate(sample.schema.arguments):
        is_device = unwrap_optional(argument.type) == DeviceType
        if is_device and (copies[place] is not None or not tensors):
            copies[place], placed = META, True
    return copies if tensors or placed else None


def _raised(about: dict[str, Any], error: Exception, words: str) -> OpCheckError:
    cause: BaseException | None = error
    while cause is not None:
        request = ""
        if isinstance(cause, NoData):
            request = f"it asks for {cause.asked}"
            if cause.code == "NoDataToRead":
                request = f"`{cause.operator}` {cause.asked}"
        if request:
            return OpCheckError(
                code="FakeReadsElements", **about, asked=request, sample=words
            )
        if (isinstance(cause, MissingFake) and cause.code == "MissingFake") or (
            isinstance(cause, MissingKernel) and cause.key == "Meta"
        ):
            return OpCheckError(code="FakeMissing", **about, missing=cause.operator)
        cause = cause.__cause__
    kind = code_of(error)
    return OpCheckError(
        code="FakeRaised", **about, kind=kind, text=first_paragraph(error), sample=words
    )


Difference = tuple[str, str, str, str]


def _difference(real: SampleCall, fake: SampleCall) -> Difference | None:
    """Return the first difference: where, in which aspect, and both sides."""
    count, of_fake = len(real.returned), len(fake.returned)
    if count != of_fake:
        return "all results", "length", str(count), str(of_fake)
    sides = (real.returned, real.parts), (fake.returned, fake.parts)
    for label, one, other in _pairs(real.sample, " after the call", *sides):
        difference = _unlike(one, other)
        if difference is not None:
            return label, *difference
    return _shared_otherwise(real, fake)


def _pairs(
    sample: Sample, behind: str, one: "Outcome", other: "Outcome"
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the results of two calls, and then the arguments, in pairs with names.

    Lists of equal length are compared by element; `behind` follows an argument's name.
    """
    labels = sample.result_labels(len(one[0]))
    yield from _inner_pairs(labels, one[0], other[0])
    for left, right in zip(one[1], other[1], strict=True):
        yield f"argument `{left.label}`{behind}", left.tensor, right.tensor


def _inner_pairs(
    labels: Sequence[str], one: Sequence[Any], other: Sequence[Any]
) -> Iterator[tuple[str, Any, Any]]:
    for label, *pair in zip(labels, one, other, strict=True):
        left, right = pair
        lists = all(isinstance(each, (list, tuple)) for each in pair)
        if lists and len(left) == len(right):
            inner = [f"{label}[{number}]" for number in range(len(left))]
            yield from _inner_pairs(inner, left, right)
        else:
            yield label, left, right


def _unlike(one: Any, other: Any) -> tuple[str, str, str] | None:
    """Return the aspect in which two values differ, and both; strides where
    relevant.
    """
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        for aspect, left, right in (
            ("dtype", one.dtype, other.dtype),
            ("shape", one.shape, other.shape),
            ("strides", _strides(one), _strides(other)),
        ):
            if left != right:
                return aspect, str(left), str(right)
        return None
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return "length", str(len(one)), str(len(other))
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return "kind", type(one).__name__, type(other).__name__
    return None if equal(one, other) else ("value", repr(one), repr(other))


def _strides(tensor: Tensor) -> tuple[int, ...]:
    """Return the strides, with 0 for a stride that has no effect."""
    if not tensor.numel():
        return (0,) * tensor.ndim
    pairs = zip(tensor.shape, tensor.strides, strict=True)
    return tuple(stride if size > 1 else 0 for size, stride in pairs)


def _shared_otherwise(real: SampleCall, fake: SampleCall) -> Difference | None:
    """Return the difference if results share other memory, or at another offset."""
    for one, other in zip(real.results, fake.results, strict=True):
        with_real, with_fake = _sharing(one, real), _sharing(other, fake)
        if with_real != with_fake:
            return one.label, "aliasing", _with(with_real), _with(with_fake)
        if with_real and one.tensor.offset != other.tensor.offset:
            offsets = str(one.tensor.offset), str(other.tensor.offset)
            return one.label, "offset", *offsets
    return None


def _sharing(result: TensorPart, trial: SampleCall) -> tuple[str, ...]:
    return tuple(
        part.label for part in trial.parts if shared(result.tensor, part.tensor)
    )


def _with(labels: tuple[str, ...]) -> str:
    names = ", ".join(f"`{label}`" for label in labels)
    return f"shares memory with {names}" if names else "memory of its own"


Ints = tuple[int, ...]


def grown_samples(sample: Sample) -> Iterator[tuple[str, list[Any]]]:
    """Yield samples with other sizes, and a description of each change."""
    tensors = {id(p.tensor): p.tensor for p in sample.arguments(sample.values)}
    storages = {id(ensure_place(tensor)[0]) for tensor in tensors.values()}
    on_meta = any(tensor.is_meta for tensor in tensors.values())
    if on_meta or len(storages) < len(tensors):
        return
    sizes = sorted({size for t in tensors.values() for size in t.shape if size > 1})
    for size in sizes:
        replacements = {at: _grown(each, size) for at, each in tensors.items()}
        words = f"the sample with size {size} grown to {size + 1}"
        yield words, Copier(given=replacements).values(sample.values)


def _grown(tensor: Tensor, size: int) -> Tensor:
    grows = [(0, int(have == size)) for have in tensor.shape]
    plain = Copier().tensor(tensor)
    values = host_copy(plain, "opcheck()")
    shape = tuple(
        have + more for have, (_, more) in zip(values.shape, grows, strict=True)
    )
    strides = _grown_strides(tensor, shape)
    buffer = from_numpy(np.zeros(span(shape, strides), values.dtype))
    host = view_of(buffer, shape, strides, 0)
    array_of(host)[...] = np.pad(values, grows, mode="edge") if grows else values
    device = tensor.device
    memory = memory_of(device.type).from_numpy(array_of(buffer), device.index)
    storage = Storage(memory, device, tensor.dtype, buffer.numel())
    return place_on(storage, shape, strides, 0, None, tensor.key_bits)


def _grown_strides(tensor: Tensor, shape: Ints) -> Ints:
    """Return dense strides in the order of the tensor's strides; zeros stay."""
    old = tensor.strides
    order = sorted(range(len(old)), key=lambda dim: (-old[dim], dim))
    strides, step = [0] * len(old), 1
    for dim in reversed(order):
        if old[dim]:
            strides[dim] = step
            step *= shape[dim]
    return tuple(strides)


FUNCTIONAL = "test_functionalization"


def check_functional(sample: Sample) -> OpCheckError | None:
    """Return the first difference between a call in place and one on clones."""
    if "nondeterministic_bitwise" in sample.tags or not sample.arguments(sample.values):
        return None
    values, again, clones = (
        Copier(apart=apart).values(sample.values) for apart in (False, False, True)
    )
    results, repeated = sample.run(values), sample.run(again)
    in_place = results, sample.arguments(values)
    if _first_difference(sample, in_place, (repeated, sample.arguments(again))):
        return None
    originals = Copier().values(sample.values)
    difference: tuple[str, str] | None
    try:
        returned = sample.run(clones)
    except Exception as error:  # whatever it is, it is the finding
        observation = f"on clones it raised {code_of(error)}: {first_paragraph(error)}"
        difference = "its outcome", observation
    else:
        returned = _copied_back(sample, originals, clones, returned)
        outcome = returned, sample.arguments(originals)
        difference = _first_difference(sample, in_place, outcome)
    if difference is None:
        return None
    where, observation = difference
    return OpCheckError(
        code="FunctionalDiffers",
        **sample.about(FUNCTIONAL),
        where=where,
        seen=observation,
    )


def _copied_back(
    sample: Sample, originals: list[Any], clones: list[Any], results: list[Any]
) -> list[Any]:
    """Copy the written arguments back; return the results with the originals."""
    replacements: dict[int, Tensor] = {}
    pairs = zip(sample.arguments(originals), sample.arguments(clones), strict=True)
    for original, clone in pairs:
        replacements[id(clone.tensor)] = original.tensor
        if sample.is_written(clone):
            _write(original, clone)
    return [_replaced(value, replacements) for value in results]


def _write(original: TensorPart, clone: TensorPart) -> None:
    one, other = original.tensor, clone.tensor
    if facts_of(one) == facts_of(other):
        core.copy_(one, other)
        return
    # The place of a resized or transposed argument changes too.
    set_source(one, other)


def _replaced(value: Any, replacements: dict[int, Tensor]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_replaced(each, replacements) for each in value]
    return replacements.get(id(value), value)


# The results of a call, and its arguments after it.
Outcome = tuple[Sequence[Any], Sequence[TensorPart]]


def _first_difference(
    sample: Sample, one: Outcome, other: Outcome
) -> tuple[str, str] | None:
    for label, left, right in _pairs(sample, "", one, other):
        difference = _value_difference(sample, left, right)
        if difference:
            return label, difference
    return None


def _value_difference(sample: Sample, one: Any, other: Any) -> str:
    """Return the difference of two values in words; empty if they are equal."""
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return f"{len(other)} values, in place {len(one)}"
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        limits = {"rtol": sample.rtol, "atol": sample.atol}
        try:
            assert_close(other, one, equal_nan=True, **limits)  # type: ignore[arg-type]  # numbers only
        except NotClose as error:
            return f"{error.actual}, in place {error.expected}"
        except NotAlike as error:
            return f"{error.aspect} {error.actual}, in place {error.expected}"
        return ""
    return "" if equal(one, other) else f"{other!r}, in place {one!r}"
