"""Mutations: small changes of a module's text, made by rule and not by taste.

True only here: which changes there are, and what each is called.  A module is parsed,
walked once in the order of its text, and every place that a rule fits is a candidate.

| rule      | what is changed                                                      |
|-----------|----------------------------------------------------------------------|
| operator  | `==`, `<`, `is`, `in`, `and`, `+`, `&`, `<<`: another one of its kind  |
| condition | the test of `if`, `while`, `a if b else c`, `for ... if`: negated,    |
|           | true, false                                                          |
| not       | taken away                                                           |
| constant  | 0 and 1, True and False: the other one                               |
| call      | a statement that only calls something: taken away                    |
| store     | a statement that only sets attributes: taken away                    |
| swap      | two neighbouring plain statements change places                      |

Rules:
- a candidate's name has no line in it: module, function, rule, and the number of the
  place among those of this rule in the function, so an edit elsewhere renames nothing;
- what is no behaviour is left alone: annotations, decorators, docstrings, assertions,
  what only type checkers read;
- nothing is made twice: a test that is one comparison with an opposite, or a `not`, is
  not also negated;
- two statements change places only where one of them needs what the other gives, or
  where both are there for their effect; else nothing would change.

After the operators of Mothra (King and Offutt, 1991), the order of statements added.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any

# Where no function is around.
TOP = "<module>"

_COMPARED: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], str]] = {
    ast.Eq: (ast.NotEq, "== to !="),
    ast.NotEq: (ast.Eq, "!= to =="),
    ast.Lt: (ast.LtE, "< to <="),
    ast.LtE: (ast.Lt, "<= to <"),
    ast.Gt: (ast.GtE, "> to >="),
    ast.GtE: (ast.Gt, ">= to >"),
    ast.Is: (ast.IsNot, "is to is not"),
    ast.IsNot: (ast.Is, "is not to is"),
    ast.In: (ast.NotIn, "in to not in"),
    ast.NotIn: (ast.In, "not in to in"),
}
# Of these the other one says the opposite.
_OPPOSITE = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)

_JOINED: Mapping[type[ast.boolop], tuple[type[ast.boolop], str]] = {
    ast.And: (ast.Or, "and to or"),
    ast.Or: (ast.And, "or to and"),
}

_COMPUTED: Mapping[type[ast.operator], tuple[type[ast.operator], str]] = {
    ast.Add: (ast.Sub, "+ to -"),
    ast.Sub: (ast.Add, "- to +"),
    ast.BitAnd: (ast.BitOr, "& to |"),
    ast.BitOr: (ast.BitAnd, "| to &"),
    ast.LShift: (ast.RShift, "<< to >>"),
    ast.RShift: (ast.LShift, ">> to <<"),
}

_PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Expr)
_NO_BEHAVIOUR = frozenset({"annotation", "returns", "decorator_list", "type_params"})


class NoSuchMutation(LookupError):
    """A module has no candidate of that name, or not any more."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change that a rule allows, and the line where it is now."""

    name: str
    line: int

    @property
    def module(self) -> str:
        """The module, without its package."""
        return self.name.partition(":")[0]


@dataclass(frozen=True, slots=True)
class _Site:
    """A place in one parsed tree; `change` makes another tree of it.

    `lines` says what is there, before the change and after it.
    """

    place: str
    rule: str
    line: int
    change: Callable[[], None]
    lines: Callable[[], str]


def candidates(module: str, text: str) -> tuple[Candidate, ...]:
    """Every mutation of a module, in the order of its text."""
    return tuple(
        Candidate(name, site.line) for name, site in _named(module, ast.parse(text))
    )


def mutated(module: str, text: str, name: str, file: str) -> CodeType:
    """The code of a module with one mutation.  Raises `NoSuchMutation`."""
    tree = ast.parse(text)
    _found(module, tree, name).change()
    return compile(ast.fix_missing_locations(tree), file, "exec")


def shown(module: str, text: str, name: str) -> tuple[str, str]:
    """The lines that a mutation changes, before and after.  Raises `NoSuchMutation`."""
    site = _found(module, ast.parse(text), name)
    before = site.lines()
    site.change()
    return before, site.lines()


def _found(module: str, tree: ast.Module, name: str) -> _Site:
    for known, site in _named(module, tree):
        if known == name:
            return site
    raise NoSuchMutation(name)


def _named(module: str, tree: ast.Module) -> Iterator[tuple[str, _Site]]:
    """The sites of a tree, which nobody may change while they are listed."""
    numbers: Counter[tuple[str, str]] = Counter()
    for site in _in_block(tree.body, TOP):
        asked = site.place, site.rule
        numbers[asked] += 1
        yield f"{module}:{site.place}:{site.rule}:{numbers[asked]}", site


def _in_block(block: list[ast.stmt], place: str) -> Iterator[_Site]:
    """The sites of some statements in a row, and all in them."""
    for at, statement in enumerate(block):
        if _is_no_behaviour(statement):
            continue
        yield from _dropped(block, at, place)
        if at + 1 < len(block) and _depend(statement, block[at + 1]):
            yield _swapped(block, at, place)
        inside = place
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            inside = statement.name if place == TOP else f"{place}.{statement.name}"
        yield from _within(statement, statement, inside)


