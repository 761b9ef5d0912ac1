"""Random valid programs: one generator, over whatever chooses.

`choose(n)` gives a number below `n`: of `random.Random` it is fast, and of Hypothesis
it shrinks.  A program is what Python accepts and the language does, too: variables keep
their types, and are used where they have values.
"""

import re
from collections.abc import Callable
from typing import Any

Choose = Callable[[int], int]
INT, FLOAT, BOOL, STR = "int", "float", "bool", "str"
INTS, STRS, TABLE, PAIR, MAYBE = (
    *("list[int]", "list[str]", "dict[str, int]", "tuple[int, str]", "int | None"),
)
KINDS = (INT, FLOAT, BOOL, STR, INTS, STRS, TABLE, PAIR, MAYBE)
# More often what more can be done with.
OFTEN = (
    *(INT,) * 6,
    *(BOOL,) * 2,
    *(STR,) * 2,
    *(INTS,) * 3,
    FLOAT,
    TABLE,
    PAIR,
    MAYBE,
)
# How patterns write a type.
PARTS = dict(zip("ifbsLSDPM", KINDS, strict=True))
DEEPEST = 3
PARAMETERS = {
    "a": INT,
    "b": INT,
    "x": FLOAT,
    "p": BOOL,
    "s": STR,
    "xs": INTS,
    "d": TABLE,
}
PARAMETERS |= {"m": MAYBE}


