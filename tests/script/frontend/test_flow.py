"""Exits, unreachable statements and variables without values, beside Python's runs."""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder.runtime.errors.source import Source
from everyorder.runtime.script.frontend import (
    JUMPS,
    Exit,
    Exits,
    absences,
    constant,
    not_defined,
)
from tests.script.frontend.flows import programs, runs


def function(text: str) -> ast.FunctionDef:
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    return node


def number_of(node: ast.stmt) -> int | None:
    """The number of `at(number)`."""
    value = node.value if isinstance(node, ast.Expr) else None
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "at":
        assert isinstance(value.args[0], ast.Constant)
        assert isinstance(value.args[0].value, int)
        return value.args[0].value
    return None


def ends_of(body: Sequence[ast.stmt], exits: Exits) -> Exit:
    """How control may leave statements one after another."""
    found = Exit.NEXT
    for each in body:
        if Exit.NEXT in found:
            found = (found & ~Exit.NEXT) | exits.ways(each)
    return found


def unreachable_in(body: Sequence[ast.stmt], exits: Exits) -> Iterator[ast.stmt]:
    """The statements of blocks that control does not come to, inner ones first."""
    for at, each in enumerate(body):
        for block in ("body", "orelse"):
            yield from unreachable_in(getattr(each, block, []), exits)
        if Exit.NEXT not in ends_of(body[:at], exits):
            yield each


def told(node: ast.FunctionDef) -> set[tuple[int, str]]:
    """The uses that may have no value, by number, those of `del` by line."""
    found: set[tuple[int, str]] = set()
    places: dict[ast.expr, str] = {use: use.id for use in absences(node)}
    for each in ast.walk(node):
        if isinstance(each, ast.Delete):
            (name,) = each.targets
            if name in places:
                found.add((-each.lineno, places.pop(name)))
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "use":
            number, name = each.args
            assert isinstance(number, ast.Constant)
            assert isinstance(number.value, int)
            if name in places:
                found.add((number.value, places.pop(name)))
    # What is left are targets of `+=`, whose value was used just before.
    for use in places:
        assert isinstance(use, ast.Name)
        assert isinstance(use.ctx, ast.Store)
    return found


def test_what_the_frontend_says_is_what_happens_in_python() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=300)
    @given(text=programs())
    def run(text: str) -> None:
        node = function(text)
        exits = Exits(node.body)
        every = [*runs(text)]
        absent = {each for run in every for each in run.absent}
        assert absent <= told(node), "a use without a value is told"
        never = {
            number_of(each)
            for each in unreachable_in(node.body, exits)
            if number_of(each) is not None
        }
        reached = {each for run in every for each in run.reached}
        assert not never & reached, "what is unreachable is not reached"
        names = {"next": Exit.NEXT, "return": Exit.RETURN, "raise": Exit.RAISE}
        ends = Exit.NOWHERE
        for each in every:
            ends |= names.get(each.end, Exit.NOWHERE)
        assert ends in ends_of(node.body, exits), "a function ends as is said"
        seen["absent"] += bool(absent)
        seen["all told happen"] += absent == told(node)
        seen["some told do not"] += absent != told(node)
        seen["some are cut"] += any(each.end == "cut" for each in every)
        seen["unreachable"] += bool(never)
        seen["all ends happen"] += ends == ends_of(node.body, exits)

    run()
    unlucky = seen.pop("some told do not")
    assert all(seen[each] > 20 for each in seen), seen
    # Few runs are too short for what is told; none of it is made up.
    assert seen["all told happen"] > 20 * unlucky, unlucky


@pytest.mark.parametrize(
    ("body", "exits", "unreachable"),
    [
        ("x", Exit.NEXT, []),
        ("return x\nx", Exit.RETURN, ["x"]),
        ("if x: return 1\nx", Exit.RETURN | Exit.NEXT, []),
        ("if x: return 1\nelse: raise E\nx\nx", Exit.RETURN | Exit.RAISE, ["x", "x"]),
        ("if True: return 1\nx", Exit.RETURN, ["x"]),
        ("if not True: return 1\nx", Exit.NEXT, []),
        ("if not x: return 1\nx", Exit.RETURN | Exit.NEXT, []),
        ("assert x", Exit.NEXT | Exit.RAISE, []),
        ("assert 0, x\nx", Exit.RAISE, ["x"]),
        ("assert True", Exit.NEXT, []),
        ("while x: return 1", Exit.RETURN | Exit.NEXT, []),
        ("while True: return 1\nx", Exit.RETURN, ["x"]),
        ("while True: x\nx", Exit.NOWHERE, ["x"]),
        ("while False: return 1\nx", Exit.NEXT, []),
        ("while True:\n  if x: break\nx", Exit.NEXT, []),
        ("while 1:\n  for i in x: break\nx", Exit.NOWHERE, ["x"]),
        ("for i in x:\n  continue\n  x", Exit.NEXT, ["x"]),
        ("for i in x: raise E", Exit.RAISE | Exit.NEXT, []),
        ("with x: return 1\nx", Exit.RETURN, ["x"]),
        ("with x: raise E\nx", Exit.RAISE, ["x"]),
        ("pass", Exit.NEXT, []),
    ],
)
def test_exits(body: str, exits: Exit, unreachable: list[str]) -> None:
    nodes = ast.parse(body).body
    found = Exits(nodes)
    assert ends_of(nodes, found) == exits
    assert [*map(ast.unparse, unreachable_in(nodes, found))] == unreachable