def _is_no_behaviour(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return ast.unparse(statement.test) == "TYPE_CHECKING"
    docstring = isinstance(statement, ast.Expr) and isinstance(
        statement.value, ast.Constant
    )
    return docstring or isinstance(statement, ast.Assert)


def _within(node: ast.AST, statement: ast.stmt, place: str) -> Iterator[_Site]:
    """The sites of a node's own, then those of its parts."""

    def site(rule: str, change: Callable[[], None]) -> _Site:
        line = getattr(node, "lineno", statement.lineno)
        return _Site(place, rule, line, change, lambda: _first_line(statement))

    for rule, change in _changes(node):
        yield site(rule, change)
    for field, value in ast.iter_fields(node):
        if field in _NO_BEHAVIOUR:
            continue
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield from _in_block(value, place)
            continue
        for at, part in enumerate(value if isinstance(value, list) else (value,)):
            if not isinstance(part, ast.AST):
                continue
            put = _put(node, field, at if isinstance(value, list) else None)
            for rule, new in _replacements(node, field, part):
                yield site(rule, partial(put, new))
            yield from _within(part, statement, place)


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    """What changes in a node of its own."""
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            other, rule = _COMPARED[type(operator)]
            yield rule, partial(node.ops.__setitem__, at, other())
    elif isinstance(node, ast.BoolOp):
        joined, rule = _JOINED[type(node.op)]
        yield rule, lambda: setattr(node, "op", joined())
    elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _COMPUTED:
        computed, rule = _COMPUTED[type(node.op)]
        yield rule, lambda: setattr(node, "op", computed())
    elif isinstance(node, ast.Constant):
        old = node.value
        if type(old) is bool or (type(old) is int and old in (0, 1)):
            new = type(old)(1 - old)
            yield f"{old} to {new}", lambda: setattr(node, "value", new)


def _replacements(
    holder: ast.AST, field: str, part: ast.AST
) -> Iterator[tuple[str, ast.expr]]:
    """What may stand where a part stands."""
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
        yield "not taken away", part.operand
    if not isinstance(part, ast.expr):
        return
    is_test = field == "test" and isinstance(holder, (ast.If, ast.While, ast.IfExp))
    if is_test or (field == "ifs" and isinstance(holder, ast.comprehension)):
        if not _has_opposite(part):
            yield "condition negated", ast.UnaryOp(ast.Not(), part)
        for value in (True, False):
            yield f"condition {str(value).lower()}", ast.Constant(value)


def _has_opposite(test: ast.expr) -> bool:
    """Whether another rule makes the negation of a test."""
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.op, ast.Not)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return isinstance(test.ops[0], _OPPOSITE)
    return False


def _put(node: ast.AST, field: str, at: int | None) -> Callable[[ast.AST], None]:
    def put(new: ast.AST) -> None:
        if at is None:
            setattr(node, field, new)
        else:
            getattr(node, field)[at] = new

    return put


def _dropped(block: list[ast.stmt], at: int, place: str) -> Iterator[_Site]:
    """The site of a statement that can be taken away, if it is one."""
    statement = block[at]
    rule = ""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        rule = "call taken away"
    elif isinstance(statement, (ast.Assign, ast.AugAssign)):
        targets = _targets(statement)
        if all(isinstance(each, ast.Attribute) for each in targets):
            rule = "store taken away"
    if rule:

        def change() -> None:
            block[at] = ast.copy_location(ast.Pass(), statement)

        line = statement.lineno
        yield _Site(place, rule, line, change, lambda: _first_line(block[at]))


def _swapped(block: list[ast.stmt], at: int, place: str) -> _Site:
    def change() -> None:
        block[at], block[at + 1] = block[at + 1], block[at]

    def lines() -> str:
        return "; ".join(map(_first_line, block[at : at + 2]))

    return _Site(place, "swap", block[at].lineno, change, lines)


def _depend(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether it may matter which of two plain statements comes first."""
    if not (isinstance(first, _PLAIN) and isinstance(second, _PLAIN)):
        return False
    if _is_no_behaviour(second):
        return False
    one, two = _Reach(first), _Reach(second)
    if one.stores & (two.loads | two.stores) or two.stores & one.loads:
        return True
    return (one.calls and (two.calls or two.sets)) or (two.calls and one.sets)


class _Reach:
    """What a plain statement reads and writes: names, and attributes of names.

    It `calls` if it is nothing but a call, and `sets` if it writes into an object.
    """

    def __init__(self, statement: ast.stmt) -> None:
        self.loads: set[str] = set()
        self.stores: set[str] = set()
        self.sets = False
        self.calls = isinstance(statement, ast.Expr) and isinstance(
            statement.value, ast.Call
        )
        for node in ast.walk(statement):
            if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
                continue
            stored = isinstance(node.ctx, (ast.Store, ast.Del))
            self.sets |= stored and not isinstance(node, ast.Name)
            if not isinstance(node, ast.Subscript):
                (self.stores if stored else self.loads).add(ast.unparse(node))
        if isinstance(statement, ast.AugAssign):
            self.loads |= self.stores


def _targets(statement: ast.Assign | ast.AugAssign) -> Sequence[ast.expr]:
    found: list[Any] = (
        statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    )
    return [
        part
        for each in found
        for part in (each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each])
    ]


def _first_line(statement: ast.stmt) -> str:
    """A statement as text; of one that has others inside, its head."""
    lines = ast.unparse(statement).splitlines()
    heads = [line for line in lines if not line.startswith("@")]
    return heads[0]
