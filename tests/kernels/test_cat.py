"""cat: blocks after each other."""

from typing import Any

import numpy as np
import pytest

from runtime.kernels.cpu.copy import cat
from runtime.kernels.threads import get_num_threads, set_num_threads
from runtime.schema.codes import DType
from runtime.tensors.elements import SUPPORTED, numpy_dtype
from runtime.tensors.making import from_numpy

DTYPES = [numpy_dtype(DType.named(name)) for name in SUPPORTED]


@pytest.mark.parametrize("form", DTYPES, ids=str)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_cat_joins_every_dtype(form: Any, dim: int) -> None:
    parts = [
        np.arange(n * 12).reshape(
            [n if d == dim else s for d, s in enumerate((3, 4, 1))]
        )
        if dim == 2
        else np.ones([n if d == dim else s for d, s in enumerate((3, 4, 2))])
        for n in (1, 0, 3)
    ]
    parts = [part.astype(form) for part in parts]
    wanted = np.concatenate(parts, dim)
    out = np.zeros(wanted.shape, form)
    cat(from_numpy(out), [from_numpy(part) for part in parts], dim)
    assert out.tobytes() == wanted.tobytes()


def test_cat_reads_strides_and_passes_over_the_old_empty() -> None:
    x = np.arange(6.0).reshape(2, 3)
    out = np.zeros((3, 4))
    cat(
        from_numpy(out),
        [from_numpy(x.T), from_numpy(np.zeros(0)), from_numpy(x.T[:, ::-1].copy())],
        1,
    )
    assert np.array_equal(out, np.concatenate([x.T, x.T[:, ::-1]], 1))


@pytest.mark.parametrize("dim", [0, 1])
def test_cat_is_the_same_on_several_threads(dim: int) -> None:
    x = np.random.default_rng(0).standard_normal((700, 300))
    before = get_num_threads()
    try:
        set_num_threads(3)
        out = np.zeros(np.concatenate([x, x], dim).shape)
        cat(from_numpy(out), [from_numpy(x), from_numpy(x)], dim)
    finally:
        set_num_threads(before)
    assert np.array_equal(out, np.concatenate([x, x], dim))
