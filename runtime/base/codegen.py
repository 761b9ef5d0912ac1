"""Functions generated from text: the one place where text becomes code.

For functions whose parameters, names or steps follow from a schema, a graph or a count,
and which are called too often for loops over these.

    @template("kernel", "run, record", GRAD=GRAD)
    def _kernel(count: int) -> list[str]:
        arguments = numbered(count)
        body = block("if GRAD.enabled:", [f"return record({arguments})"])
        return block(f"def kernel({arguments}):", [*body, f"return run({arguments})"])

    kernel = _kernel(2)(run, record)        # of a0 and a1

`generated` compiles one function from lines and the values of their names.  `template`
decorates a function that writes the lines of similar functions: they are written, and
compiled, once for all calls with the same facts, within `def make(...)`, whose
parameters are the differences between these functions.

Rules:
- a text consists of fixed words, numbers, literals (`repr`), and of names that were
  validated as names;
- names that a text uses and does not assign are bound in a separate namespace; a bound
  name that is assigned as well is a collision, which is an assertion;
- tracebacks, `inspect` and debuggers show the lines: they are in `linecache` as long as
  a function of the text lives, under a name that is the same in every process;
- equal texts of a kind share their code while a function of them lives;
- two threads that generate the same function at once do so twice, and either result is
  correct; a lock is held only while lines are stored, or compared and removed.
"""

import linecache
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import CodeType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary, finalize

from everyorder.runtime.base.locks import reentered

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

Function = Callable[..., Any]
# Creates a function from values for the parameters of its template.
Maker = Callable[..., Function]

# The name of the text in its namespace; it cannot be written in a text.
_TEXT = "<text>"
# Bytes of the digest of a text: among 2 to the 32 texts two digests would be equal.
_DIGEST = 8


def block(head: str, lines: Iterable[str]) -> list[str]:
    """Return `head` with lines below it, one level deeper."""
    return [head, *[f"    {line}" for line in lines]]


def numbered(count: int) -> str:
    """Return the names of `count` arguments: `a0, a1, a2`."""
    return ", ".join([f"a{place}" for place in range(count)])


class _Text:
    """The code of a text: one `def`; `assigned` are the names that it assigns."""

    __slots__ = ("__weakref__", "assigned", "code", "entry")

    def __init__(self, text: str, file: str) -> None:
        self.code = compile(text, file, "exec", dont_inherit=True)
        self.assigned = frozenset(_assigned(self.code))
        # Without a time, so that `linecache` does not look for a file.
        self.entry = len(text), None, text.splitlines(True), file


# File -> its text, which only functions keep alive.
_TEXTS: WeakValueDictionary[str, _Text] = WeakValueDictionary()
# Of the entries of generated functions in `linecache`.  The thread that holds it may
# generate a function, in a tracer or a signal handler.
_LINES = reentered()


def generated(kind: str, lines: Sequence[str], names: Mapping[str, Any]) -> Any:
    """Return the function that `lines` define, in a namespace of `names`.

    `kind` names it in tracebacks; see `is_generated`.
    """
    from hashlib import blake2b

    text = "\n".join(lines)
    digest = blake2b(text.encode(), digest_size=_DIGEST).hexdigest()
    file = f"<{kind} {digest}>"
    shared = _TEXTS.get(file)
    if shared is None:
        compiled = _Text(text, file)
        # Of two that are compiled at once one is used, and so are its lines.
        shared = _TEXTS.setdefault(file, compiled)
        if shared is compiled:
            finalize(compiled, _forget, compiled.entry).atexit = False
    # Also if the text was there: another thread may have registered it just now, and
    # not its lines yet.  An entry that is there may be that of a released text, which
    # another thread is about to remove.
    with _LINES:
        linecache.cache[file] = shared.entry
    assert shared.assigned.isdisjoint(names), f"{kind}: a name is bound and assigned"
    namespace = {_TEXT: shared, **names}
    exec(shared.code, namespace)  # noqa: S102  # see the first rule
    # The last definition; removed from the namespace to avoid a reference cycle.
    return namespace.pop(shared.code.co_names[-1])


def template(
    kind: str, parameters: str, /, **names: Any
) -> "Callable[[Callable[..., Sequence[str]]], _lru_cache_wrapper[Maker]]":
    """Decorate `write(*facts)`, which returns lines whose last `def` is the function.

    Called with facts, it returns `make(parameters)`, which creates such functions.
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
            make: Maker = generated(
                kind, block(f"def make({parameters}):", body), names
            )
            return make

        return maker

    return decorate


def is_generated(code: CodeType, kind: str) -> bool:
    """Return True if the code belongs to a generated function of this kind."""
    return code.co_filename.startswith(f"<{kind} ")


def is_text(names: Mapping[str, Any]) -> bool:
    """Return True if these are the global names of a generated function."""
    return _TEXT in names


def _assigned(code: CodeType) -> Iterable[str]:
    """Yield the names that functions in a text assign: parameters, variables, cells."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from inner.co_varnames
            yield from inner.co_cellvars
            yield from _assigned(inner)


def _forget(entry: tuple[int, None, list[str], str]) -> None:
    """Remove the lines of a released text, unless those of a new one replaced them."""
    file = entry[3]
    with _LINES:
        if file in linecache.cache and linecache.cache[file] is entry:
            del linecache.cache[file]
