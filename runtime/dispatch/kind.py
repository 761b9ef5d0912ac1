"""Kinds of libraries, and the namespaces that each may be in.

True only here: what is checked before a library exists.  What each kind may register
is the table at the top of `library`.
"""

from runtime.errors.registration import LibraryRefused
from runtime.keys import DispatchKey
from runtime.schema.tokenizer import KEYWORDS

KINDS = ("DEF", "FRAGMENT", "IMPL")
# Not a namespace of operators: fallbacks, which serve all namespaces, live in it.
WILDCARD = "_"
# Namespaces whose operators the script compiler owns.
RESERVED = ("prim",)


def check_kind(namespace: str, kind: str, key: DispatchKey | None) -> None:
    """Whether a library can have these arguments.

    Raises:
        LibraryRefused: it cannot; says why, and what can.
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
    raise LibraryRefused(call=shown, reason=reason, remedy=remedy)
