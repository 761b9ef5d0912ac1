"""Fused kernels: the bits of eager operators, over dtypes, edges and chains."""

from math import prod
from random import Random

import numpy as np
import pytest

from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.script.executor import fused_kernel
from everyorder.runtime.script.ir import parse_graph
from everyorder.runtime.script.passes import facts_of
from everyorder.runtime.tensors.construction import from_numpy
from tests.script.fusion.chains import (
    FLOATS,
    WHOLE,
    array_of,
    bits_of,
    chain,
    facts,
    fused,
    group_of,
    groups_of,
    same,
    tensor_of,
    with_plan,
)

MANY = 100_000

CHAIN = """\
graph(%x.1 : Tensor, %y.1 : Tensor):
  %o.1 : int = prim::Constant[value=1]()
  %h.1 : float = prim::Constant[value=0.5]()
  %a.1 : Tensor = core::mul(%x.1, %y.1)
  %b.1 : Tensor = core::add(%a.1, %h.1, %o.1)
  %c.1 : Tensor = core::relu(%b.1)
  %d.1 : Tensor = core::sub(%c.1, %x.1, %o.1)
  %e.1 : Tensor = core::tanh(%d.1)
  return (%e.1)
"""
TEXT = """\
def fused(a0, a1, s0, o0):
    for i in range(o0.size):
        v0 = a0[i]
        v1 = a1[i]
        v2 = _float32(f0(v0, v1))
        v3 = _float32(f1(v2, s0))
        v4 = _float32(f2(v3))
        v5 = _float32(f3(v4, v0))
        v6 = _float32(f4(v5))
        o0[i] = v6
"""
WRAPPING = """\
graph(%x.1 : Tensor, %y.1 : Tensor):
  %o.1 : int = prim::Constant[value=1]()
  %n.1 : int = prim::Constant[value=300]()
  %a.1 : Tensor = core::mul(%x.1, %y.1)
  %b.1 : Tensor = core::add(%a.1, %n.1, %o.1)
  %c.1 : Tensor = core::maximum(%b.1, %x.1)
  %d.1 : Tensor = core::abs(%c.1)
  %e.1 : Tensor = core::gt(%d.1, %y.1)
  %f.1 : Tensor = core::where(%e.1, %d.1, %x.1)
  return (%f.1, %e.1)
"""
CHOOSING = """\
graph(%x.1 : Tensor, %m.1 : Tensor, %s.1 : float):
  %o.1 : int = prim::Constant[value=1]()
  %t.1 : int = prim::Constant[value=2]()
  %z.1 : NoneType = prim::Constant[value=None]()
  %l.1 : float = prim::Constant[value=-0.25]()
  %a.1 : Tensor = core::clamp(%x.1, %l.1, %z.1)
  %b.1 : Tensor = core::masked_fill(%a.1, %m.1, %l.1)
  %c.1 : Tensor = core::sub(%b.1, %x.1, %t.1)
  %d.1 : Tensor = core::mul(%c.1, %s.1)
  %e.1 : Tensor = core::pow(%d.1, %t.1)
  %f.1 : Tensor = core::add(%e.1, %m.1, %o.1)
  return (%f.1)
"""


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_chain_of_floats(dtype: str) -> None:
    x, y = tensor_of(dtype, MANY), tensor_of(dtype, MANY, 1)
    same(group_of(CHAIN, (x, y)), x, y)


def test_the_loop_is_written_as_the_module_says() -> None:
    x, y = tensor_of("float32", 8), tensor_of("float32", 8, 1)
    graph, _ = fused(CHAIN, (x, y))
    (node,) = groups_of(graph)
    ready = fused_kernel.kernel_for(node.attributes["graph"], [*map(facts_of, (x, y))])
    assert ready is not None
    assert f"{ready.loop.text}\n" == TEXT
    assert ready.loop.signature == (
        "void(float32[::1], float32[::1], float32, float32[::1])"
    )


@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_small_integers_wrap_after_each_operator(dtype: str) -> None:
    x, y = tensor_of(dtype, 1_000), tensor_of(dtype, 1_000, 1)
    same(group_of(WRAPPING, (x, y)), x, y)


def test_choices_bounds_powers_factors_and_numbers_given_later() -> None:
    x, m = tensor_of("float32", MANY), tensor_of("bool", MANY, 1)
    group = group_of(CHOOSING, (x, m))
    for number in (0.1, -0.0, float("inf"), 1e300):
        same(group, x, m, number)


def test_numbers_and_shapes_share_a_kernel() -> None:
    before = fused_kernel.entry_of.cache_info().currsize
    for number, count in (("0.5", 1_000), ("-2.5", 2_000)):
        text = CHAIN.replace("0.5", number).replace("tanh", "abs")
        x, y = tensor_of("float32", count), tensor_of("float32", count, 1)
        same(group_of(text, (x, y)), x, y)
    assert fused_kernel.entry_of.cache_info().currsize == before + 1


def test_one_element_for_all_and_mixed_dtypes() -> None:
    x = tensor_of("float32", MANY)
    text = CHAIN.replace("tanh", "neg")
    for one in (np.float32(1.5), np.array([np.nan], "f4"), np.array(2.5, "f8")):
        y = from_numpy(np.asarray(one))
        same(group_of(text, (x, y)), x, y)
    y = tensor_of("int64", MANY)
    same(group_of(text, (x, y)), x, y)


