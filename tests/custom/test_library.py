"""`runtime.library`: the names that users of torch.library look for."""

import pickle
from typing import Any

import pytest

import everyorder.runtime.custom.opcheck
import everyorder.runtime.library
from everyorder.coded_error import sentences
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.call import KernelError
from everyorder.runtime.errors.custom import DefinitionRefused, MissingFake
from everyorder.runtime.errors.registration import LookupFailed

NAMES = (
    *("Library", "custom_op", "define", "impl", "infer_schema", "get_kernel"),
    *("register_kernel", "register_fake", "register_autograd", "register_autocast"),
    *("register_torch_dispatch", "opcheck", "CustomOpDef", "fallthrough"),
    *("fallthrough_kernel", "get_ctx"),
)


def test_every_name_is_there() -> None:
    assert sorted(everyorder.runtime.library.__all__) == sorted(NAMES)
    assert {*NAMES} <= {*dir(everyorder.runtime.library)}
    assert all(
        callable(getattr(everyorder.runtime.library, n)) or "fallthrough" in n
        for n in NAMES
    )


def test_opcheck_is_loaded_once() -> None:
    vars(everyorder.runtime.library).pop("opcheck", None)
    found = everyorder.runtime.library.opcheck
    assert found is everyorder.runtime.custom.opcheck.opcheck
    assert vars(everyorder.runtime.library)["opcheck"] is found


def test_other_names() -> None:
    name = "fallback"
    with pytest.raises(AttributeError) as refused:
        getattr(everyorder.runtime.library, name)
    assert (
        str(refused.value)
        == "module 'everyorder.runtime.library' has no attribute 'fallback'"
    )


def test_the_name_that_programs_for_torch_have() -> None:
    assert (
        everyorder.runtime.library.fallthrough_kernel is everyorder.runtime.fallthrough
    )


CODES = [
    (kind, code)
    for kind in (DefinitionRefused, KernelError, LookupFailed, MissingFake)
    for code in sentences(kind.words)
]
VALUES = {
    tuple[str, ...]: ("a", "b"),
    bool: True,
    str: "x",
    int: 3,
    int | str: 3,
    int | None: 3,
}


@pytest.mark.parametrize(("kind", "code"), CODES)
def test_errors_cross_a_process(kind: type[EveryorderError], code: str) -> None:
    made: Any = kind(
        code=code,
        **{name: VALUES[of] for name, of in kind.__annotations__.items()},
    )
    again = pickle.loads(pickle.dumps(made))
    assert (type(again), again.fields(), str(again)) == (
        type(made),
        made.fields(),
        str(made),
    )
    assert all(len(line) <= 80 for line in str(made).splitlines())
