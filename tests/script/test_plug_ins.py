"""Plug-ins: what others add to the compiler, without a line of it that knows them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from everyorder.runtime import jit
from everyorder.runtime.base.hooks import ready, register_plug_in
from everyorder.runtime.base.registry import RegistryHandle
from everyorder.runtime.errors.registration import AlreadyRegistered
from everyorder.runtime.errors.schema import UnknownKind
from everyorder.runtime.schema.annotation import (
    annotated_type,
    register_annotation,
    register_wrapper,
)
from everyorder.runtime.schema.types import (
    ClassType,
    FutureType,
    IntType,
    StrType,
)
from everyorder.runtime.script.archive import graph_code, register_form, register_word
from everyorder.runtime.script.emission import (
    Arguments,
    Emitter,
    SpecialForm,
    Sugared,
    arguments_of,
    register_forms,
    sugar_of_value,
)
from everyorder.runtime.script.executor import register_step, register_test, taker
from everyorder.runtime.script.executor import test_of as is_one
from everyorder.runtime.script.ir import (
    AttributeForm,
    Count,
    Node,
    NodeAttribute,
    NodeEffect,
    NodeKind,
    check,
    known_kind,
    parse_graph,
    printed,
    register_kind,
    row_of,
)
from everyorder.runtime.script.ir.program import (
    NotInferred,
    Program,
    ignore,
    inferred_type,
    register_inference,
)
from tests.script.archive.recompile import recompiled

AT = ContextVar("AT", default=0)


class Holder:
    """What a plug-in has a type for."""

    def __init__(self, value: Any) -> None:
        self.value = value


def shout(text: str) -> str:
    """What a plug-in has a kind for."""
    raise AssertionError("programs have their own")


def _shout(e: Emitter, arguments: Arguments) -> Sugared:
    (text,) = arguments_of(e, "shout", ("text",), arguments)
    made = e.node("prim::shout", (text.value(e),), (StrType,), {"mark": "!"})
    return sugar_of_value(made.output)


def _step(node: Node) -> Callable[..., Any]:
    mark = node.attributes["mark"]
    return lambda text: text.upper() + mark


ROW = NodeKind(
    name="prim::shout",
    inputs=Count(1, 1),
    outputs=Count(1, 1),
    infer=lambda node: (StrType,),
    attributes=(NodeAttribute("mark", AttributeForm.TEXT),),
    effects=NodeEffect.IO,
)


@contextmanager
def shouting() -> Iterator[None]:
    """Programs may shout."""
    handles = [
        register_kind(ROW),
        register_step("prim::shout", _step),
        register_form("prim::shout", lambda node, texts, _: f"shout({texts[0]})"),
        register_word("shout", shout),
    ]
    forms = register_forms(SpecialForm("shout", _shout, shout))
    yield
    for each in (*handles, forms):
        each.close()
        each.close()


def shouts(shout_: str) -> str:
    return shout(shout_) + "?"


def test_a_kind_of_nodes() -> None:
    """What it is, what it does, how it is written; and none of it afterwards."""
    with shouting():
        made = jit.script(shouts)
        assert made("a") == "A!?"
        assert known_kind("prim::shout") is row_of("prim::shout") is ROW
        drawn = printed(made.graph, places=False).text
        assert '%2 : str = prim::shout[mark="!"](%shout_.1)' in drawn
        read = parse_graph(drawn)
        check(read)
        assert printed(read, places=False).text == drawn
        assert graph_code(made.graph).endswith("return shout(shout_) + '?'\n")
        assert jit.script(recompiled(made.function, Program()))("b") == "B!?"
        with pytest.raises(AlreadyRegistered, match="kinds of nodes: 'prim::shout'"):
            register_kind(ROW)
        with pytest.raises(AlreadyRegistered, match="steps of programs: 'prim::shout'"):
            register_step("prim::shout", _step)
        with pytest.raises(AlreadyRegistered, match="words of texts: 'shout'"):
            register_word("shout", shout)
    assert row_of("prim::shout") is None
    with pytest.raises(UnknownKind) as caught:
        parse_graph(drawn)
    assert caught.value.kind == "prim::shout"
    # What was laid out before goes on.
    assert made("c") == "C!?"


def test_a_kind_is_no_operator_and_there_once() -> None:
    for name, words in (("prim::If", "already"), ("demo::x", "operators")):
        row = NodeKind(
            name=name, inputs=ROW.inputs, outputs=ROW.outputs, infer=ROW.infer
        )
        with pytest.raises(AssertionError, match=words):
            register_kind(row)
    with pytest.raises(AlreadyRegistered):
        register_step("prim::wait", _step)
    with pytest.raises(AssertionError, match="already"):
        register_word("wait", shout)


def test_tests_of_types() -> None:
    """Without one every value is of the type; with one, what it says."""
    made = ClassType("plug_ins.Thing")
    handle = register_test(made, lambda _: lambda value: isinstance(value, Holder))
    one = Holder(3)
    assert (is_one(made)(one), is_one(made)(3)) == (True, False)
    assert taker(made)(one) is one
    assert taker(made)(3) != 3
    with pytest.raises(AlreadyRegistered, match="tests of types: "):
        register_test(made, lambda _: lambda value: True)
    handle.close()
    handle.close()
    assert is_one(made)(3)


def test_types_of_values() -> None:
    assert isinstance(inferred_type(Holder(3)), NotInferred)

    class Below(Holder):
        pass

    def infer(value: Holder, program: Program) -> Any:
        return FutureType(IntType)

    handle = register_inference(Holder, infer)
    assert str(inferred_type([Holder(3), Below(4)])) == "Future(int)[]"
    with pytest.raises(AlreadyRegistered, match="inferred types: "):
        register_inference(Holder, infer)
    handle.close()
    handle.close()
    assert isinstance(inferred_type(Below(3)), NotInferred)


def test_annotations_are_taken_back() -> None:
    class Box:
        pass

    handle = register_annotation(Box, StrType)
    assert annotated_type(Box) is StrType
    handle.close()
    handle.close()
    assert annotated_type(Box) is None
    handle = register_wrapper(Box, FutureType, IntType)
    assert str(annotated_type(Box)) == "Future(int)"
    handle.close()
    handle.close()
    assert annotated_type(Box) is None


def test_displays_are_as_wide_as_what_they_are_written_for() -> None:
    """Values of types without a common one, where the annotation takes them."""

    def f(x: int) -> tuple[dict[str, Any], list[Any], int]:
        d: dict[str, Any] = {"a": x, "b": "text"}
        xs: list[Any] = [x, "text", [x]]
        ys = jit.annotate(list[int | str], [x, "a"])
        return d, xs, len(ys)

    def g(x: int) -> int:
        d: dict[str, int] = {"a": x, "b": "text"}  # type: ignore[dict-item]  # so it is
        return len(d)

    assert jit.script(f)(3) == ({"a": 3, "b": "text"}, [3, "text", [3]], 2)
    with pytest.raises(TypeError, match="values of this dictionary"):
        jit.script(g)


@ignore
def at() -> int:
    return AT.get()


def asks() -> int:
    return at()


def test_a_task_has_the_variables_of_the_context_that_forked_it() -> None:
    @jit.script
    def f() -> jit.Future[int]:
        return jit.fork(asks)

    token = AT.set(3)
    future = f()
    AT.reset(token)
    assert AT.get() == 0
    # Whoever runs it: a thread of the pool, or this one.
    assert future.wait() == 3


def test_other_plug_ins_are_added_when_their_area_is_ready() -> None:
    """Nobody knows of remote calls there: an area has a name, and is ready or not."""
    told: list[str] = []

    def install() -> list[RegistryHandle]:
        told.append("added")
        removals = (partial(told.append, each) for each in ("first", "second"))
        return [*map(RegistryHandle, removals)]

    before = register_plug_in("tests.an_area", "a log", install)
    assert told == []
    ready("tests.an_area")
    ready("tests.an_area")
    assert told == ["added"]
    before.close()
    before.close()
    assert told == ["added", "second", "first"]
    with register_plug_in("tests.an_area", "a log", install):
        assert told[3:] == ["added"]
    assert told[3:] == ["added", "second", "first"]
    register_plug_in("tests.never", "a log", install).close()
    ready("tests.never")
    assert len(told) == 6
