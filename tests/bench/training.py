"""Rows about training: the time of a step, its memory, and 10,000 of them.

True only here: both models of `tests/examples/train_digits.py`, beside the same on
torch, from the same parameters.  Time is taken in this process, in turn; memory in
processes of their own (`python -m tests.bench.training SIDE MODEL COUNT`), since what a
process once had stays with it.

How the peak is taken: a step on few pictures first, so that everything is loaded; then
the system's own mark of the highest resident size is reset, and a step on many pictures
is made.  Programs compile once, in a run that is not counted.
"""

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from everyorder import runtime
from everyorder.runtime import tensor
from tests.bench import torch_digits
from tests.bench.compare import Pace, Trial, compare, torch
from tests.bench.kernels import limited, pace_of
from tests.bench.row import NO_TORCH, Row
from tests.examples import train_digits

BATCH = 64
MANY = 8192
FEW = 4
STEPS = 10_000
# Free lists and arenas have filled by then.
WARM = 1_000
PACE = Pace(slice=1e-2, rounds=25, limit=4)

# Where Linux tells a process about itself, and takes the reset of its highest mark.
PROCESS = Path("/proc/self")
RESET_PEAK = "5"


def prepared(side: str, name: str, count: int) -> Callable[[], object]:
    """A step on so many pictures."""
    data = train_digits.digits()
    chosen = np.arange(count) % len(data.digits)
    pictures, wanted = data.pictures[chosen], data.digits[chosen]
    runtime.manual_seed(0)
    make, model = train_digits.MODELS[name]
    parameters = make()
    if side == "ours":
        ours = train_digits.Adam(parameters)
        given = tensor(pictures), tensor(wanted)
        return lambda: train_digits.step(model, ours, *given)
    copied = [
        torch.tensor(each.detach().numpy()).requires_grad_() for each in parameters
    ]
    theirs = torch_digits.Adam(copied)
    twin = torch_digits.MODELS[name]
    both = torch.from_numpy(pictures), torch.from_numpy(wanted)
    return lambda: torch_digits.step(twin, theirs, *both)


def same_losses(name: str) -> bool:
    """Whether both sides lose the same in the first steps."""
    ours, theirs = (prepared(side, name, BATCH) for side in ("ours", "torch"))
    mine: Any
    other: Any
    for _ in range(5):
        mine, other = ours(), theirs()
        if not np.isclose(mine.item(), other.item(), rtol=1e-3):
            return False
    return True


STEP = 1.2


def steps() -> Iterator[Row]:
    """The time of a step, over torch's."""
    for name, what in (("mlp", "the perceptron"), ("conv", "the convolutional net")):
        for threads in (1, 2):
            title = f"a step of {what}, 64 digits, over torch's, threads: {threads}"
            if torch is None:
                yield Row(title, "-", f"≤ {STEP}", None, NO_TORCH)
                continue
            assert same_losses(name), f"{name}: the two sides train different models"
            trial = Trial(
                prepared("ours", name, BATCH), None, prepared("torch", name, BATCH)
            )
            with limited(threads):
                figures = compare(trial, pace_of(PACE, threads))
            ratio = figures.over_torch
            assert ratio is not None, "torch is there"
            took = figures.seconds
            yield Row(
                title,
                f"{ratio:.2f} ({took['ours'] * 1e3:.2f} ms, "
                f"torch {took['torch'] * 1e3:.2f} ms)",
                f"≤ {STEP}",
                ratio <= STEP,
                why="the layers above the kernels are Python, 0.1 ms a step",
            )


def resident(mark: str) -> int:
    """`VmRSS` or `VmHWM` of this process, in bytes."""
    for line in (PROCESS / "status").read_text(encoding="utf-8").splitlines():
        if line.startswith(mark):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"the system names {mark} of every process")


def peak(side: str, name: str, count: int) -> int:
    """How much a step on `count` pictures takes at once, in this process."""
    prepared(side, name, FEW)()
    # Larger steps take other paths, which are compiled, or loaded, once.
    prepared(side, name, BATCH)()
    run = prepared(side, name, count)
    gc.collect()
    (PROCESS / "clear_refs").write_text(RESET_PEAK, encoding="utf-8")
    before = resident("VmRSS")
    run()
    run()
    return resident("VmHWM") - before


def growth(name: str) -> tuple[int, int]:
    """Bytes and blocks of Python's that 10,000 steps leave behind, in this process."""
    run = prepared("ours", name, FEW)
    gc.disable()
    for _ in range(WARM):
        run()
    held, blocks = resident("VmRSS"), sys.getallocatedblocks()
    for _ in range(STEPS):
        run()
    return resident("VmRSS") - held, sys.getallocatedblocks() - blocks


def in_a_process(*arguments: str) -> list[int]:
    """What `main` prints there."""
    command = [sys.executable, "-m", "tests.bench.training", *arguments]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return [int(word) for word in found.stdout.split()]


def training_memory() -> Iterator[Row]:
    """The peak of a step, and what many steps leave."""
    if not (PROCESS / "clear_refs").exists():
        yield Row("memory of a step", "-", "≤ 1.2", None, "needs Linux")
        return
    for name, what in (("mlp", "the perceptron"), ("conv", "the convolutional net")):
        title = f"peak memory of a step of {what}, {MANY} digits, over torch's"
        if torch is None:
            yield Row(title, "-", "≤ 1.2", None, NO_TORCH)
            continue
        measured = partial(in_a_process, name)
        measured("ours", str(MANY))
        ours = median(measured("ours", str(MANY))[0] for _ in range(3))
        theirs = median(measured("torch", str(MANY))[0] for _ in range(3))
        yield Row(
            title,
            f"{ours / theirs:.2f} ({ours / 1e6:.0f} MB, torch {theirs / 1e6:.0f} MB)",
            "≤ 1.2",
            ours <= 1.2 * theirs,
            why="planes of a padded copy beside the input of a convolution",
        )
    left, blocks = in_a_process("mlp", "leaks", str(STEPS))
    yield Row(
        "10,000 steps without the collector leave behind",
        f"{left / STEPS:.1f} bytes and {blocks / STEPS:.3f} blocks a step",
        "≤ 10 bytes, no block",
        left <= 10 * STEPS and blocks < STEPS / 100,
    )


def main(arguments: list[str]) -> int:
    """`MODEL ours|torch|leaks COUNT`: print the figures of one process."""
    name, side, count = arguments
    with limited(1):
        found = growth(name) if side == "leaks" else (peak(side, name, int(count)),)
    print(*found)
    return 0


TRAINING_ROWS = (steps, training_memory)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
