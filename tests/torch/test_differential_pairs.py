"""The pair test of our own dispatcher, played on torch: 25 pairs fail there.

A pair is two keys that torch takes, building blocks included; `Undefined` stands for
CompositeImplicitAutograd and is left out.  Played is every order of adding and of
removing, and after every step torch's own check is asked whether the live table is the
one that it would compute.
"""

from itertools import combinations_with_replacement, product

import pytest

from tests.torch.bindings import invariants_text, load_torch
from tests.torch.reference import torch_accepted_keys

pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

OPERATOR = "everyorder_t::foo"
IMPLICIT = "CompositeImplicitAutograd"
ORDERS = ((0, 1), (1, 0))
# The other key of each pair; the implicit composite is the one.
FAILING = {
    *("CompositeExplicitAutograd", "Dense", "NestedTensor"),
    *(f"Quantized{each}" for each in ("CPU", "CUDA", "XPU", "PrivateUse1")),
    *(
        f"{kind}{each}"
        for kind in ("Sparse", "SparseCsr")
        for each in ("CPU", "CUDA", "MPS", "XPU", "PrivateUse1", "Meta")
    ),
    *(
        f"NestedTensor{each}"
        for each in ("CPU", "CUDA", "XPU", "HPU", "PrivateUse1", "Meta")
    ),
}


def test_torch_depends_on_the_order_for_25_pairs() -> None:
    torch = load_torch()
    c, fallthrough = torch._C, torch.library.fallthrough_kernel
    definition = c._dispatch_library("FRAGMENT", "everyorder_t", "")
    definition.def_("foo(Tensor x) -> Tensor", "")
    libraries = [c._dispatch_library("IMPL", "everyorder_t", "") for _ in ORDERS]
    keys = [key for key in torch_accepted_keys() if key != "Undefined"]
    failing = set()
    for pair in combinations_with_replacement(keys, 2):
        for adds, removes in product(ORDERS, ORDERS):
            for index in adds:
                if index == 0:
                    libraries[0].impl_t_t("foo", pair[0], "native")
                else:
                    libraries[1].impl("foo", pair[1], fallthrough)
                if invariants_text(OPERATOR):
                    failing.add(frozenset(pair))
            for index in removes:
                libraries[index].reset()
                if invariants_text(OPERATOR):
                    failing.add(frozenset(pair))
    definition.reset()
    assert len(FAILING) == 25
    assert failing == {frozenset({IMPLICIT, other}) for other in FAILING}