def test_jumps_are_the_exits_of_statements_inside_of_loops() -> None:
    (loop,) = ast.parse("for i in x:\n  if x: break\n  else: continue").body
    assert isinstance(loop, ast.For)
    found = Exits([loop])
    assert found.ways(loop.body[0]) == Exit.BREAK | Exit.CONTINUE
    assert found.ways(loop.body[0]) in JUMPS
    assert found.ways(loop) == Exit.NEXT
    with pytest.raises(KeyError):
        found.ways(ast.Pass())


def test_conditions_that_are_decided_elsewhere_count() -> None:
    node = function(
        "def f(x):\n"
        "    if x is None:\n        y = 1\n"
        "    else:\n        return 2\n"
        "    z = y if x is None else u\n"
        "    u = z\n"
        "    return u\n"
    )

    def taken(test: ast.expr) -> bool | None:
        return True if ast.unparse(test) == "x is None" else constant(test)

    assert [each.id for each in absences(node)] == ["u"]
    assert [*absences(node, taken)] == []
    assert Exit.RETURN not in Exits(node.body[:1], taken).ways(node.body[0])


def test_of_several_uses_the_first_in_the_text_is_told() -> None:
    loop = "    for x in xs:\n        print(y, z)\n        del z\n        y = z\n"
    text = f"def f(xs):\n{loop}"
    uses = absences(function(text))
    use, absence = next(iter(uses.items()))
    error = not_defined(use, absence, Source(text, "p.py"))
    assert (error.code, error.variable, error.way) == (
        *("NotDefined", "y", "before it is used"),
    )
    assert [(each.id, each.lineno) for each in uses] == [
        ("y", 3),
        ("z", 3),
        ("z", 4),
        ("z", 5),
    ]
    assert len({*map(id, uses)}) == len(uses)


@pytest.mark.parametrize(
    ("body", "uses"),
    [
        ("while False: y = 1\nprint(y)", [2]),
        ("while False: print(y)\ny = 1", []),
        ("while y: y = 1", [1]),
        ("assert False\nprint(y)\ny = 1", []),
        ("assert p, y\ny = 1", [1]),
        ("while True:\n  y = 1\n  if p: break\nprint(y)", []),
        ("while True:\n  if p: break\n  y = 1\nprint(y)", [4]),
        ("for y in p: pass\nprint(y)", [2]),
        ("for x in p:\n  if p: continue\n  y = 1\n  print(y)", []),
        ("if p: y = 1\nelse: raise E\nprint(y)", []),
        ("with p as y: pass\nprint(y)", []),
        ("with y as y: pass", [1]),
        ("y: int = y", [1]),
        ("y.a = y[0] = p\ny = 1", [1, 1]),
        ("y, y[0] = p, 1", []),
        ("y = y.a = p", []),
        ("y[0], (*y, z), z[y] = p", [1]),
        ("[z.a, *z] = y = p", [1]),
        ("y = [y for y in p]\nprint(y)", []),
        ("y = [y for y in y]", [1]),
        ("y = [[y for x in p] for y in p]", []),
        ("y = [x for x in [y for x in p]]", [1]),
        ("class y: pass\nprint(y)", []),
        ("return p\nprint(y)\ny = 1", []),
        ("del y", [1]),
        ("del p\nreturn p", [2]),
    ],
)
def test_uses_without_a_value(body: str, uses: list[int]) -> None:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    found = absences(function(f"def f(p):\n{lines}"))
    assert [each.lineno - 1 for each in found] == uses


@pytest.mark.parametrize(
    ("body", "way", "cause"),
    [
        ("if p: y = 1\nprint(y)", "in the false branch", 1),
        ("if p: pass\nelse: y = 1\nprint(y)", "in the true branch", 1),
        ("y = 1\nif p: pass\nelse: del y\nprint(y)", "behind `del`", 3),
        ("y = 1\nif p: del y\nprint(y)", "behind `del`", 2),
        ("if p: y = 1\nelif x: y = 2\nprint(y)", "in the false branch", 2),
        ("for i in p: y = 1\nprint(y)", "where the loop does not run", 1),
        (
            "while True:\n  if p: break\n  y = 1\nprint(y)",
            "where `break` leaves the loop",
            2,
        ),
        ("while p:\n  if p: y = 1\nprint(y)", "where the loop does not run", 1),
        ("print(y)\ny = 1", "before it is used", None),
    ],
)
def test_the_cause_of_a_use_without_a_value(
    body: str, way: str, cause: int | None
) -> None:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    (found,) = absences(function(f"def f(p):\n{lines}")).values()
    line = None if found.cause is None else found.cause.lineno - 1
    assert (found.way, line) == (way, cause)


def test_loops_in_loops_are_gone_through_once_for_each_state() -> None:
    lines = ["def f(p):"]
    for level in range(20):
        margin = "    " * (level + 1)
        lines += [f"{margin}y = 1", f"{margin}while p:"]
    lines += [f"{'    ' * 21}del y", ""]
    found = absences(function("\n".join(lines)))
    assert [each.lineno for each in found] == [42]


@given(st.sampled_from(["y", "x", "z"]))
def test_names_of_others_are_not_looked_at(name: str) -> None:
    assert not absences(function(f"def f(p):\n    return {name} + p\n"))
    text = f"def f(p):\n    global {name}\n    print({name})\n    {name} = 1\n"
    assert not absences(function(text))
