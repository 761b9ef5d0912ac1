"""Restrictions: forms of accepted constructs that are refused.

    Construct       a construct of Python: a class of syntax trees, accepted or refused
    Restriction     a form of an accepted construct, and how it is recognised
    RESTRICTIONS    all of them; `runtime.script.frontend.language` checks programs

Rules:
- a construct without a reason is accepted; one with a reason also has a hint, which
  says what to write instead;
- `example` is a program that has the construct: the body of a function, or whole
  functions and classes (`program`);
- a finder takes a node and its enclosing nodes, outermost first, and returns the node
  to mark, or None;
- if several restrictions of one class match, the first is reported;
- a saved text may have functions without parameters inside of functions: forks and
  awaits are saved in this form.
"""

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import Any

from everyorder.runtime.schema.values import INT_END

# The prefix of names that the compiler generates.
RESERVED = "__jit"

Around = Sequence[ast.AST]
Finder = Callable[[Any, Around], ast.AST | None]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Statements that are allowed in the body of a class.
_IN_CLASS = (*FUNCTIONS, ast.Assign, ast.AnnAssign, ast.Pass, ast.ClassDef)


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
        """Return True if a program may have it."""
        return not self.reason

    @property
    def program(self) -> str:
        """Return the example as functions and classes."""
        if self.example.startswith(("def ", "class ", "async def ", "@")):
            return f"{self.example}\n"
        return f"def f(x, xs, d):\n{indent(self.example, '    ')}\n"


@dataclass(frozen=True, slots=True)
class Restriction:
    """A form of an accepted construct that is refused.

    `is_saved` is True if a saved text may have the form.
    """

    construct: Construct
    find: Finder
    is_saved: bool = False


def _refused(
    node: str,
    name: str,
    example: str,
    reason: str,
    hint: str,
    find: Finder,
    *,
    is_saved: bool = False,
) -> Restriction:
    construct = Construct(node, name, example, reason, hint)
    return Restriction(construct, find, is_saved)


def _nested_function(node: ast.FunctionDef, around: Around) -> ast.AST | None:
    return node if any(isinstance(each, FUNCTIONS) for each in around) else None


def _nested_parameters(node: ast.FunctionDef, around: Around) -> ast.AST | None:
    every = node.args
    parameters = (*every.posonlyargs, *every.args, *every.kwonlyargs)
    return parameters[0] if parameters and _nested_function(node, around) else None


def _nested_class(node: ast.ClassDef, around: Around) -> ast.AST | None:
    inside = any(isinstance(each, (*FUNCTIONS, ast.ClassDef)) for each in around)
    return node if inside else None


def _decorator_in_text(
    node: ast.FunctionDef | ast.ClassDef, around: Around
) -> ast.AST | None:
    in_text = around and isinstance(around[-1], ast.Module)
    return node.decorator_list[0] if in_text and node.decorator_list else None


def _first_but(
    body: Iterable[ast.stmt], accepted: tuple[type[ast.AST], ...]
) -> ast.AST | None:
    for each in body:
        words = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if not words and not isinstance(each, accepted):
            return each
    return None


def _keyword_default(node: ast.arguments, around: Around) -> ast.AST | None:
    for parameter, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
        if default is not None:
            return parameter
    return None


def _reserved(node: ast.Name | ast.arg, around: Around) -> ast.AST | None:
    name = node.id if isinstance(node, ast.Name) else node.arg
    return node if name.startswith(RESERVED) else None


def _loop_target(node: ast.For | ast.comprehension, around: Around) -> ast.AST | None:
    for each in ast.walk(node.target):
        if isinstance(each, ast.Attribute | ast.Subscript):
            return each
    return None


def _with_target(node: ast.withitem, around: Around) -> ast.AST | None:
    named = node.optional_vars
    return None if isinstance(named, ast.Name) else named


def _no_value(node: ast.AnnAssign, around: Around) -> ast.AST | None:
    inside = around and not isinstance(around[-1], ast.ClassDef)
    return node if inside and node.value is None else None


def _deleted(node: ast.Delete, around: Around) -> ast.AST | None:
    for each in node.targets:
        if not isinstance(each, ast.Name | ast.Subscript):
            return each
    return None


def _too_large(node: ast.Constant, around: Around) -> ast.AST | None:
    if type(node.value) is not int or node.value < INT_END:
        return None
    parent = around[-1] if around else None
    negative = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub)
    return None if negative and node.value == INT_END else node


