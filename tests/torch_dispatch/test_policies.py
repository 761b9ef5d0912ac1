"""Metadata that a handler tells, and elements that it gives; what others pay for it."""

import subprocess
import sys
from inspect import getattr_static
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, python_dispatch
from everyorder.runtime.base.hooks import ELEMENT
from everyorder.runtime.errors.tensor import IndexOutOfRange, NotReplaceable
from everyorder.runtime.errors.torch_dispatch import HandlerError, SubclassError
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.torch_dispatch import TorchDispatchMode, no_dispatch
from everyorder.runtime.torch_dispatch.subclasses import OPERATORS, STRIDED
from tests.coded import code, coded
from tests.torch_dispatch.kinds import TENSOR, core

WrongHandlerResult = coded(HandlerError, "WrongHandlerResult")

# Operator -> what the handler of `Telling` answers; others get NotImplemented.
ANSWERS: dict[str, Any] = {}
LOG: list[str] = []


def make(**options: Any) -> Any:
    """A tensor of shape (2, 3) of a class of its own, whose handler tells ANSWERS."""

    class Telling(Tensor):
        def __new__(cls, **options: Any) -> Any:
            return TENSOR._make_wrapper_subclass(cls, (2, 3), **options)

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            LOG.append(func.__name__)
            assert kwargs == {}
            return ANSWERS.get(str(func), NotImplemented)

    LOG.clear()
    return Telling(**options)


@pytest.fixture(autouse=True)
def answers() -> Any:
    ANSWERS.clear()
    yield ANSWERS
    ANSWERS.clear()


# What is read, the operator, what the handler answers, what is read then, the default.
STRIDE_ROWS: list[tuple[str, Any, str, Any, Any, Any]] = [
    ("strides", lambda x: x.strides, "sym_stride", [1, 7], (1, 7), (3, 1)),
    ("stride()", lambda x: x.stride(), "sym_stride", [1, 7], (1, 7), (3, 1)),
    ("stride(0)", lambda x: x.stride(-1), "sym_stride", [1, 7], 7, 1),
    ("is_contiguous", lambda x: x.is_contiguous(), "is_contiguous", False, False, True),
]
SIZE_ROWS: list[tuple[str, Any, str, Any, Any, Any]] = [
    ("shape", lambda x: x.shape, "sym_size", [5], (5,), (2, 3)),
    ("size()", lambda x: x.size(), "sym_size", [5], (5,), (2, 3)),
    ("len()", len, "sym_size", [5], 5, 2),
    ("dim()", lambda x: x.dim(), "dim", 4, 4, 2),
    ("ndim", lambda x: x.ndim, "dim", 4, 4, 2),
    ("numel()", lambda x: x.numel(), "sym_numel", 9, 9, 6),
    ("storage_offset", lambda x: x.storage_offset(), "sym_storage_offset", 2, 2, 0),
    ("offset", lambda x: x.offset, "sym_storage_offset", 2, 2, 0),
    ("nbytes", lambda x: x.nbytes, "sym_size", [5], 20, 24),
]
CPU, META = Device("cpu"), Device("meta")
DEVICE_ROWS: list[tuple[str, Any, str, Any, Any, Any]] = [
    ("device", lambda x: x.device, "device", META, META, CPU),
    ("is_meta", lambda x: x.is_meta, "device", META, True, False),
]
LAYOUT_ROWS: list[tuple[str, Any, str, Any, Any, Any]] = [
    (
        "layout",
        lambda x: x.layout,
        "layout",
        type(STRIDED)(1),
        type(STRIDED)(1),
        STRIDED,
    )
]
ROWS: list[tuple[dict[str, Any], Any]] = [
    *[({"dispatch_sizes_strides_policy": "strides"}, row) for row in STRIDE_ROWS],
    *[
        ({"dispatch_sizes_strides_policy": "sizes"}, row)
        for row in (*STRIDE_ROWS, *SIZE_ROWS)
    ],
    *[({"dispatch_device": True}, row) for row in DEVICE_ROWS],
    *[({"dispatch_layout": True}, row) for row in LAYOUT_ROWS],
]
NAMED = [f"{next(iter(policy.values()))}-{row[0]}" for policy, row in ROWS]


