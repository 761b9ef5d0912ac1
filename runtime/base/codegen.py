"""Functions made of text: the one place where text becomes code.

For functions whose parameters, names or steps follow from a schema, a graph or a count,
and which are called too often for loops over these.

    @template("kernel", "run, record", GRAD=GRAD)
    def _kernel(count: int) -> list[str]:
        given = numbered(count)
        body = block("if GRAD.enabled:", [f"return record({given})"])
        return block(f"def kernel({given}):", [*body, f"return run({given})"])

    kernel = _kernel(2)(run, record)        # of a0 and a1

`generated` makes one function of lines and of the values that they name.  `template`
decorates who writes the lines of functions that are alike: they are written, and
compiled, once for all calls with the same facts, within `def make(...)`, whose
parameters are what differs from one such function to the next.

Rules:
- a text is made of fixed words, numbers, literals (`repr`), and of names that were
  checked to be names;
- what a text names and does not assign is bound in a namespace of its own; that a bound
  name is assigned as well is a collision, which is an assertion;
- tracebacks, `inspect` and debuggers show the lines: they are in `linecache` as long as
  a function of the text lives, under a name that is the same in every process;
- equal texts of a kind share their code while a function of them lives;
- no lock is held, and nothing here looks at threads or processes: two threads that make
  the same function at once make it twice, and either will do.
"""

import linecache
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import CodeType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary, finalize

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

Function = Callable[..., Any]
# Makes a function of what the parameters of its template stand for.
Maker = Callable[..., Function]

# By this name a namespace keeps its text; no text can say it.
_TEXT = "<text>"
# Bytes that tell texts of one kind apart: of 2 to the 32, two would be alike.
_DIGEST = 8


def block(head: str, lines: Iterable[str]) -> list[str]:
    """`head` with lines below it, one level deeper."""
    return [head, *[f"    {line}" for line in lines]]


def numbered(count: int) -> str:
    """`count` arguments by name: `a0, a1, a2`."""
    return ", ".join([f"a{place}" for place in range(count)])


class _Text:
    """The code of a text: one `def`; `assigned` are the names that it assigns."""

    __slots__ = ("__weakref__", "assigned", "code", "entry")

    def __init__(self, text: str, file: str) -> None:
        self.code = compile(text, file, "exec", dont_inherit=True)
        self.assigned = frozenset(_assigned(self.code))
        # Without a time, so that nobody looks for a file.
        self.entry = len(text), None, text.splitlines(True), file


# File -> its text.  Nothing but functions keeps one.
_TEXTS: WeakValueDictionary[str, _Text] = WeakValueDictionary()


def generated(kind: str, lines: Sequence[str], names: Mapping[str, Any]) -> Any:
    """The function that `lines` define, in a namespace of `names`.

    `kind` says in tracebacks what it is; see `is_generated`.
    """
    from hashlib import blake2b

    text = "\n".join(lines)
    digest = blake2b(text.encode(), digest_size=_DIGEST).hexdigest()
    file = f"<{kind} {digest}>"
    known = _TEXTS.get(file)
    if known is None:
        made = _Text(text, file)
        # Of two that are made at once one is kept, and its lines with it.
        known = _TEXTS.setdefault(file, made)
        if known is made:
            finalize(made, _forget, file).atexit = False
        linecache.cache[file] = known.entry
    assert known.assigned.isdisjoint(names), f"{kind}: a name is bound and assigned"
    namespace = {_TEXT: known, **names}
    exec(known.code, namespace)  # noqa: S102  # see the first rule
    # The last that is defined; taken out, so that it is no circle.
    return namespace.pop(known.code.co_names[-1])


def template(
    kind: str, parameters: str, /, **names: Any
) -> "Callable[[Callable[..., Sequence[str]]], _lru_cache_wrapper[Maker]]":
    """Decorate `write(*facts)`, which gives the lines of a `def`, its own or last ones.

    Called with facts, it gives `make(parameters)`, which makes such functions.
    """

    def decorate(
        write: Callable[..., Sequence[str]],
    ) -> "_lru_cache_wrapper[Maker]":
        @cache
        def maker(*facts: Any) -> Maker:
            lines = write(*facts)
            heads = [line for line in lines if line.startswith("def ")]
            name = heads[-1].removeprefix("def ").partition("(")[0]
            body = [*lines, f"return {name}"]
            made: Maker = generated(
                kind, block(f"def make({parameters}):", body), names
            )
            return made

        return maker

    return decorate


def is_generated(code: CodeType, kind: str) -> bool:
    """Whether code is that of a function of a kind."""
    return code.co_filename.startswith(f"<{kind} ")


def _assigned(code: CodeType) -> Iterable[str]:
    """The names that functions in a text assign: parameters, variables, cells."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from inner.co_varnames
            yield from inner.co_cellvars
            yield from _assigned(inner)


def _forget(file: str) -> None:
    """Take the lines of a text that is gone away, unless it was made anew."""
    linecache.cache.pop(file, None)
    # Who makes a text notes it first, and its lines then: they are there, or will be.
    again = _TEXTS.get(file)
    if again is not None:
        linecache.cache[file] = again.entry
