"""test_schema: what a call writes to and shares is what its schema says.

True only here: which sharing is excused.

Rules:
- annotations are taken at their word, whatever the alias-analysis kind: autograd and
  versions go by them;
- a declared write may happen, a declared alias may come about; a written argument that
  is a result must, and so must an alias in one call at least of the sample and its
  variants (contiguous, of other dtypes, sizes as they are);
- a result may share memory with an argument that is not annotated for it, if that one
  shares memory with an argument that is;
- an operator with the tag `maybe_aliasing_or_mutating` may do both.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from runtime.custom.opcheck.copier import Copier
from runtime.custom.opcheck.correction import Seen, corrected, may_share
from runtime.custom.opcheck.memory import shared
from runtime.custom.opcheck.sample import Part, Sample
from runtime.custom.opcheck.trial import Trial
from runtime.errors.opcheck import (
    AliasNotSeen,
    OpCheckError,
    ResultsAlias,
    UndeclaredAlias,
    UndeclaredWrite,
)
from runtime.operators.call import core
from runtime.schema.alias import WILDCARD
from runtime.schema.codes import DType
from runtime.schema.types import IntType, ListType, unwrap_optional
from runtime.tensors.elements import SUPPORTED
from runtime.tensors.tensor import Tensor

TEST = "test_schema"
# Says that nothing is declared of what is written and shared.
UNDECLARED = "maybe_aliasing_or_mutating"


def check_schema(sample: Sample) -> OpCheckError | None:
    """The first disagreement of a call with its schema."""
    trial = Trial(sample, Copier().values(sample.values))
    if UNDECLARED in sample.tags:
        return None
    changes = [*trial.undeclared()]
    faults = [*_undeclared_aliases(trial)]
    pairs = [*_pairs(trial)]
    arguments = sample.schema.arguments
    known = {c.part.place for c in changes if c.aspect != "beyond"}
    seen = Seen(written={place for place in known if place < len(arguments)})
    for result, part, _ in faults:
        seen.shares.setdefault(result.place, set()).add(part.place)
    for one, other, _ in pairs:
        if one.place not in seen.shares and other.place not in seen.shares:
            seen.pairs.add((one.place, other.place))
    about, right = sample.about(TEST), corrected(sample.schema, seen)
    if changes:
        first = changes[0]
        return UndeclaredWrite(
            **about,
            argument=first.part.label,
            aspect=first.aspect,
            seen=first.seen,
            right="" if first.aspect == "beyond" else right,
        )
    if faults:
        result, part, how = faults[0]
        return UndeclaredAlias(
            **about,
            result=result.label,
            argument=part.label,
            declared=_declared(sample, result.place),
            seen=how,
            right=right,
        )
    if pairs:
        one, other, how = pairs[0]
        labels = {"one": one.label, "other": other.label}
        return ResultsAlias(**about, **labels, seen=how, right=right)
    return _alias_not_seen(sample, trial)


def _declared(sample: Sample, result: int) -> tuple[str, ...]:
    """The arguments that a result may share memory with."""
    schema = sample.schema
    returned = schema.returns[result]
    return tuple(a.name for a in schema.arguments if may_share(a, returned))


def _may(sample: Sample, argument: Part, result: Part) -> bool:
    schema = sample.schema
    if result.place >= len(schema.returns):
        return True  # the surplus of a schema that returns `...` says nothing
    if argument.place >= len(schema.arguments):
        return WILDCARD in schema.returns[result.place].sets_after
    return may_share(schema.arguments[argument.place], schema.returns[result.place])


def _undeclared_aliases(trial: Trial) -> Iterator[tuple[Part, Part, str]]:
    for result in trial.results:
        found = [(p, shared(result.tensor, p.tensor)) for p in trial.parts]
        sharing = [(part, how) for part, how in found if how]
        if any(_may(trial.sample, part, result) for part, _ in sharing):
            continue
        # The argument that it is, before those on the same storage.
        sharing.sort(key=lambda pair: pair[0].tensor is not result.tensor)
        for part, how in sharing[:1]:
            words = "it is the argument itself" if part.tensor is result.tensor else how
            yield result, part, words


def _pairs(trial: Trial) -> Iterator[tuple[Part, Part, str]]:
    """Results that share memory, and may not."""
    returns = trial.sample.schema.returns
    for number, one in enumerate(trial.results):
        for other in trial.results[:number]:
            if max(one.place, other.place) >= len(returns):
                continue
            how = shared(one.tensor, other.tensor)
            if how and not may_share(returns[other.place], returns[one.place]):
                yield other, one, how


def _alias_not_seen(sample: Sample, trial: Trial) -> AliasNotSeen | None:
    for number in _unseen(trial):
        if sample.schema.returns[number].is_write:
            words = "another tensor was returned"
        elif any(number not in _unseen(other) for other in _variants(sample)):
            continue
        else:
            words = "a copy, of contiguous arguments and in every dtype too"
        return AliasNotSeen(
            **sample.about(TEST),
            result=sample.result_labels(number + 1)[number],
            declared=_declared(sample, number),
            seen=words,
            right=corrected(sample.schema, Seen(alone={number})),
        )
    return None


def _unseen(trial: Trial) -> list[int]:
    """The results that are annotated, and share memory with nobody."""
    found: dict[int, bool] = {}
    for result in trial.results:
        if result.place >= len(trial.sample.schema.returns):
            continue
        sets = trial.sample.schema.returns[result.place].sets_after
        fitting = [p for p in trial.parts if _may(trial.sample, p, result)]
        if not sets or WILDCARD in sets or not fitting or not result.tensor.numel():
            continue
        shares = any(shared(result.tensor, part.tensor) for part in fitting)
        found[result.place] = found.get(result.place, False) or shares
    return [number for number, shares in found.items() if not shares]


def _variants(sample: Sample) -> Iterator[Trial]:
    """Calls that leave an operator the fewest reasons to copy."""
    plain = _relaid(sample, sample.values, None)
    yield from _tried(sample, plain)
    yield from _tried(sample, _sized(sample, plain))
    for name in SUPPORTED:
        yield from _tried(sample, _relaid(sample, sample.values, DType.named(name)))


def _tried(sample: Sample, values: Sequence[Any]) -> Iterator[Trial]:
    try:
        yield Trial(sample, Copier().values(values))
    except Exception:  # a variant need not be a call that works
        return


def _relaid(sample: Sample, values: Sequence[Any], dtype: DType | None) -> list[Any]:
    """The values with every tensor contiguous, on its own, and of the dtype."""
    given: dict[int, Tensor] = {}
    for part in sample.arguments(values):
        plain = Copier().tensor(part.tensor)
        made = core._to_copy(core.contiguous(plain), dtype=dtype or plain.dtype)
        given[id(part.tensor)] = made
    return Copier(given=given).values(values)


def _sized(sample: Sample, values: Sequence[Any]) -> list[Any]:
    """The values with every list of sizes that of the first tensor."""
    parts = sample.arguments(values)
    shape = [*parts[0].tensor.shape] if parts else []
    sized = [*values]
    for place, argument in enumerate(sample.schema.arguments):
        if unwrap_optional(argument.fake_type) == ListType(IntType):
            sized[place] = shape
    return sized