ROWS = """\
graph(%x.1 : Tensor, %y.1 : Tensor, %z.1 : Tensor):
  %o.1 : int = prim::Constant[value=1]()
  %a.1 : Tensor = core::mul(%x.1, %y.1)
  %b.1 : Tensor = core::add(%a.1, %z.1, %o.1)
  %c.1 : Tensor = core::relu(%b.1)
  return (%c.1)
"""
ROWS_TEXT = """\
def fused(a0, b0, b1, o0, table, lo, hi):
    outer = table[0] - 1
    inner = table[1 + outer]
    for row in range(lo, hi):
        rest = row
        p0 = 0
        p1 = 0
        for d in range(outer, 0, -1):
            index = rest % table[d]
            rest = rest // table[d]
            p0 += index * table[d + 1 * (outer + 1)]
            p1 += index * table[d + 2 * (outer + 1)]
        begin = row * inner
        ra0 = a0[begin : begin + inner]
        ro0 = o0[begin : begin + inner]
        rb0 = b0[p0 : p0 + inner]
        v3 = b1[p1]
        for i in range(inner):
            v1 = rb0[i]
            v0 = ra0[i]
            v2 = _float32(f0(v0, v1))
            v4 = _float32(f1(v2, v3))
            v5 = _float32(f2(v4))
            ro0[i] = v5
"""


@pytest.mark.parametrize(
    "shapes",
    [
        ((50, 40), (40,), (50, 1)),
        ((4, 50, 60), (4, 1, 60), (50, 1)),
        ((1_000, 2_000), (2_000,), (1_000, 1)),
        ((7, 3, 20), (3, 20), (7, 1, 20)),
    ],
    ids=str,
)
def test_rows_and_what_is_broadcast(shapes: tuple[tuple[int, ...], ...]) -> None:
    given = [
        from_numpy(array_of("float32", prod(shape), at).reshape(shape))
        for at, shape in enumerate(shapes)
    ]
    same(group_of(ROWS, given), *given)


def test_the_loop_over_rows_is_written_as_the_module_says() -> None:
    given = [facts("float32", each) for each in ((50, 40), (40,), (50, 1))]
    graph, _ = fused(ROWS, given)
    (node,) = groups_of(graph)
    ready = fused_kernel.kernel_for(node.attributes["graph"], given)
    assert ready is not None
    assert f"{ready.loop.text}\n" == ROWS_TEXT


def test_several_dimensions_and_threads() -> None:
    x = from_numpy(tensor_of("float64", 1_200_000).numpy().reshape(3, 4, -1))
    y = from_numpy(tensor_of("float64", 1_200_000, 1).numpy().reshape(3, 4, -1))
    same(group_of(CHAIN, (x, y)), x, y)


def drawn(seed: int) -> None:
    choose = Random(seed)
    dtypes = [choose.choice((*FLOATS, *FLOATS, *WHOLE, "bool")) for _ in range(2)]
    text = chain(choose, dtypes, choose.randrange(3, 9))
    x, y = tensor_of(dtypes[0], 5_000, seed), tensor_of(dtypes[1], 5_000, seed + 1)
    graph, _ = fused(text, (x, y))
    # A group may read what another one gives.
    values = dict(zip(graph.block.parameters, (x, y), strict=True))
    for node in groups_of(graph):
        if not all(each in values for each in node.inputs):
            continue
        given = [values[each] for each in node.inputs]
        group = with_plan(node.attributes["graph"])
        same(group, *given)
        found = group(*given)
        results = found if isinstance(found, tuple) else (found,)
        values.update(zip(node.outputs, results, strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_chains_by_chance(seed: int) -> None:
    drawn(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 400))
def test_more_chains_by_chance(seed: int) -> None:
    drawn(seed)


def test_a_kernel_that_does_not_round_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: results that are not cut to their dtype after each operator."""
    x, y = tensor_of("uint8", 1_000), tensor_of("uint8", 1_000, 1)
    text = WRAPPING.replace("abs", "bitwise_not")
    graph, _ = fused(text, (x, y))
    (node,) = groups_of(graph)
    body = fused_kernel.body_of
    widened = lambda loop: body(loop._replace(text=loop.text.replace("_uint8(", "(")))  # noqa: E731  # in the place of another
    monkeypatch.setattr(fused_kernel, "body_of", widened)
    fused_kernel.entry_of.cache_clear()
    group = with_plan(node.attributes["graph"])
    found = group(x, y)
    fused_kernel.entry_of.cache_clear()
    assert group.kernels == 1
    assert bits_of(found) != bits_of(group.otherwise(x, y))


def test_operators_one_by_one() -> None:
    graph = parse_graph(CHAIN)
    x, y = tensor_of("float32", 8), tensor_of("float32", 8, 1)
    product = core.relu(core.add(core.mul(x, y), 0.5))
    expected = core.tanh(core.sub(product, x))
    assert bits_of(with_plan(graph).otherwise(x, y)) == bits_of(expected)
