"""Random triples of keys, in random orders, shrunk where one fails."""

from itertools import permutations, product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.pairs.board import KEYS, Board

TRIPLES = 2_000
ORDERS = tuple(permutations((0, 1, 2)))
# Keys that the rules look at for the sake of others, or that stand for many.
SENSITIVE = tuple(
    key
    for key in KEYS
    if key in ("CPU", "HIP", "MTIA", "FPGA", "Meta", "SparseCPU", "NestedTensorCPU")
    or "Autograd" in key
    or "FuncTorchBatched" in key
)


@pytest.mark.slow
def test_no_order_matters_to_any_triple() -> None:
    boards = [Board(builtin=builtin, defined=builtin) for builtin in (True, False)]
    played: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
    keys = st.one_of(st.sampled_from(SENSITIVE), st.sampled_from(KEYS))
    orders = st.sampled_from(ORDERS)

    @settings(
        max_examples=TRIPLES,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.tuples(keys, keys, keys), orders, orders, st.sampled_from(boards))
    def play(
        triple: tuple[str, str, str],
        adds: tuple[int, ...],
        removes: tuple[int, ...],
        board: Board,
    ) -> None:
        played.add((adds, removes))
        assert board.play(triple, adds, removes) is None

    play()
    assert played == set(product(ORDERS, ORDERS))
    assert sum(board.steps for board in boards) >= TRIPLES * 6
    assert all(board.at_rest() for board in boards)
