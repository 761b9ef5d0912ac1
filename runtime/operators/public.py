"""Public names: which operators are functions of `runtime` and methods of tensors.

True only here: the rule by which names follow from declarations, so that no list of
them is kept.  An operator whose declaration says what it is for is public.

========== ==========================================================================
form       where
========== ==========================================================================
functional a function; a method, if its first argument is the tensor `self`; one of
           both, if the declaration says `only` that
in place   a method
out=       the argument `out` of the function
========== ==========================================================================

Rule: an overload adds no name, and a name that begins with `_` is not public; what
chooses among several is written in `runtime.operators.written`, as is what takes other
arguments than its operator.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from runtime.operators.registry import FAMILIES

# The first argument is a tensor called `self`, of whichever alias set.
_OF_SELF = re.compile(r"Tensor(\([^)]*\))? self\b")


class Named(NamedTuple):
    """A public operator: what it is for, and where it is offered."""

    name: str
    says: str
    function: bool
    method: bool


@cache
def public() -> dict[str, Named]:
    """The public operators, forms in place included, by name."""
    return {each.name: each for each in _public()}


def _public() -> Iterator[Named]:
    for family in FAMILIES:
        for declaration in family:
            for operator in declaration.defined() if declaration.says else ():
                name, _, arguments = operator.schema.partition("(")
                if "." in name or name.startswith("_"):
                    continue
                in_place, only = name.endswith("_"), declaration.only
                says = declaration.says
                if in_place and not declaration.name.endswith("_"):
                    says = f"{says.removesuffix('.')}, in place."
                yield Named(
                    name,
                    says,
                    function=not in_place and only != "method",
                    method=only != "function" and bool(_OF_SELF.match(arguments)),
                )
