"""Generators: seeds, counters, states, threads."""

from pickle import dumps, loads
from threading import Thread
from typing import Any

import pytest

import everyorder.runtime.tensors.generator
from everyorder.runtime.errors.tensor import ArithmeticRefused, NotReplaceable
from everyorder.runtime.schema.annotation import kernel_signature
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.tensors import Generator, Tensor, default_generator, manual_seed
from everyorder.runtime.tensors.generator import DEFAULT_SEED
from tests.coded import code


def test_counters_are_reserved() -> None:
    made = Generator("cpu", 5)
    assert [made.take(3), made.take(0), made.take(4)] == [(5, 0), (5, 3), (5, 3)]
    assert made.get_state() == (5, 7)
    assert repr(made) == "<Generator on cpu, seed 5, drawn 7>"
    assert made.manual_seed(6) is made
    assert made.take(1) == (6, 0)


def test_seeds() -> None:
    made = Generator()
    assert (made.device, made.initial_seed()) == (Device("cpu"), DEFAULT_SEED)
    assert made.manual_seed(-1).initial_seed() == 2**64 - 1
    assert made.manual_seed(2**64 - 1).initial_seed() == 2**64 - 1
    drawn = {made.seed() for _ in range(3)}
    assert len(drawn) == 3
    assert made.initial_seed() in drawn
    for seed in (2**64, -(2**63) - 1, 10**999):
        with pytest.raises(ArithmeticRefused, check=code("NumberTooLarge")) as caught:
            made.manual_seed(seed)
        assert caught.value.dtype == "seed"


def test_counters_wrap_around() -> None:
    made = Generator().set_state((1, 2**64 - 2))
    assert made.take(4) == (1, 2**64 - 2)
    assert made.get_state() == (1, 2)


def test_states_go_back_and_survive_pickling() -> None:
    made = Generator("hip:1", 9)
    made.take(5)
    state = made.get_state()
    made.take(5)
    assert made.set_state(state).take(1) == (9, 5)
    other = loads(dumps(made))
    assert (other.device, other.get_state()) == (Device("hip", 1), (9, 6))


@pytest.mark.parametrize("state", [(1,), (1, -1), (-1, 1), (2**64, 0), "ab", None])
def test_other_things_are_no_states(state: Any) -> None:
    made = Generator("cpu", 5)
    with pytest.raises(NotReplaceable, check=code("BadState")) as caught:
        made.set_state(state)
    assert caught.value.found == repr(state)
    assert made.get_state() == (5, 0)


def test_threads_reserve_each_their_own() -> None:
    made = Generator()
    taken: list[int] = []

    def take() -> None:
        taken.extend(made.take(2)[1] for _ in range(500))

    threads = [Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(0, 4000, 2))


def test_the_default_one() -> None:
    state = default_generator.get_state()
    try:
        assert manual_seed(3) is default_generator
        assert default_generator.get_state() == (3, 0)
    finally:
        default_generator.set_state(state)
    assert everyorder.runtime.tensors.generator.default_generator is default_generator
    assert everyorder.runtime.tensors.generator.__all__ == [
        "Generator",
        "default_generator",
        "manual_seed",
    ]


def test_schemas_know_it() -> None:
    def kernel(x: Tensor, g: Generator | None) -> Tensor:
        return x

    assert (
        str(kernel_signature(kernel).schema)
        == "(Tensor _0, Generator? _1) -> Tensor _0"
    )
