"""Forms of composites: in place and `out=`, below autograd and with gradients."""

from collections.abc import Callable
from typing import Any

import pytest

import runtime as m
from runtime.errors.autograd import WriteRefused
from runtime.errors.operands import TargetRefused
from tests.autograd.made import grad_of
from tests.coded import code

IN_PLACE: dict[str, tuple[Any, ...]] = {
    "addcdiv_": (m.full((3, 3), 0.5), m.full((3, 1), 2.0)),
    "addcmul_": (m.full((3, 3), 0.5), m.full((3,), 2.0)),
    "addmm_": (m.eye(3), m.ones(3, 3)),
    "cumprod_": (1,),
    "cumsum_": (0,),
    "fmod_": (0.75,),
    "hypot_": (m.full((3, 3), 0.5),),
    "lerp_": (m.zeros(3, 3), 0.25),
    "nan_to_num_": (),
    "tril_": (),
    "triu_": (1,),
}


def start() -> Any:
    return m.arange(1.0, 10.0).reshape(3, 3) / 4


@pytest.mark.parametrize("name", IN_PLACE)
def test_written_in_place(name: str) -> None:
    x, more = start(), IN_PLACE[name]
    expected = getattr(x, name[:-1])(*more)
    version = x._version
    assert getattr(x, name)(*more) is x
    assert x._version == version + 1
    assert x.tolist() == expected.tolist()


@pytest.mark.parametrize("name", IN_PLACE)
def test_gradients_of_what_was_written_in_place(name: str) -> None:
    found = []
    for written in (name, name[:-1]):
        leaf = start().requires_grad_()
        x = leaf * 2
        made = getattr(x, written)(*IN_PLACE[name])
        (made * made).sum().backward()
        found.append(grad_of(leaf).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("name", IN_PLACE)
def test_leaves_are_not_written(name: str) -> None:
    leaf = start().requires_grad_()
    with pytest.raises(WriteRefused, check=code("LeafModified")):
        getattr(leaf, name)(*IN_PLACE[name])
    assert leaf.tolist() == start().tolist()


# What takes `out=`, and is no operator of one element after the other.
OUT: dict[str, Callable[..., Any]] = {
    "addcmul": lambda x, **o: m.addcmul(x, x, x, value=2, **o),
    "addmm": lambda x, **o: m.addmm(x, x, x, beta=0.5, **o),
    "angle": lambda x, **o: m.angle(x, **o),
    "baddbmm": lambda x, **o: m.baddbmm(x[None], x[None], x[None], **o),
    "cumprod": lambda x, **o: m.cumprod(x, 0, **o),
    "diag": lambda x, **o: m.diag(x, **o),
    "hstack": lambda x, **o: m.hstack([x, x], **o),
    "lerp": lambda x, **o: m.lerp(x, x * 2, 0.5, **o),
    "lerp by tensor": lambda x, **o: m.lerp(x, x * 2, x, **o),
    "logsumexp": lambda x, **o: m.logsumexp(x, 1, **o),
    "mv": lambda x, **o: m.mv(x, x[0], **o),
    "nan_to_num": lambda x, **o: m.nan_to_num(x, **o),
    "norm": lambda x, **o: m.norm(x, 2, 0, **o),
    "outer": lambda x, **o: m.outer(x[0], x[1], **o),
    "searchsorted": lambda x, **o: m.searchsorted(x[0], x, **o),
    "take_along_dim": lambda x, **o: m.take_along_dim(
        x, m.tensor([[0], [1], [2]]), 1, **o
    ),
    "tril": lambda x, **o: m.tril(x, **o),
    "triu": lambda x, **o: m.triu(x, 1, **o),
    "vstack": lambda x, **o: m.vstack([x, x], **o),
}


@pytest.mark.parametrize("name", OUT)
def test_written_to_a_target(name: str) -> None:
    call, x = OUT[name], start()
    expected = call(x)
    out = m.empty(0, dtype=expected.dtype)
    assert call(x, out=out) is out
    assert (out.shape, out.tolist()) == (expected.shape, expected.tolist())
    other = m.zeros(expected.shape, dtype=expected.dtype)
    call(x, out=other)
    assert other.tolist() == expected.tolist()
    assert call(x, out=None).tolist() == expected.tolist()


@pytest.mark.parametrize("name", OUT)
def test_wrong_targets_stay_as_they_are(name: str) -> None:
    call, x = OUT[name], start()
    wrong = m.zeros(7, 2)
    with pytest.raises(TargetRefused, check=code("TargetShape")):
        call(x, out=wrong)
    assert wrong.tolist() == m.zeros(7, 2).tolist()
    if call(x).dtype.is_floating:
        with pytest.raises(TargetRefused, check=code("TargetDType")):
            call(x, out=m.empty(0, dtype=m.int64))


@pytest.mark.parametrize("name", sorted(set(OUT) - {"searchsorted"}))
def test_targets_take_no_gradient(name: str) -> None:
    with pytest.raises(WriteRefused, check=code("OutRequiresGrad")):
        OUT[name](start().requires_grad_(), out=m.empty(0))
