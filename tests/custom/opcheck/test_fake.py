"""Kernels at Meta that disagree with those that compute are found, at any sizes."""

from functools import partial
from typing import Any

from everyorder.runtime import (
    DispatchKey,
    DType,
    KeySet,
    Tensor,
    default_dispatcher,
    ops,
    tensor,
)
from everyorder.runtime.custom import custom_op
from everyorder.runtime.custom.opcheck.fake import grown_samples
from everyorder.runtime.custom.opcheck.sample import Sample
from everyorder.runtime.tensors.construction import view_of
from tests.custom.opcheck import planted
from tests.custom.opcheck.planted import Planted, found

core = ops.core
says = partial(planted.says, test="test_faketensor")
agrees = partial(found, test="test_faketensor")


def doubled(x: Any) -> Any:
    return core.mul(x, 2)


def empty(shape: Any, dtype: str = "float32", device: str = "meta") -> Any:
    return core.empty([*shape], dtype=DType.named(dtype), device=device)


def matrix() -> Any:
    return tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def test_a_kernel_that_agrees(define: Planted) -> None:
    assert (
        agrees(define("f(Tensor x) -> Tensor", doubled, Meta=doubled), matrix()) == {}
    )


def test_no_kernel(define: Planted) -> None:
    handle = define("f(Tensor x) -> Tensor", doubled)
    assert (
        says(handle, matrix())
        == """\
test_faketensor: `check::f` cannot run without elements: `check::f` has no
kernel at Meta.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  to do:  register one: register_fake, or impl(..., "Meta")"""
    )


def test_no_kernel_of_an_operator_inside(define: Planted) -> None:
    inner = define("inner(Tensor x) -> Tensor", doubled)
    handle = define("f(Tensor x) -> Tensor", inner, Meta=inner)
    assert (
        says(handle, matrix())
        == """\
test_faketensor: `check::f` cannot run without elements: `check::inner` has no
kernel at Meta.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  to do:  register one: register_fake, or impl(..., "Meta")"""
    )


def test_no_fake_of_a_custom_operator() -> None:
    def twice(x: Tensor) -> Tensor:
        doubled: Tensor = x * 2
        return doubled

    made = custom_op("check::twice", twice, mutates_args=())
    try:
        assert "`check::twice` has\nno kernel at Meta." in says(made, matrix())
        made.register_fake(lambda x: x * 2)
        assert agrees(made, matrix()) == {}
    finally:
        made.close()


def test_a_shape(define: Planted) -> None:
    handle = define(
        "f(Tensor x) -> Tensor", doubled, Meta=lambda x: empty(x.shape[::-1])
    )
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::f` and the real one differ in the
shape of result 0.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  for:    the sample
  real:   (3, 2)
  fake:   (2, 3)"""
    )


def test_a_shape_that_is_right_for_the_sample_only(define: Planted) -> None:
    handle = define("f(Tensor x) -> Tensor", doubled, Meta=lambda x: empty((3, 2)))
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::f` and the real one differ in the
shape of result 0.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  for:    the sample with size 2 grown to 3
  real:   (3, 3)
  fake:   (3, 2)"""
    )


def test_strides(define: Planted) -> None:
    def turned(x: Any) -> Any:
        return view_of(empty((6,)), (3, 2), (1, 3), 0)

    handle = define("f(Tensor x) -> Tensor y", doubled, Meta=turned)
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::f` and the real one differ in the
strides of result `y`.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor y
  for:    the sample
  real:   (2, 1)
  fake:   (1, 3)"""
    )


def test_strides_that_make_no_difference(define: Planted) -> None:
    def line(x: Any) -> Any:
        return view_of(empty((9,)), x.shape, (1, 5), 0)

    handle = define("f(Tensor x) -> Tensor", doubled, Meta=line)
    assert agrees(handle, core.zeros([4, 1])) == {}
    assert agrees(handle, core.zeros([0, 1])) == {}


