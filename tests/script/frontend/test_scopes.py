"""Which variables the parts of a function read and assign."""

import ast
import symtable
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given

from runtime.script.frontend import Scopes, absences, mangled, names, parameters
from tests.script.frontend.flows import NAMES, programs

PROGRAM = """\
def f(p, /, q=r, *v, k, **w):
    z, (y, *x) = p
    for i, j in z:
        if i:
            a = j
            b: later = 1
        elif q:
            a = c
            del b
        else:
            a, d.e, g[h] = 1, 2, 3
        while a < y:
            n += 1
            if n:
                break
            m = n
    with o(x) as s, s.t as u:
        l = [e + s for e in u if e for f in e]
        return l
    l = 3
"""


def function(text: str = PROGRAM) -> ast.FunctionDef:
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    return node


def words(places: Iterable[str]) -> str:
    return " ".join(places)


def test_variables_are_in_the_order_of_the_text() -> None:
    node = function()
    assert words(each.arg for each in parameters(node)) == "p q v k w"
    assert words(Scopes(node).variables) == "p q v k w z y x i j a b n m s u l"


def test_names_of_blocks() -> None:
    node = function()
    scopes = Scopes(node)
    loop, entered = node.body[1], node.body[2]
    assert isinstance(loop, ast.For)
    branch, inner = loop.body
    table = {
        (each, block): scopes.of_block(each, block)
        for each, block in [
            (branch, "body"),
            (branch, "orelse"),
            (inner, "body"),
            (loop, "body"),
            (entered, "body"),
            (node, "body"),
        ]
    }
    rows = [
        (
            words(each.reads),
            words(each.writes),
            words(each.deletes),
            words(each.captured),
            words(each.assigned),
        )
        for each in table.values()
    ]
    assert rows == [
        ("j", "a b", "", "j", "a b"),
        ("q c d g h", "a", "b", "q c d g h", "a"),
        ("n", "n m", "", "n", "n m"),
        ("i j q c d g h a y n", "a b n m", "b", "i j q c d g h y n", "a"),
        ("s u l", "l", "", "s u", "l"),
        (
            "p z i j q c d g h a y n o x s u l",
            "z y x i j a b n m s u l",
            "b",
            "p q c d g h n o",
            "z y x s u l",
        ),
    ]
    head = scopes.of(loop)
    assert words(head.captured) == "z q c d g h y n"
    assert words(head.assigned) == ""
    assert words(scopes.of(entered).captured) == "o x"
    assert words(scopes.of(entered).assigned) == "s u l"
    with pytest.raises(KeyError):
        scopes.of_block(branch, "finalbody")


def test_places_are_the_first_ones() -> None:
    node = function("def f(x):\n    y = x\n    y = x + y\n")
    body = Scopes(node).of_block(node)
    places: list[Any] = [body.reads["x"], body.writes["y"], body.reads["y"]]
    assert [(each.lineno, each.col_offset) for each in places] == [
        (2, 8),
        (2, 4),
        (3, 12),
    ]


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("[x for x in x]", "x", ""),
        ("[x + y for x in z]", "y z", ""),
        ("{k: v for k, v in d}", "d", ""),
        ("[[x + y for y in x] for x in z]", "z", ""),
        ("[x for x in y for y in x]", "y", ""),
        ("{x for x in y if z}", "y z", ""),
        ("a = b = c[d].e", "c d", "a b"),
        ("a[b] = c.d = e", "a b c e", ""),
        ("a += b", "a b", "a"),
        ("a.b += c", "a c", ""),
        ("a: b = c", "c", "a"),
        ("f(*a, b=c, **d)", "f a c d", ""),
        ("f'{a!r:{b}}'", "a b", ""),
        ("def g(x=y):\n  return x + z", "z", "g"),
        ("def g():\n  x = y\n  return x", "y", "g"),
        ("def g():\n  global x\n  x = 1\n  return x", "x", "g"),
        ("@h\nclass C:\n  x = y", "", "C"),
    ],
)
def test_what_a_statement_reads_and_assigns(text: str, reads: str, writes: str) -> None:
    (node,) = ast.parse(text).body
    found = names(node)
    assert (words(found.reads), words(found.writes)) == (reads, writes)
    assert words(found.captured) == reads


