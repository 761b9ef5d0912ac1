"""Kernels: a callable, its calling convention, and the traits read from it.

There are seven calling conventions:

======== ===================================== =====================================
kind     called as                             created by ========
===================================== ===================================== typed
`fn(*arguments)`, defaults filled in  a function with annotations python   `fn(*args,
**kwargs)`, defaults       a function without annotations
         removed (see `runtime.schema.defaults`)
stack    `fn(operator, keyset, stack)`, pops   `boxed(fn)`
         its arguments, pushes its results
direct   `fn(*arguments)`, all of them, in the `direct(fn, name)`
         order of the schema
linked   `fn(next_kernel, keyset)` once, which `linked(fn, name)`
         returns the function of all arguments
through  never                                 `fallthrough` refusing raises an error
with its name         `named_not_supported`, the table ========
===================================== =====================================

Rules:
- a `Kernel` is frozen, and a pure function of the callable that it wraps;
- it does not know where it is registered: that is the task of `Implementation`;
- the cached traits of a function (`KernelTraits`) never refer to the function, so that
  only its registrations keep a kernel alive.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from everyorder.runtime.errors.call import CannotRun
from everyorder.runtime.errors.registration import LibraryMisuse
from everyorder.runtime.schema.annotation import kernel_signature
from everyorder.runtime.schema.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class KernelTraits:
    """The properties read from a callable; one object for each function.

    `inferred` is the schema inferred from annotations (empty name); `signature` the
    text that all typed kernels of one operator must share; `leading_keyset` is true if
    the first annotated parameter is a keyset; `keyword_only` are the keyword-only
    parameters; `suffix` is printed by `dump_state` after the description: the inferred
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
    """A callable with its traits; `function` is None only for `fallthrough`."""

    function: Callable[..., Any] | None
    facts: KernelTraits
    with_keyset: bool = False


fallthrough = Kernel(
    None,
    KernelTraits("through", "fallthrough", suffix=" :: (none) [ fallthrough boxed ]"),
)


def _not_a_kernel(call: str, value: object) -> LibraryMisuse:
    return LibraryMisuse(code="NotAKernel", call=call, found=type(value).__name__)


def boxed(function: Callable[..., Any], name: str | None = None) -> Kernel:
    """Return a kernel of the stack convention: `function(operator, keyset, stack)`.

    `operator` is the `OperatorHandle`, `keyset` the `KeySet` of the call, `stack` a
    list that ends with the arguments; the function pops exactly these and pushes
    exactly its results.  The dispatcher checks the balance after every call. Raises
    `LibraryMisuse` for an object that is not callable.
    """
    if not callable(function):
        raise _not_a_kernel("boxed(...)", function)
    return Kernel(function, KernelTraits("stack", name or describe(function)))


def direct(function: Callable[..., Any], name: str | None = None) -> Kernel:
    """Return a kernel that gets all arguments, by position, in the order of the schema.

    Enum arguments are objects (`DType`, ...).  Annotations are ignored, and no
    signature is checked.  `name` is shown by dumps.  Raises `LibraryMisuse`.
    """
    if not callable(function):
        raise _not_a_kernel("direct(...)", function)
    return Kernel(function, KernelTraits("direct", name or describe(function)))


def linked(factory: Callable[[Any, Any], Callable[..., Any]], name: str) -> Kernel:
    """Return a kernel that runs the next one, which it looks up once for each keyset.

    `factory(next_kernel, keyset)` returns the function that is called with every
    argument, as a `direct` one; it is cached on the entry.  `keyset` is that of the
    call, and `next_kernel` a `runtime.dispatch.kernel_lookup.NextKernel`: called with
    all arguments, it runs the kernel of the next key under this kernel's slot, of the
    same entry.  A factory that returns `next_kernel.run` adds no cost to a call. Raises
    `LibraryMisuse`.
    """
    if not callable(factory):
        raise _not_a_kernel("linked(...)", factory)
    return Kernel(factory, KernelTraits("linked", name))


def _refuse_names(operator: Any, keyset: Any, stack: list[Any]) -> None:
    raise CannotRun(code="NamedNotSupported", operator=str(operator.name))


named_not_supported = boxed(_refuse_names, "named tensors are not supported")


KernelLike = Callable[..., Any] | Kernel


