"""test_functionalization: an operator may be run on clones of what it writes to.

True only here: what functionalization does to a call.  Each argument is cloned, on a
storage of its own; the operator runs on the clones; what it declares as written is
copied back.  That must leave the same results and the same arguments as the call in
place.

Rules:
- an operator that gives two answers to one question, or says so by the tag
  `nondeterministic_bitwise`, is not asked;
- values are compared as `assert_close` does, by the tolerances given or the dtype's.
"""

from collections.abc import Sequence
from typing import Any

from runtime.autograd.data import set_source
from runtime.custom.opcheck.copier import Copier
from runtime.custom.opcheck.outcome import equal, told
from runtime.custom.opcheck.sample import Part, Sample
from runtime.custom.opcheck.trial import facts_of
from runtime.errors.opcheck import FunctionalDiffers, OpCheckError
from runtime.operators.call import core
from runtime.tensors.tensor import Tensor
from runtime.testing import NotAlike, NotClose, assert_close

TEST = "test_functionalization"


def check_functional(sample: Sample) -> OpCheckError | None:
    """The first difference between a call in place and one on clones."""
    if "nondeterministic_bitwise" in sample.tags or not sample.arguments(sample.values):
        return None
    values, again, clones = (
        Copier(apart=apart).values(sample.values) for apart in (False, False, True)
    )
    results, repeated = sample.run(values), sample.run(again)
    if _first_difference(sample, (results, values), (repeated, again)) is not None:
        return None
    originals = Copier().values(sample.values)
    try:
        found = sample.run(clones)
    except Exception as error:  # whatever it is, it is the finding
        kind = type(error).__name__
        seen = f"on clones it raised {kind}: {told(error)}"
        return FunctionalDiffers(**sample.about(TEST), where="its outcome", seen=seen)
    found = _copied_back(sample, originals, clones, found)
    difference = _first_difference(sample, (results, values), (found, originals))
    if difference is None:
        return None
    where, seen = difference
    return FunctionalDiffers(**sample.about(TEST), where=where, seen=seen)


def _copied_back(
    sample: Sample, originals: list[Any], clones: list[Any], results: list[Any]
) -> list[Any]:
    """Write what was written back; the results, with the originals among them."""
    given: dict[int, Tensor] = {}
    pairs = zip(sample.arguments(originals), sample.arguments(clones), strict=True)
    for original, clone in pairs:
        given[id(clone.tensor)] = original.tensor
        if sample.is_written(clone):
            _write(original, clone)
    return [_replaced(value, given) for value in results]


def _write(original: Part, clone: Part) -> None:
    one, other = original.tensor, clone.tensor
    if facts_of(one) == facts_of(other):
        core.copy_(one, other)
        return
    # Of a resized or transposed argument the place moves too.
    set_source(one, other)


def _replaced(value: Any, given: dict[int, Tensor]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_replaced(each, given) for each in value]
    return given.get(id(value), value)


Outcome = tuple[list[Any], list[Any]]


def _first_difference(
    sample: Sample, one: Outcome, other: Outcome
) -> tuple[str, str] | None:
    labels = sample.result_labels(len(one[0]))
    for label, left, right in zip(labels, one[0], other[0], strict=True):
        found = _apart(sample, left, right)
        if found:
            return label, found
    lists = sample.arguments(one[1]), sample.arguments(other[1])
    for left, right in zip(*lists, strict=True):
        found = _apart(sample, left.tensor, right.tensor)
        if found:
            return f"argument `{left.label}`", found
    return None


def _apart(sample: Sample, one: Any, other: Any) -> str:
    """How two values differ; empty if they do not."""
    if isinstance(one, Sequence) and not isinstance(one, str):
        if len(one) != len(other):
            return f"{len(other)} values, in place {len(one)}"
        pairs = zip(one, other, strict=True)
        return next(filter(None, (_apart(sample, *pair) for pair in pairs)), "")
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
