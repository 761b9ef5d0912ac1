"""Fusion: groups are formed by what a program is given, and change nothing."""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.script.executor import call, executor, script_frames
from everyorder.runtime.script.executor.fusion import FusedGroup
from everyorder.runtime.script.ir.program import Function
from tests.script.executor.written import written

CHAIN = """\
  %one : int = prim::Constant[value=1]()
  %a : Tensor = core::add(%x, %y, %one)
  %b : Tensor = core::mul(%a, %x)
  %c : Tensor = core::neg(%b)
  return (%c)
"""


def chain() -> Function:
    return written("chain(Tensor x, Tensor y) -> Tensor", CHAIN)


def groups(function: Function) -> list[FusedGroup]:
    planner = function.memo["plan"].frame[0]
    calls = [each.call for each in planner.layout.steps]
    return [each for each in calls if isinstance(each, FusedGroup)]


@pytest.mark.parametrize("text_after", [None, 0, 3])
def test_groups_are_formed_after_some_runs(text_after: Any) -> None:
    function, x = chain(), runtime.ones(2000)
    with executor(fuse=True, fuse_after=2, text_after=text_after):
        found = []
        for _ in range(6):
            assert call(function, (x, x)).tolist() == [-2.0] * 2000
            found.append(len(groups(function)))
        assert found == [0, 0, 1, 1, 1, 1]
        (group,) = groups(function)
        assert group.kernels == 4
        # What the kernel does not take, the operators do.
        small, other = runtime.ones(1), runtime.ones(2, 1)
        assert call(function, (small, other)).tolist() == [[-2.0]] * 2
        grad = runtime.ones(2000, requires_grad=True)
        assert call(function, (grad, x)).requires_grad


def test_without_the_option_nothing_is_fused() -> None:
    function, x = chain(), runtime.ones(2000)
    with executor(fuse=False):
        for _ in range(5):
            call(function, (x, x))
        assert groups(function) == []


def test_small_tensors_are_not_worth_it() -> None:
    function, x = chain(), runtime.ones(3)
    with executor(fuse=True, fuse_after=0):
        for _ in range(3):
            assert call(function, (x, x)).tolist() == [-2.0] * 3
        assert groups(function) == []


def test_what_a_group_raises_comes_from_the_function() -> None:
    function, x = chain(), runtime.ones(2000)
    frames = []
    for fuse in (False, True):
        with executor(fuse=fuse, fuse_after=0):
            call(function, (x, x))
            with pytest.raises(Exception, match="shape") as caught:
                call(function, (x, runtime.ones(3)))
            frames.append([each.function for each in script_frames(caught.value)])
    assert frames == [["chain"], ["chain"]]
