"""Random schema texts over the whole grammar, and texts just outside it.

`SchemaWriter` makes random texts over the whole grammar, `damaged` changes one word of
such a text, and `deviant` writes what one side refuses by decision (see `predictions`).
A text carries the names of the constructs that went into it, so that a comparison can
tell what it covered; the names of all of them are `CONSTRUCTS`.  The same seed
gives the same texts.
"""

import random
import re
from typing import NamedTuple

# Types that are a word; the last three print as another one.
WORDS = (
    *("Tensor", "int", "SymInt", "float", "bool", "complex", "str", "Scalar"),
    *("Device", "ScalarType", "Layout", "MemoryFormat", "Generator", "Storage"),
    *("Stream", "QScheme", "Quantizer", "Capsule", "Any", "AnyClassType"),
    *("AnyEnumType", "NoneType", "None", "DeviceIndex", "ConstQuantizerPtr"),
)
# Type -> constants that it takes as a default.
CONSTANTS = {
    "Tensor": ("None",),
    "Generator": ("None",),
    "int": ("0", "1", "-3", "65536", "9223372036854775807", "1.5", "Mean", "True"),
    "SymInt": ("0", "7", "-1"),
    "float": ("0.", "1", "-0.5", "1e-05", "2.5e10", "3.14159", ".5", "1e300"),
    "bool": ("True", "False", "1"),
    "complex": ("1j", "2j", "-3j"),
    "str": ('"mean"', "'it'", '"a\\nb"', '"\\\\"', "'say \"so\"'", '""', "None"),
    "Scalar": ("1", "-1.5", "True", "None"),
    "Device": ('"cpu"', "'cuda:1'", '"meta"'),
    "ScalarType": ("float", "long", "complex", "6", "None"),
    "Layout": ("strided", "0"),
    "MemoryFormat": ("contiguous_format", "1"),
}
ELEMENTS = {
    "int": ("0", "1", "-2", "3"),
    "SymInt": ("0", "1", "5"),
    "float": ("0.5", "1.", "-2.25"),
    "bool": ("True", "False"),
}
NAMES = ("x", "self", "other", "dim", "out", "from", "lambda", "_0", "keep_dim", "n2")
SETS = ("a", "b", "c", "long_set")

CONSTRUCTS = (
    *(f"type {word}" for word in WORDS),
    *("tuple", "Dict", "Union", "Future", "Await", "RRef", "type variable"),
    *("optional", "optional twice", "list", "list of lists", "optional list"),
    *("list of optionals", "sized list", "optional sized list"),
    *("alias", "alias write", "alias wildcard", "alias sets", "alias after"),
    *("alias shorthand", "alias of a list", "alias optional"),
    *(f"default of {word}" for word in CONSTANTS),
    *("default of an optional", "default list", "default empty list"),
    *("default for a sized list", "keyword-only", "star trailing"),
    *("vararg", "vararg only", "no arguments", "overload", "namespace"),
    *("no returns", "one return", "one return in parentheses", "several returns"),
    *("named return", "returns vararg", "returns vararg only", "sized return"),
    *("comment", "line break", "blanks"),
)
# Members of unions, among them a pair that is one number and an optional.
_MEMBERS = ("Tensor", "int", "str", "bool", "Device", "bool?", "Scalar", "Tensor[]")
# Types that no question mark may follow.
_NONE = ("None", "NoneType")

# Name of a prediction of `predictions` -> texts that it is about.
DEVIANT = {
    "an_argument_named_twice": (
        "f(Tensor x, int x) -> Tensor",
        "f(Tensor self, *, Scalar self=1) -> ()",
    ),
    "a_hexadecimal_number": ("f(int x=0x10) -> ()", "f(Tensor x, int y=0xFF) -> int"),
    "a_late_list_without_default": (
        "f(int x=1, int[] y) -> ()",
        "f(float a=0.5, Tensor[] tensors, *, int[2] c) -> Tensor[]",
    ),
    "an_annotation_inside_a_type": (
        "f(Dict(str, Tensor(a!)) x) -> ()",
        "f((Tensor(a), int) x) -> Tensor",
    ),
    "a_wildcard_before_other_sets": (
        "f(Tensor(*|a) x) -> ()",
        "f(Tensor(a -> *|b) x) -> Tensor(*)",
    ),
    "a_complex_default_without_j": (
        "f(complex x=2) -> ()",
        "f(Tensor self, complex scale=7) -> Tensor",
    ),
    "a_float_that_is_nearly_zero": ("f(float x=1e-400) -> ()",),
    "a_text_for_another_type": ('f(int x="a", Scalar? y="b c") -> ()',),
    "an_annotation_of_an_optional_element": (
        "f(Tensor(a)?[] x) -> ()",
        "f(Tensor self, Tensor(b!)?[] outs) -> Tensor(b!)?[]",
    ),
    "an_optional_none": ("f(NoneType? x) -> ()", "f(None?[] x) -> (int, NoneType?)"),
    "a_union_of_one_type": (
        "f(Union(int, int) x) -> ()",
        "f(Tensor x) -> Union(str, str)[]",
    ),
}


