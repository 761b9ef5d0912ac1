"""Accessors of context variables, tokens and contexts.

A context orders its variables by hashes that depend on addresses.  So a copied context
is read by the names of its variables, and variables of one name are read as a set of
pairs: two systems with equal contexts then have equal forms.
"""

import contextvars
import gc
from typing import Any

from everyorder.harness.state.layout import ABSENT, Accessor, Parts, Unreadable


def _default(variable: Any) -> Any:
    """Return the default of a context variable, or `ABSENT`."""
    # The first referent is the name, which every variable has.
    referents = gc.get_referents(variable)
    return referents[1] if len(referents) > 1 else ABSENT


def _variable(o: Any) -> Parts:
    return [
        ("name", o.name),
        ("default", _default(o)),
        ("value", contextvars.ContextVar.get(o, ABSENT)),
    ]


def _token(o: Any) -> Parts:
    default = _default(o.var)
    plain = (str, int, float, bool, type(None))
    if default is not ABSENT and not any(type(default) is each for each in plain):
        raise Unreadable  # only a repr shows `used`, and it calls the default's repr
    used = " used " in contextvars.Token.__repr__(o).partition("var=")[0]
    old = o.old_value
    missing = old is contextvars.Token.MISSING
    return [("var", o.var), ("old", ABSENT if missing else old), ("used", used)]


def _context(o: Any) -> Parts:
    by_name: dict[str, list[tuple[Any, Any]]] = {}
    for pair in contextvars.Context.items(o):
        by_name.setdefault(pair[0].name, []).append(pair)
    parts: Parts = []
    for _, pairs in sorted(by_name.items()):
        if len(pairs) == 1:
            parts += zip(("var", "value"), pairs[0], strict=True)
        else:
            # Of tuples, a set would call the hashes of the values.
            pairs_by_identity = frozenset(property(*pair) for pair in pairs)
            parts.append(("namesakes", pairs_by_identity))
    return parts


CONTEXT_ACCESSORS: dict[type, Accessor] = {
    contextvars.ContextVar: Accessor(parts=_variable),
    contextvars.Token: Accessor(parts=_token),
    contextvars.Context: Accessor(parts=_context),
}
