"""What a traced thread calls is what the graph has."""

import threading
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.errors.script import Untraceable
from everyorder.runtime.futures import awaitable
from everyorder.runtime.keys import LOCAL, DispatchKey, include_keys
from everyorder.runtime.schema.types import TensorType
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir import graph_text
from everyorder.runtime.script.ir.program import Program, fork, wait
from everyorder.runtime.script.tracing import GraphBuilder, trace_function
from everyorder.runtime.script.tracing.recorder import CURRENT
from everyorder.runtime.tensors.keys import MODED
from everyorder.runtime.tensors.tensor_impl import TensorBase
from tests.script.tracing.traced import agrees, arange, body, same, trace, warned


def test_operators_are_recorded_with_every_argument() -> None:
    def f(x: Any, y: Any) -> Any:
        return x * 2 + y.sum(dim=0)

    traced = trace(f, arange(2, 3), arange(2, 3))
    assert (
        body(traced)
        == """\
  %2 : int = prim::Constant[value=2]()
  %3 : Tensor = core::mul(%x.1, %2)
  %4 : int = prim::Constant[value=0]()
  %5 : int[] = prim::ListConstruct(%4)
  %6 : bool = prim::Constant[value=False]()
  %7 : NoneType = prim::Constant[value=None]()
  %8 : Tensor = core::sum(%y.1, %5, %6, %7)
  %9 : int = prim::Constant[value=1]()
  %10 : Tensor = core::add(%3, %8, %9)
  return (%10)
"""
    )
    assert str(traced.schema) == "f(Tensor x, Tensor y) -> Tensor"
    assert traced.qualname == "__torch__.tests.script.tracing.test_recorder.f"
    agrees(traced, arange(3, 2, start=5), arange(4, 2))


def test_what_an_operator_is_made_of_is_not_recorded() -> None:
    traced = trace(lambda x: runtime.softmax(x, -1).clamp(min=0.25), arange(4))
    assert (
        body(traced)
        == """\
  %1 : int = prim::Constant[value=-1]()
  %2 : NoneType = prim::Constant[value=None]()
  %3 : Tensor = core::softmax(%x.1, %1, %2)
  %4 : float = prim::Constant[value=0.25]()
  %5 : Tensor = core::clamp(%3, %4, %2)
  return (%5)
"""
    )
    agrees(traced, arange(3, 4))


def test_writes_and_views_are_what_they_were() -> None:
    def f(x: Any) -> Any:
        y = x.clone()
        row = y[0]
        row.add_(x[1])
        y[1, 0] = 7
        return y, row

    traced = trace(f, arange(2, 2))
    assert (
        body(traced)
        == """\
  %1 : NoneType = prim::Constant[value=None]()
  %2 : Tensor = core::clone(%x.1, %1)
  %3 : int = prim::Constant[value=0]()
  %4 : Tensor = core::select(%2, %3, %3)
  %5 : int = prim::Constant[value=1]()
  %6 : Tensor = core::select(%x.1, %3, %5)
  %7 : Tensor = core::add_(%4, %6, %5)
  %8 : Tensor = core::select(%2, %3, %5)
  %9 : Tensor = core::select(%8, %3, %3)
  %10 : int = prim::Constant[value=7]()
  %11 : Tensor = core::fill_(%9, %10)
  %12 : (Tensor, Tensor) = prim::TupleConstruct(%2, %7)
  return (%12)
"""
    )
    agrees(traced, arange(2, 2, start=3))


def test_arguments_that_are_written_to_are_those_of_the_call() -> None:
    example = arange(2)
    traced = trace(lambda x: x.mul_(3), example)
    assert same(example, arange(2))
    given = arange(2)
    assert call(traced, (given,)) is given
    assert same(given, arange(2) * 3)


