"""The same sample with other sizes."""

from typing import Any

from runtime import ops, tensor
from runtime.custom.opcheck.fake import grown
from runtime.custom.opcheck.sample import Sample

core = ops.core


def sample_of(*values: Any) -> Sample:
    handle = core.cat.default
    return Sample(handle, handle.schema, (), "", (list(values), 0))


def others(*values: Any) -> list[tuple[str, list[Any]]]:
    return [(words, found[0]) for words, found in grown(sample_of(*values))]


def test_equal_sizes_grow_together() -> None:
    x, y = tensor([[1, 2, 3], [4, 5, 6]]), tensor([7, 8])
    (first, by_two), (second, by_three) = others(x, y)
    assert first == "the sample with size 2 grown to 3"
    assert [t.tolist() for t in by_two] == [
        [[1, 2, 3], [4, 5, 6], [4, 5, 6]],
        [7, 8, 8],
    ]
    assert second == "the sample with size 3 grown to 4"
    assert [t.tolist() for t in by_three] == [[[1, 2, 3, 3], [4, 5, 6, 6]], [7, 8]]


def test_sizes_that_stay() -> None:
    assert others(tensor(1.0), tensor([1.0]), core.zeros([1, 0])) == []


def test_the_order_of_strides_stays() -> None:
    x = tensor([[1, 2, 3], [4, 5, 6]]).t()
    ((_, (turned,)), _) = others(x)
    assert (turned.shape, turned.strides) == ((3, 3), (1, 3))
    row = tensor([1, 2]).expand([4, 2])
    (_, (wide,)), (_, (long,)) = others(row)
    assert (wide.shape, wide.strides, wide.tolist()) == (
        (4, 3),
        (0, 1),
        [[1, 2, 2]] * 4,
    )
    assert (long.shape, long.strides, long.tolist()) == ((5, 2), (0, 1), [[1, 2]] * 5)


def test_tensors_of_one_storage_do_not_grow() -> None:
    x = tensor([1.0, 2.0, 3.0])
    assert others(x, x[1:]) == []
    assert len(others(x, x)) == 1


def test_tensors_without_elements_do_not_grow() -> None:
    assert others(core.zeros([2], device="meta")) == []
