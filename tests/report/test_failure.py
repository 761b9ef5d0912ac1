"""The text of a failure: a sentence, two histories, the variable, the command."""

from collections.abc import Hashable
from dataclasses import replace

import pytest
from rich.cells import cell_len

from everyorder.harness.engine.protocol import History
from everyorder.harness.engine.result import (
    KINDS,
    Kind,
    RaisedError,
    Square,
    Violation,
)
from everyorder.harness.report.failure import (
    SENTENCES_BY_KIND,
    headline,
    render,
    render_violation,
)
from everyorder.harness.report.verdict import Report
from everyorder.harness.state import canonical
from tests.report.samples import (
    ALL,
    CUT,
    LAW,
    ORDER,
    ORDER_VIOLATION,
    PINNED,
    VACUOUS,
    violated,
)

# A registry as people have one: two steps and a look-up.
JSON, TEXT, FIND = range(3)
ONE = canonical(1)


def report_of(violation: Violation) -> Report:
    exploration = replace(ORDER.exploration, violations=(violation,))
    return replace(
        ORDER,
        scenario="test_x/plugins",
        steps=('add("json")', 'add("text")'),
        uses=('find("json")',),
        exploration=exploration,
    )


def stale(
    expected: Hashable = "none",
    found: Hashable = ONE,
    reference: History | None = (FIND,),
) -> Violation:
    history = (JSON, FIND, JSON, FIND)
    return Violation(
        *("use", (), expected, found, history, history),
        proven_shortest=True,
        paths=("registry.cache['json']: <absent> / 1",),
        undos=frozenset({2}),
        reference=reference,
        reference_undos=frozenset(),
    )


STALE_TEXT = """\
test_x/plugins: `find("json")` answers differently after the same registrations:
'none' or 1. It depends on whether `find("json")` was called before.
    one way        another way
    find("json")   step_1 = add("json")
                   find("json")
                   step_1.close()
                   find("json")
    => 'none'      => 1
no shorter history of these operations shows it
variables that differ (one way / another way):
    registry.cache['json']: <absent> / 1
replay it:
    everyorder replay {id} test_x/plugins"""


def test_a_stale_cache_is_a_sentence_with_its_variable() -> None:
    violation = stale()
    report = report_of(violation)
    text = STALE_TEXT.replace("{id}", report.replay_id(violation))
    assert render(report) == text


def test_where_no_other_history_is_known_one_is_shown() -> None:
    violation = stale(reference=None)
    assert render(report_of(violation)).splitlines()[2:7] == [
        '    step_1 = add("json")',
        '    find("json")',
        "    step_1.close()",
        '    find("json")',
        "no shorter history of these operations shows it",
    ]


def test_values_that_do_not_fit_into_a_sentence_are_a_diff() -> None:
    violation = stale("one\ntwo", "one\nthree")
    assert render(report_of(violation)).splitlines()[:2] == [
        'test_x/plugins: `find("json")` answers differently after the same '
        "registrations.",
        'It depends on whether `find("json")` was called before.',
    ]
    assert (
        "\ndifference (- one way, + another way):\n    @@ -1,2 +1,2 @@\n     one\n"
        "    -two\n    +three\nvariables that differ"
    ) in render(report_of(violation))
    alone = replace(violation, reference=None)
    assert "\ndifference (- otherwise, + here):\n" in render(report_of(alone))


def test_an_error_as_an_answer_is_part_of_the_sentence() -> None:
    raised = ("raised", (("error", "LookupError"), ("text", "no json")))
    assert headline(report_of(stale()), stale("none", raised)) == (
        '`find("json")` answers differently after the same registrations: '
        "'none' or raises LookupError: no json. It depends on whether "
        '`find("json")` was called before.'
    )


def order(history: History, reference: History | None) -> Violation:
    violation = Violation("order", (JSON, TEXT), "a b", "b a", history, history)
    return replace(violation, reference=reference)