def test_lists_of_tensors_and_several_results() -> None:
    def f(x: Any) -> Any:
        high, where = x.max(0)
        one, two = x.split(1)
        return runtime.cat([two, one, high.reshape([1, 2])]), where

    traced = trace(f, arange(2, 2))
    assert (
        body(traced)
        == """\
  %1 : int = prim::Constant[value=0]()
  %2 : bool = prim::Constant[value=False]()
  %3 : Tensor, %4 : Tensor = core::max.dim(%x.1, %1, %2)
  %5 : int = prim::Constant[value=1]()
  %6 : Tensor[] = core::split(%x.1, %5, %1)
  %7 : Tensor, %8 : Tensor = prim::ListUnpack(%6)
  %9 : int = prim::Constant[value=2]()
  %10 : int[] = prim::ListConstruct(%5, %9)
  %11 : Tensor = core::reshape(%3, %10)
  %12 : Tensor[] = prim::ListConstruct(%8, %7, %11)
  %13 : Tensor = core::cat(%12, %1)
  %14 : (Tensor, Tensor) = prim::TupleConstruct(%13, %4)
  return (%14)
"""
    )
    agrees(traced, arange(2, 2, start=1))


def test_what_nobody_recorded_is_the_object_itself() -> None:
    kept = arange(2)

    def f(x: Any) -> Any:
        kept.add_(1)
        return x + kept + kept

    traced = trace(f, arange(2), check_trace=False)
    assert (
        body(traced)
        == """\
  %1 : Tensor = prim::Constant[value=object(0)]()
  %2 : int = prim::Constant[value=1]()
  %3 : Tensor = core::add_(%1, %2, %2)
  %4 : Tensor = core::add(%x.1, %3, %2)
  %5 : Tensor = core::add(%4, %3, %2)
  return (%5)
"""
    )
    assert same(call(traced, (arange(2),)), runtime.tensor([4.0, 7.0]))
    assert same(kept, runtime.tensor([2.0, 3.0]))


def test_tensors_that_are_made_are_made_anew() -> None:
    def f(x: Any) -> Any:
        counts = runtime.zeros(2, dtype=runtime.int64)
        counts += 1
        return x + counts

    traced = trace(f, arange(2))
    assert (
        body(traced)
        == """\
  %1 : int = prim::Constant[value=2]()
  %2 : int[] = prim::ListConstruct(%1)
  %3 : int = prim::Constant[value=4]()
  %4 : NoneType = prim::Constant[value=None]()
  %5 : bool = prim::Constant[value=False]()
  %6 : Tensor = core::zeros(%2, %3, %4, %5)
  %7 : int = prim::Constant[value=1]()
  %8 : Tensor = core::add_(%6, %7, %7)
  %9 : Tensor = core::add(%x.1, %8, %7)
  return (%9)
"""
    )
    agrees(traced, arange(2))
    agrees(traced, arange(2))


def test_nodes_have_the_place_of_the_call() -> None:
    def f(x: Any) -> Any:
        return x.exp() * x.neg()

    lines = graph_text(trace(f, arange(2)).graph).splitlines()
    line = f.__code__.co_firstlineno + 1
    assert [each.rpartition("test_recorder.py:")[2] for each in lines[1:4]] == [
        f"{line}:16",
        f"{line}:26",
        f"{line}:16",
    ]


READ = (
    "While a function was traced, the element of a tensor was read: {}. The trace "
    "keeps the answer, and what Python decides by it, whatever it is given."
)
ASKED = (
    "While a function was traced, `{}` was asked. The trace keeps the answer, and what "
    "Python decides by it, whatever it is given."
)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda x: x * (2 if x[0] == 0 else 3), READ.format(True)),
        (lambda x: x * int(x[1]), READ.format("1.0")),
        (lambda x: x * float(x[1]), READ.format("1.0")),
        (lambda x: x * x[1].item(), READ.format("1.0")),
        (lambda x: x * runtime.arange(3)[x.argmax()], READ.format("1")),
        (lambda x: x * len(x), ASKED.format("len()")),
        (lambda x: x * x.size(0), ASKED.format("size()")),
        (lambda x: x * x.shape[0], ASKED.format("shape")),
        (lambda x: x.reshape(x.shape), ASKED.format("shape")),
        (lambda x: x * x.numel(), ASKED.format("numel()")),
        (lambda x: x * next(iter(x)), ASKED.format("iter()")),
        (lambda x: x * x.tolist()[1], ASKED.format("tolist()")),
        (lambda x: x * float(x.numpy()[1]), ASKED.format("numpy()")),
        (
            lambda x: x * runtime.equal(x, x),
            "While a function was traced, `core::equal` was asked: True. The trace "
            "keeps the answer, and what Python decides by it, whatever it is given.",
        ),
    ],
    ids=range(14),
)
def test_what_is_read_is_kept_and_warned_of(read: Any, text: str) -> None:
    assert warned(read, arange(2)) == [text]


