"""The parameter server: it learns what the data says, among threads and processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from everyorder.runtime import rpc
from tests.examples.parameter_server import ROUNDS, SERVER, TRAINERS, lead

ROOT = Path(__file__).parents[2]
PRINTED = [
    "round   0: loss 4.0987",
    "round  30: loss 0.1091",
    "round  60: loss 0.0033",
    "round  90: loss 0.0001",
    "round 120: loss 0.0000",
    "learned: y = 3.00 a + -2.00 b + 0.50",
]


def test_it_learns_among_threads() -> None:
    with rpc.local_workers([SERVER, *TRAINERS]):
        losses, learned = lead()
    assert len(losses) == ROUNDS
    assert losses == sorted(losses, reverse=True)
    assert [round(value, 2) for value in learned] == [3.0, -2.0, 0.5]


@pytest.mark.slow
def test_one_command_starts_four_processes() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.examples.parameter_server"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines() == PRINTED
