from collections.abc import Hashable
from dataclasses import replace

import pytest

from harness.engine.protocol import State
from harness.engine.result import Violation
from harness.report.text import explanation, plural, render, silent_steps
from tests.report.samples import CUT, LAW, ORDER, ORDER_VIOLATION, PINNED, PROVEN

PROVEN_TEXT = """\
scenarios/test_composites/two_kernels: proven: no history of any length makes a
difference
  steps
    1  define("demo::add(Tensor x, Tensor y) -> Tensor")
    2  impl("demo::add", cpu_add, "CPU")
    3  impl("demo::add", any_add, "CompositeImplicitAutograd")
  uses
    1  call("demo::add", "cpu")
  strategy  graph+walk:2+words:3
  guarantee graph: every finite history, of any length, ends in the one state of
            its active set (proof over every edge, on complete states)
  guarantee walk:2: every letter was taken from every reachable set after every
            history of the last 2 letters, in one run
  guarantee words:3: every word of at most 3 letters agrees, seen only at its
            end
  assumes   the fingerprint determines everything that later actions may read
  skipped   walk:3 would be stronger: 2,048 steps, the budget allows 1,000
  executed  8 states, 628 edges; 290 adds, 289 removes, 7 failing steps, 40
            uses, 660 looks, 86 fresh systems; 0.01 s"""

ORDER_TEXT = """\
scenarios/test_broken/order_matters: depends on more than the set of active
steps
order: the observation depends on more than the active set
at {2 3}, after 3 letters; no shorter order of these steps shows it:
    step_3 = impl("demo::add", any_add, "CompositeImplicitAutograd")
    step_2 = impl("demo::add", cpu_add, "CPU")
    call("demo::add", "cpu")
square: from {}, 2 then 3 differs from 3 then 2
first divergence in 'table' (- expected, + found):
    @@ -1,2 +1,2 @@
    -AutogradCPU: cpu_add
    +AutogradCPU: any_add
     CPU: cpu_add
replay id: {id}
    everyorder replay {id} scenarios/test_broken/order_matters

  steps
    1  define("demo::add(Tensor x, Tensor y) -> Tensor")
    2  impl("demo::add", cpu_add, "CPU")
    3  impl("demo::add", any_add, "CompositeImplicitAutograd")
  uses
    1  call("demo::add", "cpu")
  strategy  walk:1
  executed  8 states, 628 of 1,000 edges; 290 adds, 289 removes, 7 failing
            steps, 40 uses, 660 looks, 86 fresh systems; 1.25 s"""


def test_what_passed() -> None:
    assert render(PROVEN) == PROVEN_TEXT


def test_what_failed() -> None:
    replay_id = ORDER.replay_id(ORDER_VIOLATION)
    assert render(ORDER) == ORDER_TEXT.replace("{id}", replay_id)


def test_a_pinned_fact_stands_in_the_text() -> None:
    assert "\n  pinned    the newest kernel wins\n" in render(PINNED)


def test_a_word_that_was_not_shrunk_is_told_as_found() -> None:
    assert (
        "at {1 2}, after 2 letters:\n"
        '    step_1 = define("demo::add(Tensor x, Tensor y) -> Tensor")\n'
        '    step_2 = impl("demo::add", cpu_add, "CPU")\n'
        "2 broken laws:\n"
        "    tables_agree: demo::add at CPU: cpu_add: missing\n"
        "    plain\n"
    ) in render(LAW)


def test_a_shorter_order_may_exist_where_it_was_not_excluded() -> None:
    violation = replace(ORDER_VIOLATION, proven_shortest=False)
    exploration = replace(ORDER.exploration, violations=(violation,))
    text = render(replace(ORDER, exploration=exploration))
    assert "after 3 letters; a shorter order may exist:" in text


def test_what_was_cut_short_guarantees_nothing() -> None:
    assert "guarantee" not in render(CUT)
    assert "assumes" not in render(CUT)


FIELDS = (("error", "NameTaken"), ("name", "a"))


@pytest.mark.parametrize(
    ("violation", "lines"),
    [
        (
            Violation("leak", (), None, "Registration", (0, 0)),
            ["still alive after its undo: Registration"],
        ),
        (
            Violation("undo", (), None, FIELDS, (0, 0)),
            ["the undo raised:", "    error: NameTaken", "    name: a"],
        ),
        (
            Violation("error", (), None, FIELDS, (0,)),
            ["succeeded elsewhere, here:", "    error: NameTaken", "    name: a"],
        ),
        (
            Violation("error", (), FIELDS, None, (0,)),
            ["succeeds here, elsewhere:", "    error: NameTaken", "    name: a"],
        ),
        (
            Violation("wedged", (), "same", "same", (0,)),
            ["expected and found are printed alike"],
        ),
        (
            Violation("law", (), (), "one", (0,)),
            ["1 broken law:", "    one"],
        ),
        (
            Violation("order", (), "", "x\n" * 50, (0,)),
            [
                "first divergence (- expected, + found):",
                "    @@ -0,0 +1,50 @@",
                *["    +x"] * 39,
                "    ... and 11 more lines",
            ],
        ),
    ],
)
def test_explanations(violation: Violation, lines: list[str]) -> None:
    found = explanation(violation)
    assert found == lines


def test_plural() -> None:
    assert plural(1, "state") == "1 state"
    assert plural(1234, "state") == "1,234 states"


def test_one_letter_is_one() -> None:
    exploration = replace(
        PROVEN.exploration,
        guarantee="walk:1: of the last 1 letters; kA:1: at most 1 hidden letters; "
        "words:11: at most 11 letters",
        assumptions=("kA:1: at most 1 letters more",),
    )
    text = render(replace(PROVEN, exploration=exploration))
    assert [line[12:] for line in text.splitlines() if " letter" in line] == [
        "walk:1: of the last 1 letter",
        "kA:1: at most 1 hidden letter",
        "words:11: at most 11 letters",
        "kA:1: at most 1 letter more",
    ]


def test_fingerprints_are_told_as_such() -> None:
    violation = replace(ORDER_VIOLATION, hidden=True)
    exploration = replace(ORDER.exploration, violations=(violation,))
    lines = render(replace(ORDER, exploration=exploration)).splitlines()
    assert lines[2] == "order: the fingerprint depends on more than the active set"
    assert (
        "first divergence of the fingerprints in 'table' (- expected, + found):"
    ) in lines


def test_steps_that_were_never_done_are_told_whole() -> None:
    words = " ".join(f"word{number}" for number in range(20))
    failures: dict[tuple[State, int], Hashable] = {
        ((), 1): (("error", "UnknownKey"), ("text", words))
    }
    found = replace(PROVEN.exploration, states={(): ""}, failures=failures)
    silent = replace(PROVEN, exploration=found)
    assert silent_steps([PROVEN, silent]) == [
        "steps that fail at every set, so nothing is shown but that:",
        "  scenarios/test_composites/two_kernels step 2: UnknownKey word0 word1 word2",
        "      word3 word4 word5 word6 word7 word8 word9 word10 word11 word12 word13",
        "      word14 word15 word16 word17 word18 word19",
    ]
    failed = replace(ORDER.exploration, states={(): ""}, failures=failures)
    assert silent_steps([PROVEN, replace(ORDER, exploration=failed)]) == []
