"""The layout of an expect file, whole."""

from harness.expectations import Digest, Key, parse, render
from tests.expectations.samples import PAIR, document

WHOLE = """\
everyorder expect file, format 1
scenario: scenarios/test_demo/pair
steps:
  1  one()
  2  two()
strategy: graph
guarantee:
  1  every history of any length
explored: 4 states, 8 transitions, 0 failing transitions

== {} ==
state: nothing

== {1} ==
state:
  name: demo::f
  CPU: one
calls: one

== {2} ==
same as {1}

== {1 2} ==
state:
  one
  two
"""

PINNED = """\
everyorder expect file, format 1
scenario: scenarios/test_demo/pair
steps:
  1  one()
  2  two()
uses:
  1  call()
pinned: the newest wins
strategy: graph
guarantee:
  1  every history of any length
explored: 3 states, 1 transition, 1 failing transition

== {1} + 2 fails ==

== 1 then 2 ==
state:
  name: demo::f
  CPU: one
calls: one

== 2 then 1 ==
digest 00112233445566778899aabbccddeeff

== 2 then 1 + 1 fails ==
same as {1} + 2 fails
"""


def test_a_set_document() -> None:
    assert render(document()) == WHOLE
    assert parse(WHOLE) == document()


def test_a_pinned_document() -> None:
    pinned = document(
        uses=("call()",),
        pinned="the newest wins",
        transitions=1,
        entries=(
            (Key((0,), 1), ()),
            (Key((0, 1)), PAIR),
            (Key((1, 0)), Digest("00112233445566778899aabbccddeeff")),
            (Key((1, 0), 0), ()),
        ),
    )
    text = PINNED.replace(
        "3 states, 1 transition, 1 failing", "2 states, 1 transition, 2 failing"
    )
    text = text.replace("failing transition\n", "failing transitions\n")
    assert render(pinned) == text
    assert parse(text) == pinned