def _ellipsis(node: ast.Constant, around: Around) -> ast.AST | None:
    if node.value is not Ellipsis or isinstance(around[-1], ast.Expr):
        return None
    return None if _is_index(node, around) else node


def _is_index(node: ast.AST, around: Around) -> bool:
    """Return True if a node is the index of a subscript, or an element of it."""
    outer = around[-1]
    if isinstance(outer, ast.Tuple):
        node, outer = outer, around[-2]
    return isinstance(outer, ast.Subscript) and outer.slice is node


def _expanded_dict(node: ast.Dict, around: Around) -> ast.AST | None:
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            return value
    return None


def _several(node: ast.ListComp | ast.DictComp, around: Around) -> ast.AST | None:
    return node.generators[1].target if len(node.generators) > 1 else None


_LENGTH = "how many values there are is not known"
_LOOP = "Write a `for` loop that appends."
_ELSE = "the two ways out of a loop meet behind it"
_ELSE_HINT = "Set a variable before `break`, and ask for it behind the loop."
_IN_PLACE = "tensors have no such operation in place"
_TARGET = "a loop has variables of its own"
_TARGET_HINT = "Use a new name, and assign in the body."
_WORD = "names that begin so belong to the compiler"
_TEXT = "the text is read, and nothing of it is run"

