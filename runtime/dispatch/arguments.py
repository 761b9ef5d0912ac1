"""What the arguments of registering functions mean: kinds, keys, kernels, schemas.

Everything that can be said before anything about the library matters, as functions of
one argument or two.  What each kind of library may register is the table at the top of
`library`; here is which libraries there can be at all.
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from runtime.dispatch.kernel import Kernel, describe, kernel_of, untyped_kernel_of
from runtime.dispatch.token import ClassRule
from runtime.errors.registration import LibraryMisuse
from runtime.keys import DispatchKey
from runtime.schema.parser import parse_schema, parse_schema_or_name
from runtime.schema.schema import Schema
from runtime.schema.signature import AliasKind, OperatorName, parse_alias_kind
from runtime.schema.tokenizer import KEYWORDS

KINDS = ("DEF", "FRAGMENT", "IMPL")
# Not a namespace of operators: fallbacks, which serve all namespaces, live in it.
WILDCARD = "_"
# Namespaces whose operators the script compiler owns.
RESERVED = ("prim",)


def check_kind(namespace: str, kind: str, key: DispatchKey | None) -> None:
    """Whether a library can have these arguments.

    Raises:
        LibraryMisuse: it cannot; says why, and what can.
    """
    shown = f"Library({namespace!r}, {kind!r})"
    if kind not in KINDS:
        reason = f"{kind!r} is no kind of library"
        remedy = f"Kinds: {', '.join(KINDS)}."
    elif kind == "IMPL" and namespace == WILDCARD:
        return
    elif namespace == WILDCARD:
        reason = f"a {kind} library needs a namespace of its own"
        remedy = f"Only an IMPL library can be in {WILDCARD!r}, for fallbacks."
    elif not (namespace.isidentifier() and namespace.isascii()):
        reason = f"{namespace!r} is no identifier"
        remedy = "A namespace is made of letters, digits and underscores."
    elif namespace in KEYWORDS:
        reason = f"{namespace!r} is a keyword of the schema language"
        remedy = "Choose another namespace: no schema could name this one."
    elif kind == "IMPL":
        return
    elif namespace in RESERVED:
        reason = f"namespace {namespace!r} is reserved"
        remedy = "Choose another namespace; an IMPL library may use this one."
    elif key is not None:
        reason = f"a {kind} library has no dispatch key"
        remedy = "Name the key in impl(), or open an IMPL library for it."
    else:
        return
    raise LibraryMisuse(code="LibraryRefused", call=shown, reason=reason, remedy=remedy)


def origin_of_caller(depth: int = 2) -> str:
    """The line that called the function which asks, or one further out."""
    frame = sys._getframe(depth)
    return f"registered at {frame.f_code.co_filename}:{frame.f_lineno}"


KernelLike = Callable[..., Any] | Kernel
KeyLike = DispatchKey | str


def key_of(given: KeyLike) -> DispatchKey:
    """The key that is meant.

    Raises `LookupFailed` for a text that names none, `LibraryMisuse` for no text.
    """
    if isinstance(given, DispatchKey):
        return given
    return DispatchKey.parse(text_of("dispatch_key", given))


def text_of(argument: str, given: object) -> str:
    """What was given for an argument that is a text.  Raises `LibraryMisuse`."""
    if isinstance(given, str):
        return given
    found = type(given).__name__
    raise LibraryMisuse(
        code="WrongArgument", argument=argument, expected="a text", found=found
    )


def tags_of(given: Iterable[str]) -> tuple[str, ...]:
    """The tags of a definition, sorted.  Raises `LibraryMisuse` for a single text."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        found = type(given).__name__
        raise LibraryMisuse(
            code="WrongArgument",
            argument="tags",
            expected="a list of texts",
            found=found,
        )
    return tuple(sorted({text_of("tags", tag) for tag in given}))


