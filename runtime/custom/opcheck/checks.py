"""opcheck: compare an operator with its schema and its registrations.

| name                        | compares                                             |
|-----------------------------|------------------------------------------------------|
| test_schema                 | writes and sharing with the annotations              |
| test_autograd_registration  | where gradients are registered, and their shapes     |
| test_gradients              | gradients with finite differences; only if named     |
| test_faketensor             | the kernel at Meta with the real one                 |
| test_functionalization      | a call in place with one on clones                   |

How it works: the sample is bound once; every check runs it on separate copies, so that
the caller's tensors do not change. A check returns its first finding. A new check is a
function from a `Sample` to a finding or None, with a name and a row of `CHECKS`.

The check of the schema is in this module. Its finding contains the schema line that
would describe the observed effects.

Rules:
- annotations are taken literally, whatever the alias-analysis kind: autograd and
  versions depend on them;
- a declared write or alias is optional; but a written argument that is a result is
  required, and so is an alias in at least one call of the sample and its variants
  (contiguous, of other dtypes, with sizes unchanged);
- a result may share memory with an argument that is not annotated for it, if that one
  shares memory with an argument that is;
- an operator with the tag `maybe_aliasing_or_mutating` may do both;
- in the corrected line, an argument keeps its set; one that needs a set gets the first
  letter that the schema does not use. Correct annotations do not change.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from string import ascii_lowercase
from typing import Any, Literal

from everyorder.runtime.custom.free_functions import Operator, handle_of
from everyorder.runtime.custom.opcheck import autograd, fake
from everyorder.runtime.custom.opcheck.sample import (
    Copier,
    Sample,
    SampleCall,
    TensorPart,
    shared,
)
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.custom import DefinitionRefused, OpCheckError
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.schema.call_errors import describe_value, written_call
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import (
    WILDCARD,
    AliasInfo,
    Argument,
    placed_alias,
)
from everyorder.runtime.schema.types import IntType, ListType, unwrap_optional
from everyorder.runtime.tensors.dtype_info import SUPPORTED
from everyorder.runtime.tensors.tensor import Tensor

TEST = "test_schema"

# The tag that declares that writes and sharing are not annotated.
UNDECLARED = "maybe_aliasing_or_mutating"


def check_schema(sample: Sample) -> OpCheckError | None:
    """Return the first disagreement of a call with its schema."""
    trial = SampleCall(sample, Copier().values(sample.values))
    if UNDECLARED in sample.tags:
        return None
    changes = [*trial.undeclared()]
    faults = [*_undeclared_aliases(trial)]
    pairs = [*_pairs(trial)]
    arguments = sample.schema.arguments
    changed_places = {c.part.place for c in changes if c.aspect != "beyond"}
    effects = Seen(
        written={place for place in changed_places if place < len(arguments)}
    )
    for result, part, _ in faults:
        effects.shares.setdefault(result.place, set()).add(part.place)
    for one, other, _ in pairs:
        if one.place not in effects.shares and other.place not in effects.shares:
            effects.pairs.add((one.place, other.place))
    about, right = sample.about(TEST), corrected(sample.schema, effects)
    if changes:
        first = changes[0]
        return OpCheckError(
            code="UndeclaredWrite",
            **about,
            argument=first.part.label,
            aspect=first.aspect,
            seen=first.seen,
            right="" if first.aspect == "beyond" else right,
        )
    if faults:
        result, part, how = faults[0]
        return OpCheckError(
            code="UndeclaredAlias",
            **about,
            result=result.label,
            argument=part.label,
            declared=_declared(sample, result.place),
            seen=how,
            right=right,
        )
    if pairs:
        one, other, how = pairs[0]
        labels: dict[str, Any] = {"one": one.label, "other": other.label}
        return OpCheckError(
            code="ResultsAlias", **about, **labels, seen=how, right=right
        )
    return _alias_not_seen(sample, trial)


def _declared(sample: Sample, result: int) -> tuple[str, ...]:
    """Return the arguments that a result may share memory with."""
    schema = sample.schema
    returned = schema.returns[result]
    return tuple(a.name for a in schema.arguments if may_share(a, returned))


def _may(sample: Sample, argument: TensorPart, result: TensorPart) -> bool:
    schema = sample.schema
    if result.place >= len(schema.returns):
        return True  # `...` in a schema does not restrict the surplus results
    if argument.place >= len(schema.arguments):
        return WILDCARD in schema.returns[result.place].sets_after
    return may_share(schema.arguments[argument.place], schema.returns[result.place])


def _undeclared_aliases(
    trial: SampleCall,
) -> Iterator[tuple[TensorPart, TensorPart, str]]:
    for result in trial.results:
        overlaps = [(p, shared(result.tensor, p.tensor)) for p in trial.parts]
        sharing = [(part, how) for part, how in overlaps if how]
        if any(_may(trial.sample, part, result) for part, _ in sharing):
            continue
        # First the argument that it is, then those on the same storage.
        sharing.sort(key=lambda pair: pair[0].tensor is not result.tensor)
        for part, how in sharing[:1]:
            words = "it is the argument itself" if part.tensor is result.tensor else how
            yield result, part, words


def _pairs(trial: SampleCall) -> Iterator[tuple[TensorPart, TensorPart, str]]:
    """Yield results that share memory although the schema does not allow it."""
    returns = trial.sample.schema.returns
    for number, one in enumerate(trial.results):
        for other in trial.results[:number]:
            if max(one.place, other.place) >= len(returns):
                continue
            how = shared(one.tensor, other.tensor)
            if how and not may_share(returns[other.place], returns[one.place]):
                yield other, one, how


def _alias_not_seen(sample: Sample, trial: SampleCall) -> OpCheckError | None:
    for number in _unseen(trial):
        if sample.schema.returns[number].is_write:
            words = "another tensor was returned"
        elif any(number not in _unseen(other) for other in _variants(sample)):
            continue
        else:
            words = "a copy, of contiguous arguments and in every dtype too"
        return OpCheckError(
            code="AliasNotSeen",
            **sample.about(TEST),
            result=sample.result_labels(number + 1)[number],
            declared=_declared(sample, number),
            seen=words,
            right=corrected(sample.schema, Seen(unshared={number})),
        )
    return None


def _unseen(trial: SampleCall) -> list[int]:
    """Return the annotated results that do not share memory with an argument."""
    shared_by_place: dict[int, bool] = {}
    for result in trial.results:
        if result.place >= len(trial.sample.schema.returns):
            continue
        sets = trial.sample.schema.returns[result.place].sets_after
        fitting = [p for p in trial.parts if _may(trial.sample, p, result)]
        if not sets or WILDCARD in sets or not fitting or not result.tensor.numel():
            continue
        shares = any(shared(result.tensor, part.tensor) for part in fitting)
        shared_by_place[result.place] = (
            shared_by_place.get(result.place, False) or shares
        )
    return [number for number, shares in shared_by_place.items() if not shares]


def _variants(sample: Sample) -> Iterator[SampleCall]:
    """Yield calls whose arguments make a copy least likely."""
    plain = _relaid(sample, sample.values, None)
    yield from _tried(sample, plain)
    yield from _tried(sample, _sized(sample, plain))
    for name in SUPPORTED:
        yield from _tried(sample, _relaid(sample, sample.values, DType.named(name)))


def _tried(sample: Sample, values: Sequence[Any]) -> Iterator[SampleCall]:
    try:
        yield SampleCall(sample, Copier().values(values))
    except Exception:  # a variant need not be a valid call
        return


def _relaid(sample: Sample, values: Sequence[Any], dtype: DType | None) -> list[Any]:
    """Return the values with every tensor contiguous, separate, and of the dtype."""
    replacements: dict[int, Tensor] = {}
    for part in sample.arguments(values):
        plain = Copier().tensor(part.tensor)
        copy = core._to_copy(core.contiguous(plain), dtype=dtype or plain.dtype)
        replacements[id(part.tensor)] = copy
    return Copier(given=replacements).values(values)


def _sized(sample: Sample, values: Sequence[Any]) -> list[Any]:
    """Return the values with every list of sizes equal to the first tensor's shape."""
    parts = sample.arguments(values)
    shape = [*parts[0].tensor.shape] if parts else []
    sized = [*values]
    for place, argument in enumerate(sample.schema.arguments):
        if unwrap_optional(argument.fake_type) == ListType(IntType):
            sized[place] = shape
    return sized