def test_what_is_global_or_of_a_function_around_is_no_variable() -> None:
    node = function(
        "def f(x):\n    if x:\n        global g, h\n    g = n = 1\n    nonlocal n\n"
        "    def inner():\n        global x\n    return g\n"
    )
    scopes = Scopes(node)
    assert words(scopes.outside) == "g h n"
    assert words(scopes.variables) == "x inner"


@pytest.mark.parametrize(
    ("name", "owner", "made"),
    [
        ("__x", "C", "_C__x"),
        ("__x", "__C", "_C__x"),
        ("__x_", "C", "_C__x_"),
        ("__x__", "C", "__x__"),
        ("_x", "C", "_x"),
        ("__x", "", "__x"),
        ("__x", "___", "__x"),
    ],
)
def test_private_names_are_those_that_python_makes(
    name: str, owner: str, made: str
) -> None:
    assert mangled(name, owner) == made
    scope: dict[str, Any] = {}
    body = f"    def f(self): return self.{name}\n"
    exec(f"class {owner or 'C'}:\n{body}" if owner else body.strip(), scope)
    function = scope["f"] if not owner else vars(scope[owner])["f"]
    assert function.__code__.co_names == (made,)


@given(text=programs())
def test_python_has_the_same_variables(text: str) -> None:
    (table,) = symtable.symtable(text, "p.py", "exec").get_children()
    assert isinstance(table, symtable.Function)
    scopes = Scopes(function(text))
    assert sorted(scopes.variables) == sorted(table.get_locals())


@given(text=programs())
def test_what_is_assigned_has_a_value_behind_it(text: str) -> None:
    """What is assigned at the end of a function is not told where it is used there."""
    last = "    a = b = 0\n"
    assert text.endswith(last)
    uses = f"    {NAMES[0]}; {NAMES[1]}\n"
    body = text.removesuffix(last)
    node = function(f"{body}{uses}{last}")
    end = node.body[-3].lineno
    absent = {each.id for each in absences(node) if each.lineno == end}
    before = function(body)
    assigned = Scopes(before).of_block(before).assigned
    assert not absent & assigned.keys()


@given(text=programs())
def test_what_is_used_without_a_value_is_captured(text: str) -> None:
    node = function(text)
    deleted = {
        each.id
        for one in ast.walk(node)
        if isinstance(one, ast.Delete)
        for each in one.targets
        if isinstance(each, ast.Name)
    }
    absent = {each.id for each in absences(node)} - deleted
    assert absent <= Scopes(node).of_block(node).captured.keys()


def test_behind_a_jump_nothing_is_captured_or_assigned() -> None:
    node = function("def f(p):\n    return p\n    a = b\n")
    body = Scopes(node).of_block(node)
    assert (words(body.reads), words(body.captured)) == ("p b", "p")
    assert (words(body.writes), words(body.assigned)) == ("a", "")


def test_what_is_deleted_is_not_assigned() -> None:
    node = function("def f(p):\n    a = b = p\n    del a\n    print(a, b)\n")
    body = Scopes(node).of_block(node)
    assert (words(body.captured), words(body.assigned)) == ("p print a", "b")


@given(text=programs())
def test_a_part_reads_what_it_captures_and_assigns_what_is_assigned(text: str) -> None:
    node = function(text)
    scopes = Scopes(node)
    for each in ast.walk(node):
        if isinstance(each, ast.stmt) and each is not node:
            found = scopes.of(each)
            assert found.captured.keys() <= found.reads.keys()
            assert found.assigned.keys() <= found.writes.keys()