RESTRICTIONS: tuple[Restriction, ...] = (
    _refused(
        "FunctionDef",
        "a function in a function",
        "def f(x):\n    def g(y):\n        return y\n    return g(x)",
        "functions are compiled one by one, and are no values that change",
        "Define it outside, and pass what it uses.",
        _nested_function,
        is_saved=True,
    ),
    _refused(
        "FunctionDef",
        "a parameter of a function in a saved function",
        "def f(x):\n    def g(y):\n        return y\n    return g(x)",
        "such functions are what is forked or awaited, and take nothing",
        "Use the variables around it.",
        _nested_parameters,
    ),
    _refused(
        "FunctionDef",
        "a decorator in a text",
        "@cache\ndef f(x):\n    return x",
        _TEXT,
        "Leave it out.",
        _decorator_in_text,
    ),
    _refused(
        "ClassDef",
        "a class inside of something else",
        "class C:\n    class D:\n        n: int",
        "classes have one name in a whole program",
        "Define it at the top of the file.",
        _nested_class,
    ),
    _refused(
        "ClassDef",
        "a decorator in a text",
        "@dataclass\nclass C:\n    n: int",
        _TEXT,
        "Leave it out.",
        _decorator_in_text,
    ),
    _refused(
        "ClassDef",
        "a statement in a class",
        "class C:\n    n: int\n    if n:\n        k = 1",
        "a class is described, and nothing of it is run",
        "Give methods and attributes; compute in `__init__`.",
        lambda node, _: _first_but(node.body, _IN_CLASS),
    ),
    _refused(
        "Module",
        "a statement outside of functions",
        "def f():\n    return 1\nf()",
        _TEXT,
        "Write functions and classes.",
        lambda node, _: _first_but(node.body, (*FUNCTIONS, ast.ClassDef)),
    ),
    _refused(
        "arguments",
        "a variable number of parameters",
        "def f(*xs):\n    return xs",
        "each parameter has a type of its own",
        "Take a list, a tuple or a dictionary.",
        lambda node, _: node.vararg or node.kwarg,
    ),
    _refused(
        "arguments",
        "a default of a keyword-only parameter",
        "def f(x, *, n: int = 3):\n    return x",
        "a call fills in defaults by their positions",
        "Take the default away, or put the parameter before the `*`.",
        _keyword_default,
    ),
    _refused(
        "arg",
        f"a parameter whose name begins with `{RESERVED}`",
        f"def f({RESERVED}_x):\n    return 1",
        _WORD,
        "Use another name.",
        _reserved,
    ),
    _refused(
        "Name",
        f"a name that begins with `{RESERVED}`",
        f"{RESERVED}_x = 1",
        _WORD,
        "Use another name.",
        _reserved,
    ),
    _refused(
        "For",
        "`else` of a `for` loop",
        "for i in xs:\n    break\nelse:\n    x = d",
        _ELSE,
        _ELSE_HINT,
        lambda node, _: node.orelse[0] if node.orelse else None,
    ),
    _refused(
        "While",
        "`else` of a `while` loop",
        "while x:\n    break\nelse:\n    x = d",
        _ELSE,
        _ELSE_HINT,
        lambda node, _: node.orelse[0] if node.orelse else None,
    ),
    _refused(
        "For",
        "an attribute or element as loop variable",
        "for d[0] in xs:\n    print(d)",
        _TARGET,
        _TARGET_HINT,
        _loop_target,
    ),
    _refused(
        "comprehension",
        "an attribute or element as variable of a comprehension",
        "y = [x for x.a in xs]",
        _TARGET,
        _TARGET_HINT,
        _loop_target,
    ),
    _refused(
        "withitem",
        "`as` with more than a name",
        "with x as (a, b):\n    print(a)",
        "what is entered is one value",
        "Give it a name, and take it apart in the body.",
        _with_target,
    ),
    _refused(
        "AnnAssign",
        "an annotation without a value",
        "n: int",
        "a variable begins with its first value",
        "Assign a value: `n: int = 0`.",
        _no_value,
    ),
    _refused(
        "AnnAssign",
        "an annotation of an element",
        "d[0]: int = 3",
        "the type of the container says it",
        "Leave the annotation out.",
        lambda node, _: node.target if isinstance(node.target, ast.Subscript) else None,
    ),
    _refused(
        "AugAssign",
        "`//=` or `@=`",
        "x //= 2",
        _IN_PLACE,
        "Write `x = x // y`, or `x = x @ y`.",
        lambda node, _: (
            node if isinstance(node.op, ast.FloorDiv | ast.MatMult) else None
        ),
    ),
    _refused(
        "Raise",
        "`raise` without an exception",
        "raise",
        "there is no `try` in which one could be caught",
        "Name the exception.",
        lambda node, _: node if node.exc is None else None,
    ),
    _refused(
        "Raise",
        "`raise ... from`",
        'raise ValueError("words") from x',
        "an exception of a program carries its words only",
        "Leave `from` out, and say the cause in the words.",
        lambda node, _: node.cause,
    ),
    _refused(
        "Delete",
        "`del` of an attribute or a tuple",
        "del x.y",
        "the attributes of an object are part of its type",
        "Delete names and elements one by one.",
        _deleted,
    ),
    _refused(
        "Constant",
        "a bytes literal",
        "y = b'abc'",
        "there is no type of bytes",
        "Use a text, or a list of numbers.",
        lambda node, _: node if isinstance(node.value, bytes) else None,
    ),
    _refused(
        "Constant",
        "an integer of more than 64 bits",
        "y = 9223372036854775808",
        "an `int` is between -2**63 and 2**63 - 1",
        "Use a float, or several integers.",
        _too_large,
    ),
    _refused(
        "Constant",
        "`...` as a value",
        "y = ...",
        "it means something in a subscript only",
        "Use None.",
        _ellipsis,
    ),
    _refused(
        "Starred",
        "`*` in a subscript",
        "y = x[*xs]",
        "the number of indices decides what is meant",
        "Write the indices one by one.",
        lambda node, around: node if _is_index(node, around) else None,
    ),
    _refused(
        "keyword",
        "`**` at a call",
        "y = print(x, **d)",
        "which arguments it gives is not known before the call",
        "Write each argument with its name.",
        lambda node, _: node.value if node.arg is None else None,
    ),
    _refused(
        "Dict",
        "`**` in a dictionary",
        "y = {1: x, **d}",
        _LENGTH,
        "Make the dictionary, and call `update`.",
        _expanded_dict,
    ),
    _refused(
        "FormattedValue",
        "a format in an f-string",
        "y = f'{x:>8}'",
        "formats are read when the text is made, and values print in one way",
        "Use `'{:>8}'.format(x)`.",
        lambda node, _: node if node.format_spec is not None else None,
    ),
    _refused(
        "FormattedValue",
        "`!r`, `!s`, `!a` or `=` in an f-string",
        "y = f'{x!r}'",
        "values print in one way",
        "Write `{x}`, or `{str(x)}`.",
        lambda node, _: node if node.conversion != -1 else None,
    ),
    _refused(
        "ListComp",
        "a second `for` in a comprehension",
        "y = [a + b for a in xs for b in d]",
        _LENGTH,
        _LOOP,
        _several,
    ),
    _refused(
        "DictComp",
        "a second `for` in a comprehension",
        "y = {a: b for a in xs for b in d}",
        _LENGTH,
        _LOOP,
        _several,
    ),
)
