"""Programs with remote calls as graphs: what they are, and what passes do to them."""

# mypy: disable-error-code="no-any-return"
# Remote calls of Python give what they give.

import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, jit
from everyorder.runtime.base.registry import Registry
from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.errors.script import ArchiveError, BrokenGraph, NotSupported
from everyorder.runtime.futures import Future, awaitable, awaitable_wait
from everyorder.runtime.rpc.script import plug_in
from everyorder.runtime.rpc.script.remote_nodes import ROWS
from everyorder.runtime.schema import annotation
from everyorder.runtime.script.archive import spelling
from everyorder.runtime.script.emission import sugar
from everyorder.runtime.script.executor import node_kernels, python_interop
from everyorder.runtime.script.frontend import language
from everyorder.runtime.script.ir import (
    KINDS,
    NodeEffect,
    Sharing,
    check,
    copy_graph,
    parse_graph,
    printed,
    program,
)
from everyorder.runtime.script.ir import node_kinds as ir_kinds
from everyorder.runtime.script.ir.node_kinds import kind_names
from everyorder.runtime.script.ir.program import Function, Program, fork, wait
from everyorder.runtime.script.passes import OPTIMIZE, Aliases, run_passes
from tests.coded import code
from tests.rpc.script import fakes as rpc
from tests.rpc.script.fakes import RRef, World, unplugged
from tests.script.archive.recompile import recompiled
from tests.script.emission.scripts import compiled, kinds, script

X = runtime.tensor([1.0, 2.0])


@jit.script
def two(x: Tensor, y: int, scale: float = 1.0) -> Tensor:
    return x * y * scale


def one(x: int, by: int = 1) -> int:
    return x + by


def named(x: int, *, by: int) -> int:
    return x + by


def text(function: Function) -> str:
    """The graph of a function, without places."""
    return printed(function.graph, places=False).text


def optimized(function: Any) -> list[str]:
    """The kinds that are left of a function when it runs."""
    made = compiled(function)
    graph = copy_graph(made.graph)
    run_passes(graph, OPTIMIZE)
    return [node.kind for node in graph.nodes()]


def remote_kinds(function: Any) -> list[str]:
    """Those of them that are of remote calls."""
    return [kind for kind in optimized(function) if "rpc" in kind or "rref" in kind]


@pytest.mark.spec("rpc 0.4", "a kind, a form, what runs")
@pytest.mark.spec("rpc 3.3", "the callee's schema decides")
@pytest.mark.spec("rpc 3.5", "nodes and types")
@pytest.mark.usefixtures("fake")
def test_the_full_form() -> None:
    """3.5: the worker, the name, the arguments, those by name, the timeout."""

    def f(to: str, x: Tensor) -> Tensor:
        future = rpc.rpc_async(to, two, (x, 3), {"scale": 2.0}, 5.0)
        return future.wait()

    assert text(compiled(f)) == (
        """graph f(%to.1 : str, %x.1 : Tensor):
  %2 : int = prim::Constant[value=3]()
  %3 : float = prim::Constant[value=2.0]()
  %4 : float = prim::Constant[value=5.0]()
  %5 : str = prim::Constant[value="NAME"]()
  %6 : str = prim::Constant[value="scale"]()
  %7 : (Tensor, int) = prim::TupleConstruct(%x.1, %2)
  %8 : Dict(str, float) = prim::DictConstruct(%6, %3)
  %future.1 : Future(Tensor) = prim::rpc_async[function="NAME"](%to.1, %5, %7, %8, %4)
  %10 : Tensor = prim::wait(%future.1)
  return (%10)
""".replace("NAME", "__torch__.tests.rpc.script.test_graphs.two")
    )


@pytest.mark.spec("rpc 0.3", "a variable list of inputs")
@pytest.mark.spec("rpc 3.5", "nodes and types")
@pytest.mark.usefixtures("fake")
def test_what_is_left_out_is_not_there() -> None:
    """3.5: inputs at the end are absent; each form gives a type of its own."""

    def f(to: str, x: Tensor, d: dict[str, float]) -> tuple[int, Tensor, int]:
        n = rpc.rpc_sync(to, nothing)
        r = rpc.remote(to, two, (x, n))
        future = rpc.rpc_async(to, one, (n,), {})
        rpc.rpc_async(to, two, (x, n), d)
        return n, r.to_here(), future.wait()

    calls = [node for node in compiled(f).graph.nodes() if "rpc" in node.kind]
    assert [(c.kind, len(c.inputs), str(c.output.type)) for c in calls] == [
        ("prim::rpc_sync", 2, "int"),
        ("prim::rpc_remote", 3, "RRef(Tensor)"),
        ("prim::rpc_async", 4, "Future(int)"),
        ("prim::rpc_async", 4, "Future(Tensor)"),
    ]


