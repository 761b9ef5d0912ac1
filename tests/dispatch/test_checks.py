"""What must hold before a definition or a kernel joins (spec 3.9, 3.12)."""

from functools import partial
from itertools import permutations
from typing import Any

import pytest

from everyorder.runtime.dispatch import Library, fingerprint
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.registration import Conflict
from everyorder.runtime.keys import KeySet
from everyorder.runtime.tensors import Tensor
from tests.coded import code, coded
from tests.dispatch.samples import FOO, op, says, silent, t_t, tt_t

SchemaMismatch = coded(Conflict, "SchemaMismatch")
SignatureMismatch = coded(Conflict, "SignatureMismatch")


def kt_t(keys: KeySet, x: Tensor) -> Tensor:
    return x


def t_i(x: Tensor) -> int:
    return 1


def nt_t(*, x: Tensor) -> Tensor:
    return x


def error_of(call: Any) -> dict[str, Any]:
    with pytest.raises(EveryorderError) as caught:
        call()
    return {"code": caught.value.code, **caught.value.fields()}


def test_the_mismatch_is_the_same_whoever_comes_second() -> None:
    found = []
    for definition_first in (True, False):
        d = silent()
        library = Library("test", "FRAGMENT", dispatcher=d, origin="here")
        steps = [
            partial(library.define, FOO, debug="def"),
            partial(library.impl, "foo", tt_t, "CPU", debug="kernel"),
        ]
        first, second = steps if definition_first else steps[::-1]
        first()
        before = fingerprint(d.snapshot())
        found.append(error_of(second))
        assert fingerprint(d.snapshot()) == before
    assert found[0] == found[1]
    difference = found[0].pop("difference")
    assert "1" in difference
    assert "2" in difference
    assert found[0] == {
        "code": "SchemaMismatch",
        "operator": "test::foo",
        "schema": "test::foo(Tensor x) -> Tensor",
        "definition": "def",
        "inferred": "(Tensor _0, Tensor _1) -> Tensor _0",
        "kernel": "kernel",
        "key": "CPU",
    }


@pytest.mark.parametrize("kernel", [t_t, kt_t, nt_t, says(1)])
def test_kernels_that_fit(kernel: Any) -> None:
    d = silent()
    library = Library("test", "FRAGMENT", dispatcher=d)
    library.define(FOO)
    library.impl("foo", kernel, "CPU")
    library.impl("foo", t_t, "CUDA")
    assert op(d).has_kernel("CPU")


def test_a_definition_is_compared_with_inactive_kernels_too() -> None:
    d = silent()
    library = Library("test", "FRAGMENT", dispatcher=d)
    library.impl("foo", tt_t, "CPU", debug="old")
    library.impl("foo", says(1), "CPU", debug="new")
    with pytest.raises(SchemaMismatch) as caught:
        library.define(FOO)
    assert caught.value.kernel == "old"


def test_signatures_are_compared_before_there_is_a_schema() -> None:
    d = silent()
    library = Library("test", "FRAGMENT", dispatcher=d)
    library.impl("foo", t_t, "Autograd", debug="first")
    before = fingerprint(d.snapshot())
    assert error_of(lambda: library.impl("foo", t_i, "CPU", debug="second")) == {
        "code": "SignatureMismatch",
        "operator": "test::foo",
        "signature": "(Tensor _0) -> int _0",
        "kernel": "second",
        "key": "CPU",
        "other_signature": "(Tensor _0) -> Tensor _0",
        "other": "first",
        "other_key": "Autograd",
    }
    assert fingerprint(d.snapshot()) == before


def test_the_partner_named_does_not_depend_on_history() -> None:
    keys = ("Autograd", "CUDA", "CPU")
    found = []
    for order in permutations(keys):
        d = silent()
        library = Library("test", "FRAGMENT", dispatcher=d)
        for key in order:
            library.impl("foo", t_t, key, debug=f"k {key}")
        found.append(error_of(partial(library.impl, "foo", t_i, "XLA")))
        found[-1]["kernel"] = ""
    assert all(each == found[0] for each in found)
    assert (found[0]["other"], found[0]["other_key"]) == ("k CPU", "CPU")

    found = []
    for order in permutations(keys):
        d = silent()
        library = Library("test", "FRAGMENT", dispatcher=d, origin="here")
        for key in order:
            library.impl("foo", tt_t, key, debug=f"k {key}")
        found.append(error_of(partial(library.define, FOO)))
    assert all(each == found[0] for each in found)
    assert found[0]["kernel"] == "k CPU"


def test_a_signature_is_forgotten_with_its_last_kernel() -> None:
    d = silent()
    library = Library("test", "FRAGMENT", dispatcher=d)
    first, second = library.impl("foo", t_i, "CPU"), library.impl("foo", t_i, "CUDA")
    first.close()
    with pytest.raises(Conflict, check=code("SignatureMismatch")):
        library.impl("foo", t_t, "CPU")
    second.close()
    library.impl("foo", t_t, "CPU")
    library.define(FOO)


def test_a_refused_kernel_poisons_nothing() -> None:
    d = silent()
    library = Library("test", "FRAGMENT", dispatcher=d)
    library.define(FOO)
    for _ in range(2):
        with pytest.raises(SchemaMismatch):
            library.impl("foo", t_i, "CPU")
    library.impl("foo", t_t, "CPU")


def test_what_is_passed_by_name_fits_by_name() -> None:
    def swapped(x: Tensor, *, b: int, a: str) -> Tensor:
        return x

    def right(x: Tensor, *, a: int, b: str) -> Tensor:
        return x

    library = Library("test", "DEF", dispatcher=silent(), origin="here")
    library.define("foo(Tensor x, *, int a, str b) -> Tensor")
    library.impl("foo", right, "CPU")
    # By position it fits as well, and would get an int for `a`, which is a text.
    found = error_of(lambda: library.impl("foo", swapped, "CUDA"))
    assert found["difference"] == "argument 2 differs in type: int and str"
