"""Programs as people write them: a script takes them, and does what Python does."""

from collections import OrderedDict
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, jit
from everyorder.runtime.errors import (
    AnnotationError,
    IllTyped,
    MalformedProgram,
    NotScriptable,
)
from tests.script.emission.both import Both

PROGRAMS = {
    "if in a list": "return [n * 2 for n in ns if n > 1]",
    "two ifs": "return [x + n for n in ns if n > 1 if n < 4]",
    "an if that refines": "return [m + 1 for m in ms if m is not None]",
    "an if of a tuple": "return [n for n in (1, 2, 3) if n != 2]",
    "ifs that are known": "return [n for n in (1, 2, 3) if True if x is not None]",
    "an if that is never true": "return [n for n in ns if False]",
    "an if in a dictionary": "return {k: v for k, v in d.items() if v > 1}",
    "an if in an inner list": "return [[m for m in range(n) if m > 0] for n in ns]",
    "an if of tensors": "return [x * n for n in ns if (x * n).sum() > 3]",
    "elements with ifs, filled": (
        "ys: list[float | None] = [None for n in ns if n > 1]\n"
        "    ys.append(2.5)\n"
        "    return ys"
    ),
    "a list of None": (
        "ys: list[Tensor | None] = [None for _ in ns]\n    ys[0] = x\n    return ys"
    ),
    "a list of None, of a tuple": (
        "ys: list[int | None] = [None for _ in (1, 2)]\n    ys[0] = 3\n    return ys"
    ),
    "a dictionary of None": (
        "ys: dict[int, int | None] = {n: None for n in ns}\n"
        "    ys[1] = 3\n"
        "    return ys"
    ),
    "lists of None in lists": (
        "ys: list[list[int | None]] = [[None], [1], [None for _ in ns]]\n"
        "    ys[0][0] = 3\n"
        "    return ys"
    ),
    "empty lists in a list": (
        "ys: list[list[int]] = [[] for _ in ns]\n    ys[0].append(n)\n    return ys"
    ),
    "empty lists in a dictionary": (
        "ys: dict[int, list[int]] = {m: [] for m in ns if m > 1}\n"
        "    ys[2].append(n)\n"
        "    zs: dict[str, dict[str, int]] = {'a': {}}\n"
        "    zs['a']['b'] = n\n"
        "    return ys, zs"
    ),
    "a list of None that is repeated": (
        "ys: list[int | None] = [None] * n\n    ys[0] = n\n    return ys"
    ),
    "a list of None in a tuple": (
        "ys: tuple[list[int | None], int] = ([None], n)\n"
        "    ys[0].append(n)\n"
        "    return ys"
    ),
    "a list of None by a condition": (
        "ys: list[int | None] = [None] if flag else [n]\n"
        "    ys.append(n)\n"
        "    return ys"
    ),
    "a list of None that is assigned later": (
        "ys: list[int | None] = [n]\n"
        "    ys = [None for _ in ns]\n"
        "    ys[0] = n\n"
        "    return ys"
    ),
    "shifted tensors": (
        "ys = k << 3, k >> 1, k << k, n << k, n >> k\n    k <<= 1\n    return ys, k"
    ),
    "methods that take a tensor": (
        "ns.insert(k, 9)\n"
        "    return ns.pop(k), x.size(k - 1), x.stride(k - 1), 'ab'.zfill(k + 3), ns"
    ),
    "mathematics of a tensor": (
        "h = x[1]\n"
        "    a = math.sqrt(k), math.floor(h), math.ceil(h), math.isnan(h)\n"
        "    return a, math.pow(k, 3), math.gcd(k * 4, 6), math.log(h), chr(k + 64)"
    ),
    "a fraction where an index is asked for": "return ns.pop(x[1])",
    "several elements where a number is asked for": "return math.sqrt(x)",
    "an element that is a tensor": "xs = [x]\n    xs.append(k)\n    return xs",
    "a parameter of another type": "x = x.shape[0]\n    return x + 1",
    "a parameter as a list": "ns = ns[0]\n    return ns + 1",
    "a parameter in a branch": (
        "if flag:\n        n = float(n)\n        return n / 2\n    return 0.5"
    ),
    "a parameter that is an element": "n = k.item()\n    return ns[n]",
    "a parameter of another type in a branch of both": (
        "if flag:\n        n = str(n)\n    else:\n        n = 'b'\n    return n"
    ),
    "an ordered dictionary": (
        "ys = OrderedDict([('a', x), ('b', x + 1)])\n    return ys['b'], len(ys)"
    ),
    "an empty ordered dictionary": (
        "ys: dict[str, int] = OrderedDict()\n    ys['a'] = n\n    return ys['a']"
    ),
    "an element by a tensor": "return ns[k], ns[k:]",
    "an element set by a tensor": "ns[k] = 7\n    return ns",
    "a range of a tensor": "return [m for m in range(k)]",
    "a size that is a tensor": "return runtime.zeros(k, 2)",
    "a dimension that is a tensor": "return x.unsqueeze(k)",
    "sizes that are tensors": "return x.reshape(k, -1)",
    "an element by a fraction": "return ns[x[0]]",
}
PARAMETERS = (
    "x: Tensor, k: Tensor, n: int, ns: list[int], ms: list[int | None], "
    "d: dict[str, int], flag: bool"
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_python_does(name: str) -> None:
    text = f"def f({PARAMETERS}):\n    {PROGRAMS[name]}\n"
    both = Both(text, {"OrderedDict": OrderedDict})
    for flag in (True, False):
        arguments: list[Any] = [runtime.tensor([1.0, 2.5]), runtime.tensor(1)]
        arguments += [3, [1, 2, 3, 4], [1, None, 3], {"a": 1, "b": 2}, flag]
        python, ours = both.outcomes("f", *arguments)
        value = python.value.replace("OrderedDict(", "dict(")
        assert (ours.value, ours.arguments) == (value, python.arguments)
        assert bool(ours.error) is bool(python.error)


RETURNS = {
    "list[int | None]": "[None for _ in range(n)]",
    "list[list[int]]": "[[] for _ in range(n)]",
    "dict[str, list[int | None]]": "{'a': [None], 'b': [n]}",
    "tuple[list[int | None], int]": "([None, None], n)",
    "list[int | None] | None": "[None] * n",
}


@pytest.mark.parametrize("result", RETURNS)
def test_what_is_returned_takes_the_declared_type(result: str) -> None:
    both = Both(f"def f(n: int) -> {result}:\n    return {RETURNS[result]}\n")
    python, ours = both.outcomes("f", 2)
    assert python == ours
    assert not python.error


def plus(n: int) -> int:
    return n + 1


def half(n: float) -> float:
    return n / 2


def length(ns: list[int]) -> int:
    return len(ns)


def of_values(x: Tensor) -> tuple[int, float, int]:
    return plus(x), half(x), length((1, 2, 3))  # type: ignore[arg-type]  # converted


def test_a_tensor_is_a_number_and_a_tuple_is_a_list() -> None:
    scripted = jit.script(of_values)
    assert scripted(runtime.tensor(3)) == (4, 1.5, 3)
    assert jit.script(plus)(runtime.tensor(3)) == 4
    assert jit.script(length)((1, 2)) == 2


def least(x: Tensor) -> int:
    return min(2, x)  # type: ignore[return-value]  # refused


def test_primitives_do_not_read_tensors() -> None:
    with pytest.raises(IllTyped, match="`min` does not take"):
        jit.script(least)


def test_a_tensor_and_a_bool_are_a_condition_only() -> None:
    both = Both(
        "def f(x: Tensor, b: bool):\n"
        "    if b and x.sum() > 0 or x.sum() < -5:\n"
        "        return 1\n"
        "    return 2 if x.sum() > -3 and b else 3\n"
    )
    for number in (2.0, -2.0, -4.0, -6.0):
        for flag in (True, False):
            python, ours = both.outcomes("f", runtime.tensor(number), flag)
            assert python == ours
    for word in ("and", "or"):
        with pytest.raises(IllTyped, match="no common type"):
            Both(f"def f(x: Tensor, b: bool):\n    return x {word} b\n")


def commented(x, n):  # type: ignore[no-untyped-def]  # typed by the comment
    # type: (Tensor, int)
    return x + n


def commented_twice(x, n) -> Tensor:  # type: ignore[no-untyped-def]  # as above
    # type: (Tensor, int)
    y: Tensor = x + n
    return y


def wrongly(x, n):  # type: ignore[no-untyped-def]  # as above
    # type: (Tensor)
    return x + n


def test_a_comment_may_leave_the_result_out() -> None:
    for function in (commented, commented_twice):
        scripted = jit.script(function)
        assert [str(each.type) for each in scripted.schema.arguments] == [
            "Tensor",
            "int",
        ]
        assert scripted(runtime.ones(1), 2).tolist() == [3.0]
    with pytest.raises(AnnotationError, match="1 types for 2 arguments"):
        jit.script(wrongly)


class Empty(runtime.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


def test_a_text_may_be_indented() -> None:
    unit = jit.CompilationUnit("""
        def f(x: Tensor) -> Tensor:
            return x + 1
        """)
    assert unit.f(runtime.ones(1)).tolist() == [2.0]
    module = jit.script(Empty())
    module.define("""
        def g(self, x):
            return self.forward(x) + 5
    """)
    assert module.g(runtime.ones(1)).tolist() == [6.0]


INDENTED = """
        # A comment before it.
        def f(x: Tensor) -> str:
            '''A text
    that is indented less.'''
      # So is this comment.
            return 'a' + '''
        b'''

        def g(x: Tensor) -> str:
            return f(x)
"""


def test_lines_of_an_indented_text_remain_as_they_are() -> None:
    assert jit.CompilationUnit(INDENTED).g(runtime.ones(1)) == "a\n        b"


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("        return x +\n", "invalid syntax:\n  <text>:16:19"),
        ("    def h(x):\n        return x\n", "unindent does not match"),
        ("def h(x):\n    return x\n", "unexpected indent:\n  <text>:3:8"),
        ("else:\n        def h(x):\n            return x\n", "unexpected indent"),
    ],
)
def test_a_fault_of_an_indented_text_is_at_its_place(end: str, words: str) -> None:
    with pytest.raises(MalformedProgram, match=words):
        jit.CompilationUnit(INDENTED + "\n\n\n\n" + end)


def test_lists_and_dictionaries_are_shared_as_they_are() -> None:
    for values in ([1, 2], {"a": 1.5}):
        assert jit.script(values) is values
    with pytest.raises(NotScriptable, match="Make its values of one type"):
        jit.script([1, "a"])


def test_an_empty_list_has_the_type_that_a_program_asks_for() -> None:
    values: list[int] = []
    assert jit.script(values) is values
    assert jit.script(length)(jit.script(values)) == 0
    values.append(7)
    assert jit.script(length)(values) == 1
    assert jit.script({}) == {}