def test_two_orders_are_named_with_what_they_give() -> None:
    violation = order((TEXT, JSON), (JSON, TEXT))
    assert headline(report_of(violation), violation) == (
        'what is observed depends on the order: `add("text")` then `add("json")` '
        "gives 'b a', the other way round 'a b'."
    )
    used = order((TEXT, JSON, FIND), (JSON, TEXT, FIND))
    assert headline(report_of(used), used) == (
        '`find("json")` depends on the order: `add("text")` then `add("json")` '
        "gives 'b a', the other way round 'a b'."
    )
    long = replace(used, expected="x" * 99)
    assert headline(report_of(long), long) == (
        '`find("json")` depends on the order of `add("text")` and `add("json")`.'
    )


def test_on_what_it_depends() -> None:
    """The rarest kind of operation is named."""
    for history, reference, cause in (
        ((FIND, JSON), (JSON,), 'on whether `find("json")` was called before.'),
        ((FIND + 1, JSON), (JSON,), "on whether the registry was observed before."),
        ((FIND + 2, JSON), (JSON,), "on when garbage is collected."),
        ((JSON, TEXT, JSON), (TEXT,), "on what was registered and removed before."),
    ):
        violation = order(history, reference)
        text = headline(report_of(violation), violation)
        assert text == (
            "what is observed differs after the same registrations: 'a b' or 'b a'. "
            f"It depends {cause}"
        )
    trip = order((JSON, JSON, FIND), (FIND,))
    assert headline(report_of(trip), trip).endswith(
        ' The undo of `add("json")` does not take all of it back.'
    )
    unknown = order((JSON, TEXT), None)
    assert headline(report_of(unknown), unknown).endswith("'a b' or 'b a'.")


def test_a_difference_that_no_look_shows_is_called_so() -> None:
    violation = replace(order((TEXT, JSON, TEXT), (JSON,)), hidden=True)
    assert headline(report_of(violation), violation) == (
        "the registry differs, though nothing that is observed shows it, after the "
        "same registrations. It depends on what was registered and removed before."
    )


ORDER_TEXT = """\
scenarios/test_broken/order_matters: what is observed (table) differs after the
same registrations. It depends on whether `call("demo::add", "cpu")` was called
before.
    step_3 = impl("demo::add", any_add, "CompositeImplicitAutograd")
    step_2 = impl("demo::add", cpu_add, "CPU")
    call("demo::add", "cpu")
no shorter history of these operations shows it
difference in 'table' (- otherwise, + here):
    @@ -1,2 +1,2 @@
    -AutogradCPU: cpu_add
    +AutogradCPU: any_add
     CPU: cpu_add
replay it:
    everyorder replay {id} scenarios/test_broken/order_matters"""

VERBOSE = """\
order: the observation depends on more than the active steps
at {2 3}, after 3 operations; no shorter history of these shows it
square: from {}, 2 then 3 differs from 3 then 2
replay it:
    everyorder replay {id} scenarios/test_broken/order_matters

  steps
    1  define("demo::add(Tensor x, Tensor y) -> Tensor")
    2  impl("demo::add", cpu_add, "CPU")
    3  impl("demo::add", any_add, "CompositeImplicitAutograd")
  uses
    1  call("demo::add", "cpu")
  strategy  walk:1
  executed  8 states, 628 of 1,000 transitions; 290 adds, 289 removes, 7 failing
            steps, 40 uses, 660 looks, 86 fresh systems; 1.25 s"""


def test_the_words_of_the_engine_come_with_verbose() -> None:
    replay_id = ORDER.replay_id(ORDER_VIOLATION)
    assert render(ORDER) == ORDER_TEXT.replace("{id}", replay_id)
    verbose = render(ORDER, verbose=True)
    assert verbose.endswith("\n" + VERBOSE.replace("{id}", replay_id))