# What each kind does besides, once more: nothing is said in passing.
EFFECTS = {
    "prim::rpc_async": ("UNKNOWN", "ANYTHING"),
    "prim::rpc_sync": ("UNKNOWN", "ANYTHING"),
    "prim::rpc_remote": ("UNKNOWN", "ANYTHING"),
    "prim::rref_to_here": ("UNKNOWN", "ANYTHING"),
    "prim::rref_local_value": ("UNKNOWN", "ANYTHING"),
    "prim::rref_is_owner": ("", "NOTHING"),
    "prim::rref_owner": ("", "NOTHING"),
    "prim::rref_owner_name": ("", "NOTHING"),
    "prim::rref_confirmed_by_owner": ("NONDETERMINISTIC", "NOTHING"),
    "prim::worker_info": ("", "NOTHING"),
}


@pytest.mark.spec("rpc 0.4", "a kind, a form, what runs")
def test_effects_and_sharing() -> None:
    assert {
        row.name: (" ".join(each.name or "" for each in row.effects), row.sharing.name)
        for row in ROWS
    } == EFFECTS
    assert not {row.name for row in ROWS} & {*KINDS}


@pytest.mark.spec("rpc 3.5", "effects")
@pytest.mark.usefixtures("fake")
def test_calls_are_neither_left_out_nor_merged() -> None:
    """3.5: what nobody uses is called, and what is written twice is called twice."""

    def f(to: str, x: Tensor, r: RRef[Tensor]) -> None:
        rpc.rpc_async(to, two, (x, 1))
        rpc.rpc_async(to, two, (x, 1))
        rpc.rpc_sync(to, two, (x, 1))
        rpc.rpc_sync(to, two, (x, 1))
        rpc.remote(to, two, (x, 1))
        rpc.remote(to, two, (x, 1))
        r.to_here()
        r.to_here()

    assert remote_kinds(f) == [
        *("prim::rpc_async", "prim::rpc_async", "prim::rpc_sync", "prim::rpc_sync"),
        *("prim::rpc_remote", "prim::rpc_remote"),
        *("prim::rref_to_here", "prim::rref_to_here"),
    ]


def weakened(*names: str) -> AbstractContextManager[None]:
    """Some kinds say that they do nothing besides: a planted fault."""

    @contextmanager
    def planted() -> Iterator[None]:
        kinds = ir_kinds._PLUG_IN_KINDS
        before = kinds.rows
        weak = {
            name: replace(
                before[name], effects=NodeEffect.NONE, sharing=Sharing.NOTHING
            )
            for name in names
        }
        kinds.rows = {**before, **weak}
        try:
            yield
        finally:
            kinds.rows = before

    return planted()


@pytest.mark.usefixtures("fake")
def test_a_kind_without_its_effects_is_found() -> None:
    def f(to: str, r: RRef[Tensor]) -> bool:
        rpc.rpc_async(to, nothing)
        rpc.rpc_sync(to, nothing)
        rpc.remote(to, nothing)
        r.to_here()
        r.local_value()
        return r.confirmed_by_owner() == r.confirmed_by_owner()

    whole = remote_kinds(f)
    assert len(whole) == 7
    for name in {*whole}:
        with weakened(name):
            assert remote_kinds(f).count(name) < whole.count(name)


@pytest.mark.usefixtures("fake")
def test_what_is_known_of_a_reference_is_asked_once() -> None:
    def f(r: RRef[Tensor]) -> tuple[bool, bool, str, str, bool, bool]:
        r.owner()
        return (
            *(r.is_owner(), r.is_owner()),
            *(r.owner().name, r.owner().name),
            *(r.confirmed_by_owner(), r.confirmed_by_owner()),
        )

    assert remote_kinds(f) == [
        *("prim::rref_is_owner", "prim::rref_owner"),
        *("prim::rref_confirmed_by_owner", "prim::rref_confirmed_by_owner"),
    ]