@dataclass(slots=True)
class Seen:
    """The observed effects of a call: written arguments, and shared memory.

    `shares` maps wrong results to the arguments that they share memory with, `pairs`
    are results that share memory, `unshared` results that do not share memory.
    """

    written: set[int] = field(default_factory=set)
    shares: dict[int, set[int]] = field(default_factory=dict)
    pairs: set[tuple[int, int]] = field(default_factory=set)
    unshared: set[int] = field(default_factory=set)


def may_share(one: Argument, other: Argument) -> bool:
    """Return True if two annotated values may share memory after a call."""
    left, right = one.sets_after, other.sets_after
    return bool(left & right) or WILDCARD in left or WILDCARD in right


def corrected(schema: Schema, seen: Seen) -> str:
    """Return the line of `schema` with the annotations that fit the observed effects.

    Return "" if the line does not change: the effects cannot be declared.
    """
    annotated_places = seen.written.union(*seen.shares.values())
    free = _free_letters(schema)
    arguments = [*schema.arguments]
    letters: dict[int, str] = {}
    for place in sorted(annotated_places):
        if place >= len(arguments):
            continue  # the surplus of a schema with `...` has no annotation
        argument = arguments[place]
        own = sorted(argument.sets_after - {WILDCARD})
        letters[place] = own[0] if own else next(free)
        write = argument.is_write or place in seen.written
        arguments[place] = _annotated(argument, (letters[place],), write)
    returns = [*schema.returns]
    for number, places in seen.shares.items():
        names = tuple(sorted({letters[p] for p in places if p in letters}))
        write = any(arguments[p].is_write for p in places if p in letters)
        if names:
            returns[number] = _annotated(returns[number], names, write)
    for one, other in sorted(seen.pairs):
        common = next(free)
        for number in {one, other}:
            names = tuple(sorted({*returns[number].sets_after, common}))
            returns[number] = _annotated(returns[number], names, False)
    for number in seen.unshared:
        returns[number] = replace(returns[number], alias=None)
    _forget_unused(schema, arguments, returns)
    right = replace(schema, arguments=tuple(arguments), returns=tuple(returns))
    return "" if right == schema else str(right)


