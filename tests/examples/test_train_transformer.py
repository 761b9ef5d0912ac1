"""A transformer learns to repeat what it has read."""

import pytest

from tests.examples.train_transformer import train


@pytest.mark.slow
def test_it_learns_to_look_back() -> None:
    said: list[str] = []
    assert train(151, said.append) < 0.1
    assert len(said) == 5
