"""The table is complete, and its rows are sound."""

import pytest

import everyorder.runtime.autograd  # noqa: F401  # defines the operators
from everyorder.runtime import default_dispatcher
from everyorder.runtime.torch_dispatch.subclasses import OPERATORS, SET
from tests.opinfo.info import OpInfo, fits_in_storage
from tests.opinfo.samples import ALL
from tests.opinfo.table import ROWS, VARIANTS, covered


def test_every_operator_has_a_row() -> None:
    names = {n for n in default_dispatcher().op_names() if n.startswith("core::")}
    # What is asked of a tensor by `tests/torch_dispatch/test_policies.py`.
    asked = {f"core::{schema.partition('(')[0]}" for schema, _ in OPERATORS}
    assert asked <= names
    elsewhere = {*asked, f"core::{SET.partition('(')[0]}"}
    assert sorted(names - covered() - elsewhere) == []


def test_every_row_is_of_an_operator_and_of_one_only() -> None:
    names = [f"core::{row.name}" for row in ROWS]
    assert sorted(set(names) - {*default_dispatcher().op_names()}) == []
    assert len(names) == len(set(names))


@pytest.mark.parametrize("row", [*ROWS, *VARIANTS], ids=repr)
def test_a_row_has_samples_that_can_be_made(row: OpInfo) -> None:
    assert set(row.dtypes) <= {*ALL}
    for dtype in row.dtypes:
        samples = row.samples(dtype)
        assert samples
        for sample in samples:
            for array in sample.arrays():
                made = array.tensor()
                assert fits_in_storage(made), (dtype, sample)
                same = made.numpy() == array.values
                assert (same | (array.values != array.values)).all(), (dtype, sample)