def _free_letters(schema: Schema) -> Iterator[str]:
    """Yield names of sets that the schema does not use, shortest first."""
    values = (*schema.arguments, *schema.returns)
    used = frozenset[str]().union(*(v.sets_before | v.sets_after for v in values))
    names = chain(ascii_lowercase, (f"a{number}" for number in count()))
    return (name for name in names if name not in used)


def _annotated(value: Argument, names: tuple[str, ...], write: bool) -> Argument:
    alias = placed_alias(value.type, AliasInfo(names, names, write))
    return replace(value, alias=alias)


def _forget_unused(
    schema: Schema, arguments: list[Argument], returns: list[Argument]
) -> None:
    """Remove sets that no longer belong to a result from arguments that only had
    them.
    """
    before = frozenset[str]().union(*(each.sets_after for each in schema.returns))
    lost = before.difference(*(each.sets_after for each in returns))
    for place, argument in enumerate(arguments):
        sets = argument.sets_after
        if sets and not argument.is_write and sets <= lost:
            arguments[place] = replace(argument, alias=None)


# By name, in the order of reports.
CHECKS: Mapping[str, Callable[[Sample], OpCheckError | None]] = {
    TEST: check_schema,
    autograd.TEST: autograd.check_autograd,
    autograd.GRADIENTS: autograd.check_gradients,
    fake.TEST: fake.check_fake,
    fake.FUNCTIONAL: fake.check_functional,
}

