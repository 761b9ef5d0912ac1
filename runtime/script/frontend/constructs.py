"""Constructs: one row for each class of Python's syntax trees, accepted or refused.

What is refused of accepted constructs is a table of its own
(`runtime.script.frontend.restrictions`); the check of programs and the reference that
people read follow from both (`runtime.script.frontend.language`).

Rules:
- a row without a reason is accepted; one with a reason has a hint, too: what to write
  instead;
- `example` is a program that has the construct: the body of a function, or whole
  functions and classes (`program`);
- a class that stands only inside of a refused construct is in `INNER`;
- a class that is nowhere is refused: Python's next version may have it.

When a construct becomes accepted: its row here, what it means in the emission, and
`python -m runtime.script.frontend MODULE ... > docs/language.md`.
"""

from dataclasses import dataclass
from textwrap import indent


@dataclass(frozen=True, slots=True)
class Construct:
    """A construct of Python: accepted, or refused for a reason."""

    node: str
    name: str
    example: str
    reason: str = ""
    hint: str = ""

    @property
    def is_accepted(self) -> bool:
        """Whether a program may have it."""
        return not self.reason

    @property
    def program(self) -> str:
        """The example as functions and classes."""
        if self.example.startswith(("def ", "class ", "async def ", "@")):
            return f"{self.example}\n"
        return f"def f(x, xs, d):\n{indent(self.example, '    ')}\n"


# Rows of one reason.
_HIDDEN = "it hides control flow that a graph does not have"
_LATE = "its elements would be computed later, when what they use may have changed"
_IMPORT = "names are looked up once, when the program is compiled"
_OUTSIDE = "a program has no variables outside of its functions"
_ASYNC = "a program runs on one thread from its beginning to its end"
_ASYNC_HINT = "Use `fork` and `wait`."
_SET = "there is no type of sets"
_SET_HINT = "Use a dictionary whose values are True, or a list."

