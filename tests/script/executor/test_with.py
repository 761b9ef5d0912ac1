"""`with`: what is entered is left, whatever happens."""

from typing import Any

import pytest

from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.schema.declared import Namespace
from everyorder.runtime.script.executor import call, script_frames
from everyorder.runtime.script.ir.program import Function
from tests.coded import code
from tests.script.executor.objects import Counter, counter
from tests.script.executor.written import written

pytestmark = pytest.mark.usefixtures("executed")

# Gives what was entered, or raises within.
BLOCK = """\
  %r : int = prim::With(%c)
    block0(%entered : int):
      %text : str = prim::Constant[value="within"]()
      %x : int = prim::If(%raises)
        block0():
          prim::RaiseException[class="builtins.KeyError"](%text)
          %u : int = prim::Uninitialized()
          -> (%u)
        block1():
          -> (%entered)
      -> (%x)
  return (%r)
"""


def entering(kind: str, namespace: Namespace) -> Function:
    return written(f"enter({kind} c, bool raises) -> int", BLOCK, namespace=namespace)


@pytest.mark.spec("script 6.2", "with")
def test_compiled_managers() -> None:
    namespace = Namespace()
    counter(namespace)
    enter = entering("__torch__.c.Counter", namespace)
    one = Counter()
    one.count = 4
    assert (call(enter, (one, False)), one.count) == (4, 5)
    with pytest.raises(KeyError, match="within"):
        call(enter, (one, True))
    assert one.count == 6


def test_a_compiled_manager_that_swallows() -> None:
    namespace = Namespace()
    counter(namespace)
    enter = entering("__torch__.c.Counter", namespace)
    one = Counter()
    one.count = 11
    with pytest.raises(RunningError, check=code("ErrorSwallowed")) as caught:
        call(enter, (one, True))
    assert str(caught.value) == (
        "`__exit__` of an object of type Counter swallowed KeyError, and variables "
        "that\nthe block assigns are used behind it.\n"
        "  to do: return False from `__exit__`, or use none of them"
    )
    assert isinstance(caught.value.__context__, KeyError)
    nothing = written(
        "nothing(__torch__.c.Counter c) -> int",
        """\
  prim::With(%c)
    block0(%entered : int):
      %text : str = prim::Constant[value="within"]()
      prim::RaiseException[class="builtins.KeyError"](%text)
      -> ()
  %n : int = prim::GetAttr[name="count"](%c)
  return (%n)
""",
        namespace=namespace,
    )
    assert call(nothing, (one,)) == 13


class Manager:
    """A context manager of Python's own."""

    def __init__(self) -> None:
        self.left: Any = None

    def __enter__(self) -> int:
        return 7

    def __exit__(self, *error: object) -> None:
        self.left = error


def test_managers_of_python() -> None:
    enter = entering("PyObject", Namespace())
    manager = Manager()
    assert (call(enter, (manager, False)), manager.left) == (7, (None, None, None))
    with pytest.raises(KeyError):
        call(enter, (manager, True))
    kind, error, traceback = manager.left
    assert (kind, error.args, traceback is None) == (KeyError, ("within",), False)


def test_what_was_swallowed_leaves_no_frame_behind() -> None:
    class Swallows(Manager):
        def __exit__(self, *error: object) -> Any:
            return True

    twice = written(
        "twice(PyObject c) -> int",
        """\
  prim::With(%c)
    block0(%entered : int):
      %text : str = prim::Constant[value="within"]()
      prim::RaiseException[class="builtins.KeyError"](%text)
      -> ()
  %no : int[] = prim::ListConstruct()
  %zero : int = prim::Constant[value=0]()
  %n : int = script::getitem.t(%no, %zero)
  return (%n)
""",
    )
    with pytest.raises(IndexError) as caught:
        call(twice, (Swallows(),))
    assert [frame.function for frame in script_frames(caught.value)] == ["twice"]
