"""Which variables the parts of a function read and assign."""

import ast
import symtable
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given

from everyorder.runtime.script.frontend import Scopes, mangled, names, parameters
from tests.script.frontend.flows import programs

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
    loop, entered = node.body[1], node.body[2]
    assert isinstance(loop, ast.For)
    assert isinstance(entered, ast.With)
    branch, inner = loop.body
    assert isinstance(branch, ast.If)
    assert isinstance(inner, ast.While)
    bodies = (
        branch.body,
        branch.orelse,
        inner.body,
        loop.body,
        entered.body,
        node.body,
    )
    found = [names(*body) for body in bodies]
    rows = [(words(n.reads), words(n.writes), words(n.deletes)) for n in found]
    assert rows == [
        ("j", "a b", ""),
        ("q c d g h", "a", "b"),
        ("n", "n m", ""),
        ("i j q c d g h a y n", "a b n m", "b"),
        ("s u l", "l", ""),
        ("p z i j q c d g h a y n o x s u l", "z y x i j a b n m s u l", "b"),
    ]
    head = Scopes(node).names(loop)
    assert words(head.writes) == "i j a b n m"
    assert words(Scopes(node).names(entered).writes) == "s u l"


def test_places_are_the_first_ones() -> None:
    node = function("def f(x):\n    y = x\n    y = x + y\n")
    body = names(*node.body)
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


def test_what_is_global_or_of_a_function_around_is_no_variable() -> None:
    node = function(
        "def f(x):\n    if x:\n        global g, h\n    g = n = 1\n    nonlocal n\n"
        "    def inner():\n        global x\n    return g\n"
    )
    assert words(Scopes(node).variables) == "x inner"


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