# The checks that run unless the caller names others. A gradient that is not the slope
# may be meant, as that of rounding: only who names the check of numbers gets it.
DEFAULT_CHECKS = tuple(name for name in CHECKS if name != autograd.GRADIENTS)

# Torch's names of checks that have another name here -> the name here.
ELSEWHERE: Mapping[str, str] = {
    "test_aot_dispatch_dynamic": fake.FUNCTIONAL,
    "test_aot_dispatch_static": fake.FUNCTIONAL,
}

Report = dict[str, Literal["SUCCESS"] | OpCheckError]


def opcheck(
    op: Operator,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = DEFAULT_CHECKS,
    raise_exception: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
) -> Report:
    """Check an operator at one sample; return `SUCCESS` or a finding for each check.

    Args:
        op: a handle of any dispatcher, the name of an operator, `ops.ns.name` with one
            overload, or the result of `custom_op`.
        args, kwargs: a valid call; tensors that require grad are differentiated.
        test_utils: the names of the checks, see the table of the module. The default
            is all but `test_gradients`, which compares with finite differences, in
            float64 and complex128.
        raise_exception: raise the first finding, instead of returning it.
        rtol, atol: the tolerances for results of clones, and for gradients; both or
            neither; the default depends on the dtypes.

    Raises:
        OpCheckError: a finding.
        DefinitionRefused: `op` is not one operator; there is no such check, one
            tolerance is missing, `args` is not a sequence, `kwargs` not a mapping, or
            a tensor has a handler.
        CallError: the arguments do not fit the schema.

    Exceptions of the operator for the sample propagate.
    """
    if (rtol is None) != (atol is None):
        raise DefinitionRefused(
            code="OpCheckMisuse",
            asked="one tolerance",
            fault="says nothing",
            fits="both rtol and atol, or neither",
        )
    names = [test_utils] if isinstance(test_utils, str) else [*test_utils]
    for name in names:
        if name not in CHECKS:
            raise DefinitionRefused(
                code="OpCheckMisuse",
                asked=f"{name!r}",
                fault="is not a check",
                fits=", ".join(_near(name)),
            )
    handle = handle_of("opcheck(...)", op)
    _check_call(args, kwargs)
    sample = _sample(handle, tuple(args), kwargs or {}, rtol, atol)
    report: Report = {}
    for name in names:
        finding = CHECKS[name](sample)
        if finding is not None and raise_exception:
            raise finding
        report[name] = "SUCCESS" if finding is None else finding
    return report


def _near(name: str) -> tuple[str, ...]:
    """Return the checks with the most similar names."""
    if name in ELSEWHERE:
        return (ELSEWHERE[name],)
    return nearest(name, list(CHECKS)) or tuple(CHECKS)


def _check_call(args: object, kwargs: object) -> None:
    """Check that `args` and `kwargs` are collections of arguments.

    Raises:
        DefinitionRefused: one of them is a single argument.
    """
    if isinstance(args, str | bytes) or not isinstance(args, Sequence):
        raise DefinitionRefused(
            code="OpCheckMisuse",
            asked=f"`args`, {describe_value(args)},",
            fault="is not a sequence of arguments",
            fits="a tuple or a list, as in opcheck(op, (x,))",
        )
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise DefinitionRefused(
            code="OpCheckMisuse",
            asked=f"`kwargs`, {describe_value(kwargs)},",
            fault="is not a mapping of arguments",
            fits='a dict, as in opcheck(op, (x,), {"dim": 0})',
        )


def _sample(
    handle: OperatorHandle,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    rtol: float | None,
    atol: float | None,
) -> Sample:
    values = tuple(handle.bind(args, kwargs))
    call = written_call(str(handle.name), args, kwargs)
    sample = Sample(handle, handle.schema, handle.tags, call, values, rtol, atol)
    for part in sample.arguments(values):
        if part.tensor.key_bits & DispatchKey.Python.bits:
            raise DefinitionRefused(
                code="OpCheckMisuse",
                asked=f"argument `{part.label}`, a {type(part.tensor).__name__},",
                fault="has a handler",
                fits="a plain tensor",
            )
    return sample