def test_what_is_no_value_of_the_trace_may_be_read() -> None:
    two, three = runtime.tensor(2.0), arange(3)
    assert warned(lambda x: x * two.item() * len(three.tolist()), arange(2)) == []


def test_a_warning_is_one_of_the_place_of_the_read() -> None:
    def f(x: Any) -> Any:
        return x * x[1].item()

    with pytest.warns(UserWarning, match="the element") as said:
        trace_function(f, arange(2), program=Program())
    assert [(each.filename, each.lineno) for each in said] == [
        (__file__, f.__code__.co_firstlineno + 1)
    ]


def test_grad_mode_is_that_of_the_caller() -> None:
    def f(x: Any) -> Any:
        with runtime.no_grad():
            y = x * 2
            z = y * 2
        return y + z

    assert warned(f, arange(2)) == [
        "While a function was traced, it set grad mode to False. The trace does not: "
        "it runs in the mode of its caller."
    ]
    with runtime.no_grad():
        traced = trace(f, arange(2))
    x = arange(2).requires_grad_()
    assert call(traced, (x,)).requires_grad
    with runtime.no_grad():
        assert not call(traced, (x,)).requires_grad


def test_gradients_flow_through_a_trace() -> None:
    weight = arange(3).requires_grad_()

    def f(x: Any) -> Any:
        return (x * weight).exp().sum()

    traced = trace(f, arange(3).requires_grad_())
    grads = []
    for run in (f, lambda x: call(traced, (x,))):
        x = arange(3, start=0.5).requires_grad_()
        weight.grad = None
        run(x).backward()
        grads.append((x.grad, weight.grad))
    assert same(*grads)


def test_a_backward_pass_is_recorded() -> None:
    def f(x: Any) -> Any:
        (grad,) = runtime.autograd.grad((x * x).sum(), x)
        assert grad is not None
        return grad * 2

    with pytest.warns(UserWarning, match="set grad mode to False"):
        traced = trace_function(f, arange(3).requires_grad_(), program=Program())
    agrees(traced, arange(3, start=2).requires_grad_())


def test_threads_do_not_mix() -> None:
    meet = threading.Barrier(2)
    traces = {}

    def run(name: str) -> None:
        def f(x: Any) -> Any:
            for _ in range(3):
                meet.wait(10)
                x = x.exp() if name == "exp" else x.neg()
            return x

        traces[name] = trace(f, arange(2), check_trace=False)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("exp", "neg")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for name, traced in traces.items():
        kinds = [each.kind for each in traced.graph.nodes()]
        assert kinds == [f"core::{name}"] * 3


def test_other_threads_are_not_recorded() -> None:
    results = []

    def f(x: Any) -> Any:
        thread = threading.Thread(target=lambda: results.append(x.exp()))
        thread.start()
        thread.join()
        return x.neg()

    traced = trace(f, arange(2), check_trace=False)
    assert [each.kind for each in traced.graph.nodes()] == ["core::neg"]
    assert len(results) == 1


def test_an_exception_leaves_nothing() -> None:
    class Mine(Exception):
        pass

    def f(x: Any) -> Any:
        x.exp()
        raise Mine

    program, view, moded = Program(), LOCAL.view, len(MODED)
    with pytest.raises(Mine):
        trace_function(f, arange(2), program=program)
    assert LOCAL.view is view
    assert CURRENT.recorder is None
    assert len(MODED) == moded
    assert dict(program.functions) == {}
    assert trace(lambda x: x + 1, arange(2)) is not None


def test_a_call_that_raises_is_not_recorded() -> None:
    def f(x: Any) -> Any:
        try:
            x.reshape([7])
        except RuntimeError:
            return x.neg()
        return x

    kinds = [each.kind for each in trace(f, arange(2)).graph.nodes()]
    assert "core::neg" in kinds
    assert "core::reshape" not in kinds


