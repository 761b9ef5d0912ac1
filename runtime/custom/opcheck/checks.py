"""opcheck: whether an operator does what its schema and its registrations say.

| name                        | what it compares                                     |
|-----------------------------|------------------------------------------------------|
| test_schema                 | writes and sharing with the annotations              |
| test_autograd_registration  | gradients with finite differences                    |
| test_faketensor             | the kernel at Meta with the real one                 |
| test_functionalization      | a call in place with one on clones                   |

How it works: the sample is bound once; every check plays it on copies of its own, so
that the caller's tensors stay as they are.  A check returns its first finding.

A new check is a function from a `Sample` to a finding or None, with a name of its own,
and a row of `CHECKS`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from runtime.custom.opcheck import autograd, fake, schema
from runtime.custom.opcheck.sample import Sample
from runtime.custom.registering import Operator, handle_of
from runtime.dispatch.handle import OperatorHandle
from runtime.errors.base import nearest
from runtime.errors.custom import OpCheckError, OpCheckMisuse
from runtime.keys import DispatchKey
from runtime.schema.calls import described, written_call

# By name, in the order of reports.
CHECKS: Mapping[str, Callable[[Sample], OpCheckError | None]] = {
    schema.TEST: schema.check_schema,
    autograd.TEST: autograd.check_autograd,
    fake.TEST: fake.check_fake,
    fake.FUNCTIONAL: fake.check_functional,
}

# What torch calls checks that these have no name of -> the one that stands for them.
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
    test_utils: str | Sequence[str] = tuple(CHECKS),
    raise_exception: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
) -> Report:
    """Check an operator at one sample; `SUCCESS` or the first finding for each check.

    Args:
        op: a handle of any dispatcher, the name of an operator, `ops.ns.name` with one
            overload, or what `custom_op` returned.
        args, kwargs: a call that works; tensors that require grad are differentiated,
            and compared with finite differences, in float64 and complex128.
        test_utils: which checks, see the table of the module.
        raise_exception: raise the first finding, instead of reporting it.
        rtol, atol: how far results of clones, and gradients, may be apart; both or
            neither; by default what suits the dtypes.

    Raises:
        OpCheckError: a finding.
        OpCheckMisuse: there is no such check, one tolerance without the other, `args`
            is no sequence, `kwargs` no mapping, or a tensor has a handler of its own.
        DefinitionRefused: `op` is not one operator.
        CallError: the arguments do not fit the schema.
        and whatever the operator raises for the sample.
    """
    if (rtol is None) != (atol is None):
        raise OpCheckMisuse(
            asked="one tolerance",
            fault="says nothing",
            fits="both rtol and atol, or neither",
        )
    names = [test_utils] if isinstance(test_utils, str) else [*test_utils]
    for name in names:
        if name not in CHECKS:
            raise OpCheckMisuse(
                asked=f"{name!r}", fault="is no check", fits=", ".join(_near(name))
            )
    handle = handle_of("opcheck(...)", op)
    _check_call(args, kwargs)
    sample = _sample(handle, tuple(args), kwargs or {}, rtol, atol)
    report: Report = {}
    for name in names:
        found = CHECKS[name](sample)
        if found is not None and raise_exception:
            raise found
        report[name] = "SUCCESS" if found is None else found
    return report


def _near(name: str) -> tuple[str, ...]:
    """The checks that may have been meant."""
    if name in ELSEWHERE:
        return (ELSEWHERE[name],)
    return nearest(name, list(CHECKS)) or tuple(CHECKS)


def _check_call(args: object, kwargs: object) -> None:
    """Whether arguments are given as such, not one of them by itself."""
    if isinstance(args, str | bytes) or not isinstance(args, Sequence):
        raise OpCheckMisuse(
            asked=f"`args`, {described(args)},",
            fault="is no sequence of arguments",
            fits="a tuple or a list, as in opcheck(op, (x,))",
        )
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise OpCheckMisuse(
            asked=f"`kwargs`, {described(kwargs)},",
            fault="is no mapping of arguments",
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
            raise OpCheckMisuse(
                asked=f"argument `{part.label}`, a {type(part.tensor).__name__},",
                fault="has a handler of its own",
                fits="a plain tensor",
            )
    return sample