def test_a_dtype(define: Planted) -> None:
    def wide(x: Any) -> Any:
        return empty(x.shape, "float64")

    handle = define("f(Tensor x) -> Tensor", doubled, Meta=wide)
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::f` and the real one differ in the
dtype of result 0.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  for:    the sample
  real:   float32
  fake:   float64"""
    )


def test_elements(define: Planted) -> None:
    handle = define("f(Tensor x) -> Tensor", doubled,
                    Meta=lambda x: empty(x.shape, device="cpu"))  # fmt: skip
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::f` returned elements: result 0 is on
cpu, and not on meta.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  for:    the sample
  to do:  create results like the arguments, or on their device"""
    )


def test_elements_that_are_read(define: Planted) -> None:
    def looks(x: Any) -> Any:
        return empty([int(x.sum().item())])

    handle = define("f(Tensor x) -> Tensor", doubled, Meta=looks)
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::f` reads elements, which tensors on
meta do not have.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  seen:   it asks for item(), for the sample
  to do:  compute from shapes and dtypes only; or, if results depend on the
          elements, define the operator with the tag data_dependent_output or
          dynamic_output_shape"""
    )


def test_elements_that_an_operator_inside_reads(define: Planted) -> None:
    handle = define("f(Tensor x) -> Tensor", core.nonzero.default, Meta=core.nonzero)
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::f` reads elements, which tensors on
meta do not have.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  seen:   `core::nonzero` has one row for each element that is not zero, for the
          sample
  to do:  compute from shapes and dtypes only; or, if results depend on the
          elements, define the operator with the tag data_dependent_output or
          dynamic_output_shape"""
    )


def test_a_tag_says_that_results_depend_on_elements(define: Planted) -> None:
    kernel = core.nonzero.default
    for tag in ("data_dependent_output", "dynamic_output_shape"):
        handle = define(f"{tag}(Tensor x) -> Tensor", kernel, [tag], Meta=kernel)
        assert agrees(handle, matrix()) == {}


def test_a_kernel_that_raises(define: Planted) -> None:
    def refuses(x: Any) -> Any:
        raise ValueError("no fakes\n  please")

    handle = define("f(Tensor x) -> Tensor", doubled, Meta=refuses)
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::f` raised ValueError where the real
one did not.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  for:    the sample
  error:  no fakes please"""
    )


def test_the_number_of_results(define: Planted) -> None:
    handle = define("f(Tensor x) -> (Tensor, Tensor)", lambda x: (x + 1, x + 2),
                    Meta=lambda x: (x + 1,))  # fmt: skip
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::f` raised WrongReturnCount where the
real one did not.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> (Tensor, Tensor)
  for:    the sample
  error:  A kernel of `check::f` should return 2 values, but returned 1. schema:
          check::f(Tensor x) -> (Tensor, Tensor)"""
    )


def test_the_number_of_results_that_no_schema_says(define: Planted) -> None:
    schema = "f(Tensor x) -> ..."
    handle = define(schema, lambda x: (x + 1, 2), Meta=lambda x: (x + 1,))
    assert "differ in the\nlength of all results" in says(handle, matrix())
    handle = define(
        "g(Tensor x) -> ...", lambda x: (x + 1, 2), Meta=lambda x: (x + 1, 2)
    )
    assert agrees(handle, matrix()) == {}


def test_the_length_of_a_list(define: Planted) -> None:
    handle = define("f(Tensor x) -> Tensor[]", lambda x: [x + 1, x + 2],
                    Meta=lambda x: [x + 1])  # fmt: skip
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::f` and the real one differ in the
length of result 0.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor[]
  for:    the sample
  real:   2
  fake:   1"""
    )


def test_an_element_of_a_list(define: Planted) -> None:
    handle = define("f(Tensor x) -> Tensor[]", lambda x: [x + 1, x + 2],
                    Meta=lambda x: [x + 1, x.sum()])  # fmt: skip
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::f` and the real one differ in the
shape of result 0[1].
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor[]
  for:    the sample
  real:   (3, 2)
  fake:   ()"""
    )


def test_no_result(define: Planted) -> None:
    handle = define("f(Tensor x) -> Tensor?", doubled, Meta=lambda x: None)
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::f` and the real one differ in the
kind of result 0.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor?
  for:    the sample
  real:   Tensor
  fake:   NoneType"""
    )