@pytest.mark.spec("dispatch 7.11", "policies")
@pytest.mark.spec("dispatch 8.4", "test_is_contiguous_slow_path")
@pytest.mark.spec("dispatch 8.4", "test_strides_slow_path", "test_sizes_slow_path")
@pytest.mark.spec("dispatch 8.4", "test_dim_slow_path", "test_device_slow_path")
@pytest.mark.spec("dispatch 8.4", "test_layout_slow_path")
@pytest.mark.parametrize(("policy", "row"), ROWS, ids=NAMED)
def test_the_handler_tells(policy: dict[str, Any], row: Any) -> None:
    """7.11: 8.4 is_contiguous, strides, sizes, dim, device, layout _slow_path."""
    _, read, operator, answer, expected, default = row
    made = make(**policy)
    ANSWERS[f"core.{operator}.default"] = answer
    assert read(made) == expected
    # `len()` asks whether there are dimensions, too.
    assert {*LOG} == {f"{operator}.default"}
    # None is the default value, NotImplemented an error that names the operator.
    ANSWERS[f"core.{operator}.default"] = None
    assert read(made) == default
    del ANSWERS[f"core.{operator}.default"]
    with pytest.raises(
        HandlerError,
        check=code("NoImplementation"),
        match=rf"`core\.{operator}\.default`",
    ):
        read(made)


@pytest.mark.parametrize(("policy", "row"), ROWS, ids=NAMED)
def test_the_default_is_told_where_nobody_is_asked(
    policy: dict[str, Any], row: Any
) -> None:
    """7.11: `no_dispatch`, and a tensor of the same class without that policy."""
    _, read, operator, answer, _, default = row
    made = make(**policy)
    ANSWERS[f"core.{operator}.default"] = answer
    with no_dispatch():
        assert read(made) == default
    other = type(made)()
    assert read(other) == default
    assert LOG == []


# Operator, an answer of the right type, what reads it.
NEGATIVE: list[tuple[str, Any, Any]] = [
    ("sym_size", [2, -1], len),
    ("sym_size", [2, -1], lambda x: x.size(0)),
    ("sym_stride", [-3, 1], lambda x: x.strides),
    ("sym_stride", [-3, 1], lambda x: x.stride(0)),
    ("dim", -1, lambda x: x.dim()),
    ("sym_numel", -6, lambda x: x.numel()),
    ("sym_storage_offset", -1, lambda x: x.offset),
]


@pytest.mark.parametrize(("operator", "answer", "read"), NEGATIVE)
def test_no_number_is_negative(operator: str, answer: Any, read: Any) -> None:
    """Bad input: refused by name, where `len` would complain of itself."""
    made = make(dispatch_sizes_strides_policy="sizes")
    ANSWERS[f"core.{operator}.default"] = answer
    with pytest.raises(SubclassError, check=code("WrongMetadata")) as caught:
        read(made)
    assert caught.value.fields() == {
        "cls": "Telling",
        "operator": f"core.{operator}.default",
        "found": str(answer),
    }
    assert " ".join(str(caught.value).split()) == (
        f"A `Telling` called `core.{operator}.default` and got {answer}: a size, a "
        "stride, an offset or a number of dimensions cannot be negative. to do: return "
        "the value from its handler, or None for the default"
    )


@pytest.mark.parametrize("answer", [[1.5], ["2"], 2, [2**63]])
def test_sizes_are_integers(answer: Any) -> None:
    """Bad input: what the operator does not return, whoever reads it."""
    made = make(dispatch_sizes_strides_policy="sizes")
    ANSWERS["core.sym_size.default"] = answer
    for read in (len, list, lambda x: x.shape, lambda x: x.nbytes):
        with pytest.raises(WrongHandlerResult, match="core::sym_size"):
            read(made)


def test_a_size_is_one_of_the_sizes() -> None:
    """Bad input: a handler that tells more dimensions than sizes."""
    made = make(dispatch_sizes_strides_policy="sizes")
    ANSWERS["core.dim.default"] = 5
    ANSWERS["core.sym_size.default"] = None
    assert (made.dim(), made.size(-1)) == (5, 3)
    with pytest.raises(IndexOutOfRange, check=code("BadDimension")):
        made.size(4)