@pytest.mark.spec("rpc 3.5", "wildcards")
@pytest.mark.usefixtures("fake")
def test_results_may_be_anybodys() -> None:
    """3.5, 3.7: every input is a wildcard; the value of a reference is its owner's."""

    def f(to: str, xs: list[int], r: RRef[list[int]]) -> list[int]:
        made = [1]
        rpc.rpc_async(to, first, (made,))
        value = r.to_here()
        value.append(4)
        return made

    def first(xs: list[int]) -> int:
        return xs[0]

    graph = compiled(f).graph
    known = Aliases(graph)
    by_kind = {node.kind: node for node in graph.nodes()}
    made = by_kind["prim::ListConstruct"].output
    value = by_kind["prim::rref_to_here"].output
    assert known.is_outside(made)
    assert known.is_outside(value)
    assert known.may_alias(made, value)


@pytest.mark.spec("rpc 3.2", "by the object")
@pytest.mark.usefixtures("fake")
def test_a_form_is_found_by_its_object() -> None:
    """3.2: whatever it is called; what only looks like it is not one."""
    later = rpc.rpc_async

    def wrapped(*args: Any) -> Any:
        return rpc.rpc_async(*args)

    def f(to: str) -> int:
        call = rpc.rpc_sync
        return call(to, one, (2,)) + later(to, one, (3,)).wait()

    def g(to: str) -> int:
        return wrapped(to, one, (2,)).wait()

    assert jit.script(f)("w1") == 7
    with pytest.raises(NotSupported):
        compiled(g)


@pytest.mark.spec("rpc 3.9", "taken back")
def test_handles_take_all_of_it_back() -> None:
    """3.9: then the names are those of ordinary functions of Python."""

    def f(to: str) -> int:
        return rpc.rpc_sync(to, one, (2,))

    def g(r: RRef[Tensor]) -> Tensor:
        return r.to_here()

    def local(x: Tensor) -> Tensor:
        return x + 1

    with unplugged():
        before = tables()
        with plug_in(World().surface()) as plugged:
            assert jit.script(f)("w1") == 3
            assert tables() != before
            again = compiled(local)
            plugged.close()
            plugged.close()
            assert tables() == before
            with pytest.raises(NotSupported):
                compiled(f)
            with pytest.raises(AnnotationError):
                compiled(g)
            assert script(local)(X).tolist() == [2.0, 3.0]
            assert text(again) == text(compiled(local))
        with plug_in(World().surface()):
            assert jit.script(f)("w1") == 3
        assert tables() == before


def _keys(registry: Registry[Any, Any]) -> list[Any]:
    """Return the keys of the rows, which may have no order."""
    rows: Any = registry.rows
    return [*rows.registered]


def tables() -> list[list[Any]]:
    """What plug-ins have added to the compiler."""
    return [
        [*map(str, table)]
        for table in (
            kind_names(),
            _keys(sugar._FORMS),
            _keys(sugar._VALUES),
            _keys(node_kernels._MAKERS),
            _keys(python_interop._PLUG_IN_TESTS),
            _keys(program._PLUG_IN_TYPES),
            _keys(spelling.PLUG_IN_WORDS),
            _keys(spelling.FORMS),
            _keys(annotation._WRAPPERS),
            _keys(annotation._REGISTERED),
            _keys(language._SECTIONS),
        )
    ]


SAMPLES: dict[str, Callable[..., Any]] = {}


def sample(function: Callable[..., Any]) -> Callable[..., Any]:
    """A program that is printed, read back, compiled back, saved and loaded."""
    SAMPLES[function.__name__] = function
    return function


@sample
def every_form(to: str, x: Tensor) -> Tensor:
    future = rpc.rpc_async(to, two, (x, 3), {"scale": 2.0}, 5.0)
    r = rpc.remote(to, two, (x, 3), {})
    y = rpc.rpc_sync(to, two, (x, 3))
    return future.wait() + r.to_here() + r.to_here(1.5) + r.local_value() + y


@sample
def references(to: str, x: Tensor) -> tuple[str, int, bool, str, bool]:
    r = rpc.remote(to, two, (x, 1))
    info = r.owner()
    return (
        *(info.name, info.id, r.is_owner(), r.owner_name(), r.confirmed_by_owner()),
    )


@sample
def to_a_worker(to: str, x: Tensor) -> Tensor:
    r = rpc.remote(to, two, (x, 1))
    return rpc.rpc_sync(r.owner(), two, (r.to_here(), 2))


@sample
def names_of_functions(to: str, x: Tensor) -> Tensor:
    name = "__torch__.tests.rpc.script.test_graphs.two"
    rpc._remote_torchscript(to, name, (x, 1), timeout=2.0)
    rpc._rpc_async_torchscript(to, name, args=(x, 1), kwargs={"scale": 2.0})
    y = rpc._rpc_sync_torchscript(to, name, (x, 1))
    assert isinstance(y, Tensor)
    return y


