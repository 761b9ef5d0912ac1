"""Programs for torch that move by an import: what such programs write, and mean."""

# Modules give what `forward` gives, and names are those of torch.
# mypy: disable-error-code="no-any-return, empty-body, arg-type, attr-defined"
# mypy: disable-error-code="no-untyped-def, call-arg, misc, union-attr"

import enum
import io
import math
import sys
import types
import warnings
from typing import Any, Optional

import pytest

from everyorder import runtime
from everyorder.runtime import Module, ModuleList, Tensor, jit
from everyorder.runtime.errors.script import ProgramError, UnknownAttribute
from everyorder.runtime.script.ir import graph_text


class Side(enum.Enum):
    LEFT = 1
    RIGHT = 2


def reread(compiled: Any) -> Any:
    """What an archive of it gives."""
    file = io.BytesIO()
    jit.save(compiled, file)
    file.seek(0)
    return jit.load(file)


def lists(value: Any) -> Any:
    """A value with lists for tensors and tuples."""
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [lists(each) for each in value]
    return value


def agrees(function: Any, *arguments: Any) -> None:
    """Python, the program and the program that was read again give the same."""
    expected = lists(function(*arguments))
    compiled = jit.script(function)
    assert lists(compiled(*arguments)) == expected
    assert lists(reread(compiled)(*arguments)) == expected


def test_a_number_is_a_size_before_it_is_a_dtype() -> None:
    def f(x: Tensor, rows: int, columns: int):
        return x.view(rows * columns), x.view(6), x.view(runtime.int32).dtype

    x = runtime.arange(6, dtype=runtime.float32).reshape(2, 3)
    flat, other, code = jit.script(f)(x, 2, 3)
    assert lists([flat, other]) == [x.flatten().tolist()] * 2
    assert code == runtime.int32.code


def test_dtypes_go_where_they_are_meant() -> None:
    def f(x: Tensor, wanted: int, wide: bool):
        kind = x.dtype
        if wide:
            kind = runtime.float64
        return x.to(kind), x.to(wanted), x.to(x.dtype), runtime.ones(1, dtype=kind)

    for wide, first in ((True, runtime.float64), (False, runtime.float32)):
        made = jit.script(f)(runtime.ones(1), runtime.int64, wide)
        kinds = [each.dtype for each in made]
        assert kinds == [first, runtime.int64, runtime.float32, first]


def test_a_graph_prints_as_its_text() -> None:
    def f(x: int) -> int:
        return x + 1

    graph = jit.script(f).graph
    assert str(graph) == graph_text(graph)
    assert "script::add.int" in str(jit.script(f).inlined_graph)


