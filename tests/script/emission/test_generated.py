"""Generated programs: whatever the generator writes does what Python does.

An int that does not fit 64 bits is an error here, and none in Python: such calls are
not compared.
"""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder.runtime.script.executor import executor
from everyorder.runtime.script.executor.fusion import FusedGroup
from everyorder.runtime.script.ir.program import Function
from tests.script.emission.both import Both, Outcome
from tests.script.emission.generated import Program
from tests.script.emission.generated_forms import EVERY, NAMES

FEW, MORE, MANY, CALLS = 50, 750, 20_000, 3
# In parts, as a test that takes five minutes counts as one that hangs.
PARTS = 8
FUSED, SIZE = 500, 1200
# How programs are run; the first way is that of all, the others of some.
WAYS: tuple[dict[str, Any], ...] = (
    {"fuse": False, "text_after": None},
    {"fuse": False, "text_after": 0},
    {"fuse": False, "optimize": False},
)
FUSING: tuple[dict[str, Any], ...] = (
    {"fuse": True, "fuse_after": 1, "text_after": None},
    {"fuse": True, "fuse_after": 1, "text_after": 0},
)


def differences(
    program: Program,
    ways: Sequence[dict[str, Any]] = WAYS[:1],
    kernels: Counter[str] | None = None,
) -> list[tuple[Outcome, Outcome]]:
    """The calls of a program that differ; `kernels` counts the runs of fused ones."""
    both = Both(program.text, NAMES)
    found = []
    arguments = [program.arguments() for _ in range(CALLS)]
    for each in ways:
        with executor(**each):
            for each_call in arguments:
                python, script = both.outcomes("f", *each_call)
                if python != script and not script.error.startswith("OverflowError"):
                    found.append((python, script))
        if kernels is not None:
            for function in both.script.values():
                kernels["run"] += sum(each.kernels for each in groups_of(function))
    return found


def groups_of(function: Function) -> list[FusedGroup]:
    """What of a function has been fused."""
    plan = function.memo.get("plan")
    todo = [] if plan is None else [plan.frame[0].layout]
    found = []
    while todo:
        steps = todo.pop().steps
        found += [each.call for each in steps if isinstance(each.call, FusedGroup)]
        todo += [inner for each in steps for inner in each.blocks]
    return found


def forms_of(seeds: range) -> Counter[str]:
    """The forms of the programs of the seeds, all of which do what Python does.

    Every tenth runs as text from its first run on, too, and as nothing has improved it.
    """
    forms: Counter[str] = Counter()
    for seed in seeds:
        program = Program(random.Random(seed).randrange)
        found = differences(program, WAYS if seed % 10 == 0 else WAYS[:1])
        assert not found, f"{seed}\n{program.text}"
        forms.update(program.forms)
    return forms


@pytest.mark.spec("script 6.2", "each form, by chance")
def test_some_programs_do_what_python_does() -> None:
    """Of some programs none differs, and nearly every form is among them."""
    forms = forms_of(range(FEW))
    assert len(EVERY - forms.keys()) < len(EVERY) // 10


@pytest.mark.slow
def test_more_programs_do_what_python_does() -> None:
    """Of a part of the 20,000 programs none differs."""
    forms_of(range(FEW, FEW + MORE))


@pytest.mark.spec("script 6.2", "each form, by chance")
@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_many_programs_do_what_python_does(part: int) -> None:
    """Of 20,000 programs none differs."""
    first = FEW + part * MANY // PARTS
    forms_of(range(first, first + MANY // PARTS))


@pytest.mark.nightly
def test_each_form_comes_often() -> None:
    """Of those 20,000 programs, at least 200 times."""
    forms: Counter[str] = Counter()
    for seed in range(FEW, FEW + MANY):
        forms.update(Program(random.Random(seed).randrange).forms)
    assert {each: forms[each] for each in EVERY if forms[each] < 200} == {}
    assert forms.keys() == EVERY


@pytest.mark.nightly
def test_fused_programs_do_what_python_does() -> None:
    """Of programs of larger tensors none differs; 500 of them run compiled kernels."""
    fused = seed = 0
    while fused < FUSED:
        fused += runs_kernels(seed)
        seed += 1
        assert seed < 2 * FUSED, "too little is fused"


def test_some_fused_programs_do_what_python_does() -> None:
    """As above: of few, most run a compiled kernel."""
    assert sum(map(runs_kernels, range(4, 9))) > 2


def runs_kernels(seed: int) -> bool:
    """Whether a program of larger tensors runs compiled kernels; it does not differ."""
    program, kernels = Program(random.Random(seed).randrange, SIZE), Counter[str]()
    found = differences(program, FUSING, kernels)
    assert not found, f"{seed}\n{program.text}"
    return kernels["run"] > 0


@settings(max_examples=6, deadline=None)
@given(st.data())
def test_programs_that_shrink_do_what_python_does(data: st.DataObject) -> None:
    """As above, where Hypothesis chooses: what differs is shown as short as it gets."""
    program = Program(lambda n: data.draw(st.integers(0, n - 1)))
    assert not differences(program, WAYS), program.text


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
