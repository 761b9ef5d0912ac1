"""Random valid programs: one generator, over whatever chooses.

`choose(n)` gives a number below `n`: of `random.Random` it is fast, and of Hypothesis
it shrinks.  A program is what Python accepts and the language does, too: variables keep
their types, and are used where they have values.
"""

import re
from collections.abc import Callable
from typing import Any

from everyorder import runtime
from tests.script.emission.generated_forms import (
    AUGMENTED,
    BOOL,
    CALLED,
    EXPRESSIONS,
    FLOAT,
    HEADERS,
    INT,
    INTS,
    LITERALS,
    LOOPS,
    MAYBE,
    OFTEN,
    PAIR,
    PARAMETERS,
    PARTS,
    POINT,
    PRINTED,
    RETURNED,
    SIMPLE,
    STATEMENTS,
    STR,
    TABLE,
    TENSOR,
    TENSORS,
)

Choose = Callable[[int], int]
DEEPEST = 3


class Program:
    """One program: its text, and the forms that it has.

    `size` is that of the tensors that it is given: with large ones more is done.
    """

    def __init__(self, choose: Choose, size: int = 3) -> None:
        self.choose = choose
        self.size = size
        large = size > 3
        self.often = TENSORS if large else OFTEN
        self.deep = 4 if large else 2
        self.lines: list[str] = []
        self.forms: dict[str, int] = {}
        self.count = 0
        self.known: dict[str, str] = {}
        self.loops = 0
        self.fixed: set[str] = set()
        self.returns = TENSOR if large else self.pick(RETURNED)
        self.has_helper = not self.choose(2)
        if self.has_helper:
            self.helper()
        self.count = 0
        self.header("f", PARAMETERS, "")
        self.known = dict(PARAMETERS)
        if large:
            # What a kernel is made of, before something raises.
            for _ in range(2):
                name = self.fresh()
                self.put(1, f"{name} = {self.of(TENSOR, self.deep)}")
                self.known[name] = TENSOR
        ends = self.body(1, self.choose(3) if large else 3 + self.choose(5))
        if not ends:
            value = self.of(self.returns, self.deep)
            self.put(1, f"return {f'v1 * {value}' if large else value}")

    @property
    def text(self) -> str:
        """The text of the program."""
        text = "\n".join(self.lines) + "\n"
        called = [each for name, each in CALLED.items() if name in text]
        return "".join([*called, text])

    def header(self, name: str, types: dict[str, str], default: str) -> None:
        """The head of a function."""
        kind = self.pick(HEADERS)
        self.form(f"def {kind}")
        mark = "'" if kind == "quoted" else ""
        given = [f"{each}: {mark}{one}{mark}" for each, one in types.items()]
        ends = "" if kind == "inferred" else f" -> {mark}{self.returns}{mark}"
        if kind == "comment":
            given, ends = [*types], ""
        if default:
            given[-1] += f" = {default}"
        self.put(0, f"def {name}({', '.join(given)}){ends}:")
        if kind == "comment":
            self.put(1, f"# type: ({', '.join(types.values())}) -> {self.returns}")
        if kind in ("docstring", "comment"):
            self.put(1, f"'{kind}'")

    def helper(self) -> None:
        """A function that is called."""
        self.known = {"a": INT, "s": STR}
        returns, self.returns, self.has_helper = self.returns, INT, False
        self.header("g", self.known, "'q'")
        if not self.body(1, 1 + self.choose(3)):
            self.put(1, f"return {self.of(INT, 2)}")
        ends = self.forms.get("raise") or self.forms.get("assert")
        if ends and self.forms.get("def inferred"):
            # What never returns is of no type, where nothing is written; so is what
            # asserts False.
            self.lines[0] = self.lines[0].removesuffix(":") + " -> int:"
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
            self.tensor(pick(5)),
            self.tensor(pick(5)),
        )

    def tensor(self, first: int) -> runtime.Tensor:
        """A tensor of the size."""
        return runtime.tensor([(first + n) % 7 / 2 - 1 for n in range(self.size)])

    # Choosing

    def pick(self, options: Any) -> Any:
        """One of several."""
        return options[self.choose(len(options))]

    def form(self, name: str) -> None:
        """Count a form."""
        self.forms[name] = self.forms.get(name, 0) + 1

    def skip(self, depth: int, name: str) -> None:
        """No statement of this form, as it makes no sense here."""
        self.forms[name] -= 1
        self.form("pass")
        self.put(depth, "pass")

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
        kind = self.pick(self.often)
        value = self.of(kind, self.deep)
        name = self.fresh()
        noted = self.choose(3) == 0 or kind == MAYBE
        if noted:
            self.form("annotated assignment")
        self.put(depth, f"{name}: {kind} = {value}" if noted else f"{name} = {value}")
        self.known[name] = kind

    def put_set(self, depth: int) -> None:
        names = [each for each in self.known if each not in self.fixed]
        if not names:
            self.skip(depth, "set")
            return
        name = self.pick(names)
        self.put(depth, f"{name} = {self.of(self.known[name], 2)}")

    def put_augmented(self, depth: int) -> None:
        names = [
            each
            for one in (INT, STR, INTS, FLOAT)
            for each in self.names(one)
            if each not in self.fixed
        ]
        if not names:
            self.skip(depth, "augmented")
            return
        name = self.pick(names)
        kind = self.known[name]
        if kind == INT:
            symbol = self.pick(AUGMENTED)
            value = str(self.choose(4)) if len(symbol) > 2 else self.of(INT, 1)
        elif kind == FLOAT:
            symbol, value = self.pick(("/=", "-=", "*=")), self.of(FLOAT, 1)
        else:
            # Lists that grow while they are gone through grow without an end.
            symbol = "+=" if kind == STR or not self.loops else "="
            value = self.of(kind, 1)
            if symbol == "+=":
                self.form("text +=" if kind == STR else "list +=")
        if kind in (INT, FLOAT):
            self.form(f"x {symbol} y")
        self.put(depth, f"{name} {symbol} {value}")

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
            self.skip(depth, "element")
            return
        name, index = self.pick(names), self.of(INT, 1)
        symbol = self.pick(("=", "+=", "-="))
        if symbol != "=":
            self.form("element +=")
        self.put(depth, f"{name}[{index}] {symbol} {self.of(INT, 1)}")

    def put_method(self, depth: int) -> None:
        names = self.names(INTS)
        if not names or self.loops:
            self.skip(depth, "method")
            return
        name = self.pick(names)
        call = self.pick(
            (
                "append({})",
                "insert(0, {})",
                "extend([{}])",
                "remove({})",
                "reverse()",
                "pop()",
                "sort()",
            )
        )
        self.put(depth, f"{name}.{call.format(self.of(INT, 1))}")

    def put_print(self, depth: int) -> None:
        kind = self.pick(PRINTED)
        self.put(depth, f"print({self.of(kind, 1)}, {self.of(STR, 1)})")

    def put_unpack(self, depth: int) -> None:
        first, second = self.fresh(), self.fresh()
        if self.choose(5) == 0:
            self.form("unpack a list")
            self.put(depth, f"[{first}, {second}] = {self.of(INTS, 1)}")
            self.known |= {first: INT, second: INT}
            return
        self.put(depth, f"{first}, {second} = {self.of(PAIR, 1)}")
        self.known |= {first: INT, second: STR}

    def put_chain(self, depth: int) -> None:
        first, second = self.fresh(), self.fresh()
        kind = self.pick((INT, INT, STR, INTS, TENSOR))
        self.put(depth, f"{first} = {second} = {self.of(kind, 2)}")
        self.known |= {first: kind, second: kind}

    def put_nested(self, depth: int) -> None:
        first, second, third, rest = (self.fresh() for _ in range(4))
        pair, number, other = self.of(PAIR, 1), self.of(INT, 1), self.of(INT, 1)
        targets, values = f"({first}, {second}), {third}", f"{pair}, {number}"
        self.known |= {first: INT, second: STR, third: INT}
        if self.choose(2):
            self.form("starred target")
            targets, values = f"{targets}, *{rest}", f"{values}, {other}, 7"
            self.known[rest] = INTS
        self.put(depth, f"{targets} = {values}")

    def put_slice(self, depth: int) -> None:
        names = self.names(INTS)
        if not names or self.loops:
            self.skip(depth, "slice")
            return
        bounds = self.pick(("1:", ":2", "1:3", "::2", "-2:", "{0}:"))
        where = bounds.format(self.of(INT, 1))
        self.put(depth, f"{self.pick(names)}[{where}] = {self.of(INTS, 1)}")

    def put_attribute(self, depth: int) -> None:
        owners = self.names(POINT)
        if not owners:
            owners = [self.fresh()]
            self.put(depth, f"{owners[0]} = {self.of(POINT, 1)}")
            self.known[owners[0]] = POINT
        owner = self.pick(owners)
        if self.choose(3) == 0:
            self.put(depth, f"{owner}.s = {self.of(STR, 1)}")
            return
        symbol = self.pick(("=", "+=", "-="))
        if symbol != "=":
            self.form("attribute +=")
        self.put(depth, f"{owner}.n {symbol} {self.of(INT, 1)}")

    def put_forget(self, depth: int) -> None:
        name = self.fresh()
        self.put(depth, f"{name} = {self.of(self.pick(self.often), 1)}")
        self.put(depth, f"del {name}")

    def put_expression(self, depth: int) -> None:
        self.put(depth, self.of(self.pick(self.often), 2))

    def put_pass(self, depth: int) -> None:
        self.put(depth, "pass")

    def put_tensor(self, depth: int) -> None:
        names = [each for each in self.names(TENSOR) if each not in self.fixed]
        if not names:
            self.skip(depth, "tensor")
            return
        name, way = self.pick(names), self.choose(3)
        if way == 0:
            self.form("tensor +=")
            symbol = self.pick(("+=", "*=", "-="))
            self.put(depth, f"{name} {symbol} {self.of(self.pick((TENSOR, INT)), 1)}")
        elif way == 1:
            self.form("slice of tensor =")
            where = self.pick(("1:", "0", "..., :2", "-1"))
            self.put(depth, f"{name}[{where}] = {self.of(FLOAT, 1)}")
        else:
            call = self.pick(("add_({})", "mul_({})", "relu_()"))
            self.put(depth, f"{name}.{call.format(self.of(TENSOR, 1))}")

    def put_assert(self, depth: int) -> None:
        words = f", {self.of(STR, 1)}"
        if self.choose(3) == 0:
            self.form("assert without words")
            words = ""
        self.put(depth, f"assert {self.of(BOOL, 1)}{words}")

    def put_delete(self, depth: int) -> None:
        names = self.names(INTS)
        if self.choose(3) == 0 and self.names(TABLE) and not self.loops:
            self.form("delete key")
            self.put(depth, f"del {self.pick(self.names(TABLE))}[{self.of(STR, 1)}]")
            return
        if not names or self.loops:
            self.skip(depth, "delete")
            return
        self.put(depth, f"del {self.pick(names)}[{self.pick((0, -1))}]")

    def put_return(self, depth: int) -> bool:
        if depth == 1:
            self.skip(depth, "return")
            return False
        self.put(depth, f"return {self.of(self.returns, 1)}")
        return True

    def put_raise(self, depth: int) -> bool:
        if depth == 1:
            self.skip(depth, "raise")
            return False
        kind = self.pick(("ValueError", "KeyError", "RuntimeError"))
        self.put(depth, f"raise {kind}({self.of(STR, 1)})")
        return True

    def put_leave(self, depth: int) -> bool:
        if not self.loops:
            self.skip(depth, "leave")
            return False
        word = self.pick(("break", "continue"))
        self.form(word)
        self.put(depth, word)
        return True

    def put_if(self, depth: int) -> bool:
        known = dict(self.known)
        maybe = self.names(MAYBE)
        inner = dict(known)
        if maybe and self.choose(3) == 0:
            name = self.pick(maybe)
            self.form("if not None")
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
                self.form("elif")
                self.put(depth, f"elif {self.of(BOOL, 1)}:")
                self.body(depth + 1, 1 + self.choose(2))
                self.known = dict(known)
            else:
                self.form("else")
                self.put(depth, "else:")
                second = self.body(depth + 1, 1 + self.choose(3))
        self.known = known
        return first and second

    def put_for(self, depth: int) -> None:
        known = dict(self.known)
        item = self.fresh()
        kinds: dict[str, str] = {}
        over = self.choose(len(LOOPS))
        over = 0 if over == 2 and self.loops > 1 else over
        first = ""
        self.form(f"for {LOOPS[over]}")
        if over == 0:
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
        elif over == 6:
            head, kinds = f"{item} in reversed({self.of(INTS, 0)}[:4])", {item: INT}
        elif over == 7:
            head, kinds = f"{item} in {self.of(TABLE, 1)}", {item: STR}
        elif over == 8:
            second = self.fresh()
            head = f"{item}, {second} in {self.of(TABLE, 1)}.items()"
            kinds = {item: STR, second: INT}
        else:
            second = self.fresh()
            head, kinds = f"{item} in {self.of(TENSOR, 1)}[:3]", {second: FLOAT}
            first = f"{second} = float({item}.item())"
        self.put(depth, f"for {head}:")
        if first:
            self.put(depth + 1, first)
        self.known |= kinds
        self.inside(depth)
        self.known = known

    def put_while(self, depth: int) -> None:
        known = dict(self.known)
        counter = self.fresh()
        self.put(depth, f"{counter} = {self.choose(5)}")
        endless = self.choose(4) == 0
        if endless:
            self.form("while True")
            self.put(depth, "while True:")
        else:
            self.put(depth, f"while {counter} > 0 and {self.of(BOOL, 1)}:")
        self.known[counter] = INT
        self.fixed.add(counter)
        self.put(depth + 1, f"{counter} -= 1")
        if endless:
            self.put(depth + 1, f"if {counter} < 0:")
            self.put(depth + 2, "break")
        self.inside(depth)
        self.fixed.discard(counter)
        self.known = {**known, counter: INT}

    def put_with(self, depth: int) -> None:
        known = dict(self.known)
        manager = self.choose(2)
        self.form("with manager" if manager else "with no_grad")
        if manager:
            name = self.fresh()
            self.put(depth, f"with Guard({self.of(INT, 1)}) as {name}:")
            self.known[name] = INT
        else:
            self.put(depth, "with runtime.no_grad():")
        # What may have been left out by an error is not used behind it.
        self.body(depth + 1, 1 + self.choose(3))
        self.known = known

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
        return str(self.pick(LITERALS[kind])).replace("SIZE", str(self.size))
