"""Generated programs: whatever the generator writes does what Python does.

An int that does not fit 64 bits is an error here, and none in Python: such calls are
not compared.
"""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.script.emission.both import Both, Outcome
from tests.script.emission.generated import EXPRESSIONS, STATEMENTS, Choose, Program

FEW, MANY, CALLS = 150, 20_000, 3


def differences(choose: Choose) -> tuple[Program, list[tuple[Outcome, Outcome]]]:
    """A program, and the calls of it that differ."""
    program = Program(choose)
    both = Both(program.text)
    found = []
    for _ in range(CALLS):
        python, script = both.outcomes("f", *program.arguments())
        if python != script and not script.error.startswith("OverflowError"):
            found.append((python, script))
    return program, found


def forms_of(seeds: range) -> Counter[str]:
    """The forms of the programs of the seeds, all of which do what Python does."""
    forms: Counter[str] = Counter()
    for seed in seeds:
        program, found = differences(random.Random(seed).randrange)
        assert not found, f"{seed}\n{program.text}"
        forms.update(program.forms)
    return forms


def test_some_programs_do_what_python_does() -> None:
    """Of a few hundred programs none differs, and nearly every form is among them."""
    forms = forms_of(range(FEW))
    every = {*STATEMENTS, *(each for some in EXPRESSIONS.values() for each in some)}
    assert len(every - forms.keys()) < len(every) // 10


@pytest.mark.long
def test_many_programs_do_what_python_does() -> None:
    """Of 20,000 programs none differs, and each form is there 200 times."""
    forms = forms_of(range(FEW, FEW + MANY))
    every = {*STATEMENTS, *(each for some in EXPRESSIONS.values() for each in some)}
    assert {each: forms[each] for each in every if forms[each] < 200} == {}


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_programs_that_shrink_do_what_python_does(data: st.DataObject) -> None:
    """As above, where Hypothesis chooses: what differs is shown as short as it gets."""
    program, found = differences(lambda n: data.draw(st.integers(0, n - 1)))
    assert not found, program.text


def test_a_difference_is_seen() -> None:
    """The comparison tells values, output, arguments and exceptions apart."""
    text = (
        "def f(xs: list[int]) -> int:\n    xs[0] = 5\n    print(1)\n    return xs[1]\n"
    )
    both = Both(text)
    for planted in ("xs[0] = 6", "print(2)", "return xs[0]", "raise KeyError(1)"):
        kind = planted.partition(" ")[0].partition("(")[0]
        lines = [
            f"    {planted}" if line.strip().startswith(kind) else line
            for line in text.split("\n")
        ]
        if planted.startswith("raise"):
            lines.insert(1, f"    {planted}")
        both.python = Both("\n".join(lines)).python
        python, script = both.outcomes("f", [1, 2])
        assert python != script, planted
