from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple

import pytest

from everyorder.harness.engine.protocol import Caveat, State
from everyorder.harness.engine.result import Closure, Violation
from everyorder.harness.report.evidence import (
    explanation,
    other_history_lines,
    recurrence_lines,
)
from everyorder.harness.report.failure import render, render_violation
from everyorder.harness.report.text import (
    counts_text,
    plural,
    reasons,
    silent_steps,
)
from everyorder.harness.state import canonical
from tests.report.samples import (
    CUT,
    ORDER,
    ORDER_VIOLATION,
    PINNED,
    PROVEN,
    VACUOUS,
    violated,
)

PROVEN_TEXT = """\
scenarios/test_composites/two_kernels: proven: no history of any length makes a
difference
  steps
    1  define("demo::add(Tensor x, Tensor y) -> Tensor")
    2  impl("demo::add", cpu_add, "CPU")
    3  impl("demo::add", any_add, "CompositeImplicitAutograd")
  uses
    1  call("demo::add", "cpu")
  strategy  graph+walk:2+histories:3
  guarantee graph: every finite history, of any length, shows what its active
            steps say (proof over every operation at every complete state)
  guarantee walk:2: every operation was taken from every reachable state after
            every history of the last 2 operations, in one run
  guarantee histories:3: every history of at most 3 operations agrees, seen only
            at its end
  assumes   the system is deterministic (some histories were played twice to
            check it)
  assumes   graph: no operation distinguishes equal states: by id, the hash of
            an address, the order of a set, `is` between equal values, a clock
            or the hash seed
  assumes   graph: one thread, one process; undo handles are kept, and closed
            once
  skipped   kA:1 would take 1,240 operations, the budget allows 1,000
  executed  8 states, 628 transitions; 290 adds, 289 removes, 7 failing steps,
            40 uses, 660 looks, 86 fresh systems; 0.01 s"""


def test_what_passed() -> None:
    assert render(PROVEN) == PROVEN_TEXT


def test_a_pinned_fact_stands_in_the_text() -> None:
    assert "\n  pinned    the newest kernel wins\n" in render(PINNED)


def test_hidden_state_may_be_in_what_is_no_part_of_the_states() -> None:
    hidden = violated("hidden", paths=("a: 1 / 2",))
    caveats = (Caveat("assumed", "registry.n is ignored"),)
    exploration = replace(hidden.exploration, caveats=caveats)
    told = "\n  suspects  registry.n is ignored\n"
    report = replace(hidden, exploration=exploration)
    assert told in render(report, verbose=True)
    brief = "\nnot read, so it may be there: registry.n is ignored"
    assert render(report).endswith(brief)
    assert "suspects" not in render(hidden, verbose=True)
    exploration = replace(ORDER.exploration, caveats=caveats)
    report = replace(ORDER, exploration=exploration)
    assert "suspects" not in render(report, verbose=True)


def test_what_was_cut_short_guarantees_nothing() -> None:
    assert "guarantee" not in render(CUT)
    assert "assumes" not in render(CUT)


FIELDS = (("error", "NameTaken"), ("name", "a"))
EXPECTED, FOUND = (canonical([*range(201), last]) for last in "ab")


class Look(NamedTuple):
    """What a system of others may observe."""

    answer: Hashable


OWN_DOTS = canonical(["..."])
ADVICE = [
    "create all of it in create=, undo it in reset= (empty caches there), or",
    'explore with isolation="fork"; ignore= varying values, such as ids of',
    "processes and seeds of random numbers, which differ in each child",
]