@sample
def given_by_name(to: str, x: Tensor) -> int:
    """D10: what is written in the call is known, and may be required."""
    rpc.rpc_sync(to, two, (x,), {"y": 3})
    rpc.rpc_sync(to, two, (), {"scale": 3, "y": 2, "x": x}, 2.0)
    return rpc.rpc_sync(to, named, (1,), {"by": 4}) + rpc.rpc_sync(to, one, (1,))


@sample
def of_any_types(to: str, x: Tensor, flag: bool) -> Tensor:
    kwargs: dict[str, Any] = {"scale": 2.5}
    if flag:
        kwargs["y"] = 7
    return rpc.rpc_sync(to, with_defaults, (x,), kwargs)


def with_defaults(x: Tensor, y: int = 2, scale: float = 1.0, w: str = "") -> Tensor:
    return x * y * scale


@sample
def forked(to: str, x: Tensor) -> Tensor:
    later = fork(every_form, to, x)
    aw = awaitable(every_form, to, x)
    return wait(later) + awaitable_wait(aw)


@sample
def nested(to: str, x: Tensor) -> Tensor:
    return rpc.rpc_sync(to, every_form, (to, x))


@sample
def in_a_loop(to: str, xs: list[int]) -> list[int]:
    futures: list[Future[int]] = []
    for x in xs:
        futures.append(rpc.rpc_async(to, one, (x,)))  # noqa: PERF401  # a loop is meant
    return [future.wait() for future in futures]


@sample
def passed_on(to: str, r: RRef[Tensor], rs: list[RRef[int]]) -> RRef[Tensor]:
    rpc.rpc_sync(to, summed, (rs,))
    return r


def summed(rs: list[RRef[int]]) -> int:
    total = 0
    for r in rs:
        total += r.to_here()
    return total


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "in_a_loop": ("w1", [1, 2, 3]),
    "of_any_types": ("w1", X, True),
    "passed_on": ("w1", RRef(X, "Tensor"), [RRef(1, "int"), RRef(2)]),
}


def plain(value: Any) -> Any:
    """What a sample gives, to be compared."""
    if isinstance(value, RRef):
        return plain(value.value)
    return value.tolist() if isinstance(value, Tensor) else value


@pytest.mark.spec("rpc 3.5", "text and archives")
@pytest.mark.spec("rpc 10", "D8 what is printed is whole")
@pytest.mark.spec(
    "rpc 10", "D10 what has no default is given by place, or in the very call"
)
@pytest.mark.parametrize("name", SAMPLES)
def test_a_program_is_saved_and_loaded(name: str, fake: World) -> None:
    """D8: what is printed is whole; text, code and archive come back as they were."""
    made = jit.script(SAMPLES[name])
    arguments = ARGUMENTS.get(name, ("w1", X))
    wanted, calls = plain(made(*arguments)), [*fake.calls]
    fake.calls.clear()
    function: Function = made.function

    drawn = printed(function.graph, places=False)
    read = parse_graph(drawn.text, objects=drawn.objects, functions=drawn.functions)
    assert printed(read, places=False).text == drawn.text

    again = recompiled(function, Program())
    back = jit.script(again)
    assert plain(back(*arguments)) == wanted
    assert len(fake.calls) == len(calls)
    fake.calls.clear()

    buffer = io.BytesIO()
    jit.save(made, buffer)
    buffer.seek(0)
    loaded = jit.load(buffer)
    assert printed(loaded.function.graph, places=False).text == drawn.text
    assert plain(loaded(*arguments)) == wanted
    assert len(fake.calls) == len(calls)


@pytest.mark.spec("rpc 3.5", "text and archives")
def test_the_text_of_a_program(fake: World) -> None:
    """D8: upstream's has no operands."""
    path = "__torch__.tests.rpc.script.test_graphs"
    code = jit.script(every_form).code
    assert code == (
        """def every_form(to: str, x: Tensor) -> Tensor:
  future = rpc_async(to, PATH.two, (x, 3), {'scale': 2.0}, 5.0)
  r = rpc_remote(to, PATH.two, (x, 3), annotate(Dict[str, Any], {}))
  y = rpc_sync(to, PATH.two, (x, 3))
  _0 = ops.core.add(ops.core.add(wait(future), r.to_here()), r.to_here(1.5))
  return ops.core.add(ops.core.add(_0, r.local_value()), y)
""".replace("PATH", path)
    )
    assert fake.calls == []


