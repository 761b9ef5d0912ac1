"""What a kernel is: a callable, how it is called, and what it tells about itself.

There are seven calling conventions:

======== ===================================== =====================================
kind     called as                             comes from
======== ===================================== =====================================
typed    `fn(*arguments)`, defaults filled in  a function with annotations
python   `fn(*args, **kwargs)`, defaults       a function without annotations
         taken out (see `runtime.schema.defaults`)
stack    `fn(operator, keyset, stack)`, pops   `boxed(fn)`
         its arguments, pushes its results
direct   `fn(*arguments)`, all of them, in the `direct(fn, name)`
         order of the schema
linked   `fn(below, keyset)` once, which gives `linked(fn, name)`
         the function of all the arguments
through  never                                 `fallthrough`
refusing raises, by name                       `named_not_supported`, the table
======== ===================================== =====================================

Rules:
- a `Kernel` is frozen, and a pure function of the callable that it was made from;
- it never knows where it is registered: that is the `Implementation`'s business;
- what is remembered of a function (`Facts`) never refers to the function, so that
  nothing but its registrations keeps a kernel alive.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from runtime.errors.call import CannotRun
from runtime.errors.registration import LibraryMisuse
from runtime.schema.annotation import kernel_signature
from runtime.schema.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What a callable tells about itself; one object for each function.

    `inferred` is the schema told by annotations (empty name); `signature` the text
    that all typed kernels of one operator must share; `leading_keyset` says that the
    first annotated parameter is a keyset; `keyword_only` are the parameters that must
    be named; `suffix` is what `dump_state` prints behind the description: the inferred
    schema, and how the kernel can be called.
    """

    kind: str
    name: str
    inferred: Schema | None = None
    signature: str | None = None
    leading_keyset: bool = False
    keyword_only: tuple[str, ...] = ()
    suffix: str = " :: (none) [ boxed ]"


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A callable with its facts; `function` is None for `fallthrough` only."""

    function: Callable[..., Any] | None
    facts: Facts
    with_keyset: bool = False


fallthrough = Kernel(
    None, Facts("through", "fallthrough", suffix=" :: (none) [ fallthrough boxed ]")
)


def boxed(function: Callable[..., Any], name: str | None = None) -> Kernel:
    """A kernel of the stack convention: `function(operator, keyset, stack)`.

    `operator` is the `OperatorHandle`, `keyset` the `KeySet` of the call, `stack` a
    list that ends with the arguments; the function pops exactly these and pushes
    exactly its results.  The dispatcher checks the balance after every call.
    Raises `LibraryMisuse` for what cannot be called.
    """
    if not callable(function):
        raise LibraryMisuse(
            code="NotAKernel", call="boxed(...)", found=type(function).__name__
        )
    return Kernel(function, Facts("stack", name or describe(function)))


def direct(function: Callable[..., Any], name: str | None = None) -> Kernel:
    """A kernel that gets every argument, by position, in the order of the schema.

    Codes come as objects (`DType`, ...).  What annotations say does not matter, and no
    signature is checked.  `name` is what dumps show.  Raises `LibraryMisuse`.
    """
    if not callable(function):
        raise LibraryMisuse(
            code="NotAKernel", call="direct(...)", found=type(function).__name__
        )
    return Kernel(function, Facts("direct", name or describe(function)))


def linked(factory: Callable[[Any, Any], Callable[..., Any]], name: str) -> Kernel:
    """A kernel that runs the one below it, found once for each keyset.

    `factory(below, keyset)` returns the function that is called with every argument, as
    a `direct` one; it is remembered on the entry.  `keyset` is that of the call, and
    `below(*arguments)` runs the kernel of the next key under this kernel's slot, of the
    same entry.  `below.at(keyset)` is such a function for another keyset, and
    `below.schema` the operator's schema.  A factory that returns `below.run` costs a
    call nothing.  Raises `LibraryMisuse`.
    """
    if not callable(factory):
        raise LibraryMisuse(
            code="NotAKernel", call="linked(...)", found=type(factory).__name__
        )
    return Kernel(factory, Facts("linked", name))


def _refuse_names(operator: Any, keyset: Any, stack: list[Any]) -> None:
    raise CannotRun(code="NamedNotSupported", operator=str(operator.name))


named_not_supported = boxed(_refuse_names, "named tensors are not supported")

_FACTS: WeakKeyDictionary[Callable[..., Any], Facts] = WeakKeyDictionary()


def kernel_of(function: Callable[..., Any] | Kernel, with_keyset: bool) -> Kernel:
    """The kernel of a callable: typed if it is annotated whole, python otherwise.

    Raises:
        InferenceError: the callable is annotated by types that no schema has.
    """
    if isinstance(function, Kernel):
        return function
    facts = _remembered_facts(function)
    return Kernel(function, facts, with_keyset or facts.leading_keyset)


# The comparison of what equals nothing but itself.
_IDENTITY: Any = object.__eq__


def _remembered_facts(function: Callable[..., Any]) -> Facts:
    if type(function).__eq__ is not _IDENTITY:  # an equal one may be another one
        return facts_of(function)
    try:
        found = _FACTS.get(function)
    except TypeError:  # not weakly referable
        return facts_of(function)
    if found is None:
        found = _FACTS[function] = facts_of(function)
    return found


def untyped_kernel_of(function: Callable[..., Any], with_keyset: bool) -> Kernel:
    """The kernel of a callable whose annotations say nothing: `python`."""
    return Kernel(function, Facts("python", describe(function)), with_keyset)


def facts_of(function: Callable[..., Any]) -> Facts:
    """Read the facts off a callable (see `Facts`)."""
    name = describe(function)
    inferred, leading_keyset, keyword_only = kernel_signature(function)
    if inferred is None:
        return Facts("python", name, leading_keyset=leading_keyset)
    text = str(inferred)
    suffix = f" :: {text} [ boxed unboxed ]"
    return Facts("typed", name, inferred, text, leading_keyset, keyword_only, suffix)


def keyword_places(schema: Schema, names: tuple[str, ...]) -> dict[str, int]:
    """Which argument each keyword-only parameter of a typed kernel gets.

    The one of that name; if any has none (as in an inferred schema), the last ones.
    """
    count = len(schema.arguments)
    known = {a.name: place for place, a in enumerate(schema.arguments)}
    if not set(names) <= set(known):
        known = dict(zip(names, range(count - len(names), count), strict=True))
    return {name: known[name] for name in names}


def describe(function: Callable[..., Any]) -> str:
    """The function's own name, free of addresses and of enclosing scopes."""
    name = getattr(function, "__name__", None) or type(function).__name__
    return "lambda" if name == "<lambda>" else str(name)
