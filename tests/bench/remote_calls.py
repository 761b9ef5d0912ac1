"""Rows about remote calls: two processes, with deadlines and encryption as shipped.

True only here: whole programs (`remote_pair`) are run in turn, ours and torch's, each
with processes of its own; the figure is the median of a few of them.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.bench.compare import torch
from tests.bench.row import NO_TORCH, Row

ROOT = Path(__file__).parents[2]
# How often each program is run.
TURNS = 3
WHAT = ("sync", "pipelined", "remote", "tensor")
# Workers beside the first.
MANY = (2, 8, 24)

SYNC = "`rpc_sync`, p50: over torch's"
PIPELINED = "`rpc_async`, 2,000 under way: calls a second over torch's"
REMOTE = "`remote` and `to_here`, p50: over torch's"
TENSOR = "a tensor of 64 MB: MB/s over torch's"
WHY = "agents and sessions are Python on both sides, torch's are C++"
ENCRYPTED = "`rpc_sync`, encrypted over plain TCP"

# The engine and its way, by the words of a row.
SIDES = {
    "by TCP": (("ours", "tcp"), ("torch", "uv")),
    "on one machine": (("ours", "ipc"), ("torch", "shm")),
}


def told(engine: str, way: str, workers: int, *what: str) -> dict[str, float]:
    """What one program measured."""
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.bench.remote_pair",
            engine,
            way,
            f"{workers}",
            *what,
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=300,
    )
    measured: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return measured


def in_turn(
    *sides: tuple[str, str], what: tuple[str, ...] = WHAT
) -> list[dict[str, float]]:
    """The medians of several sides, which are run in turn."""
    rounds = [[told(*side, 2, *what) for side in sides] for _ in range(TURNS)]
    return [
        {each: median(one[place][each] for one in rounds) for each in what}
        for place in range(len(sides))
    ]


def remote_calls() -> Iterator[Row]:
    """Calls, references and tensors between two processes."""
    for words, sides in SIDES.items():
        if torch is None:
            (own,) = in_turn(sides[0])
            for what, unit in ((SYNC, "sync"), (PIPELINED, "pipelined")):
                figure = f"{own[unit]:.0f}"
                yield Row(f"{what}, {words}", figure, "-", None, NO_TORCH)
            continue
        own, other = in_turn(*sides)
        for what, key, unit in ((SYNC, "sync", "µs"), (REMOTE, "remote", "µs")):
            found = own[key] / other[key]
            yield Row(
                f"{what}, {words}",
                f"{found:.2f} ({own[key]:.0f} {unit}, {other[key]:.0f} {unit})",
                "≤ 1",
                found <= 1,
                why=WHY,
            )
        for what, key, unit in (
            (PIPELINED, "pipelined", "a second"),
            (TENSOR, "tensor", "MB/s"),
        ):
            found = own[key] / other[key]
            yield Row(
                f"{what}, {words}",
                f"{found:.2f} ({own[key]:.0f} {unit}, {other[key]:.0f} {unit})",
                "≥ 1",
                found >= 1,
                why=WHY,
            )
    secret, plain = in_turn(("ours", "tcp"), ("ours", "plain"), what=("sync",))
    found = secret["sync"] / plain["sync"]
    yield Row(
        ENCRYPTED,
        f"{found:.2f} ({secret['sync']:.0f} µs, {plain['sync']:.0f} µs)",
        "≤ 1.2",
        found <= 1.2,
    )


def many_workers() -> Iterator[Row]:
    """One worker that calls 1, 7 and 23 others in turn."""
    rates = {n: told("ours", "ipc", n, "spread")["spread"] for n in MANY}
    first = rates[MANY[0]]
    figures = ", ".join(f"{n}: {rate:.0f}" for n, rate in rates.items())
    yield Row(
        "calls a second to all others of 2, 8 and 24 workers, on these cores",
        figures,
        "24 ≥ half of 2",
        rates[MANY[-1]] >= first / 2,
    )


REMOTE_ROWS = (remote_calls, many_workers)
