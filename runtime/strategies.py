"""Hypothesis strategies for schemas, keys, and the calls of libraries.

They need the extra `hypothesis`.  The strategies for whole scenarios of a dispatcher
are in `everyorder.harness.strategies`; those here know of the runtime only.

    @given(schemas())
    def test_a_schema_prints_as_text_that_parses_back(schema):
        assert parse_schema(str(schema)) == schema

Rules:
- the strategies produce what the grammar and the rules of libraries allow, in every
  form; a generated text need not be in the form in which a schema prints;
- values shrink to few arguments, short names and plain types;
- a `LibraryProgram` is data that prints as the Python code that it runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

# ruff: noqa: E402  # first of all, an error that names the extra
from everyorder.runtime.base.extras import require_hypothesis

require_hypothesis()

from hypothesis import strategies as st

from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.keys import SLOTS, DispatchKey
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.tokenizer import KEYWORDS
from everyorder.runtime.schema.types import DICT_KEYS, NAMED_BASES

__all__ = [
    "LibraryProgram",
    "dispatch_keys",
    "library_programs",
    "schema_texts",
    "schemas",
    "type_texts",
]

# Names that are not keywords of the schema language.
NAMES = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,6}\Z").filter(
    lambda word: word not in KEYWORDS
)
_SETS = st.lists(st.one_of(NAMES, st.just("*")), min_size=1, max_size=3).map("|".join)
_ALIASES = st.one_of(
    st.just(""),
    st.just("!"),
    st.builds("({}{})".format, _SETS, st.sampled_from(["", "!"])),
    st.builds("({}{} -> {})".format, _SETS, st.sampled_from(["", "!"]), _SETS),
)
_SUFFIXES = st.lists(
    st.one_of(st.just("?"), st.builds("[]{}".format, _ALIASES)), max_size=3
).map("".join)
_SIZES = st.one_of(
    st.just(""),
    st.builds(
        "[{}]{}{}".format, st.integers(0, 5), _ALIASES, st.sampled_from(["", "?"])
    ),
)
_KEYS = st.sampled_from(sorted({str(key) for key in DICT_KEYS} | {"SymInt"}))
_NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.builds(
        "{!r}{:+}j".format,
        st.floats(-9, 9),
        st.floats(allow_nan=False, allow_infinity=False, width=32),
    ),
    st.sampled_from(["True", "False", "float", "strided"]),
)
_TEXTS = st.text(st.characters(exclude_characters="\\\n'", codec="utf-8"), max_size=8)
# Pairs of a type and a default that it accepts, both as text.
_DEFAULTED = st.one_of(
    st.tuples(
        st.sampled_from(["int", "float", "bool", "complex", "str", "Scalar", "Any?"]),
        st.one_of(_NUMBERS, st.just("None"), _TEXTS.map("'{}'".format)),
    ),
    st.tuples(
        st.sampled_from(["Tensor", "Tensor?", "Generator", "int[2]?", "Device?"]),
        st.just("None"),
    ),
    st.tuples(
        st.sampled_from(["int[]", "int[2]", "SymInt[3]", "int[0]"]),
        st.lists(st.integers(0, 1), max_size=3).map(str),
    ),
    st.tuples(st.just("float[2]"), st.integers(0, 9).map(str)),
    st.tuples(st.just("Device"), st.sampled_from(["cpu", "cuda:1", "'meta'"])),
)
_OPERATORS = st.sampled_from(["f", "a::f", "f.o", "a::f.o"])


def type_texts(
    *, variables: bool = True, classes: Sequence[str] = ()
) -> st.SearchStrategy[str]:
    """Return a strategy for types as text, with annotations and sizes.

    Args:
        variables: include type variables, which definitions do not allow.
        classes: registered classes to include, as `namespace.Class`.
    """
    words = [*NAMED_BASES, *(f"__torch__.torch.classes.{each}" for each in classes)]
    bases = st.sampled_from([*words, *(["t", "tVal"] if variables else [])])
    # Types that can be put into other types have neither annotation nor size.
    inner = st.recursive(
        bases,
        lambda inner: st.one_of(
            st.builds("{}[]".format, inner),
            st.builds("{}?".format, inner),
            st.builds("Future({})".format, inner),
            st.builds("Await({})".format, inner),
            st.builds("RRef({})".format, inner),
            st.builds("Dict({}, {})".format, _KEYS, inner),
            st.builds("Union({}, {}, {})".format, inner, inner, inner),
            st.lists(inner, max_size=3).map(lambda parts: f"({', '.join(parts)})"),
        ),
        max_leaves=5,
    )
    return st.one_of(
        st.builds("{}{}{}{}".format, bases, _ALIASES, _SUFFIXES, _SIZES),
        st.builds("{}{}".format, inner, _SIZES),
    )


@st.composite
def schema_texts(
    draw: st.DrawFn,
    names: st.SearchStrategy[str] = _OPERATORS,
    *,
    variables: bool = True,
    classes: Sequence[str] = (),
) -> str:
    """Return a strategy for valid schemas as text, mostly not as they would print.

    Args:
        draw: passed by Hypothesis.
        names: the names of the operators.
        variables: as for `type_texts`.
        classes: as for `type_texts`.
    """
    types = type_texts(variables=variables, classes=classes)
    plain = draw(st.lists(types, max_size=3))
    defaulted = draw(st.lists(_DEFAULTED, max_size=3))
    kwarg_only = draw(st.lists(types, max_size=2))
    count = len(plain) + len(defaulted) + len(kwarg_only)
    labels = iter(
        draw(st.lists(NAMES, min_size=count, max_size=count, unique=True)),
    )
    items = [f"{each} {next(labels)}" for each in plain]
    items += [f"{each} {next(labels)}={value}" for each, value in defaulted]
    if kwarg_only:
        items += ["*", *(f"{each} {next(labels)}" for each in kwarg_only)]
    if not defaulted and draw(st.booleans()):
        items.append("...")
    results = draw(st.lists(types, max_size=3))
    return f"{draw(names)}({', '.join(items)}) -> ({', '.join(results)})"


def schemas(
    names: st.SearchStrategy[str] = _OPERATORS,
    *,
    variables: bool = True,
    classes: Sequence[str] = (),
) -> st.SearchStrategy[Schema]:
    """Return a strategy for schemas; the arguments are as for `schema_texts`."""
    return schema_texts(names, variables=variables, classes=classes).map(parse_schema)


def dispatch_keys(*, aliases: bool = True) -> st.SearchStrategy[DispatchKey]:
    """Return a strategy for the keys at which a kernel can be registered.

    Args:
        aliases: include keys that name a set of others, as `Autograd`.
    """
    keys = [*SLOTS, *filter(lambda key: key.is_alias, DispatchKey)]
    return st.sampled_from(keys if aliases else [*SLOTS])


@dataclass(frozen=True, slots=True)
class LibraryProgram:
    """Calls of libraries on a fresh dispatcher, one a line; `str` is Python code.

    A line whose call is refused says so: `with suppress(EveryorderError): ...`.
    """

    lines: tuple[str, ...]

    def play(self, dispatcher: Dispatcher) -> Iterator[str]:
        """Run the lines on a fresh dispatcher, and yield each after it was run.

        Raises:
            EveryorderError: a call was refused that was not refused before.
        """
        names = {**_PROGRAM_NAMES, "dispatcher": dispatcher}
        for line in self.lines:
            exec(line, names)  # noqa: S102  # code of this file, from the drawn arguments
            yield line

    def __str__(self) -> str:
        return "\n".join((*_PREAMBLE, *self.lines))


_NAMESPACES = ("a", "b")
_NAMES_OF_OPERATORS = ("f", "g", "f.o")
_KERNELS = ("fallthrough", "kernel", "typed_kernel")
_PREAMBLE = (
    "from contextlib import suppress",
    "from everyorder.runtime import Dispatcher, Library, fallthrough",
    "from everyorder.runtime.errors.base import EveryorderError",
    "def kernel(*args, **kwargs): return None",
    "def typed_kernel(x: int) -> int: return x",
    "dispatcher = Dispatcher(warns_of_overrides=False)",
)
_PROGRAM_NAMES: dict[str, Any] = {}
exec("\n".join(_PREAMBLE), _PROGRAM_NAMES)  # noqa: S102  # the text above


class _Program:
    """The lines so far, and what they made on a dispatcher of their own."""

    def __init__(self) -> None:
        dispatcher = Dispatcher(warns_of_overrides=False)
        self.names = {**_PROGRAM_NAMES, "dispatcher": dispatcher}
        self.lines: list[str] = []
        # The names of libraries and of registrations.
        self.made: dict[str, list[str]] = {"library": [], "registration": []}

    def run(self, call: str, kind: str = "") -> None:
        """Run a call, and append its line; `kind` names what it returns."""
        name = f"{kind}_{len(self.lines) + 1}"
        line = f"{name} = {call}" if kind else call
        try:
            exec(line, self.names)  # noqa: S102  # code of this file
        except EveryorderError:
            self.lines.append(f"with suppress(EveryorderError): {call}")
            return
        self.lines.append(line)
        if kind:
            self.made[kind].append(name)


@st.composite
def library_programs(
    draw: st.DrawFn, *, max_size: int = 12, ends: bool = True
) -> LibraryProgram:
    """Return a strategy for calls of libraries: open, define, impl, ..., and close.

    The libraries are of two namespaces and `_`, so the calls meet each other often, and
    some are refused.

    Args:
        draw: passed by Hypothesis.
        max_size: the limit of the calls before the end.
        ends: close all libraries at the end, in some order.
    """
    program = _Program()
    keys = dispatch_keys().map(lambda key: f'"{key.name}"')
    operators = st.sampled_from(_NAMES_OF_OPERATORS)
    kernels = st.sampled_from(_KERNELS)
    texts = schema_texts(operators, variables=False)

    for _ in range(draw(st.integers(1, max_size))):
        libraries = program.made["library"]
        methods = ["open"]
        if libraries:
            methods += ["define", "impl", "impl", "fallback", "reserve", "close"]
        if program.made["registration"]:
            methods += ["end", "end"]
        method = draw(st.sampled_from(methods))
        if method == "open":
            namespace = draw(st.sampled_from((*_NAMESPACES, "_")))
            kinds = ("DEF", "FRAGMENT", "IMPL") if namespace != "_" else ("IMPL",)
            kind = draw(st.sampled_from(kinds))
            text = f'"{namespace}", "{kind}", dispatcher=dispatcher'
            program.run(f"Library({text})", "library")
            continue
        if method == "end":
            name = draw(st.sampled_from(program.made["registration"]))
            program.run(f"{name}.close()")
            continue
        library = draw(st.sampled_from(libraries))
        if method == "close":
            program.run(f"{library}.close()")
            continue
        if method == "define":
            call = f"define({draw(texts)!r})"
        elif method == "impl":
            arguments = f'"{draw(operators)}", {draw(kernels)}, {draw(keys)}'
            exclusive = draw(st.sampled_from(("", ", allow_override=False")))
            call = f"impl({arguments}{exclusive})"
        elif method == "fallback":
            call = f"fallback({draw(kernels)}, {draw(keys)})"
        else:
            call = f'reserve("{draw(operators)}")'
        program.run(f"{library}.{call}", "registration")
    if ends:
        for library in draw(st.permutations(program.made["library"])):
            program.run(f"{library}.close()")
    return LibraryProgram(tuple(program.lines))
