"""Programs say the same here and in torch, and what they say is as written here.

True only here: the lines.  Each program is played three times: by the short ways, by
the general way of asking handlers, and by torch where it is installed.
"""

import pytest

from everyorder.runtime.torch_dispatch import fallback
from tests.torch_dispatch import programs, programs_of_modes
from tests.torch_dispatch.programs import Program
from tests.torch_dispatch.worlds import Ours, Torchs, World, opened

PROGRAMS = programs.PROGRAMS + programs_of_modes.PROGRAMS

LINES = {
    "order_of_classes": """
A B
B: many.default(A, B) types=(B, A)
A: many.default(A, B) types=(B, A)
raised TypeError
A D B
B: many.default(A, D, B) types=(B, A, D)
A: many.default(A, D, B) types=(B, A, D)
D: many.default(A, D, B) types=(B, A, D)
raised TypeError
D A B2 B
D: many.default(D, A, B2, B) types=(D, B2, B, A)
B2: many.default(D, A, B2, B) types=(D, B2, B, A)
B: many.default(D, A, B2, B) types=(D, B2, B, A)
A: many.default(D, A, B2, B) types=(D, B2, B, A)
raised TypeError
A A
A: many.default(A, A) types=(A)
raised TypeError
B D
B: many.default(B, D) types=(B, D)
D: many.default(B, D) types=(B, D)
raised TypeError
D B
D: many.default(D, B) types=(D, B)
B: many.default(D, B) types=(D, B)
raised TypeError
""",
    "lists": """
call
C: listed.default(C, [None, B, Tensor], [A]) types=(C, B, A)
B: listed.default(C, [None, B, Tensor], [A]) types=(C, B, A)
A: listed.default(C, [None, B, Tensor], [A]) types=(C, B, A)
raised TypeError
call
A: listed.default(Tensor, [None, A], [B]) types=(A, B)
B: listed.default(Tensor, [None, A], [B]) types=(A, B)
raised TypeError
call
A: listed.default(None, [A, B, A], []) types=(A, B)
B: listed.default(None, [A, B, A], []) types=(A, B)
raised TypeError
call
returned
""",
    "first_who_answers": """
A: many.default(A, B, C) types=(A, B, C)
B: many.default(A, B, C) types=(A, B, C)
Tensor
""",
    "functions": """
A: f.default(A) types=(A)
True everyorder_worlds.f.default everyorder_worlds.f
everyorder_worlds::f(Tensor x) -> Tensor
tuple tuple {}
M: f.default(Tensor) types=()
True everyorder_worlds.f.default everyorder_worlds.f
everyorder_worlds::f(Tensor x) -> Tensor
tuple tuple {}
""",
    "defaults": """
A: g.default(A) types=(A)
A: g.default(A) types=(A)
A: g.default(A, 1, 5) types=(A)
A: g.default(A, 5) types=(A)
A: g.default(A, 5, 1, 1.0, False, [1, 1], 'y') types=(A)
A: g.default(A, 1, 1.0) types=(A)
A: g.default(A, 1, True) types=(A)
A: g.default(A) types=(A)
A: g.default(A, 0) types=(A)
A: g.default(A) types=(A)
A: g.default(A, 1, 1, nan) types=(A)
A: g.default(A) types=(A)
A: g.default(A) types=(A)
A: g.default(A) types=(A)
A: g.default(A, 1, 1, 1.0, False, [1, 2]) types=(A)
A: g.default(A) types=(A)
A: g.default(A, 1, 1, 1.0, False, [1, 1], 'w') types=(A)
A: g.default(A) types=(A)
A: g.default(A, q=False) types=(A)
A: g.default(A, n=3) types=(A)
A: g.default(A, m=1.0) types=(A)
A: g.default(A, m=(1+0j)) types=(A)
A: g.default(A) types=(A)
A: g.default(A, t=Tensor) types=(A)
A: g.default(A, t=A) types=(A)
A: g.default(A, dt=float64) types=(A)
A: g.default(A) types=(A)
A: g.default(A, lay=strided, mem=contiguous_format) types=(A)
A: g.default(A, n=4, dev=cpu) types=(A)
A: g.default(A, 3, 7, n=5, q=False) types=(A)
A: g.default(A, 1, 1, 1.0, True) types=(A)
""",
    "zeros": """
A: z.default(A) types=(A)
A: z.default(A, nan, b=nan) types=(A)
A: z.default(A) types=(A)
A: z.default(A) types=(A)
""",
    "super_calls": """
A: many.default(A, A) types=(A)
Tensor
A: many.default(A, A) types=(A)
Tensor
A: many.default(A) types=(A)
raised TypeError
A: many.default(A) types=(A)
raised TypeError
""",
    "results": """
A: several.default(A) types=(A)
list ['Tensor']
A: several.default(A) types=(A)
list ['Tensor', 'Tensor']
A: several.default(A) types=(A)
refused
A: several.default(A) types=(A)
refused
A: several.default(A) types=(A)
refused
A: nothing.default(A) types=(A)
NoneType []
A: nothing.default(A) types=(A)
refused
A: two.default(A) types=(A)
tuple ['Tensor', 'Tensor']
A: two.default(A) types=(A)
tuple ['Tensor', 'Tensor']
A: two.default(A) types=(A)
refused
""",
    "modes_hear_everything": """
M: f.default(Tensor) types=()
M: number.default(3) types=()
3
M: number.default(q=True) types=()
0
""",
    "modes_in_modes": """
True ['Outer']
Outer: f.default(Tensor) types=()
stack []
['Outer', 'Inner']
Inner: f.default(Tensor) types=()
stack ['Outer']
Outer: f.default(Tensor) types=()
stack []
Outer: f.default(Tensor) types=()
stack []
[]
""",
    "a_mode_twice": """
['M', 'M']
M: f.default(Tensor) types=()
M: f.default(Tensor) types=()
[]
""",
    "a_mode_in_its_own_handler": """
M: f.default(Tensor) types=()
M: f.default(Tensor) types=()
M: f.default(Tensor) types=()
['M']
""",
    "modes_before_classes": """
M: many.default(A, B) types=(B, A)
B: many.default(A, B) types=(B, A)
M: many.default(B, A) types=(B, A)
B: many.default(B, A) types=(B, A)
B: many.default(A, B) types=(B, A)
""",
    "a_mode_that_declines": """
Inner: f.default(A) types=(A)
A: f.default(A) types=(A)
Inner: f.default(Tensor) types=()
raised TypeError
['Outer', 'Inner']
""",
    "a_class_that_calls_again": """
M: f.default(A) types=(A)
before
A: f.default(A) types=(A)
M: f.default(Tensor) types=()
before
after
""",
    "handlers_that_raise": """
A: f.default(A) types=(A)
raised KeyError
True
Inner: f.default(Tensor) types=()
raised KeyError
True ['Outer', 'Inner']
True []
""",
    "keys_in_handlers": """
0x404000000 0x1ff8000000000
A: f.default(A) types=(A)
0x404000000 0x1fffffffe0000000
0x100000414000000 0x1ff8000000000
Outer: f.default(Tensor) types=()
0x404000000 0x1fffffffe0000000
Inner: f.default(Tensor) types=()
0x100000414000000 0x1fffffffe0000000
M: f.default(A) types=(A)
A: f.default(A) types=(A)
0x100000414000000 0x1fffffffe0000000
0x404000000 0x1ff8000000000
""",
    "hidden_modes": """
without []
A: f.default(A) types=(A)
but one ['Outer']
Outer: f.default(A) types=(A)
A: f.default(A) types=(A)
none ['Outer', 'Inner']
again ['Outer', 'Inner']
Inner: f.default(A) types=(A)
Outer: f.default(A) types=(A)
A: f.default(A) types=(A)
""",
    "rules": """
rule for M: f.default(Tensor) types=()
M: other.default(Tensor) types=()
""",
}

# A program carries marks, as a test does: the rows of the specification it proves.
names = pytest.mark.parametrize(
    "program",
    [
        pytest.param(program, marks=getattr(program, "pytestmark", ()))
        for program in PROGRAMS
    ],
    ids=lambda program: program.__name__,
)


def said(program: Program, kind: type[World]) -> str:
    with opened(kind) as world:
        program(world)
        return "".join(f"{line}\n" for line in ["", *world.lines])


@names
def test_ours(program: Program) -> None:
    assert said(program, Ours) == LINES[program.__name__]


@names
def test_ours_the_general_way(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fallback, "fast_path", lambda schema, general: None)
    assert said(program, Ours) == LINES[program.__name__]


@pytest.mark.torch
@names
def test_torch(program: Program) -> None:
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    assert said(program, Torchs) == LINES[program.__name__]


def test_every_program_has_its_lines() -> None:
    assert [*LINES] == [program.__name__ for program in PROGRAMS]