def kernel_for(
    call: str,
    kernel: object,
    with_keyset: bool,
    read: Callable[[Callable[..., Any], bool], Kernel] | None = None,
) -> Kernel:
    """Return the kernel of an argument of `call`; `read` defaults to `kernel_of`.

    Raises `LibraryMisuse`, and what `read` does.
    """
    if isinstance(kernel, Kernel):
        return replace(kernel, with_keyset=True) if with_keyset else kernel
    if callable(kernel):
        return (read or kernel_of)(kernel, with_keyset)
    raise _not_a_kernel(call, kernel)


def fallback_for(call: str, kernel: object, with_keyset: bool) -> Kernel:
    """Return the kernel of a fallback, whose annotations are ignored.

    Raises `LibraryMisuse`, also for a kernel that takes the arguments of one operator.
    """
    fallback = kernel_for(call, kernel, with_keyset, untyped_kernel_of)
    if fallback.facts.kind == "direct":
        raise LibraryMisuse(
            code="WrongArgument",
            argument="kernel",
            expected="a function of an operator and its arguments, boxed(...) or "
            "linked(...)",
            found="direct(...)",
        )
    return fallback


def description_of(kernel: Kernel, debug: str | None, origin: str) -> str:
    """Return the description of a kernel in dumps: `debug`, else name and origin."""
    if debug is not None:
        return text_of("debug", debug)
    return origin if kernel.function is None else f"{kernel.facts.name} ({origin})"


def text_of(argument: str, value: object) -> str:
    """Return the value of an argument that must be a str.  Raises `LibraryMisuse`."""
    if isinstance(value, str):
        return value
    raise wrong_argument(argument, "a text", value)


def wrong_argument(argument: str, expected: str, value: object) -> LibraryMisuse:
    """Build the error for an argument of a wrong type."""
    return LibraryMisuse(
        code="WrongArgument",
        argument=argument,
        expected=expected,
        found=type(value).__name__,
    )


_FACTS: WeakKeyDictionary[Callable[..., Any], KernelTraits] = WeakKeyDictionary()


def kernel_of(function: Callable[..., Any] | Kernel, with_keyset: bool) -> Kernel:
    """Return the kernel of a callable: typed if all is annotated, python otherwise.

    Raises:
        InferenceError: an annotation does not denote a schema type.
    """
    if isinstance(function, Kernel):
        return function
    facts = _remembered_facts(function)
    return Kernel(function, facts, with_keyset or facts.leading_keyset)


# The comparison of objects that are equal only to themselves.
_IDENTITY: Any = object.__eq__


def _remembered_facts(function: Callable[..., Any]) -> KernelTraits:
    if type(function).__eq__ is not _IDENTITY:  # equal callables may differ
        return facts_of(function)
    try:
        facts = _FACTS.get(function)
    except TypeError:  # not weakly referable
        return facts_of(function)
    if facts is None:
        facts = _FACTS[function] = facts_of(function)
    return facts


def untyped_kernel_of(function: Callable[..., Any], with_keyset: bool) -> Kernel:
    """Return the python kernel of a callable, whatever its annotations."""
    return Kernel(function, KernelTraits("python", describe(function)), with_keyset)


def facts_of(function: Callable[..., Any]) -> KernelTraits:
    """Read the traits of a callable (see `KernelTraits`)."""
    name = describe(function)
    inferred, leading_keyset, keyword_only = kernel_signature(function)
    if inferred is None:
        return KernelTraits("python", name, leading_keyset=leading_keyset)
    text = str(inferred)
    suffix = f" :: {text} [ boxed unboxed ]"
    return KernelTraits(
        "typed", name, inferred, text, leading_keyset, keyword_only, suffix
    )


def keyword_places(schema: Schema, names: tuple[str, ...]) -> dict[str, int]:
    """Return the argument position that each keyword-only parameter gets.

    The one of that name; if any has none (as in an inferred schema), the last ones.
    """
    count = len(schema.arguments)
    places = {a.name: place for place, a in enumerate(schema.arguments)}
    if not set(names) <= set(places):
        places = dict(zip(names, range(count - len(names), count), strict=True))
    return {name: places[name] for name in names}


def describe(function: Callable[..., Any]) -> str:
    """Return the function's name, without addresses and enclosing scopes."""
    name = getattr(function, "__name__", None) or type(function).__name__
    return "lambda" if name == "<lambda>" else str(name)
