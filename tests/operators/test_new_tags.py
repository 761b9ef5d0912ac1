"""Tags of operators whose results depend on elements, or on chance."""

import pytest

from runtime import default_dispatcher
from runtime.operators.install import declared

# Tag -> the operators of `core` that have it.
TAGGED = {
    "data_dependent_output": {"_local_scalar", "equal"},
    "dynamic_output_shape": {
        *("index", "masked_select", "nonzero", "_unique", "bincount", "one_hot"),
        "repeat_interleave.self_Tensor",
    },
    "nondeterministic_seeded": {
        *("dropout", "native_dropout", "normal_", "uniform_"),
        *("bernoulli", "bernoulli_.float", "bernoulli.out"),
        *("multinomial", "multinomial.out"),
        *("rand", "rand_like", "randint", "randn", "randn_like", "randperm"),
    },
    "nondeterministic_bitwise": {"empty", "empty_like", "new_empty"},
}
# The operator here -> that of torch, where the name is another one.
OTHERWISE = {
    "_local_scalar": "_local_scalar_dense",
    "empty": "empty.memory_format",
    "_unique": "_unique2",
    "index": "index.Tensor",
}


# Of these torch says nothing; they read elements, or make as many as these say.
UNTAGGED = ("one_hot", "repeat_interleave.self_Tensor")


@pytest.mark.parametrize("tag", TAGGED)
def test_who_has_the_tag(tag: str) -> None:
    found = {each.schema.partition("(")[0] for each in declared() if tag in each.tags}
    assert found == TAGGED[tag]


def test_a_handle_tells() -> None:
    handle = default_dispatcher().find_op("core::equal")
    assert handle is not None
    assert handle.tags == (
        "data_dependent_output",
        "defined_tensors",
        "integers_only",
    )


@pytest.mark.torch
def test_torch_has_the_same() -> None:
    """But for elements of any value, and what is a composite here, or is one there."""
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    names = {*set().union(*TAGGED.values()), "empty", "empty_like", "new_empty"}
    for name in names:
        base, _, overload = OTHERWISE.get(name, name).partition(".")
        handle = getattr(getattr(torch.ops.aten, base), overload or "default")
        there = {tag.name for tag in handle.tags} & {*TAGGED}
        here = {tag for tag in TAGGED if name in TAGGED[tag]}
        if name not in UNTAGGED:
            assert there == here - {"nondeterministic_bitwise"}, name
