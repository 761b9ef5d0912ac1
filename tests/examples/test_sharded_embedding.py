"""The sharded model: its halves in order, once, in Python and as a program."""

import pytest

from everyorder import runtime
from everyorder.runtime import jit
from tests.examples.sharded_embedding import SAMPLES, Sparse, Table, made, main


def test_it_prints_what_its_words_say(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    once = [
        "the dense half runs",
        "the shards are asked",
        "[26.5, 24.5] [[8.0, 10.0], [8.0, 10.0]]",
    ]
    assert capsys.readouterr().out.splitlines() == once * 3


def test_shards_give_what_one_table_gives() -> None:
    weight = runtime.arange(14.0).reshape(7, 2)
    rows = runtime.tensor([[0, 6], [3, 3], [5, 1]])
    whole = runtime.embedding(weight, rows).sum(1).tolist()
    for shards in (1, 2, 3, 7):
        table = Table(weight, shards)
        assert table(rows).tolist() == whole
        assert jit.script(table)(rows).tolist() == whole


@pytest.mark.parametrize(
    "how", [lambda model: model, jit.script], ids=["eager", "script"]
)
def test_nothing_is_looked_up_that_nobody_asks_for(
    how: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(how)
    sparse: Sparse = how(made().sparse)
    promise = sparse(*SAMPLES[1:])
    assert capsys.readouterr().out == ""
    assert promise.names == ["users", "items"]
    assert capsys.readouterr().out == "the shards are asked\n"


def test_gradients_reach_the_rows_that_were_asked_for() -> None:
    model = made()
    jit.script(model)(*SAMPLES)[0].sum().backward()
    grads = [shard.weight.grad.tolist() for shard in model.sparse.users.shards]
    assert grads == [[[1, 1], [0, 0]], [[2, 2], [0, 0]], [[1, 1]]]