def test_strides_alone_leave_the_sizes() -> None:
    """7.11: "strides" is less than "sizes"."""
    made = make(dispatch_sizes_strides_policy="strides")
    assert (made.shape, made.dim(), made.numel(), made.device) == ((2, 3), 2, 6, CPU)
    made = make(dispatch_device=True)
    assert (made.strides, made.layout) == ((3, 1), STRIDED)
    assert LOG == []


@pytest.mark.spec("dispatch 8.4")
def test_fancy_strides() -> None:
    """7.11: 8.4 test_fancy_strides: of one that is a tensor, the handler decides."""

    class Fancy(Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if str(func) == "core.is_contiguous.default":
                return False
            if str(func) == "core.sym_stride.default":
                return None
            return super().__torch_dispatch__(func, types, args, kwargs)

    made = TENSOR._make_subclass(
        Fancy, runtime.ones(2, 2), dispatch_sizes_strides_policy="strides"
    )
    assert (made.is_contiguous(), made.strides) == (False, (2, 1))
    assert (made + 1).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_a_subclass_inherits_and_overrides() -> None:
    made = make(dispatch_sizes_strides_policy="sizes")
    ANSWERS["core.sym_size.default"] = [4]

    class Longer(type(made)):  # type: ignore[misc]  # a class made in a function
        @property
        def shape(self) -> Any:
            return (*super().shape, 1)

    own = vars(Longer)["shape"]
    longer = Longer(dispatch_sizes_strides_policy="sizes")
    assert vars(Longer)["shape"] is own
    assert longer.shape == (4, 1)
    assert LOG == ["sym_size.default"]


def test_answers_are_checked() -> None:
    made = make(dispatch_sizes_strides_policy="sizes")
    ANSWERS["core.sym_size.default"] = "many"
    with pytest.raises(WrongHandlerResult) as caught:
        made.shape  # noqa: B018  # asked for, not used
    assert caught.value.operator == "core::sym_size"


def test_setting_stays_refused() -> None:
    made = make(dispatch_sizes_strides_policy="sizes", dispatch_device=True)
    for name in ("shape", "device"):
        with pytest.raises(NotReplaceable, check=code("FixedAttribute")):
            setattr(made, name, None)


def test_modes_come_first() -> None:
    """7.3: modes win over subclasses, for metadata as for operators."""

    class Seven(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return 7 if str(func) == "core.dim.default" else NotImplemented

    made, plain = make(dispatch_sizes_strides_policy="sizes"), runtime.ones(2)
    ANSWERS["core.sym_numel.default"] = 8
    with Seven():
        assert (made.dim(), made.numel(), plain.dim()) == (7, 8, 1)


def test_plain_tensors_pay_nothing() -> None:
    """7.11: the properties are put on the class with a policy, and on no other."""
    before = {
        name: getattr_static(Tensor, name) for name in ("shape", "dim", "strides")
    }
    kind = type(make(dispatch_sizes_strides_policy="sizes"))
    assert before == {name: getattr_static(Tensor, name) for name in before}
    assert {"shape", "dim", "strides"} <= {*vars(kind)}
    assert "shape" not in vars(type(make()))


def test_the_operators_are_ordinary_ones() -> None:
    """7.11: `func` is a real handle, and `func(plain)` reads the plain tensor."""
    plain = runtime.zeros(2, 3).t()
    grads = runtime.zeros(2, 3, requires_grad=True).t()
    expected = {
        "dim": 2,
        "sym_size": [3, 2],
        "sym_numel": 6,
        "sym_stride": [1, 3],
        "sym_storage_offset": 0,
        "is_contiguous": False,
        "device": CPU,
        "layout": STRIDED.code,
    }
    assert {schema.partition("(")[0] for schema, _ in OPERATORS} == {*expected}
    for name, value in expected.items():
        for tensor in (plain, grads):
            assert getattr(core, name)(tensor) == value, name
    fresh = runtime.zeros(4)
    assert [core.sym_stride(fresh), core.sym_storage_offset(fresh)] == [[1], 0]
    assert core.is_contiguous(fresh) is True
    assert (
        str(core.sym_size.default.schema) == "core::sym_size(Tensor self) -> SymInt[]?"
    )
    assert plain.layout is STRIDED


def test_a_leaf_has_gradients_of_the_shape_and_device_that_it_tells() -> None:
    class Told(Tensor):
        inner: Tensor

        @staticmethod
        def __new__(cls, inner: Tensor) -> Any:
            made = TENSOR._make_wrapper_subclass(
                cls,
                (2,),
                requires_grad=True,
                dispatch_sizes_strides_policy="sizes",
                dispatch_device=True,
            )
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            told = {"dim": 1, "sym_size": [4], "sym_stride": [1], "sym_numel": 4}
            told |= {"is_contiguous": True, "device": Device("meta")}
            name = func.__name__.partition(".")[0]
            if name in told:
                return told[name]
            inner = [each.inner if type(each) is cls else each for each in args]
            found = func(*inner, **(kwargs or {}))
            return cls(found) if isinstance(found, Tensor) else found

    leaf = Told(runtime.tensor([1.0, 2.0, 3.0, 4.0]))
    assert (leaf.shape, leaf.device) == ((4,), Device("meta"))
    (leaf * 2).backward(Told(runtime.ones(4)))
    gradient: Any = leaf.grad
    assert gradient.inner.tolist() == [2.0, 2.0, 2.0, 2.0]


tensors: Any = runtime.Tensor

READ: tuple[Any, ...] = (
    *(lambda x: x.item(), bool, int, float, complex),
    lambda x: [1, 2, 3, 4][x],
)


class Wrapped(runtime.Tensor):
    inside: Any
    heard: Any

    @staticmethod
    def __new__(cls: Any, inside: Any) -> Any:
        made = tensors._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)
        made.inside, made.heard = inside, []
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        args[0].heard.append(str(func))
        return func(*[x.inside if isinstance(x, Wrapped) else x for x in args])


@pytest.mark.parametrize("read", READ)
def test_the_handler_reads(read: Any) -> None:
    """7.3: what would read an element is an operator for who is handled."""
    x = Wrapped(runtime.tensor(3))
    plain = read(runtime.tensor(3))
    found = read(x)
    assert (type(found), found) == (type(plain), plain)
    assert x.heard == ["core._local_scalar_dense.default"]


def test_in_if_and_while() -> None:
    """7.3: data-dependent code is heard."""
    x = Wrapped(runtime.tensor(0.0))
    assert not x
    assert x.heard == ["core._local_scalar_dense.default"]


def test_what_a_handler_reads_wrongly() -> None:
    """5.7: an element is a number."""

    class Wrong(Wrapped):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "three"

    with pytest.raises(WrongHandlerResult) as caught:
        Wrong(runtime.tensor(3)).item()
    assert caught.value.problem == "a str 'three'; `Scalar` belongs there"


def test_a_mode_reads() -> None:
    """7.6: modes hear it of plain tensors."""

    class Four(python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return 4

    x = runtime.tensor([3])
    with Four():
        assert x.item() == 4
        with python_dispatch.no_dispatch():
            assert x.item() == 3
    assert x.item() == 3


def test_tensors_without_a_handler_are_read_as_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No cost for plain tensors: no operator is called."""
    heard: list[object] = []
    monkeypatch.setattr(ELEMENT, "answer", heard.append)
    assert runtime.tensor([3]).item() == 3
    assert heard == []


INTERRUPTED = """
import sys
from functools import partial
from importlib import import_module
from everyorder.runtime.operators import core
from everyorder.runtime.torch_dispatch import subclasses
from tests.injection.interrupting import at_lines

name, line, where = subclasses.__name__, 0, ""
while where is not None:
    subclasses.LIBRARY.close()
    del sys.modules[name]
    line += 1
    where = at_lines(partial(import_module, name), (subclasses.__file__,), line)
    subclasses = import_module(name)
    assert core.dim(core.zeros([2])) == 1
print(line > 50)
"""


def test_an_import_that_was_interrupted_can_be_repeated() -> None:
    """At every line of the module."""
    command = [sys.executable, "-c", INTERRUPTED]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("True\n", "")