def test_the_key_alone_records_nothing() -> None:
    with include_keys([DispatchKey.Tracer]):
        assert same(arange(2) + 1, arange(2, start=1))
        assert wait(fork(lambda x: x, 3)) == 3


def test_what_no_graph_holds_is_refused_at_its_place() -> None:
    generator = runtime.Generator()

    def f(x: Any) -> Any:
        return x + runtime.rand(2, generator=generator)

    with pytest.raises(Untraceable) as raised:
        trace(f, arange(2))
    lines = str(raised.value).splitlines()
    assert lines[0] == (
        "`core::rand` cannot be traced: a Generator is not a value of a graph."
    )
    (here,) = [each for each in lines if each.endswith("<--- HERE")]
    assert (
        here.strip() == f"{'~' * len('runtime.rand(2, generator=generator)')} <--- HERE"
    )


def test_forks_and_waits_are_recorded() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        future = fork(lambda a, b: (a + y, a * b), x, b=y)
        one, two = wait(future)
        return one, two + future.wait()[0]

    traced = trace(f, arange(2))
    assert (
        body(traced)
        == """\
  %1 : int = prim::Constant[value=2]()
  %2 : Tensor = core::mul(%x.1, %1)
  %3 : Future((Tensor, Tensor)) = prim::fork_0(%x.1, %2)
  %4 : (Tensor, Tensor) = prim::wait(%3)
  %5 : Tensor, %6 : Tensor = prim::TupleUnpack(%4)
  %7 : (Tensor, Tensor) = prim::wait(%3)
  %8 : Tensor, %9 : Tensor = prim::TupleUnpack(%7)
  %10 : int = prim::Constant[value=1]()
  %11 : Tensor = core::add(%9, %8, %10)
  %12 : (Tensor, Tensor) = prim::TupleConstruct(%8, %11)
  return (%12)
with prim::fork_0 = graph(%x.1 : Tensor, %1 : Tensor):
  %2 : int = prim::Constant[value=1]()
  %3 : Tensor = core::add(%x.1, %1, %2)
  %4 : Tensor = core::mul(%x.1, %1)
  %5 : (Tensor, Tensor) = prim::TupleConstruct(%3, %4)
  return (%5)
"""
    )
    agrees(traced, arange(2, start=4))


def test_forks_are_nested() -> None:
    def inner(x: Any) -> Any:
        return x.exp()

    def f(x: Any) -> Any:
        outer = fork(lambda y: wait(fork(inner, y)) + x, x * 2)
        late = fork(inner, x)
        return wait(fork(lambda: wait(late) + wait(outer)))

    traced = trace(f, arange(2))
    kinds = [each.kind for each in traced.graph.nodes()]
    assert kinds.count("prim::fork") == 3
    agrees(traced, arange(2, start=1))


def test_an_error_in_a_fork_is_that_of_the_fork() -> None:
    def fail(x: Any) -> Any:
        raise LookupError

    with pytest.raises(LookupError):
        trace(lambda x: wait(fork(fail, x)), arange(2))
    assert CURRENT.recorder is None


@pytest.mark.spec("futures 1.8", "tracing")
@pytest.mark.spec("script 1.9", "15 jit_trace")
def test_an_await_is_recorded_where_it_is_waited_for() -> None:
    def f(x: Any) -> Any:
        later = awaitable(lambda y: y.exp(), x)
        y = x.neg()
        return later.wait() + y + later.wait()

    traced = trace(f, arange(2))
    kinds = [each.kind for each in traced.graph.nodes()]
    assert kinds == [
        "core::neg",
        "core::exp",
        "prim::Constant",
        "core::add",
        "core::add",
    ]
    agrees(traced, arange(2, start=3))


class Scaled(runtime.Function):
    """x * n, with a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any, n: int) -> Any:
        ctx.n = n
        return x * n

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.n * 10, None


class Halves(runtime.Function):
    """Two tensors."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x[:1].clone(), x[1:].clone()

    @staticmethod
    def backward(ctx: Any, one: Any, two: Any) -> Any:
        return runtime.cat([one, two])


