"""Training works: both models learn the digits, and a step leaves nothing behind."""

import gc
import tracemalloc

import pytest

from everyorder.runtime import tensor
from tests.examples.train_digits import MODELS, Adam, digits, step, train

# Few pictures: what is counted are objects, not elements.
BATCH_OF_LEAKS = 4
STEPS = 200


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_model_is_right_on_the_held_out_third(name: str) -> None:
    said: list[str] = []
    assert train(name, epochs=20, say=said.append) >= 0.97
    assert len(said) == 20
    assert said[-1].startswith(f"{name} epoch 20: loss 0.0")


def test_training_is_the_same_every_time() -> None:
    first: list[str] = []
    again: list[str] = []
    for said in (first, again):
        train("mlp", epochs=1, say=said.append)
    assert [line.partition(", held")[0] for line in first] == [
        line.partition(", held")[0] for line in again
    ]


def test_a_step_leaves_nothing_behind_and_needs_no_collector() -> None:
    data = digits()
    make, model = MODELS["mlp"]
    adam = Adam(make())
    pictures = tensor(data.pictures[:BATCH_OF_LEAKS])
    wanted = tensor(data.digits[:BATCH_OF_LEAKS])
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        held = []
        for _ in range(3):
            for _ in range(STEPS):
                step(model, adam, pictures, wanted)
            bytes_held, _ = tracemalloc.get_traced_memory()
            held.append((len(gc.get_objects()), bytes_held))
    finally:
        tracemalloc.stop()
        if enabled:
            gc.enable()
    (objects, before), (again, after) = held[1:]
    assert abs(again - objects) < STEPS // 4
    # The interpreter's free lists of tuples take a while to fill.  A leaked loss would
    # keep its graph: thousands of bytes a step.
    assert after - before < STEPS * 500