@jit.interface
class Layer(Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Plus(Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Times(Module):
    @staticmethod
    def many(x: Tensor) -> Tensor:
        return x * 5

    def forward(self, x: Tensor) -> Tensor:
        return Times.many(x) + self.many(x)


class Holder(Module):
    inner: Layer

    def __init__(self) -> None:
        super().__init__()
        self.inner = Plus()  # type: ignore[assignment]  # it has the methods

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) + self.inner.forward(x)


def test_an_interface_of_modules_is_called_as_a_module() -> None:
    assert jit.script(Layer) is Layer
    made = jit.script(Holder())
    assert made(runtime.ones(1)).tolist() == [4.0]
    made.inner = jit.script(Times())
    assert made(runtime.ones(1)).tolist() == [20.0]


def test_a_class_of_modules_has_its_static_methods_only() -> None:
    class Wrong(Module):
        def forward(self, x: Tensor) -> Tensor:
            return Plus.other(x)

    class Maker(Module):
        def forward(self, x: Tensor) -> Tensor:
            return Plus()(x)

    with pytest.raises(UnknownAttribute, match="the class `Plus` of modules has no"):
        jit.script(Wrong())
    with pytest.raises(ProgramError, match="the class `Plus` of modules is called"):
        jit.script(Maker())


def test_isinstance_of_the_module_refines() -> None:
    def f(x: Any) -> int:
        if jit.isinstance(x, list[int]):
            return len(x)
        if runtime.jit.isinstance(x, dict[str, int]):
            return x["a"]
        if not jit.isinstance(x, Tensor):
            return -1
        return x.dim()

    for each in ([1, 2], {"a": 5}, 3, runtime.ones(2, 2)):
        agrees(f, each)


def test_methods_that_tensors_have_in_python_alone() -> None:
    def f(x: Tensor, y: Tensor):
        a, b = x.chunk(2, 1)
        c, d = runtime.chunk(x, 2, dim=1)
        bounds = x.clip(1, 2), runtime.clip(x, 1.0, 2.0)
        parts = x.unbind(0), runtime.unbind(input=x, dim=1), x[:, :0].chunk(2, 1)
        cut = x.narrow(1, 0, 2), runtime.narrow(x, 0, -1, 1)
        shaped = x.view_as(y), x.reshape_as(y), x.expand_as(x), x.cpu()
        return a, b, c, d, bounds, parts, cut, shaped, runtime.allclose(x, x)

    x = runtime.arange(6, dtype=runtime.float32).reshape(2, 3)
    agrees(f, x, runtime.zeros(3, 2))

    def g(x: Tensor, y: Tensor) -> Tensor:
        return x.type_as(y)

    assert jit.script(g)(x, x.double()).dtype is runtime.float64


def test_parts_that_are_not_there_are_refused_as_in_python() -> None:
    def narrow(x: Tensor) -> Tensor:
        return x.narrow(0, 1, 2)

    def chunk(x: Tensor) -> Tensor:
        return x.chunk(0)[0]

    for each in (narrow, chunk):
        with pytest.raises(RuntimeError, match=f"`{each.__name__}`"):
            jit.script(each)(runtime.ones(2))


def test_results_have_the_names_that_python_has() -> None:
    def f(x: Tensor, least: bool):
        found = x.max(dim=1)
        if least:
            found = x.min(1)
        order = runtime.sort(x, dim=1, descending=True)
        values, indices = runtime.topk(x, 1)
        return found.values, found.indices, order.values, order[1], values, indices

    def g(x: Tensor):
        return x.max(0)

    x = runtime.arange(6, dtype=runtime.float32).reshape(2, 3)
    agrees(f, x, True)
    agrees(f, x, False)
    for each in (jit.script(g), reread(jit.script(g))):
        assert each(x).indices.tolist() == [1, 1, 1]


def test_a_loop_carries_what_a_condition_has_left() -> None:
    def recurrent(x: Tensor, n: int, h: Tensor | None = None) -> Tensor:
        if h is None:
            h = runtime.zeros(2)
        for _ in range(n):
            h = h + x
        while bool(h.sum() < 10):
            h = h * 2
        return h

    agrees(recurrent, runtime.ones(2), 3)
    agrees(recurrent, runtime.ones(2), 2, runtime.ones(2))


def test_a_loop_that_leaves_a_variable_wider_is_emitted_again() -> None:
    def back(n: int, y: int | None) -> tuple[list[int], int | None]:
        x: Optional[int] = 0  # noqa: UP045  # as programs write it
        if y is None:
            y = 7
        out = [y]
        for i in range(n):
            if x is None:
                x = i
            else:
                out.append(x)
                x = None
            for j in range(i):
                y = None if j == 2 else i
        while x is not None:
            out.append(x)
            x = None if x > 5 else x + 1
        return out, y

    for n in range(6):
        agrees(back, n, None)
        agrees(back, n, 3)


def test_questions_about_tensors_and_the_mode() -> None:
    def f(x: Tensor):
        before = runtime.is_grad_enabled()
        with runtime.no_grad():
            within = runtime.is_grad_enabled()
        counts = runtime.numel(x), runtime.is_tensor(x), runtime.is_tensor(3)
        kinds = runtime.is_floating_point(x), runtime.is_complex(x)
        return before, within, runtime.is_grad_enabled(), counts, kinds

    agrees(f, runtime.ones(2))
    with runtime.no_grad():
        agrees(f, runtime.ones(2))


def test_whether_something_is_a_tensor_is_known_beforehand() -> None:
    def f(x: Any) -> bool:
        return runtime.is_tensor(x)

    with pytest.raises(ProgramError, match="asked of a value of type Any"):
        jit.script(f)


def test_an_enum_that_is_there_is_that_of_an_archive() -> None:
    def f(x: int, side: Side) -> Side:
        return Side.LEFT if side == Side.RIGHT and x > 0 else side

    read = reread(jit.script(f))
    assert read(1, Side.RIGHT) is Side.LEFT


def test_an_enum_that_has_changed_is_not_taken() -> None:
    name = "moving_enums"
    module: Any = types.ModuleType(name)
    sys.modules[name] = module
    try:
        module.Kind = enum.Enum("Kind", {"A": 1}, module=name)
        kinds = module.Kind

        def f(x: int) -> int:
            return kinds.A.value + x

        file = io.BytesIO()
        jit.save(jit.script(f), file)
        module.Kind = enum.Enum("Kind", {"A": 1.0}, module=name)
        file.seek(0)
        assert jit.load(file)(1) == 2
    finally:
        del sys.modules[name]


@jit.script_if_tracing
def repeated(x: Tensor, n: Tensor) -> Tensor:
    for _ in range(int(n)):
        x = x + 1
    return x


def test_a_function_is_compiled_where_a_trace_calls_it() -> None:
    def f(x: Tensor, n: Tensor) -> Tensor:
        return repeated(x, n) * 2

    traced = jit.trace(f, (runtime.ones(1), runtime.tensor(2)))
    assert traced(runtime.ones(1), runtime.tensor(5)).tolist() == [12.0]
    assert repeated(runtime.ones(1), runtime.tensor(1)).tolist() == [2.0]


def test_whether_a_trace_is_recorded() -> None:
    said = []

    def f(x: Tensor) -> Tensor:
        said.append(jit.is_tracing())
        return x * 2

    def g(x: int) -> int:
        return 1 if jit.is_tracing() else x

    jit.trace(f, runtime.ones(1), check_trace=False)
    f(runtime.ones(1))
    assert said == [True, False]
    assert jit.script(g)(5) == 5


def test_the_names_of_errors_and_warnings() -> None:
    def branches(x: Tensor) -> Tensor:
        return x * 2 if bool(x.sum() > 0) else x

    def fails(x: int) -> int:
        raise ValueError("no")

    with pytest.raises(jit.Error, match="no"):
        jit.script(fails)(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=jit.TracerWarning)
        jit.trace(branches, runtime.ones(1))


def test_execution_with_and_without_passes() -> None:
    made = jit.optimize_for_inference(jit.script(Plus().eval()))
    for optimize in (True, False):
        before = jit.executor_options()
        with jit.optimized_execution(optimize):
            assert jit.executor_options().optimize is optimize
            assert made(runtime.ones(1)).tolist() == [2.0]
        assert jit.executor_options() == before


class Cell(Module):
    """A cell as programs for torch write it, with all gates in one product."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = runtime.Parameter(runtime.full((12, 6), 0.1))

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        h, c = state
        i, f, g, o = (runtime.cat([x, h], 1) @ self.weight.t()).chunk(4, 1)
        c = runtime.sigmoid(f) * c + runtime.sigmoid(i) * runtime.tanh(g)
        h = runtime.sigmoid(o) * runtime.tanh(c)
        return h, (h, c)


class Recurrent(Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = ModuleList([Cell(), Cell()])

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        if h is None:
            h = runtime.zeros(x.size(1), 3, dtype=x.dtype, device=x.device)
        outs: list[Tensor] = []
        for each in x.unbind(0):
            for cell in self.cells:
                each, (h, _) = cell(each, (h, h / math.sqrt(2)))
            outs += [each]
        return runtime.stack(outs)


def test_a_recurrent_module_learns_as_in_python() -> None:
    x = runtime.arange(18, dtype=runtime.float32).reshape(3, 2, 3)
    found = []
    for made in (Recurrent(), jit.script(Recurrent())):
        result = made(x)
        result.sum().backward()
        gradients = [each.grad.tolist() for each in made.parameters()]
        found.append((result.tolist(), gradients))
    assert found[0] == found[1]


def test_what_a_tensor_gives_is_of_the_type_that_is_written() -> None:
    def f(x: Tensor) -> float:
        return x.sum().item()

    def g(x: Tensor) -> list[int]:
        found: list[int] = x.tolist()
        count: int = x.sum().item()
        return found + [count]  # noqa: RUF005  # displays have no stars

    agrees(f, runtime.ones(2))
    assert type(jit.script(f)(runtime.tensor([1, 2]))) is float
    agrees(g, runtime.tensor([1, 2]))
    with pytest.raises(TypeError, match=r"`tolist` gives something that is no int\[\]"):
        jit.script(g)(runtime.ones(2))

    def h(x: Tensor) -> int:
        return x.item()

    assert jit.script(h)(runtime.tensor(3)) == 3
    with pytest.raises(TypeError, match="`item` gives something that is no int"):
        jit.script(h)(runtime.tensor(2.5))