# What has to be learned, and so is no part of a first failure.
LEARNED = (
    *("square", "divergence", "active steps", "wedged", "vacuous", "looks", "closed"),
    *("histories:", "proven*", "graph", "walk:"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_first_failure_has_no_words_to_learn(kind: Kind) -> None:
    raised = (RaisedError(0, (("error", "KeyError"), ("text", "json")), None),)
    violation = replace(stale(), kind=kind, raised=raised)
    text = render(report_of(violation))
    assert not [word for word in LEARNED if word in text]
    assert text.startswith("test_x/plugins: ")


def test_every_kind_has_its_sentence() -> None:
    assert set(SENTENCES_BY_KIND) == set(KINDS)
    for kind in KINDS:
        report = violated(kind)
        text = headline(report, report.exploration.violations[0])
        assert text.endswith(".") or kind == "law"


def test_laws() -> None:
    assert (
        'law_is_broken: 2 laws are broken after `impl("demo::add",\ncpu_add, "CPU")`.\n'
        '    step_1 = define("demo::add(Tensor x, Tensor y) -> Tensor")\n'
        '    step_2 = impl("demo::add", cpu_add, "CPU")\n'
        "2 broken laws:\n"
        "    tables_agree: demo::add at CPU: cpu_add: missing\n"
        "    plain\n"
    ) in render(LAW)
    one = Violation("law", (JSON,), (), ("at most one",), (JSON,), (JSON,))
    assert render(report_of(one)).splitlines()[:3] == [
        'test_x/plugins: a law is broken after `add("json")`: at most one',
        '    step_1 = add("json")',
        "replay it:",
    ]


def test_what_a_raising_step_leaves_behind() -> None:
    fields = (("error", "ValueError"), ("text", "too many"))
    violation = Violation(
        *("wedged", (JSON,), "json", "json text", (JSON, TEXT), (JSON, TEXT)),
        raised=(RaisedError(1, fields, None),),
        reference=(JSON,),
    )
    assert render(report_of(violation)).splitlines()[:7] == [
        'test_x/plugins: `add("text")` raises, and leaves something behind.',
        "    one way                another way",
        '    step_1 = add("json")   step_1 = add("json")',
        '                           step_2 = add("text")',
        "    => 'json'              => 'json text'",
        'raised by step_2 = add("text"):',
        "    ValueError: too many",
    ]


def test_errors_that_come_and_go() -> None:
    error = (("error", "KeyError"), ("text", "json"))
    for expected, found, text in (
        (None, error, "raises KeyError: json; after the same registrations it also"),
        (error, None, "succeeds; after the same registrations it also raises KeyError"),
        (error, (("error", "E"),), "raises different errors after the same"),
    ):
        violation = Violation("error", (), expected, found, (JSON,), (JSON,))
        said = headline(report_of(violation), violation)
        assert said.startswith(f'`add("json")` {text}')
    undo = Violation("undo", (), None, error, (JSON, JSON), (JSON, JSON))
    assert headline(report_of(undo), undo) == (
        'the undo of `add("json")` raises KeyError: json.'
    )


def test_of_hidden_state_both_histories_are_shown() -> None:
    sides = {"expected": True, "found": False}
    histories = {"history": (1, 3), "other": (0, 0, 1, 3)}
    report = violated("hidden", state=(1,), **sides, **histories)
    (violation,) = report.exploration.violations
    assert render_violation(report, violation).splitlines() == [
        '`call("demo::add", "cpu")` answers differently: True or False, although the',
        "state before it is the same, as far as it can be read. Something else is",
        "remembered elsewhere.",
        "one way:",
        '    step_1 = define("demo::add(Tensor x, Tensor y) -> Tensor")',
        "    step_1.close()",
        '    step_2 = impl("demo::add", cpu_add, "CPU")',
        '    call("demo::add", "cpu")',
        "    => True",
        "another way:",
        '    step_2 = impl("demo::add", cpu_add, "CPU")',
        '    call("demo::add", "cpu")',
        "    => False",
        "replay it:",
        "    everyorder replay 245mx-gf scenarios/test_broken/hidden",
        "    everyorder replay 245mx-8c9 scenarios/test_broken/hidden",
    ]


def test_what_is_not_fresh_says_where_and_what_to_do() -> None:
    report = violated("not fresh", paths=("Registry.made: 0 / 1",))
    assert render(report).splitlines()[1:5] == [
        "later one differs from the first.",
        "differs from the first fresh system (first / now):",
        "    Registry.made: 0 / 1",
        "create all of it in create=, undo it in reset= (empty caches there), or",
    ]


def test_chance_says_how_often() -> None:
    violation = Violation("nondeterminism", (), 1, 2, (FIND,), frequency=(3, 20))
    assert headline(report_of(violation), violation) == (
        "the same operations, played again, gave another result: 1 or 2 (3 of 20 "
        "plays differ)."
    )


def test_several_violations_are_all_shown() -> None:
    other = Violation("use", (1,), True, False, (3, 1, 3), (3, 1, 3))
    exploration = replace(ORDER.exploration, violations=(ORDER_VIOLATION, other))
    text = render(replace(ORDER, exploration=exploration))
    assert text.count("\n\nalso: ") == 1
    assert text.count("replay it:") == 2


def test_the_square_of_a_step_and_its_undo() -> None:
    report = violated("order", state=(), history=(1, 1), square=Square((), 1, 1))
    square = "square: from {}, 2 and its undo do not lead back: it is not an inverse"
    assert square in render(report, verbose=True).splitlines()


def test_no_line_of_prose_is_wider_than_80() -> None:
    reports = (*ALL, VACUOUS, PINNED, CUT, *(violated(kind) for kind in KINDS))
    for report in reports:
        for line in render(report, verbose=True).splitlines():
            runnable = line.startswith(("    step_", "    @@", "    +", "    -"))
            assert len(line) <= 80 or runnable, line


def test_an_undo_is_not_called_the_step() -> None:
    """A faulty undo was reported as its step."""
    error = (("error", "ValueError"), ("text", "busy"))
    raised = (RaisedError(1, error, None),)
    wedged = Violation(
        *("wedged", (JSON,), "json", "", (JSON, JSON), (JSON, JSON)), raised=raised
    )
    assert headline(report_of(wedged), wedged) == (
        'the undo of `add("json")` raises, and leaves something behind.'
    )
    fails = Violation("error", (), None, error, (JSON, JSON), (JSON, JSON))
    assert headline(report_of(fails), fails) == (
        'the undo of `add("json")` raises ValueError: busy; after the same '
        "registrations it also succeeds."
    )
    law = Violation("law", (), (), ("at least one",), (JSON, JSON), (JSON, JSON))
    assert headline(report_of(law), law) == (
        'a law is broken after the undo of `add("json")`: at least one'
    )


def test_two_steps_among_others_are_the_order() -> None:
    """With a third step, and a pinned pair, the sentence contradicted itself."""
    violation = Violation(
        *("order", (0, 1, 2), "c d", "d c", (0, 2, 1), (0, 2, 1)), reference=(0, 1, 2)
    )
    report = replace(
        report_of(violation), steps=("a", "c", "d"), uses=(), pairs=((0, 1),)
    )
    assert headline(report, violation) == (
        "what is observed depends on the order: `d` then `c` gives 'd c', the other "
        "way round 'c d'."
    )


def test_steps_that_are_done_again_and_operations_that_end_others() -> None:
    again = order((JSON, JSON), (JSON,))
    report = replace(report_of(again), again=frozenset({JSON}))
    assert headline(report, again) == (
        "what is observed differs after the same steps, as far as they are in effect: "
        "'a b' or 'b a'. It depends on how often a step was done."
    )
    ended = order((JSON, FIND), (FIND,))
    report = replace(report_of(ended), ends={FIND: frozenset({JSON})})
    assert headline(report, ended).endswith(' It depends on what `find("json")` ended.')


def test_no_cause_is_named_where_nothing_was_left_out() -> None:
    violation = replace(stale("a", "b", None), shortest=None, proven_shortest=False)
    assert headline(report_of(violation), violation) == (
        "`find(\"json\")` answers differently after the same registrations: 'a' or 'b'."
    )
    seen = replace(violation, expected=(("state", "a"),), found=(("state", "b"),))
    assert headline(report_of(seen), seen).startswith("what is observed differs")


def test_a_long_law_is_cut_with_dots_and_printed_whole_below() -> None:
    law = "x" * 130
    violation = Violation("law", (JSON,), (), (law,), (JSON,), (JSON,))
    text = render(report_of(violation))
    assert f"\n{'x' * 117}...\n" in text
    assert f"\n1 broken law:\n    {'x' * 76}\n      {'x' * 54}\n" in text


@pytest.mark.parametrize("sign", ["\r", "\x1b[2J", "\u202e", "\u2028", "\x0b"])
def test_no_character_that_a_terminal_obeys_is_printed(sign: str) -> None:
    error = (("error", "ValueError"), ("text", f"a{sign}b"))
    for violation in (
        stale(f"a{sign}b", "c"),
        stale(canonical([f"a{sign}b"]), ("raised", error)),
        stale(f"a{sign}\nb", "c\nd"),
        Violation("error", (), None, error, (JSON,), (JSON,)),
        Violation("law", (), (), (f"a{sign}b",), (JSON,), (JSON,)),
    ):
        text = render(report_of(violation))
        assert text.replace("\n", "").isprintable()
        assert text.startswith("test_x/plugins: ")


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "\u4e2d\u6587",
            [
                '    step_2 = add("\u4e2d\u6587")   step_1 = add("text")',
                '    step_1 = add("text")   find("json")',
            ],
        ),
        (
            "\u202e",
            [
                '    step_2 = add("\\u202e")   step_1 = add("text")',
                '    step_1 = add("text")     find("json")',
            ],
        ),
    ],
    ids=["wide", "invisible"],
)
def test_histories_are_aligned_as_a_terminal_shows_them(
    name: str, lines: list[str]
) -> None:
    report = report_of(stale(reference=(TEXT, JSON, FIND)))
    text = render(replace(report, steps=('add("text")', f'add("{name}")')))
    assert text.splitlines()[3:5] == lines