def kernel_for(
    call: str,
    kernel: object,
    with_keyset: bool,
    read: Callable[[Callable[..., Any], bool], Kernel] = kernel_of,
) -> Kernel:
    """The kernel of what was given as one, by `read`.  Raises `LibraryMisuse`."""
    if isinstance(kernel, Kernel):
        return replace(kernel, with_keyset=True) if with_keyset else kernel
    if not callable(kernel):
        raise LibraryMisuse(code="NotAKernel", call=call, found=type(kernel).__name__)
    return read(kernel, with_keyset)


def fallback_for(call: str, kernel: object, with_keyset: bool) -> Kernel:
    """The kernel of what was given as a fallback, whose annotations tell nothing.

    Raises `LibraryMisuse`, also for a kernel that takes the arguments of one operator.
    """
    made = kernel_for(call, kernel, with_keyset, untyped_kernel_of)
    if made.facts.kind == "direct":
        expected = (
            "a function of an operator and its arguments, boxed(...) or linked(...)"
        )
        raise LibraryMisuse(
            code="WrongArgument",
            argument="kernel",
            expected=expected,
            found="direct(...)",
        )
    return made


def check_rule(cls: object, function: object) -> None:
    """Whether there can be a rule for this class, of this function.

    Raises `LibraryMisuse`.
    """
    if not isinstance(cls, type):
        found = type(cls).__name__
        raise LibraryMisuse(
            code="WrongArgument", argument="cls", expected="a class", found=found
        )
    if not callable(function):
        found = type(function).__name__
        raise LibraryMisuse(
            code="WrongArgument", argument="fn", expected="a function", found=found
        )


def rule_for(
    operator: OperatorName,
    cls: type,
    function: Callable[..., Any],
    debug: str | None,
    origin: str,
) -> ClassRule:
    """The rule of a class for an operator.  Raises `LibraryMisuse`."""
    check_rule(cls, function)
    if debug is None:
        debug = f"{describe(function)} ({origin})"
    return ClassRule(operator, cls, function, text_of("debug", debug))


def keys_given(call: str, library: object, given: Any) -> list[DispatchKey]:
    """The keys that a kernel is to go to, as written; `Undefined` where none is.

    Raises `LibraryMisuse` for no key at all, and as `key_of`.
    """
    one = given is None or isinstance(given, (str, DispatchKey))
    keys = (given,) if one or not isinstance(given, Iterable) else given
    wanted = [DispatchKey.Undefined if key is None else key_of(key) for key in keys]
    if not wanted:
        raise LibraryMisuse(
            code="CallRefused",
            call=call,
            library=repr(library),
            reason="the list of dispatch keys is empty",
            remedy="Name one key at least, or pass no list.",
        )
    return wanted


def description_of(kernel: Kernel, debug: str | None, origin: str) -> str:
    """What dumps show of a kernel: `debug`, else its name and the origin."""
    if debug is not None:
        return text_of("debug", debug)
    return origin if kernel.function is None else f"{kernel.facts.name} ({origin})"


def schema_of(
    call: str, given: str | Schema, alias_analysis: str, kernel: Kernel | None
) -> Schema:
    """The schema that a definition means, alias kind included, name as written."""
    if isinstance(given, Schema):
        if not alias_analysis:
            return given
        chosen = parse_alias_kind(text_of("alias_analysis", alias_analysis))
        return given.with_alias_kind(chosen)
    text_of("schema", given)
    kind = parse_alias_kind(text_of("alias_analysis", alias_analysis))
    if kernel is None:
        return parse_schema(given, type_variables=False).with_alias_kind(kind)
    parsed = parse_schema_or_name(given, type_variables=False)
    if isinstance(parsed, Schema):
        return parsed.with_alias_kind(kind)
    if kernel.facts.inferred is None:
        raise LibraryMisuse(
            code="CannotInfer", call=call, operator=given, kernel=kernel.facts.name
        )
    inferred = kernel.facts.inferred.clone_with_name(parsed)
    return inferred.with_alias_kind(AliasKind.CONSERVATIVE)