def test_a_value(define: Planted) -> None:
    handle = define("f(Tensor x) -> (int, float)", lambda x: (x.numel(), float("nan")),
                    Meta=lambda x: (7, float("nan")))  # fmt: skip
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::f` and the real one differ in the
value of result 0.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> (int, float)
  for:    the sample
  real:   6
  fake:   7"""
    )
    handle = define("g(Tensor x) -> (int, float)", lambda x: (x.numel(), float("nan")),
                    Meta=lambda x: (x.numel(), float("nan")))  # fmt: skip
    assert agrees(handle, matrix()) == {}


def test_sharing(define: Planted) -> None:
    handle = define("f(Tensor(a) x) -> Tensor(a)", lambda x: x[0],
                    Meta=lambda x: x[0].clone())  # fmt: skip
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::f` and the real one differ in the
aliasing of result 0.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor(a) x) -> Tensor(a)
  for:    the sample
  real:   shares memory with `x`
  fake:   memory of its own"""
    )
    handle = define("g(Tensor(a) x) -> Tensor(a)", lambda x: x[0], Meta=lambda x: x[1])
    assert (
        says(handle, matrix())
        == """\
test_faketensor: The fake kernel of `check::g` and the real one differ in the
offset of result 0.
  call:   check::g(<Tensor>)
  schema: check::g(Tensor(a) x) -> Tensor(a)
  for:    the sample
  real:   0
  fake:   2"""
    )


def test_an_argument_that_the_call_resizes(define: Planted) -> None:
    def resized(x: Any, out: Any) -> Any:
        return core.neg.out(x, out=out)

    handle = define("f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", resized,
                    Meta=lambda x, out: out)  # fmt: skip
    assert agrees(handle, matrix(), out=core.zeros([3, 2])) == {}
    assert (
        says(handle, matrix(), out=core.zeros([0]))
        == """\
test_faketensor: The fake kernel of `check::f` and the real one differ in the
shape of result 0.
  call:   check::f(<Tensor>, out=<Tensor>)
  schema: check::f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
  for:    the sample
  real:   (3, 2)
  fake:   (0,)"""
    )


def test_devices_become_meta() -> None:
    find = default_dispatcher().find_op
    assert agrees(find("core::zeros"), [2, 3]) == {}
    assert agrees(find("core::zeros"), [2, 3], device="cpu") == {}
    assert (
        agrees(find("core::to"), matrix(), device="cpu", dtype=DType.named("int64"))
        == {}
    )


def test_a_call_without_tensors_says_nothing(define: Planted) -> None:
    handle = define("f(int n) -> int", lambda n: n, BackendSelect=lambda n: n)
    assert agrees(handle, 3) == {}


def test_tensors_with_other_keys(define: Planted) -> None:
    kernels: dict[str, Any] = {
        "SparseCPU": lambda x: core.zeros([3, 2]),
        "SparseMeta": lambda x: empty((1,)),
    }
    handle = define("f(Tensor x) -> Tensor", doubled, **kernels)
    x = matrix().with_keyset(KeySet([DispatchKey.parse("SparseCPU")]))
    assert (
        says(handle, x)
        == """\
test_faketensor: The fake kernel of `check::f` and the real one differ in the
shape of result 0.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  for:    the sample
  real:   (3, 2)
  fake:   (1,)"""
    )


def sample_of(*values: Any) -> Sample:
    handle = core.cat.default
    return Sample(handle, handle.schema, (), "", (list(values), 0))


def others(*values: Any) -> list[tuple[str, list[Any]]]:
    return [(words, found[0]) for words, found in grown_samples(sample_of(*values))]


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