# A registry with names of wide characters, and with accents that take no column.
WIDE_TEXT = """\
test_x/plugins: `find("登録")` answers differently after the same registrations:
'なし' or 'é'. It depends on whether `find("登録")` was called before.
    one way        another way
    find("登録")   step_1 = add("😀")
                   find("登録")
                   step_1.close()
                   find("登録")
    => 'なし'      => 'é'
no shorter history of these operations shows it
variables that differ (one way / another way):
    registry.cache['json']: <absent> / 1
replay it:
    everyorder replay {id} test_x/plugins"""


def test_columns_of_wide_characters_are_aligned() -> None:
    violation = stale("なし", "é")
    steps, uses = ('add("😀")', 'add("text")'), ('find("登録")',)
    report = replace(report_of(violation), steps=steps, uses=uses)
    expected = WIDE_TEXT.replace("{id}", report.replay_id(violation))
    assert render(report) == expected
    assert max(map(cell_len, expected.splitlines())) <= 80


@pytest.mark.parametrize("long", ["x" * 500, "登録" * 250, "a b " * 125])
@pytest.mark.parametrize("kind", KINDS)
def test_no_line_of_evidence_is_wider_than_the_terminal(kind: Kind, long: str) -> None:
    error = (("error", "ValueError"), ("text", long))
    for expected, found in (
        (long, f"{long}!"),
        (f"one\n{long}", f"one\n{long}!"),
        (error, ("raised", error)),
        (None, error),
        (canonical([long]), canonical({long: long})),
    ):
        violation = replace(
            stale(expected, found),
            kind=kind,
            paths=(f"registry[{long!r}]: 1 / 2",),
            raised=(RaisedError(0, error, None),),
        )
        for width in (60, 80):
            text = render(report_of(violation), width=width)
            for line in text.splitlines():
                # A sentence keeps a word of 60 letters, and what is in quotes, whole.
                assert cell_len(line) <= width or " " not in line.strip()