class Program:
    """One program: its text, and the forms that it has."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.lines: list[str] = []
        self.forms: dict[str, int] = {}
        self.count = 0
        self.known: dict[str, str] = {}
        self.loops = 0
        self.fixed: set[str] = set()
        self.returns = self.pick((INT, STR, INTS, PAIR, FLOAT, MAYBE))
        self.has_helper = not self.choose(2)
        if self.has_helper:
            self.helper()
        given = ", ".join(f"{name}: {kind}" for name, kind in PARAMETERS.items())
        self.lines.append(f"def f({given}) -> {self.returns}:")
        self.known = dict(PARAMETERS)
        ends = self.body(1, 3 + self.choose(5))
        if not ends:
            self.put(1, f"return {self.of(self.returns, 2)}")

    @property
    def text(self) -> str:
        """The text of the program."""
        return "\n".join(self.lines) + "\n"

    def helper(self) -> None:
        """A function that is called."""
        self.lines.append("def g(a: int, s: str = 'q') -> int:")
        self.known = {"a": INT, "s": STR}
        returns, self.returns, self.has_helper = self.returns, INT, False
        if not self.body(1, 1 + self.choose(3)):
            self.put(1, f"return {self.of(INT, 2)}")
        self.returns, self.has_helper = returns, True

    def arguments(self) -> tuple[Any, ...]:
        """Values for the parameters."""
        pick = self.choose
        return (
            pick(9) - 3,
            pick(7) - 2,
            (pick(9) - 4) / 2,
            bool(pick(2)),
            "abcab"[: pick(6)],
            [pick(9) - 4 for _ in range(pick(5))],
            {"abc"[n]: pick(5) for n in range(pick(4))},
            None if pick(2) else pick(5),
        )

    # Choosing

    def pick(self, options: Any) -> Any:
        """One of several."""
        return options[self.choose(len(options))]

    def form(self, name: str) -> None:
        """Count a form."""
        self.forms[name] = self.forms.get(name, 0) + 1

    def put(self, depth: int, text: str) -> None:
        """One line more."""
        self.lines.append("    " * depth + text)

    def fresh(self) -> str:
        """A name that is new."""
        self.count += 1
        return f"v{self.count}"

    def names(self, kind: str) -> list[str]:
        """The variables of a type."""
        return [name for name, one in self.known.items() if one == kind]

    # Statements

    def body(self, depth: int, count: int) -> bool:
        """Some statements; True if control never comes behind them."""
        for _ in range(count):
            options = STATEMENTS if depth < DEEPEST else SIMPLE
            name = self.pick(options)
            self.form(name)
            if getattr(self, f"put_{name}")(depth):
                return True
        return False

    def put_new(self, depth: int) -> None:
        kind = self.pick(OFTEN)
        value = self.of(kind, 2)
        name = self.fresh()
        noted = self.choose(3) == 0 or kind == MAYBE or value in ("[]", "{}")
        self.put(depth, f"{name}: {kind} = {value}" if noted else f"{name} = {value}")
        self.known[name] = kind

    def put_set(self, depth: int) -> None:
        names = [each for each in self.known if each not in self.fixed]
        if not names:
            self.put(depth, "pass")
            return
        name = self.pick(names)
        self.put(depth, f"{name} = {self.of(self.known[name], 2)}")

    def put_augmented(self, depth: int) -> None:
        names = [
            each
            for each in self.names(INT) + self.names(STR) + self.names(INTS)
            if each not in self.fixed
        ]
        if not names:
            self.put(depth, "pass")
            return
        name = self.pick(names)
        kind = self.known[name]
        symbol = self.pick(("+=", "-=", "*=", "%=", "|=", "&=", "^="))
        if kind != INT:
            # Lists that grow while they are gone through grow without an end.
            symbol = "+=" if kind == STR or not self.loops else "="
            value = self.of(kind, 1)
            self.put(depth, f"{name} {symbol} {value}")
        else:
            self.put(depth, f"{name} {symbol} {self.of(INT, 1)}")

    def put_element(self, depth: int) -> None:
        if self.choose(2) and self.names(TABLE):
            name = self.pick(self.names(TABLE))
            key = self.pick(("'a'", "'b'", "'z'"))
            symbol = self.pick(("=", "+="))
            if not self.loops:
                self.put(depth, f"{name}[{key}] {symbol} {self.of(INT, 1)}")
                return
        names = self.names(INTS)
        if not names:
            self.put(depth, "pass")
            return
        name, index = self.pick(names), self.of(INT, 1)
        symbol = self.pick(("=", "+=", "-="))
        self.put(depth, f"{name}[{index}] {symbol} {self.of(INT, 1)}")

    def put_method(self, depth: int) -> None:
        names = self.names(INTS)
        if not names or self.loops:
            self.put(depth, "pass")
            return
        name = self.pick(names)
        call = self.pick(
            ("append({})", "insert(0, {})", "extend([{}])", "remove({})", "reverse()")
        )
        self.put(depth, f"{name}.{call.format(self.of(INT, 1))}")

    def put_print(self, depth: int) -> None:
        kind = self.pick(KINDS)
        self.put(depth, f"print({self.of(kind, 1)}, {self.of(STR, 1)})")

    def put_unpack(self, depth: int) -> None:
        first, second = self.fresh(), self.fresh()
        self.put(depth, f"{first}, {second} = {self.of(PAIR, 1)}")
        self.known |= {first: INT, second: STR}

    def put_assert(self, depth: int) -> None:
        self.put(depth, f"assert {self.of(BOOL, 1)}, {self.of(STR, 1)}")

    def put_delete(self, depth: int) -> None:
        names = self.names(INTS)
        if not names or self.loops:
            self.put(depth, "pass")
            return
        self.put(depth, f"del {self.pick(names)}[{self.pick((0, -1))}]")

    def put_return(self, depth: int) -> bool:
        if depth == 1:
            self.put(depth, "pass")
            return False
        self.put(depth, f"return {self.of(self.returns, 1)}")
        return True

    def put_raise(self, depth: int) -> bool:
        if depth == 1:
            self.put(depth, "pass")
            return False
        kind = self.pick(("ValueError", "KeyError", "RuntimeError"))
        self.put(depth, f"raise {kind}({self.of(STR, 1)})")
        return True

    def put_leave(self, depth: int) -> bool:
        if not self.loops:
            self.put(depth, "pass")
            return False
        self.put(depth, self.pick(("break", "continue")))
        return True

    def put_if(self, depth: int) -> bool:
        known = dict(self.known)
        maybe = self.names(MAYBE)
        inner = dict(known)
        if maybe and self.choose(3) == 0:
            name = self.pick(maybe)
            self.put(depth, f"if {name} is not None:")
            inner[name] = INT
            self.fixed.add(name)
        else:
            self.put(depth, f"if {self.of(BOOL, 2)}:")
        self.known = inner
        fixed = set(self.fixed)
        first = self.body(depth + 1, 1 + self.choose(3))
        self.known = dict(known)
        self.fixed = fixed - set(maybe) if fixed else set()
        second = False
        if self.choose(2):
            if self.choose(3) == 0:
                self.put(depth, f"elif {self.of(BOOL, 1)}:")
                self.body(depth + 1, 1 + self.choose(2))
                self.known = dict(known)
            else:
                self.put(depth, "else:")
                second = self.body(depth + 1, 1 + self.choose(3))
        self.known = known
        return first and second

    def put_for(self, depth: int) -> None:
        known = dict(self.known)
        item = self.fresh()
        kinds: dict[str, str] = {}
        over = self.choose(7)
        if over == 0 or (over == 2 and self.loops > 1):
            head, kinds = f"{item} in range({self.of(INT, 1)} % 5)", {item: INT}
        elif over == 1:
            head, kinds = f"{item} in {self.of(STR, 0)}[:4]", {item: STR}
        elif over == 2:
            head, kinds = f"{item} in {self.of(INTS, 1)}[:5]", {item: INT}
        elif over == 3:
            second = self.fresh()
            head = f"{item}, {second} in enumerate({self.of(INTS, 0)}[-4:])"
            kinds = {item: INT, second: INT}
        elif over == 4:
            second = self.fresh()
            head = f"{item}, {second} in zip({self.of(INTS, 0)}, {self.of(STR, 0)})"
            kinds = {item: INT, second: STR}
        elif over == 5:
            head = f"{item} in ({self.of(INT, 1)}, {self.of(INT, 1)}, 7)"
            kinds = {item: INT}
        else:
            head, kinds = f"{item} in reversed({self.of(INTS, 0)}[:4])", {item: INT}
        self.put(depth, f"for {head}:")
        self.known |= kinds
        self.inside(depth)
        self.known = known

    def put_while(self, depth: int) -> None:
        known = dict(self.known)
        counter = self.fresh()
        self.put(depth, f"{counter} = {self.choose(5)}")
        self.put(depth, f"while {counter} > 0 and {self.of(BOOL, 1)}:")
        self.known[counter] = INT
        self.fixed.add(counter)
        self.put(depth + 1, f"{counter} -= 1")
        self.inside(depth)
        self.fixed.discard(counter)
        self.known = {**known, counter: INT}

    def inside(self, depth: int) -> None:
        """The body of a loop."""
        self.loops += 1
        self.body(depth + 1, 1 + self.choose(3))
        self.loops -= 1

    # Expressions

    def of(self, kind: str, depth: int) -> str:
        """An expression of a type."""
        names = self.names(kind)
        if depth <= 0 or self.choose(4) == 0:
            if names and self.choose(4):
                return str(self.pick(names))
            return self.literal(kind)
        options = EXPRESSIONS[kind]
        pattern = self.pick(options)
        if "g(" in pattern and not self.has_helper:
            return self.literal(kind)
        self.form(pattern)
        # Python refuses some texts within texts, and `is` of literals.
        named = pattern.startswith("f'") or " is " in pattern
        if named and not all(
            self.names(PARTS[each]) for each in re.findall(r"<([a-zA-Z])>", pattern)
        ):
            return self.literal(kind)

        def part(found: re.Match[str]) -> str:
            inner = PARTS[found[1]]
            return self.pick(self.names(inner)) if named else self.of(inner, depth - 1)

        return re.sub(r"<([a-zA-Z])>", part, pattern)

    def literal(self, kind: str) -> str:
        """A literal of a type."""
        literals = {
            INT: ("0", "1", "2", "-3", "7"),
            FLOAT: ("0.5", "-2.0", "3.0"),
            BOOL: ("True", "False"),
            STR: ("'a'", "'bc'", "''"),
            INTS: ("[1, 2]", "[3]", "[0, -1, 4]"),
            STRS: ("['a']", "['b', 'c']"),
            TABLE: ("{'a': 1}", "{'b': 2, 'a': 3}"),
            PAIR: ("(1, 'a')", "(2, '')"),
            MAYBE: ("None", "3"),
        }
        return str(self.pick(literals[kind]))


SIMPLE = (
    *("new", "new", "set", "set", "augmented", "element", "method", "print", "unpack"),
    *("assert", "delete", "return", "raise", "leave"),
)
STATEMENTS = (*SIMPLE, *("if",) * 5, *("for",) * 3, *("while",) * 2)
# Type -> patterns; `<i>` is an expression of ints, and so on.
EXPRESSIONS: dict[str, tuple[str, ...]] = {
    INT: (
        *("(<i> + <i>)", "(<i> - <i>)", "(<i> * <i>)", "(<i> // <i>)", "(<i> % <i>)"),
        *("(-<i>)", "(~<i>)", "(<i> & <i>)", "(<i> | <i>)", "(<i> ^ <i>)"),
        *("len(<L>)", "len(<s>)", "abs(<i>)", "min(<i>, <i>)", "max(<i>, <i>, 2)"),
        *("(<i> if <b> else <i>)", "(<i> and <i>)", "(<i> or <i>)", "<L>[<i>]"),
        *("sum(<L>)", "<L>.count(<i>)", "int(<b>)", "<P>[0]", "<D>.get('a', <i>)"),
        *("g(<i>)", "g(<i>, s=<s>)", "g(<i>, <s>)", "len(<D>)", "(<i> >> 1)"),
        *("ord((<s> + 'x')[0])", "<s>.find(<s>)", "int(<f>)", "round(<f>)"),
        "sum([v0 * 2 for v0 in <L>])",
    ),
    FLOAT: (
        *("(<f> + <f>)", "(<f> * <i>)", "(<i> / <i>)", "(-<f>)", "float(<i>)"),
        *("(<f> if <b> else <f>)", "abs(<f>)", "(<f> - <f>)", "(<f> // <f>)"),
    ),
    BOOL: (
        *("(<i> < <i>)", "(<i> == <i>)", "(<i> <= <i> < <i>)", "(not <b>)"),
        *("(<b> and <b>)", "(<b> or <b>)", "(<i> in <L>)", "(<s> in <s>)"),
        *("('a' in <D>)", "(<s> < <s>)", "bool(<L>)", "(<M> is None)", "(<i> != <f>)"),
        *("(<b> if <b> else <b>)", "(<L> == <L>)", "any(<L>)", "all(<L>)", "bool(<s>)"),
        *("(<i> not in <L>)", "(not <L>)", "(<P> == <P>)", "(<i> in (1, 2, <i>))"),
        "(<f> >= <i> > <f>)",
    ),
    STR: (
        *("(<s> + <s>)", "(<s> * 2)", "str(<i>)", "f'{<i>}-{<s>}'", "<s>.upper()"),
        *("<s>[<i>:]", "(<s> if <b> else <s>)", "<P>[1]", "(<s> or <s>)", "str(<L>)"),
        *(
            "<s>.replace('a', <s>)",
            "','.join(<S>)",
            "repr(<s>)",
            "str(<f>)",
            "<s>[::-1]",
        ),
        *("f'{<b>}{<M>}'", "'{}:{}'.format(<i>, <s>)", "str(<D>)"),
    ),
    INTS: (
        *("(<L> + <L>)", "<L>[<i>:<i>]", "[<i>, <i>]", "[v0 + 1 for v0 in <L>]"),
        *(
            "sorted(<L>)",
            "list(range(<i> % 6))",
            "<L>[::-1]",
            "<L>.copy()",
            "(<L> * 2)",
        ),
        *("[v0 for v0, v00 in enumerate(<s>)]", "list(<D>.values())", "(<L> or [1])"),
        *("list(reversed(<L>))", "[v0 * v00 for v0, v00 in zip(<L>, <L>)]"),
        "[v0 for v0 in (1, <i>)]",
    ),
    STRS: (
        "[<s>, <s>]",
        "<s>.split('a')",
        "sorted(<D>.keys())",
        "[str(v0) for v0 in <L>]",
    ),
    TABLE: ("{'a': <i>, <s>: <i>}", "{str(v0): v0 for v0 in <L>}", "<D>.copy()"),
    PAIR: ("(<i>, <s>)", "(<P> if <b> else <P>)", "(divmod(<i>, 2)[:1] + (<s>,))"),
    MAYBE: ("<i>", "(<M> if <b> else <M>)", "(<i> if <b> else None)"),
}