class Text(NamedTuple):
    """A schema text and the constructs that went into it."""

    text: str
    constructs: frozenset[str]


class SchemaWriter:
    """Writes one schema after another from a source of chance."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._hits: set[str] = set()

    def text(self, *, name: str | None = None, plain: bool = False) -> Text:
        """A schema; with `plain`, free of line breaks, comments and type variables."""
        self._hits = set()
        self._variables = not plain
        declared = self._name() if name is None else name
        text = f"{declared}{self._arguments()} -> {self._returns()}"
        if not plain:
            text = self._spread(text)
        return Text(text, frozenset(self._hits))

    def deviant(self) -> Text:
        """A schema that one side refuses by decision; its construct names why."""
        name = self._chance.choice(tuple(DEVIANT))
        return Text(self._chance.choice(DEVIANT[name]), frozenset({name}))

    def _hit(self, construct: str) -> None:
        self._hits.add(construct)

    def _odds(self, share: float) -> bool:
        return self._chance.random() < share

    def _name(self) -> str:
        name = self._chance.choice(("f", "add_", "_op", "Conv2d"))
        if self._odds(0.3):
            self._hit("namespace")
            name = f"{self._chance.choice(('ns', 'my_lib'))}::{name}"
        if self._odds(0.3):
            self._hit("overload")
            name = f"{name}.{self._chance.choice(('out', 'Tensor', 'from', '_x'))}"
        return name

    def _arguments(self) -> str:
        count = self._chance.choice((0, 1, 1, 2, 2, 3, 4))
        vararg = self._odds(0.06)
        if not count:
            self._hit("vararg only" if vararg else "no arguments")
            return "(...)" if vararg else "()"
        names = self._chance.sample(NAMES, count)
        star = self._chance.randrange(count) if self._odds(0.3) else count
        defaults = False
        items = []
        for index, name in enumerate(names):
            if index == star:
                self._hit("keyword-only")
                items.append("*")
            wants = not vararg and (self._odds(0.4) or (defaults and index < star))
            defaults |= wants
            items.append(self._defaulted(name) if wants else f"{self._sized()} {name}")
        if vararg:
            self._hit("vararg")
            items.append("...")
        elif self._odds(0.05):
            self._hit("star trailing")
            items.append("*")
        return f"({', '.join(items)})"

    def _defaulted(self, name: str) -> str:
        """An argument with a default that its type takes."""
        kind = self._chance.randrange(5)
        if kind == 0:
            self._hit("default of an optional")
            inner = self._chance.choice(("int", "float", "Tensor", "str", "bool"))
            wide = inner in ("Tensor", "str") or self._odds(0.5)
            value = "None" if wide else self._chance.choice(CONSTANTS[inner][:2])
            return f"{inner}? {name}={value}"
        if kind == 1:
            return self._default_list(name)
        if kind == 2:
            self._hit("default for a sized list")
            element = self._chance.choice(tuple(ELEMENTS))
            value = self._chance.choice(ELEMENTS[element])
            return f"{element}[{self._chance.randrange(1, 4)}] {name}={value}"
        word = self._chance.choice(tuple(CONSTANTS))
        self._hit(f"type {word}")
        self._hit(f"default of {word}")
        return f"{word} {name}={self._chance.choice(CONSTANTS[word])}"

    def _default_list(self, name: str) -> str:
        element = self._chance.choice(tuple(ELEMENTS))
        count = self._chance.randrange(4)
        values = [self._chance.choice(ELEMENTS[element]) for _ in range(count)]
        if count > 1 and self._odds(0.3):
            values = values[:1] * count
        self._hit("default list" if count else "default empty list")
        size = ""
        if self._odds(0.4):
            self._hit("sized list")
            size = str(max(count, 1))
        return f"{element}[{size}] {name}=[{', '.join(values)}]"

    def _returns(self) -> str:
        count = self._chance.choice((0, 1, 1, 1, 2, 3))
        if self._odds(0.04):
            self._hit("returns vararg only")
            return self._chance.choice(("...", "(...)"))
        items = [self._return() for _ in range(count)]
        if not count:
            self._hit("no returns")
            return "()"
        if self._odds(0.05):
            self._hit("returns vararg")
            return f"({', '.join([*items, '...'])})"
        if count > 1:
            self._hit("several returns")
            return f"({', '.join(items)})"
        if items[0].startswith("(") or self._odds(0.3):
            self._hit("one return in parentheses")
            return f"({items[0]})"
        self._hit("one return")
        return items[0]

    def _return(self) -> str:
        text = self._type(0)
        if self._odds(0.05):
            self._hit("sized return")
            text = f"{self._chance.choice(WORDS[:8])}[2]"
        if self._odds(0.25):
            self._hit("named return")
            text = f"{text} {self._chance.choice(NAMES)}"
        return text

    def _sized(self) -> str:
        if not self._odds(0.12):
            return self._type(0)
        self._hit("sized list")
        text = f"{self._chance.choice(WORDS[:8])}[{self._chance.randrange(1, 5)}]"
        if self._odds(0.3):
            self._hit("optional sized list")
            text += "?"
        return text

    def _type(self, depth: int) -> str:
        if depth == 0 and self._odds(0.3):
            return self._annotated()
        chosen = self._chance.randrange(14)
        if chosen < 6 or depth > 2:
            word = "Tensor" if chosen == 0 else self._chance.choice(WORDS)
            self._hit(f"type {word}")
            return word
        if chosen < 11:
            return self._suffixed(chosen, depth)
        return self._made(depth)

    def _suffixed(self, chosen: int, depth: int) -> str:
        inner = self._type(depth + 1)
        if inner in _NONE:
            chosen = 10
        if chosen == 6:
            self._hit("optional twice" if inner.endswith("?") else "optional")
            return f"{inner}?"
        if chosen == 7:
            self._hit("optional list")
            return f"{inner}[]?"
        if chosen == 8:
            self._hit("list of optionals")
            return f"{inner}?[]"
        if chosen == 9:
            self._hit("optional")
            return f"{inner}?"
        self._hit("list of lists" if inner.endswith("]") else "list")
        return f"{inner}[]"

    def _made(self, depth: int) -> str:
        kind = self._chance.choice(
            ("tuple", "Dict", "Union", "Future", "Await", "RRef", "type variable")
        )
        if kind == "type variable" and not self._variables:
            kind = "tuple"
        self._hit(kind)
        if kind == "type variable":
            return self._chance.choice(("t", "number", "tensor"))
        if kind == "Union":
            return f"Union({', '.join(self._chance.sample(_MEMBERS, 2))})"
        first = self._type(depth + 1)
        if kind in ("Future", "Await", "RRef"):
            return f"{kind}({first})"
        if kind == "Dict":
            return f"Dict({self._chance.choice(('str', 'int'))}, {first})"
        second = self._type(depth + 1)
        return f"({first}, {second})"

    def _annotated(self) -> str:
        self._hit("type Tensor")
        kind = self._chance.randrange(8)
        sets = self._chance.choice(SETS)
        write = ""
        if kind == 0:
            self._hit("alias shorthand")
            return "Tensor!"
        if kind == 1:
            self._hit("alias wildcard")
            sets = "*"
        elif kind == 2:
            self._hit("alias sets")
            sets = "|".join(self._chance.sample(SETS, self._chance.choice((2, 3))))
        if self._odds(0.5):
            self._hit("alias write")
            write = "!"
        after = ""
        if kind == 3:
            self._hit("alias after")
            count = self._chance.choice((1, 2))
            after = "|".join(self._chance.sample(SETS, count))
            after = f" -> {after}{self._chance.choice(('', '', '|*'))}"
        self._hit("alias")
        text = f"Tensor({sets}{write}{after})"
        if kind == 4:
            self._hit("alias of a list")
            return f"{text}[]"
        if kind == 5:
            self._hit("alias of a list")
            return f"{text}[](b{write})"
        if kind == 6:
            self._hit("alias optional")
            return f"{text}?"
        return text

    def _spread(self, text: str) -> str:
        """The same words with other blanks between them."""
        kind = self._chance.randrange(12)
        if kind == 0:
            self._hit("comment")
            return f"{text}  # and so on"
        if kind == 1 and ", " in text:
            self._hit("line break")
            return text.replace("(", "(\n    ", 1)
        if kind == 2:
            self._hit("blanks")
            return " " + re.sub(r"(?<=[,>\]]) ", "   ", text) + " "
        return text


# What a word may be replaced by in a damaged text.
_STRAY = ("(", ")", "[", "]", ",", "?", "!", "*", "...", "->", "=", "::", "|", "-")


def damaged(chance: random.Random, text: str) -> str:
    """`text` with one word dropped, doubled, swapped or replaced.

    Single dots stay: torch reads `a.b` where a type belongs, and forgets the `a`.
    """
    words = re.findall(r"->|::|\.\.\.|\w+|\"[^\"]*\"|\s+|.", text)
    places = [place for place, word in enumerate(words) if word.strip(" \n.")]
    place = chance.choice(places)
    match chance.randrange(5):
        case 0:
            words[place] = ""
        case 1:
            words[place] *= 2
        case 2:
            words[place] = chance.choice(_STRAY)
        case 3:
            other = chance.choice(places)
            words[place], words[other] = words[other], words[place]
        case _:
            words[place] = f"{words[place]} {chance.choice(words)}"
    return "".join(words)
