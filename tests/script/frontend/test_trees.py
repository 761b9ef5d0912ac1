"""Syntax trees as they print."""

import ast

from hypothesis import given

from runtime.script.frontend import read_function, read_text, rows, tree_text
from tests.script.frontend.flows import programs


def shown(x: int, *, é: "str" = "ä") -> None:
    del x
    print(é, None, end="")


def test_a_tree_prints_with_places() -> None:
    text = "def f(x: int, *, é='ä'):\n    global a, b\n    return é[x:], -1\n"
    one = read_text(text, "p.py")
    assert tree_text(one.tree, one.source) == (
        """\
1:1-4:1    Module
1:1-3:21     body[0]: FunctionDef name='f'
1:7-1:23       args: arguments
1:7-1:13         args[0]: arg arg='x'
1:10-1:13          annotation: Name id='int'
1:18-1:19        kwonlyargs[0]: arg arg='é'
1:20-1:23        kw_defaults[0]: Constant value='ä'
2:5-2:16       body[0]: Global names=['a', 'b']
3:5-3:21       body[1]: Return
3:12-3:21        value: Tuple
3:12-3:17          elts[0]: Subscript
3:12-3:13            value: Name id='é'
3:14-3:16            slice: Slice
3:14-3:15              lower: Name id='x'
3:19-3:21          elts[1]: UnaryOp
-                    op: USub
3:20-3:21            operand: Constant value=1
"""
    )


def test_a_tree_of_a_function_has_the_places_of_its_file() -> None:
    one = read_function(shown)
    first, *_ = rows(one.tree, one.source)
    assert first.kind == "FunctionDef"
    assert str(first) == "FunctionDef name='shown'"
    assert first.span == (0, len(one.source.text))
    line = shown.__code__.co_firstlineno
    assert tree_text(one.tree, one.source).startswith(f"{line}:1-{line + 2}:27")
    constants = [each for each in rows(one.tree, one.source) if each.kind == "Constant"]
    assert ("value", None) in [each.values[0] for each in constants]


@given(text=programs())
def test_each_node_is_a_row_inside_of_its_parents(text: str) -> None:
    one = read_text(text)
    every = [*rows(one.tree, one.source)]
    nodes = [
        each for each in ast.walk(one.tree) if not isinstance(each, ast.expr_context)
    ]
    # Python has one object for all nodes of an operator.
    located = [each for each in nodes if hasattr(each, "lineno")]
    assert {*located} == {each.node for each in every if hasattr(each.node, "lineno")}
    assert len(every) == len(nodes)
    around: list[tuple[int, int]] = []
    for each in every:
        del around[each.depth :]
        if each.span is not None:
            if around:
                start, end = around[-1]
                assert start <= each.span[0] <= each.span[1] <= end
            around.append(each.span)
        else:
            around.append(around[-1])
