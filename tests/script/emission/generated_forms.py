"""The forms of generated programs: types, patterns of expressions, names of the rest.

Each is a form of what the language accepts, and comes often enough in many programs.
"""

from typing import Any, cast

from everyorder.runtime.script.ir.program import annotate

INT, FLOAT, BOOL, STR, COMPLEX = "int", "float", "bool", "str", "complex"
TENSOR, POINT = "Tensor", "Point"
INTS, STRS, TABLE, PAIR, MAYBE = (
    *("list[int]", "list[str]", "dict[str, int]", "tuple[int, str]", "int | None"),
)
KINDS = (
    *(INT, FLOAT, BOOL, STR, INTS, STRS, TABLE, PAIR, MAYBE),
    *(COMPLEX, TENSOR, POINT),
)
PRINTED = KINDS[:-1]
# More often what more can be done with.
OFTEN = (
    *(INT,) * 6,
    *(BOOL,) * 2,
    *(STR,) * 2,
    *(INTS,) * 3,
    FLOAT,
    STRS,
    TABLE,
    PAIR,
    MAYBE,
    COMPLEX,
    POINT,
    *(TENSOR,) * 2,
)
# More is done with large tensors.
TENSORS = (*OFTEN, *(TENSOR,) * len(OFTEN))
RETURNED = (INT, STR, INTS, PAIR, FLOAT, MAYBE, TENSOR, COMPLEX)
# How patterns write a type.
PARTS = dict(zip("ifbsLSDPMZTC", KINDS, strict=True))
PARAMETERS = {
    "a": INT,
    "b": INT,
    "x": FLOAT,
    "p": BOOL,
    "s": STR,
    "xs": INTS,
    "d": TABLE,
}
PARAMETERS |= {"m": MAYBE, "t": TENSOR, "u": TENSOR}

