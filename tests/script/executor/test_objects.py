"""Objects, their attributes and methods, and interfaces, by both executors."""

import gc

import pytest

from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.schema.declared import InterfaceType, Namespace, ScriptClassType
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import declare_objects
from tests.coded import code
from tests.schema.programs import method
from tests.script.executor.objects import Counter, counter
from tests.script.executor.written import written

pytestmark = pytest.mark.usefixtures("executed")


def test_objects_and_their_methods() -> None:
    namespace = Namespace()
    counter(namespace)
    make = written(
        "make(int n) -> (int, int, __torch__.c.Counter)",
        """\
  %c : __torch__.c.Counter = prim::CreateObject()
  prim::SetAttr[name="count"](%c, %n)
  %a : int = prim::CallMethod[name="add"](%c, %n)
  %b : int = prim::GetAttr[name="count"](%c)
  %r : (int, int, __torch__.c.Counter) = prim::TupleConstruct(%a, %b, %c)
  return (%r)
""",
        namespace=namespace,
    )
    first, second, made = call(make, (4,))
    assert (first, second, type(made), made.count) == (8, 8, Counter, 8)


def test_an_attribute_that_is_not_set_yet() -> None:
    namespace = Namespace()
    counter(namespace)
    read = written(
        "read() -> int",
        """\
  %c : __torch__.c.Counter = prim::CreateObject()
  %b : int = prim::GetAttr[name="count"](%c)
  return (%b)
""",
        namespace=namespace,
    )
    with pytest.raises(AttributeError, match="'Counter' object has no attribute"):
        call(read)


def test_an_object_of_a_class_that_is_gone() -> None:
    namespace = Namespace()

    def declare() -> None:
        namespace.declare(ScriptClassType, "__torch__.c.Gone", type("Gone", (), {}))

    declare()
    gc.collect()
    make = written(
        "make() -> __torch__.c.Gone",
        "  %c : __torch__.c.Gone = prim::CreateObject()\n  return (%c)\n",
        namespace=namespace,
    )
    with pytest.raises(RunningError, check=code("ClassGone")) as caught:
        call(make)
    assert caught.value.qualname == "__torch__.c.Gone"


def test_a_method_that_nobody_compiled() -> None:
    namespace = Namespace()
    declared = counter(namespace)
    del declared.declaration.functions["add"]
    add = written(
        "add(__torch__.c.Counter c) -> int",
        """\
  %one : int = prim::Constant[value=1]()
  %a : int = prim::CallMethod[name="add"](%c, %one)
  return (%a)
""",
        namespace=namespace,
    )
    with pytest.raises(
        RunningError, check=code("MethodMissing"), match="no compiled method `add`"
    ):
        call(add, (Counter(),))


def test_an_interface_asks_the_object() -> None:
    namespace = Namespace()
    interface = namespace.declare(InterfaceType, "__torch__.c.Adds")
    interface.declaration.add_method("add", method(interface, "add(int n) -> int"))
    counter(namespace)

    class Other:
        """Adds in its own way."""

    other = namespace.declare(ScriptClassType, "__torch__.c.Other", Other)
    declare_objects(Other, other)
    twice = written(
        "add(__torch__.c.Other self, int n) -> int",
        "  %m : int = script::add.int(%n, %n)\n  return (%m)\n",
        namespace=namespace,
    )
    other.declaration.add_method("add", twice.schema)
    other.declaration.functions["add"] = twice
    add = written(
        "add(__torch__.c.Adds a) -> int",
        """\
  %two : int = prim::Constant[value=2]()
  %r : int = prim::CallInterface[name="add"](%a, %two)
  return (%r)
""",
        namespace=namespace,
    )
    one = Counter()
    one.count = 5
    assert [call(add, (one,)), call(add, (Other(),)), call(add, (one,))] == [7, 4, 9]