CONSTRUCTS: dict[str, tuple[Construct, ...]] = {
    "Definitions": (
        Construct(
            "FunctionDef", "a function", "def f(x, /, n: int = 1, *, y):\n    return x"
        ),
        Construct("ClassDef", "a class", "class C:\n    n: int\n    k = 1"),
        Construct("arguments", "parameters", "def f(x, n: int = 3):\n    return x"),
        Construct("arg", "a parameter", "def f(x: 'list[int]'):\n    return x"),
        Construct(
            "Module", "a text of functions and classes", "def f():\n    return 1"
        ),
        Construct(
            "AsyncFunctionDef",
            "an `async` function",
            "async def f(x):\n    return x",
            _ASYNC,
            _ASYNC_HINT,
        ),
        Construct(
            "Lambda",
            "a lambda",
            "g = lambda a: a + 1",
            "its parameters have no types",
            "Write a function with `def`.",
        ),
        Construct(
            "Import",
            "an import",
            "import math",
            _IMPORT,
            "Import at the top of the file.",
        ),
        Construct(
            "ImportFrom",
            "an import",
            "from math import pi",
            _IMPORT,
            "Import at the top of the file.",
        ),
        Construct(
            "Global",
            "`global`",
            "global n\nn = 1",
            _OUTSIDE,
            "Return the value, or keep it in an attribute.",
        ),
    ),
    "Statements": (
        Construct(
            "Expr", "an expression as a statement", '"""Words."""\nprint(x)\n...'
        ),
        Construct(
            "Assign", "an assignment", "y = z = x\n(a, b), *c = xs\nx.y = d[0] = y"
        ),
        Construct("AnnAssign", "an annotated assignment", "n: int = 3\nx.y: int = 4"),
        Construct(
            "AugAssign", "an assignment in place", "x += 1\nxs[0] *= 2\nd.n -= 3"
        ),
        Construct("Return", "`return`", "return x, d"),
        Construct(
            "If", "`if`", "if x:\n    x = d\nelif d:\n    pass\nelse:\n    d = x"
        ),
        Construct("While", "`while`", "while x:\n    x = d"),
        Construct("For", "`for`", "for i, (a, b) in xs:\n    print(i)"),
        Construct("Break", "`break`", "for i in xs:\n    break"),
        Construct("Continue", "`continue`", "for i in xs:\n    continue"),
        Construct("Pass", "`pass`", "pass"),
        Construct("Assert", "`assert`", 'assert x, "words"'),
        Construct("Raise", "`raise`", 'raise ValueError("words")'),
        Construct("Delete", "`del`", "del d[0], x"),
        Construct("With", "`with`", "with x as y, d:\n    print(y)"),
        Construct("withitem", "what `with` enters", "with x as y:\n    print(y)"),
        Construct(
            "Try",
            "`try`",
            "try:\n    x = d\nexcept ValueError as e:\n    pass",
            _HIDDEN,
            "Ask beforehand whether it would fail, with `if`.",
        ),
        Construct(
            "TryStar",
            "`try` with `except*`",
            "try:\n    x = d\nexcept* ValueError:\n    pass",
            _HIDDEN,
            "Ask beforehand whether it would fail, with `if`.",
        ),
        Construct(
            "Match",
            "`match`",
            "match x:\n    case 1:\n        pass",
            "patterns look at values, and types are decided before",
            "Compare with `if` and `elif`.",
        ),
        Construct(
            "Nonlocal",
            "`nonlocal`",
            "def g():\n    y = 1\n    def f():\n        nonlocal y\n    f()",
            _OUTSIDE,
            "Return the value, or keep it in an attribute.",
        ),
    ),
    "Expressions": (
        Construct(
            "Constant",
            "a constant",
            "a = 1, -9223372036854775808, 2.5, 3j\nb = True, None\nc = 'a' 'b'",
        ),
        Construct("JoinedStr", "an f-string", "y = f'{x} and {d[0]}'"),
        Construct("FormattedValue", "a value in an f-string", "y = f'{x}{{'"),
        Construct("Name", "a name", "y = x"),
        Construct("Attribute", "an attribute", "y = x.shape"),
        Construct("Subscript", "an element", "y = xs[0], x[..., None]"),
        Construct("Slice", "a slice", "y = xs[1:], x[:, ::2, 1:2:3]"),
        Construct("Call", "a call", "y = print(x, *xs, sep=d)"),
        Construct("keyword", "an argument by name", "y = print(x, sep=d)"),
        Construct("Starred", "elements in place", "y = (*xs, x), [*xs]\na, *b = y"),
        Construct("Tuple", "a tuple", "y = x, (d,), ()"),
        Construct("List", "a list", "y = [x, d]"),
        Construct("Dict", "a dictionary", "y = {1: x, 2: d}"),
        Construct("ListComp", "a list comprehension", "y = [a + b for a, b in xs]"),
        Construct("DictComp", "a dict comprehension", "y = {a: b for a, b in xs}"),
        Construct("comprehension", "`for` in a comprehension", "y = [a for a in xs]"),
        Construct("IfExp", "a choice", "y = x if d else xs"),
        Construct("BoolOp", "`and`, `or`", "y = x and d or xs"),
        Construct("BinOp", "an operation on two", "y = x + d * xs"),
        Construct("UnaryOp", "an operation on one", "y = -x"),
        Construct("Compare", "a comparison", "y = 0 < x <= d != xs"),
        Construct(
            "NamedExpr",
            "an assignment in an expression",
            "y = (z := x) + z",
            "what an expression assigns may be left out by the rest of it",
            "Assign in a statement before.",
        ),
        Construct("Set", "a set", "y = {x, d}", _SET, _SET_HINT),
        Construct(
            "SetComp", "a set comprehension", "y = {a for a in xs}", _SET, _SET_HINT
        ),
        Construct(
            "GeneratorExp",
            "a generator expression",
            "y = any(a for a in xs)",
            _LATE,
            "Write a list comprehension: put it into brackets.",
        ),
        Construct(
            "Yield",
            "`yield`",
            "yield x",
            "a function runs from its beginning to its end",
            "Put the values into a list, and return that.",
        ),
        Construct(
            "YieldFrom",
            "`yield from`",
            "yield from xs",
            "a function runs from its beginning to its end",
            "Put the values into a list, and return that.",
        ),
    ),
    "Operators": (
        Construct("Add", "`+`", "y = x + d"),
        Construct("Sub", "`-`", "y = x - d"),
        Construct("Mult", "`*`", "y = x * d"),
        Construct("MatMult", "`@`", "y = x @ d"),
        Construct("Div", "`/`", "y = x / d"),
        Construct("FloorDiv", "`//`", "y = x // d"),
        Construct("Mod", "`%`", "y = x % d"),
        Construct("Pow", "`**`", "y = x ** d"),
        Construct("LShift", "`<<`", "y = x << d"),
        Construct("RShift", "`>>`", "y = x >> d"),
        Construct("BitAnd", "`&`", "y = x & d"),
        Construct("BitOr", "`|`", "y = x | d"),
        Construct("BitXor", "`^`", "y = x ^ d"),
        Construct("USub", "`-` of one", "y = -x"),
        Construct("Invert", "`~`", "y = ~x"),
        Construct("Not", "`not`", "y = not x"),
        Construct("And", "`and`", "y = x and d"),
        Construct("Or", "`or`", "y = x or d"),
        Construct(
            "UAdd",
            "`+` of one",
            "y = +x",
            "it changes nothing but the type of a bool",
            "Leave it out; of a bool, write `int(x)`.",
        ),
    ),
    "Comparisons": (
        Construct("Eq", "`==`", "y = x == d"),
        Construct("NotEq", "`!=`", "y = x != d"),
        Construct("Lt", "`<`", "y = x < d"),
        Construct("LtE", "`<=`", "y = x <= d"),
        Construct("Gt", "`>`", "y = x > d"),
        Construct("GtE", "`>=`", "y = x >= d"),
        Construct("Is", "`is`", "y = x is None"),
        Construct("IsNot", "`is not`", "y = x is not None"),
        Construct("In", "`in`", "y = x in xs"),
        Construct("NotIn", "`not in`", "y = x not in xs"),
    ),
}

# Classes of syntax trees that stand only inside of a construct which is refused.
INNER: dict[str, str] = {
    "ExceptHandler": "Try",
    "alias": "Import",
    "match_case": "Match",
    "MatchValue": "Match",
    "MatchSingleton": "Match",
    "MatchSequence": "Match",
    "MatchMapping": "Match",
    "MatchClass": "Match",
    "MatchStar": "Match",
    "MatchAs": "Match",
    "MatchOr": "Match",
    "AsyncFor": "AsyncFunctionDef",
    "AsyncWith": "AsyncFunctionDef",
    "Await": "AsyncFunctionDef",
}