SIMPLE = (
    *("new", "new", "set", "set", "augmented", "element", "method", "print", "unpack"),
    *("assert", "delete", "return", "raise", "leave", "chain", "nested", "slice"),
    *("attribute", "forget", "expression", "tensor", "pass"),
)
STATEMENTS = (*SIMPLE, *("if",) * 6, *("for",) * 4, *("while",) * 2, "with")
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
        *("sum([v0 * 2 for v0 in <L>])", "(<i> ** 2)", "(<i> << 2)", "h(<i>, k=<i>)"),
        *("max(*(<i>, <i>))", "<C>.n", "<C>.moved(<i>)", "getattr(<C>, 'n')"),
        *("len(<T>)", "<T>.shape[0]", "cast(int, <i>)", "(<i>, <s>, <i>)[-1]"),
        "len(<S>)",
    ),
    FLOAT: (
        *("(<f> + <f>)", "(<f> * <i>)", "(<i> / <i>)", "(-<f>)", "float(<i>)"),
        *("(<f> if <b> else <f>)", "abs(<f>)", "(<f> - <f>)", "(<f> // <f>)"),
        *(
            "<Z>.real",
            "<Z>.imag",
            "abs(<Z>)",
            "float(<T>.sum().item())",
            "float((<T> @ <T>).item())",
        ),
        *("(<f> ** 2)", "(<f> % <f>)", "float(<T>[<i>].item())"),
    ),
    BOOL: (
        *("(<i> < <i>)", "(<i> == <i>)", "(<i> <= <i> < <i>)", "(not <b>)"),
        *("(<b> and <b>)", "(<b> or <b>)", "(<i> in <L>)", "(<s> in <s>)"),
        *("('a' in <D>)", "(<s> < <s>)", "bool(<L>)", "(<M> is None)", "(<i> != <f>)"),
        *("(<b> if <b> else <b>)", "(<L> == <L>)", "any(<L>)", "all(<L>)", "bool(<s>)"),
        *("(<i> not in <L>)", "(not <L>)", "(<P> == <P>)", "(<i> in (1, 2, <i>))"),
        *("(<f> >= <i> > <f>)", "(<Z> == <Z>)", "isinstance(<M>, int)"),
        *("hasattr(<C>, 's')", "(<s> not in <s>)", "(<M> is not None)"),
        *("bool((<T> < <f>).all())", "(<T> is <T>)"),
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
        *("('a' 'b' + <s>)", "<C>.s", "('b' \"c\")[<i>:]"),
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
        *("[v0 for v0 in (1, <i>)]", "annotate(list[int], [])", "<L>[:<i>]"),
        *("<L>[<i>::2]", "list(<T>.shape)"),
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
    COMPLEX: (
        *("complex(<f>, <f>)", "(<Z> + <Z>)", "(<Z> * <Z>)", "(<f> + 2j)", "(-<Z>)"),
        "(<Z> if <b> else <Z>)",
    ),
    POINT: ("Point(<i>, <s>)", "(<C> if <b> else <C>)"),
    TENSOR: (
        *("(<T> + <T>)", "(<T> * <T>)", "(<T> - <T>)", "(<T> * <f>)", "(<i> - <T>)"),
        *("(-<T>)", "<T>.relu()", "<T>.tanh()", "<T>.sigmoid()", "(<T> / 2)"),
        *("runtime.where(<T> > <f>, <T>, <T>)", "(<T> if <b> else <T>)", "w(<T>)"),
        *("<T>[None, :][0]", "<T>[..., :]", "<T>[:]", "<T>.clone()", "(<T> * <T> + 1)"),
        *("(<T> / <T>)", "<T>.abs()", "<T>.exp()"),
    ),
}
LITERALS: dict[str, tuple[str, ...]] = {
    INT: ("0", "1", "2", "-3", "7"),
    FLOAT: ("0.5", "-2.0", "3.0"),
    BOOL: ("True", "False"),
    STR: ("'a'", "'bc'", "''"),
    INTS: ("[1, 2]", "[3]", "[0, -1, 4]"),
    STRS: ("['a']", "['b', 'c']"),
    TABLE: ("{'a': 1}", "{'b': 2, 'a': 3}"),
    PAIR: ("(1, 'a')", "(2, '')"),
    MAYBE: ("None", "3"),
    COMPLEX: ("1j", "(2.0 - 1j)"),
    POINT: ("Point(1, 'a')", "Point(-2, s='b')"),
    TENSOR: ("runtime.ones(SIZE)", "runtime.zeros(SIZE)"),
}
AUGMENTED = ("+=", "-=", "*=", "%=", "|=", "&=", "^=", "**=", "<<=", ">>=")
HEADERS = ("annotated", "quoted", "comment", "inferred", "docstring")
LOOPS = (
    *("range", "str", "list", "enumerate", "zip", "tuple", "reversed", "dict"),
    *("items", "tensor"),
)
# What is counted beside statements and expressions.
OTHERS = (
    *("if not None", "elif", "else", "break", "continue", "annotated assignment"),
    *(f"x {each} y" for each in (*AUGMENTED, "/=")),
    *(f"def {each}" for each in HEADERS),
    *(f"for {each}" for each in LOOPS),
    *("assert without words", "while True", "with manager", "with no_grad"),
    *("starred target", "unpack a list", "text +=", "list +=", "element +="),
    *("attribute +=", "tensor +=", "slice of tensor =", "delete key"),
)
EVERY = frozenset(
    (*STATEMENTS, *OTHERS, *(each for some in EXPRESSIONS.values() for each in some))
)


class Point:
    """A class of programs."""

    def __init__(self, n: int, s: str) -> None:
        self.n = n
        self.s = s

    def moved(self, k: int) -> int:
        """It changes."""
        self.n += k
        return self.n


class Guard:
    """What `with` enters."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __enter__(self) -> int:
        print("enter", self.n)
        return self.n

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        print("exit", self.n)


NAMES: dict[str, Any] = {
    "Guard": Guard,
    "Point": Point,
    "annotate": annotate,
    "cast": cast,
}
# Functions that some expressions call.
CALLED = {
    "h(": "def h(a: int, *, k: int) -> int:\n    return a * 2 - k\n",
    "w(": "def w(t):\n    return t + 1\n",
}
