"""List literals: texts before and after."""

from runtime.script.passes import erase_list_literals
from tests.script.passes.texts import changed

HEAD = """\
graph(%x.1 : int, %y.1 : int):
  %i.1 : int = prim::Constant[value=-1]()
  %far.1 : int = prim::Constant[value=2]()
  %l.1 : int[] = prim::ListConstruct(%x.1, %y.1)
"""
TAIL = "  return (%n.1, %e.1, %a.1, %b.1)\n"
ASKED = """\
  %n.1 : int = script::len.t(%l.1)
  %e.1 : int = script::getitem.t(%l.1, %i.1)
  %a.1 : int, %b.1 : int = prim::ListUnpack(%l.1)
"""


def test_length_elements_and_unpacking_are_known() -> None:
    after = f"""\
{HEAD}  %n.1 : int = prim::Constant[value=2]()
  return (%n.1, %y.1, %x.1, %y.1)
"""
    assert changed(erase_list_literals, HEAD + ASKED + TAIL) == (after, 3)


def test_a_list_that_is_written_to_is_asked_itself() -> None:
    write = "  script::append.t(%l.1, %x.1)\n"
    for text in (HEAD + write + ASKED + TAIL, HEAD + ASKED + write + TAIL):
        assert changed(erase_list_literals, text) == (text, 0)


def test_a_list_that_others_have_may_be_written_to() -> None:
    call = """\
  %f.1 : Function = prim::Constant[function="__torch__.passes.grow"]()
  %m.1 : int = prim::CallFunction(%f.1, %l.1, %x.1)
"""
    text = HEAD + call + ASKED + TAIL
    assert changed(erase_list_literals, text) == (text, 0)


def test_what_is_out_of_range_stays_and_raises() -> None:
    text = (
        HEAD
        + "  %e.1 : int = script::getitem.t(%l.1, %far.1)\n"
        + "  %a.1 : int, %b.1 : int, %c.1 : int = prim::ListUnpack(%l.1)\n"
        + "  return (%e.1, %a.1)\n"
    )
    assert changed(erase_list_literals, text) == (text, 0)
