"""Operators that torch computes by one kernel, and that consist of others here.

A handler sees the parts; the list is a row of `docs/deviations.toml`.
"""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everyorder import runtime

DEVIATIONS = Path(__file__).parents[2] / "docs/deviations.toml"
WHAT = "operators of one kernel upstream that consist of others here"

Calls = dict[str, Callable[[], object]]


def calls(T: Any, F: Any) -> Calls:  # noqa: N803  # a runtime, as people import it
    """Return a call of each operator, by torch's name of what its handlers see."""
    x, images, flags = T.rand(4, 6), T.rand(1, 2, 4, 4), T.ones(4, 6) > 0
    cube, ids, two = T.rand(2, 2, 2), T.arange(3), T.full((), 2.0)
    square = T.eye(2)
    return {
        "_cdist_forward": lambda: T.cdist(x, x),
        "_linalg_det": lambda: T.linalg.det(square),
        "_linalg_eigh": lambda: T.linalg.eigh(square),
        "_linalg_slogdet": lambda: T.linalg.slogdet(square),
        "_linalg_solve_ex": lambda: T.linalg.solve(square, square),
        "_linalg_svd": lambda: T.linalg.svd(square),
        "_unique2": x.unique,
        "allclose": lambda: T.allclose(x, x),
        "aminmax": lambda: F.one_hot(ids),
        "avg_pool2d": lambda: F.avg_pool2d(images, 2),
        "baddbmm": lambda: T.baddbmm(cube, cube, cube),
        "bincount": ids.bincount,
        "bitwise_left_shift": lambda: T.bitwise_left_shift(ids, 1),
        "bitwise_right_shift": lambda: T.bitwise_right_shift(ids, 1),
        "count_nonzero": x.count_nonzero,
        "cummax": lambda: x.cummax(0),
        "cummin": lambda: x.cummin(0),
        "cumprod": lambda: x.cumprod(0),
        "diag_embed": lambda: T.diag(x[0]),
        "elu": lambda: F.elu(x),
        "fill_": lambda: x.clone().fill_(two),
        "isin": lambda: T.isin(x, x),
        "linalg_vector_norm": lambda: T.linalg.norm(x),
        "masked_fill": lambda: x.masked_fill(flags, two),
        "median": x.median,
        "multinomial": lambda: x.multinomial(1),
        "nan_to_num": x.nan_to_num,
        "native_group_norm": lambda: F.group_norm(images, 2),
        "roll": lambda: x.roll(1),
        "rot90": lambda: T.rot90(x),
        "round": lambda: T.round(x, decimals=1),
        "searchsorted": lambda: T.searchsorted(x[0], x[1]),
        "softplus": lambda: F.softplus(x),
        "std_mean": lambda: T.std_mean(x),
        "trace": square.trace,
        "var_mean": lambda: T.var_mean(x),
    }


def seen_by(base: Any, call: Callable[[], object]) -> list[str]:
    """Return the names of the operators that a mode of a runtime sees."""
    seen: list[str] = []

    class Log(base):  # type: ignore[misc]  # of either runtime
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]  # as people write it
            name = func._overloadpacket._qualified_op_name.partition("::")[2]
            seen.append(name)
            return func(*args, **(kwargs or {}))

    with Log():
        call()
    return seen


# An operator of the name is seen here, too, but it is another call of it.
PARTS = {"round": ["mul", "round", "div"], "fill_": ["clone", "copy_"]}


@pytest.mark.parametrize("name", calls(runtime, runtime))
def test_a_mode_sees_the_parts(name: str) -> None:
    seen = seen_by(runtime.TorchDispatchMode, calls(runtime, runtime)[name])
    assert seen
    if name in PARTS:
        assert seen == PARTS[name]
    else:
        assert name not in seen


@pytest.mark.torch
@pytest.mark.parametrize("name", calls(runtime, runtime))
def test_a_mode_of_torch_sees_one(name: str) -> None:
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    dispatch = __import__("torch.utils._python_dispatch", fromlist=["_"])
    call = calls(torch, torch.nn.functional)[name]
    seen = seen_by(dispatch.TorchDispatchMode, call)
    assert name in seen
    assert seen != PARTS.get(name)


def test_the_row_of_the_deviations_lists_them() -> None:
    rows = tomllib.loads(DEVIATIONS.read_text(encoding="utf-8"))["Dispatch to Python"]
    (row,) = [each for each in rows if each["what"] == WHAT]
    listed = ", ".join(f"`{name}`" for name in sorted(calls(runtime, runtime)))
    assert row["upstream"] == f"handlers see {listed}"