def test_functions_of_autograd_are_operations_of_python() -> None:
    def f(x: Any) -> Any:
        one, two = Halves.apply(x)
        return Scaled.apply(one, 3) + two

    traced = trace(f, arange(2))
    assert (
        body(traced)
        == """\
  %1 : Tensor, %2 : Tensor = prim::PythonOp[name="Halves", object=object(0)](%x.1)
  %3 : int = prim::Constant[value=3]()
  %4 : Tensor = prim::PythonOp[name="Scaled", object=object(1)](%1, %3)
  %5 : int = prim::Constant[value=1]()
  %6 : Tensor = core::add(%4, %2, %5)
  return (%6)
"""
    )
    agrees(traced, arange(2, start=3))
    x = arange(2).requires_grad_()
    call(traced, (x,)).sum().backward()
    assert same(x.grad, runtime.tensor([30.0, 1.0]))


def test_compiled_functions_are_called() -> None:
    inner = trace(lambda x, y: (x + y, x), arange(2), arange(2), name="inner")

    def f(x: Any) -> Any:
        one, two = call(inner, (x,), {"y": x * 2})
        return one * two

    traced = trace(f, arange(2))
    assert (
        body(traced).replace(inner.qualname, "inner")
        == """\
  %1 : int = prim::Constant[value=2]()
  %2 : Tensor = core::mul(%x.1, %1)
  %3 : Function = prim::Constant[function="inner"]()
  %4 : (Tensor, Tensor) = prim::CallFunction(%3, %x.1, %2)
  %5 : Tensor, %6 : Tensor = prim::TupleUnpack(%4)
  %7 : Tensor = core::mul(%5, %6)
  return (%7)
"""
    )
    agrees(traced, arange(2, start=1))


def test_a_number_of_a_compiled_function_is_kept() -> None:
    builder = GraphBuilder("count")
    builder.parameter(TensorType, "x")
    builder.result(3)
    graph = builder.finish()
    counted = trace(lambda x: x, arange(2))
    counted = type(counted)(
        "__torch__.count",
        runtime.parse_schema("count(Tensor x) -> int"),
        graph,
    )
    assert warned(lambda x: x * call(counted, (x,)), arange(2)) == [
        "While a function was traced, `count` was asked: 3. The trace keeps the "
        "answer, and what Python decides by it, whatever it is given."
    ]


def test_traces_within_traces_are_apart() -> None:
    def f(x: Any) -> Any:
        inner = trace(lambda y: y.exp(), x, check_trace=False)
        return call(inner, (x.neg(),))

    traced = trace(f, arange(2), check_trace=False)
    kinds = [each.kind for each in traced.graph.nodes()]
    assert kinds == ["core::neg", "prim::Constant", "prim::CallFunction"]
    assert same(call(traced, (arange(2),)), (-arange(2)).exp())


def test_shapes_are_watched_only_while_a_thread_records() -> None:
    shape = vars(TensorBase)["shape"]
    trace(lambda x: x + 1, arange(2))
    assert vars(TensorBase)["shape"] is shape
    seen: list[bool] = []

    def raises(x: Any) -> Any:
        seen.append(vars(TensorBase)["shape"] is shape)
        raise KeyError

    with pytest.raises(KeyError):
        trace(raises, arange(2))
    assert seen == [False]
    assert vars(TensorBase)["shape"] is shape


def test_what_changes_the_gradient_of_a_tensor_is_recorded() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        y.detach_()
        return y + 1

    def g(x: Any) -> Any:
        return (x.detach().requires_grad_() * 2) + x.data

    for function in (f, g):
        traced = trace(function, runtime.ones(2, requires_grad=True))
        x = runtime.tensor([3.0, 4.0], requires_grad=True)
        ours, python = call(traced, (x,), {}), function(x)
        assert ours.tolist() == python.tolist()
        assert ours.requires_grad is python.requires_grad
    assert "script::detach_.Tensor" in body(trace(f, runtime.ones(2)))


def test_a_constant_that_changes_is_not_recorded() -> None:
    constant = runtime.ones(2)
    traced = trace(lambda x: x * constant.requires_grad_(), arange(2))
    assert "requires_grad_" not in body(traced)
    assert constant.requires_grad
