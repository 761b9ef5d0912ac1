"""Everyday calls: modes see the operators that they see in torch."""

import tomllib
from pathlib import Path

import pytest

from everyorder import runtime
from tests.torch_dispatch.everyday import calls, sequence
from tests.torch_dispatch.sequences import DIFFERENT, SEQUENCES

DEVIATIONS = Path(__file__).parents[2] / "docs/deviations.toml"
CALLS = calls(runtime, runtime)


class Log(runtime.TorchDispatchMode):
    """Lists the operators of its calls, and the last arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.args: tuple[object, ...] = ()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]  # as people write it
        self.seen.append(str(func))
        self.args = args
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", CALLS)
def test_a_mode_sees_the_operators_of_torch(name: str) -> None:
    with Log() as log:
        CALLS[name]()
    assert sequence(name, log.seen) == DIFFERENT.get(name, SEQUENCES[name])


def test_nearly_all_calls_are_as_in_torch() -> None:
    assert CALLS.keys() == SEQUENCES.keys()
    assert all(SEQUENCES[name] != seen for name, seen in DIFFERENT.items())
    assert len(DIFFERENT) / len(SEQUENCES) <= 4 / 60


def test_the_others_are_rows_of_the_deviations() -> None:
    rows = tomllib.loads(DEVIATIONS.read_text(encoding="utf-8"))["Dispatch to Python"]
    told = " ".join(row["what"] for row in rows)
    assert [name for name in DIFFERENT if f"`{name}`" not in told] == []


def test_a_reduction_is_seen_as_the_call_says_it() -> None:
    x = runtime.ones(3)
    with Log() as log:
        runtime.mse_loss(x, x, "sum")
    assert log.args[2:] == ("sum",)