@pytest.mark.parametrize(
    ("violation", "lines"),
    [
        (
            Violation("leak", (), None, "Registration", (0, 0)),
            ["still alive after its step ended: Registration"],
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
            Violation("use", (), EXPECTED, FOUND, (0,)),
            ["both values are printed alike, as far as they are"],
        ),
        (
            Violation("use", (), OWN_DOTS, OWN_DOTS, (0,)),
            ["both values are printed alike"],
        ),
        (
            Violation("use", (), Look(EXPECTED), Look(FOUND), (0,)),
            ["both values are printed alike, as far as they are"],
        ),
        (
            Violation("wedged", (), "same", "same", (0,)),
            ["both values are printed alike"],
        ),
        (
            Violation(
                "not fresh",
                (),
                None,
                None,
                (),
                paths=("shop.norm.currsize: 0 / 1", "shop.norm.cached[1]: 2 / 'a'"),
            ),
            [
                "differs from the first fresh system (first / now):",
                "    shop.norm.currsize: 0 / 1",
                "    shop.norm.cached[1]: 2 / 'a'",
                "shop.norm is a functools.lru_cache; to empty it:",
                "    reset=lambda registry: shop.norm.cache_clear()",
                *ADVICE,
            ],
        ),
        (
            Violation("law", (), (), "one", (0,)),
            ["1 broken law:", "    one"],
        ),
        (
            Violation(
                "undo", (1,), None, FIELDS, (0, 1, 0, 1), paths=("undo.i: 0 / 1",)
            ),
            [
                "the undo raised:",
                "    error: NameTaken",
                "    name: a",
                "variables that differ (expected / found):",
                "    undo.i: 0 / 1",
            ],
        ),
        (
            Violation("error", (), None, FIELDS, (0,), paths=("registry.n: 0 / 1",)),
            [
                "succeeded elsewhere, here:",
                "    error: NameTaken",
                "    name: a",
                "variables that differ (expected / found):",
                "    registry.n: 0 / 1",
            ],
        ),
        (
            Violation("error", (), FIELDS, None, (0,), paths=("registry.n: 0 / 1",)),
            [
                "succeeds here, elsewhere:",
                "    error: NameTaken",
                "    name: a",
                "variables that differ (expected / found):",
                "    registry.n: 0 / 1",
            ],
        ),
        (
            Violation("error", (), FIELDS, (("error", "Other"), ("name", "a")), (0,)),
            [
                "difference in 'error' (- expected, + found):",
                "    @@ -1 +1 @@",
                "    -NameTaken",
                "    +Other",
            ],
        ),
        # An answer that turns into an error is shown whole on both sides.
        (
            Violation("use", (), "-3", FIELDS, (0,)),
            [
                "difference (- expected, + found):",
                "    --3",
                "    +error: NameTaken",
                "    +name: a",
            ],
        ),
        (
            Violation("use", (), ("raised", FIELDS), (1, 2), (0,)),
            [
                "difference (- expected, + found):",
                "    -error: NameTaken",
                "    -name: a",
                "    +(1, 2)",
            ],
        ),
        (
            Violation("order", (), (("state", "one\ntwo\n"),), FIELDS, (0,)),
            [
                "difference (- expected, + found):",
                "    -state: one",
                "    -two",
                "    +error: NameTaken",
                "    +name: a",
            ],
        ),
        # A text is told apart from what only reads like it.
        (
            Violation("use", (), 3, "3", (0,)),
            [
                "difference (- expected, + found):",
                "    @@ -1 +1 @@",
                "    -3",
                "    +'3'",
            ],
        ),
        (
            Violation("use", (), "None", None, (0,)),
            [
                "difference (- expected, + found):",
                "    @@ -1 +1 @@",
                "    -'None'",
                "    +None",
            ],
        ),
        (
            Violation("use", (), True, 1, (0,)),
            [
                "difference (- expected, + found):",
                "    @@ -1 +1 @@",
                "    -True",
                "    +1",
            ],
        ),
        # Where the history hides, below what was seen or by itself.
        (
            Violation(
                "use", (), True, False, (0,), paths=("a: 1 / 2", "b: <absent> / 3")
            ),
            [
                "difference (- expected, + found):",
                "    @@ -1 +1 @@",
                "    -True",
                "    +False",
                "variables that differ (expected / found):",
                "    a: 1 / 2",
                "    b: <absent> / 3",
            ],
        ),
        (
            Violation("hidden", (), None, None, (0,), hidden=True, paths=("a: 1 / 2",)),
            ["variables that differ (expected / found):", "    a: 1 / 2"],
        ),
        (
            Violation("hidden", (), None, None, (0,), hidden=True),
            ["the difference is not visible from outside"],
        ),
        (
            Violation("nondeterminism", (), "a", "b", (0,), frequency=(1, 21)),
            [
                "difference (- expected, + found):",
                "    @@ -1 +1 @@",
                "    -a",
                "    +b",
                "found in 1 of 21 replays of this history",
            ],
        ),
        (
            Violation("nondeterminism", (), None, None, (0,), frequency=(2, 5)),
            ["found in 2 of 5 replays of this history"],
        ),
        (
            Violation("not fresh", (), None, None, (), paths=("R.made: 0 / 1",)),
            [
                "differs from the first fresh system (first / now):",
                "    R.made: 0 / 1",
                *ADVICE,
            ],
        ),
        (
            Violation("not fresh", (), "a", "b", (0,)),
            [
                "difference (- expected, + found):",
                "    @@ -1 +1 @@",
                "    -a",
                "    +b",
                *ADVICE,
            ],
        ),
        (
            Violation("unpinned", (0, 1), "two orders", (("state", "a\nb\n"),), (0, 1)),
            ["all orders show:", "    state: a", "    b"],
        ),
        (
            Violation("order", (), "", "x\n" * 50, (0,)),
            [
                "difference (- expected, + found):",
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


@pytest.mark.parametrize(
    ("violation", "lines", "count"),
    [
        (
            Violation("order", (), "x" * 999 + "a", "x" * 999 + "b", (0,)),
            [
                "difference (- expected, + found):",
                "    @@ -1 +1 @@",
                "    -(600 characters) ..." + "x" * 399 + "a",
                "    +(600 characters) ..." + "x" * 399 + "b",
            ],
            1_998,
        ),
        (
            Violation("law", (), (), ("x" * 999,), (0,)),
            ["1 broken law:", "    " + "x" * 400 + "... and 599 more characters"],
            999,
        ),
        (
            Violation("undo", (), None, "\n".join("x" * 50), (0,)),
            ["the undo raised:", *["    x"] * 40, "    ... and 10 more lines"],
            50,
        ),
    ],
)
def test_an_explanation_is_cut_but_for_programs(
    violation: Violation, lines: list[str], count: int
) -> None:
    assert explanation(violation) == lines
    whole = explanation(violation, whole=True)
    assert not [line for line in whole if "more" in line or " ..." in line]
    assert sum(line.count("x") for line in whole[1:]) == count


def test_plural() -> None:
    assert plural(1, "state") == "1 state"
    assert plural(1234, "state") == "1,234 states"


def test_one_operation_is_one() -> None:
    exploration = replace(
        PROVEN.exploration,
        guarantee="walk:1: of the last 1 operations; kA:1: at most 1 hidden "
        "operations; histories:11: at most 11 operations",
        assumptions=("kA:1: at most 1 operations more",),
        skipped=(),
    )
    text = render(replace(PROVEN, exploration=exploration))
    assert [line[12:] for line in text.splitlines() if " operation" in line] == [
        "walk:1: of the last 1 operation",
        "kA:1: at most 1 hidden operation",
        "histories:11: at most 11 operations",
        "kA:1: at most 1 operation more",
    ]


VACUOUS_TEXT = """\
scenarios/test_broken/nothing_happens: something in the scenario could not have
shown any fault
  steps
    1  define("demo::add(Tensor x, Tensor y) -> Tensor")
    2  impl("demo::add", cpu_add, "CPU")
    3  impl("demo::add", any_add, "CompositeImplicitAutograd")
  uses
    1  call("demo::add", "cpu")
  strategy  walk:1
  vacuous   impl("demo::add", cpu_add, "CPU") changes nothing that is looked at
            or asked; if that is meant, declare constant=True
  vacuous   impl("demo::add", any_add, "CompositeImplicitAutograd") raises
            NameError whatever is active; if that is meant, declare
            raises=NameError
  vacuous   call("demo::add", "cpu") answers the same whatever is active; if
            that is meant, declare constant=True
  vacuous   what is observed shows the same whatever is active; if that is
            meant, declare constant=True
  executed  8 states, 628 of 1,000 transitions; 290 adds, 289 removes, 7 failing
            steps, 40 uses, 660 looks, 86 fresh systems; 1.25 s"""


def test_what_is_vacuous_says_what_and_how_to_declare_it() -> None:
    assert render(VACUOUS, verbose=True) == VACUOUS_TEXT


def test_what_closed_and_where_the_operations_went() -> None:
    closure = Closure(41, 205, 4, closed=True, order_read=True)
    spent = (("graph", 750), ("stale", 200), ("histories:3", 50))
    found = replace(
        PROVEN.exploration,
        closure=closure,
        spent=spent,
        caveats=(
            Caveat("assumed", "the order of a set is not read: registry._names"),
            Caveat("assumed", "Random.random is called"),
        ),
    )
    lines = render(replace(PROVEN, exploration=found)).splitlines()
    told = [line for line in lines if line[2:11].strip() in {"states", "spent"}]
    at = lines.index(told[0])
    assert [line[2:] for line in lines[at : at + 3]] == [
        "states    41 complete states, 205 transitions, each taken from up to 4",
        "          different histories; the order of some dict is read, and is part of",
        "          them",
    ]
    assert told[1:] == ["  spent     graph 75 %, stale 20 %, histories:3 5 %"]
    assert "  assumes   the order of a set is not read: registry._names" in lines
    assert "  assumes   Random.random is called" in lines
    one = replace(found, closure=Closure(1, 1, 2, closed=True), spent=spent[:1])
    text = render(replace(PROVEN, exploration=one))
    assert "1 complete state, 1 transition, each taken from up to 2 different" in text
    assert "spent" not in text
    # States that did not close are told as skipped, by the engine.
    open_ = replace(found, closure=Closure(9, 99, 0, closed=False))
    assert "complete states" not in render(replace(PROVEN, exploration=open_))


def test_what_nobody_can_see_is_open() -> None:
    text = "a sqlite3.Connection at registry._db (C state)"
    found = replace(PROVEN.exploration, proven=False, caveats=(Caveat("opaque", text),))
    report = replace(PROVEN, exploration=found)
    assert report.verdict == "holds"
    assert f"\n  open      {text}\n" in render(report)


def test_pinned_pairs_stand_in_the_text() -> None:
    exploration = replace(ORDER.exploration, violations=(ORDER_VIOLATION,))
    report = replace(ORDER, exploration=exploration, pairs=((0, 1), (0, 2)))
    lines = render(report, verbose=True).splitlines()
    place = "at 2 then 3, after 3 operations; no shorter history of these shows it"
    assert place in lines
    at = next(at for at, line in enumerate(lines) if line.startswith("  pinned"))
    assert [line[2:] for line in lines[at : at + 4]] == [
        'pinned    the order of define("demo::add(Tensor x, Tensor y) -> Tensor") and',
        '          impl("demo::add", cpu_add, "CPU"), of define("demo::add(Tensor x,',
        '          Tensor y) -> Tensor") and impl("demo::add", any_add,',
        '          "CompositeImplicitAutograd")',
    ]


def test_refused_undos_and_steps_that_are_done_again_in_a_history() -> None:
    refused: dict[tuple[State, int], Hashable] = {((0, 1), 0): FIELDS}
    exploration = replace(PROVEN.exploration, refusals=refused)
    report = replace(PROVEN, exploration=exploration, again=frozenset({2}))
    one, two, three = (f"step_{n} = {text}" for n, text in enumerate(report.steps, 1))
    assert report.lines((0, 1, 0, 1, 0, 2, 2, 0, 4, 5)) == (
        one,
        two,
        # Refused: the step stays active.
        "step_1.close()",
        "step_2.close()",
        "step_1.close()",
        three,
        three,
        one,
        "observe()",
        "gc.collect()",
    )
    assert report.lines((0, 1, 0, 0))[2:] == ("step_1.close()", "step_1.close()")


def test_steps_that_were_never_done_are_told_whole() -> None:
    histories = " ".join(f"history{number}" for number in range(20))
    failures: dict[tuple[State, int], Hashable] = {
        ((), 1): (("error", "UnknownKey"), ("text", histories))
    }
    found = replace(PROVEN.exploration, states={(): ""}, failures=failures)
    silent = replace(PROVEN, exploration=found)
    assert silent_steps([PROVEN, silent]) == [
        "steps that fail whatever is active, so only their failure is shown:",
        "  scenarios/test_composites/two_kernels step 2: UnknownKey history0 history1",
        "      history2 history3 history4 history5 history6 history7 history8 history9",
        "      history10 history11 history12 history13 history14 history15 history16",
        "      history17 history18 history19",
    ]
    failed = replace(ORDER.exploration, states={(): ""}, failures=failures)
    assert silent_steps([PROVEN, replace(ORDER, exploration=failed)]) == []


def test_the_two_histories_of_hidden_state_part_somewhere() -> None:
    histories = {"history": (1, 3), "other": (0, 0, 1, 3)}
    report = violated("hidden", state=(1,), **histories)
    (violation,) = report.exploration.violations
    assert other_history_lines(report, violation)[-1] == (
        "the two histories part at once"
    )
    later = replace(violation, history=(0, 1, 3))
    assert other_history_lines(report, later)[-1] == (
        "the two histories part after their first operation"
    )
    assert other_history_lines(report, replace(violation, other=None)) == []
    assert other_history_lines(report, replace(violation, other=())) == [
        "expected, from an equal state, before any operation"
    ]


def test_of_hidden_state_longer_histories_are_counted() -> None:
    report = violated("hidden", state=(1,), history=(1, 3), other=(3,), more=2)
    (violation,) = report.exploration.violations
    lines = render_violation(report, violation).splitlines()
    assert lines.count("longer histories show it 2 times more") == 1
    assert recurrence_lines(replace(violation, more=1)) == [
        "longer histories show it 1 time more"
    ]
    assert recurrence_lines(replace(violation, more=0)) == []


def test_why_something_did_not_pass() -> None:
    assert reasons(VACUOUS) == [
        '- impl("demo::add", cpu_add, "CPU") changes nothing that is looked at or '
        "asked;",
        "  if that is meant, declare constant=True",
        '- impl("demo::add", any_add, "CompositeImplicitAutograd") raises NameError',
        "  whatever is active; if that is meant, declare raises=NameError",
        '- call("demo::add", "cpu") answers the same whatever is active; if that is',
        "  meant, declare constant=True",
        "- what is observed shows the same whatever is active; if that is meant, "
        "declare",
        "  constant=True",
    ]
    found = replace(CUT.exploration, skipped=("the budget is spent",))
    assert reasons(replace(CUT, exploration=found)) == [
        "  strategy  walk:1",
        "  skipped   the budget is spent",
        *render(CUT, verbose=True).splitlines()[-2:],
    ]
    assert reasons(ORDER) == reasons(PROVEN) == []


def test_more_executed_than_planned_transitions_are_no_share_of_them() -> None:
    counts = replace(CUT.exploration.executed, transitions=649)
    for planned, text in ((82, "649 transitions"), (700, "649 of 700 transitions")):
        exploration = replace(CUT.exploration, executed=counts, planned=planned)
        assert text in counts_text(replace(CUT, exploration=exploration))
