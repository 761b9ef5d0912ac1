"""The embedding on other workers: its halves in order, and the sums of one table."""

import subprocess
import sys
from pathlib import Path

import pytest

from everyorder import runtime
from everyorder.runtime import jit, rpc
from tests.examples.remote_embedding import MODEL, SAMPLES, SHARDS, Embedding, made, run

ROOT = Path(__file__).parents[2]
PRINTED = [
    "the dense half runs",
    "the shards are asked",
    "[78.0, 66.0]",
    "[78.0, 66.0] of one table",
]


def test_it_prints_what_its_words_say(capsys: pytest.CaptureFixture[str]) -> None:
    with rpc.local_workers([MODEL, *SHARDS]):
        run()
    assert capsys.readouterr().out.splitlines() == PRINTED


def test_nothing_is_asked_that_nobody_needs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with rpc.local_workers([MODEL, *SHARDS]):
        model = made(SHARDS)
        for sparse in (model.sparse, jit.script(Embedding(model.sparse.shards, 3))):
            promise = sparse(SAMPLES[1])
            assert capsys.readouterr().out == ""
            assert promise.vectors.tolist() == [[12, 14], [10, 12]]
            assert capsys.readouterr().out == "the shards are asked\n"


def test_the_rows_lie_with_their_owners() -> None:
    with rpc.local_workers([MODEL, *SHARDS]):
        shards = made(SHARDS).sparse.shards
        assert [each.owner_name() for each in shards] == [*SHARDS]
        whole = runtime.cat([each.to_here() for each in shards])
        assert whole.tolist() == runtime.arange(14.0).reshape(7, 2).tolist()


@pytest.mark.slow
def test_one_command_starts_four_processes() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.examples.remote_embedding"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines() == PRINTED