@pytest.mark.spec("rpc 3.5", "text and archives")
def test_an_archive_is_not_loaded_where_remote_calls_are_not() -> None:
    buffer = io.BytesIO()
    with World().plugged():
        jit.save(jit.script(nested), buffer)
    buffer.seek(0)
    with (
        unplugged(),
        pytest.raises(ArchiveError, check=code("OperatorNotHere")) as caught,
    ):
        jit.load(buffer)
    assert caught.value.operator == "prim::rpc_sync"


class Calling(runtime.Module):
    """A module that calls."""

    def __init__(self) -> None:
        super().__init__()
        self.worker = "w1"
        self.n = 3

    def forward(self, x: Tensor) -> Tensor:
        return rpc.rpc_sync(self.worker, two, (x, self.n))


def test_a_module_is_frozen(fake: World) -> None:
    scripted = jit.script(Calling().eval())
    frozen = jit.freeze(scripted)
    assert frozen(X).tolist() == scripted(X).tolist() == [3.0, 6.0]
    assert "prim::rpc_sync" in kinds(frozen.forward.function)
    assert [call[:3:2] for call in fake.calls] == [
        ("sync", "__torch__.tests.rpc.script.test_graphs.two")
    ] * 2


@pytest.mark.spec("rpc 3.5", "effects")
def test_calls_stay_in_their_order(fake: World) -> None:
    def f(to: str, xs: list[int]) -> int:
        rpc.rpc_async(to, one, (xs[0],))
        xs[0] = 5
        rpc.rpc_async(to, one, (xs[0],))
        return rpc.rpc_sync(to, one, (len(xs),))

    assert jit.script(f)("w1", [1, 2]) == 3
    assert [call[3] for call in fake.calls] == [(1, 1), (5, 1), (2, 1)]


HEAD = "graph f(%to : str, %x : Tensor, %r : RRef(int), %n : int, %d : Dict(int, int)):"
NAME = '  %s : str = prim::Constant[value="g"]()'
REFUSED = {
    "prim::rpc_sync(%n, %s)": "the worker is of type int",
    "prim::rpc_sync(%to, %n)": "the name of the function is of type int",
    "prim::rpc_sync(%to, %s, %x)": "the arguments are of type Tensor",
    "prim::rpc_sync(%to, %s, %t, %d)": (
        "the arguments by name are of type Dict(int, int)"
    ),
    "prim::rpc_sync(%to, %s, %t, %k, %n)": "the timeout is of type int",
    "prim::rpc_async(%to, %s)": "the output is of type int",
    "prim::rpc_remote(%to, %s)": "the output is of type int",
    'prim::rpc_sync[function="two"](%to, %s, %t)': "Tensor",
    'prim::rpc_sync[function="one"](%to, %s, %t)': "argument `int x`",
    'prim::rpc_sync[function="none"](%to, %s, %t)': "1 arguments are given by place",
    "prim::rpc_sync[function=object(0)](%to, %s)": "`function` is no function",
    "prim::rref_to_here(%x)": "Tensor is not a reference",
    "prim::rref_to_here(%r, %n)": "the timeout is of type int",
    "prim::rref_is_owner(%r)": "bool",
    'prim::worker_info[name="id"](%to)': "str is not a worker",
    'prim::worker_info[name="x"](%w)': "a worker has no `x`",
    "prim::rpc_sync(%to)": "inputs",
    "prim::rpc_sync(%to, %s, %t, %k, %n, %n)": "inputs",
}


@pytest.mark.spec("rpc 3.5", "nodes and types")
@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize("call", REFUSED)
def test_what_no_program_is_compiled_to_is_refused_in_a_text(call: str) -> None:
    """The rules of kinds hold for texts that somebody else wrote."""
    lines = (
        *(HEAD, NAME, "  %t : (Tensor) = prim::TupleConstruct(%x)"),
        "  %k : Dict(str, Any) = prim::DictConstruct()",
        "  %w : __torch__.torch.classes.dist_rpc.WorkerInfo = prim::rref_owner(%r)",
        f"  %y : int = {call}",
        "  return (%y)\n",
    )
    functions = {
        "two": two.function,
        "one": compiled(one),
        "none": compiled(nothing),
    }
    read = parse_graph("\n".join(lines), objects=[None], functions=functions)
    with pytest.raises(BrokenGraph) as caught:
        check(read)
    assert REFUSED[call] in str(caught.value)


def nothing() -> int:
    return 3
