"""Where we differ from torch by decision, as predictions that can fail.

True only here: each deviation is one named function that says, from what torch was
asked and what it answered, what we answer instead.  A comparison applies all of them
and then asks for equality, so that a prediction which fires without cause fails as
much as a difference that nobody predicted; and it counts how often each came true,
since a prediction that never does says nothing.

One table for each kind of question:

    PRINTED         (text, schema as torch parsed it)  the text as we print it
    REFUSED         (text, schema as torch parsed it)  torch reads it, we do not
    ACCEPTED        (text)                             we read it, torch does not
    STEPS_REFUSED   (step, names that torch reads)     torch does it, we do not
    STEPS_ACCEPTED  (step, names that torch reads)     we do it, torch does not
    LEFTOVERS       (step, before, fallbacks)          a refusal of torch leaves a trace
    TABLES          (shown, fallbacks)                 the table as ours must be

`PREDICTIONS` is all of them by name; the table of deviations refers to these names.
Adding a deviation means adding it there, here, and to the generator that reaches it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from everyorder.runtime.keys import DispatchKey, members
from tests.torch.steps import (
    TorchDefine,
    TorchDefineWithKernel,
    TorchFallback,
    TorchStep,
)


class Shown(NamedTuple):
    """What torch shows of an operator: its state, and its table by key."""

    state: str
    table: Mapping[str, str]


# An annotation as torch prints it, with its sets before and after.
_ANNOTATION = re.compile(r"\(([\w*|]+)(!?)(?: -> ([\w*|]+))?\)")
# What torch prints for a bare `!`: a numbered set that is in nothing afterwards.
_FRESH = re.compile(r"\(\$\d+! -> \)")
# Functionalities that need a backend: a kernel there reaches no slot.
BUILDING_BLOCKS = frozenset(
    {"Dense", "Quantized", "Sparse", "SparseCsr", "NestedTensor"}
    | {"AutogradFunctionality"}
)
# A union with its annotation, and the mark of an optional.
_UNION = re.compile(r"Union\(([^()]*)\)(\([^()]*\))?\??")
_SCALAR_UNION = re.compile(r"Union\(([^()]*)Scalar\)")
# The kernel in force at the Autograd alias, in a dump: its description and its kinds.
_ACTIVE_AUTOGRAD = re.compile(r"^Autograd\[alias\]: (.*) :: .*\[ (.*)\]$", re.MULTILINE)
# Words of the schema language that types in brackets follow.
_CONSTRUCTORS = frozenset({"Dict", "Union", "Future", "Await", "RRef"})
# Backends whose kernels torch forgets when it fills their autograd keys.
FORGOTTEN_BACKENDS = ("HIP", "VE", "MTIA")


# PRINTED


def a_list_of_equal_ints(text: str, parsed: Any) -> str:
    """Torch prints `int[] x=[1, 1]` as `int[] x=1`, which does not parse.

    It should do so only where the size says how often to repeat the 1.
    """
    for argument in parsed.arguments:
        value = argument.default_value if argument.has_default_value() else None
        if isinstance(value, list) and len(value) not in (0, 1, argument.N):
            short = rf"(int\[\d*\] {argument.name}=){value[0]}(?=[,)])"
            text = re.sub(short, rf"\g<1>{value}", text)
    return text


def a_text_for_another_type(text: str, parsed: Any) -> str:
    """Torch prints `int x="a"` without the quotes, which does not parse."""
    for argument in parsed.arguments:
        value = argument.default_value if argument.has_default_value() else None
        kind = str(argument.type).removeprefix("Optional[").removesuffix("]")
        if isinstance(value, str) and kind not in ("str", "Device"):
            text = text.replace(
                f" {argument.name}={value}", f' {argument.name}="{value}"'
            )
    return text


def a_set_of_its_own(text: str, _parsed: Any) -> str:
    """Torch prints `Tensor!` as `Tensor($0! -> )`, which does not parse."""
    return _FRESH.sub("!", text)


def a_wildcard_with_other_sets(text: str, _parsed: Any) -> str:
    """In `a|*` the wildcard says it all: we keep nothing else of the group."""

    def swallow(match: re.Match[str]) -> str:
        before, write, after = match.groups()
        groups = ["*" if "*" in (group or "") else group for group in (before, after)]
        return _annotation(groups[0], write, groups[1])

    return _ANNOTATION.sub(swallow, text)


def the_order_of_alias_sets(text: str, _parsed: Any) -> str:
    """Torch prints sets in the order of a hash table, we sort them."""

    def order(match: re.Match[str]) -> str:
        before, write, after = match.groups()
        return _annotation(_sorted(before), write, _sorted(after))

    return _ANNOTATION.sub(order, text)


def a_union_with_a_scalar(text: str, _parsed: Any) -> str:
    """Torch puts a Scalar last in a union, with its comma first or nowhere.

    It also prints a union of only a Scalar, as which it keeps `Scalar??`.
    """

    def normal(match: re.Match[str]) -> str:
        others = [each for each in match[1].split(", ") if each]
        if not others:
            return "Scalar"
        containers = [each for each in others if each.startswith("Tensor")]
        rest = [each for each in others if each not in containers]
        return f"Union({', '.join([*containers, 'Scalar', *rest])})"

    return _SCALAR_UNION.sub(normal, text)


def a_union_with_none(text: str, _parsed: Any) -> str:
    """Torch keeps None as a member where it is written so; we make it an optional."""

    def normal(match: re.Match[str]) -> str:
        members = match[1].split(", ")
        if "NoneType" not in members:
            return match[0]
        members.remove("NoneType")
        return f"Union({', '.join(members)}){match[2] or ''}?"

    return _UNION.sub(normal, text)


def an_annotation_of_an_optional_element(text: str, _parsed: Any) -> str:
    """Torch prints `Tensor(a)?[]` as `Tensor?(a)[]`, which does not parse."""
    return re.sub(r"(\w+)\?(\([^()]*\)|!)\[", r"\1\2?[", text)


def _sorted(group: str | None) -> str | None:
    return group and "|".join(sorted(group.split("|")))


def _annotation(before: str | None, write: str, after: str | None) -> str:
    return f"({before}{write}{f' -> {after}' if after else ''})"


# REFUSED


def an_argument_named_twice(_text: str, parsed: Any) -> bool:
    """No call could pass both by keyword."""
    names = [argument.name for argument in parsed.arguments]
    return len(set(names)) < len(names)


def a_hexadecimal_number(text: str, _parsed: Any) -> bool:
    """Torch reads `0x10` as 0."""
    return re.search(r"\b0[xX][0-9a-fA-F]", text) is not None


def a_late_list_without_default(_text: str, parsed: Any) -> bool:
    """Torch lets a list without default follow a default; it can never be left out."""
    seen = False
    for argument in parsed.arguments:
        if argument.has_default_value():
            seen = True
        elif seen and not argument.kwarg_only:
            return True
    return False


def an_annotation_inside_a_type(text: str, _parsed: Any) -> bool:
    """Torch forgets the annotation, and with it a write."""
    opened: list[str] = []
    before = ""
    for word in re.findall(r"->|\w+|[^\s\w]", text.partition("#")[0]):
        if word == "(":
            if not opened:
                opened.append("list")
            elif before in _CONSTRUCTORS or before in ("(", ",", "*"):
                opened.append("type")
            else:
                opened.append("annotation")
        annotates = word == "!" or (word == "(" and opened[-1] == "annotation")
        if annotates and "type" in opened:
            return True
        if word == ")" and opened:
            opened.pop()
        before = word
    return False


# ACCEPTED


def a_wildcard_before_other_sets(text: str) -> bool:
    """Torch reads `a|*`, but not `*|a`."""
    return re.search(r"\*\s*\|", text) is not None


def a_complex_default_without_j(text: str) -> bool:
    """Torch takes the last digit for the `j`: it fails at `2`, and reads 0.5 as 0."""
    return re.search(r"complex\s+\w+\s*=\s*-?[\d.]+(?![\d.eEj])", text) is not None


def a_float_that_is_nearly_zero(text: str) -> bool:
    """Torch refuses a number too small for a double; to us it is zero."""
    return re.search(r"\de-\d{4}|\de-[4-9]\d\d", text) is not None


def an_optional_none(text: str) -> bool:
    """Torch fails an assertion at `NoneType?`."""
    return re.search(r"\bNone(?:Type)?\s*\?", text) is not None


def a_union_of_one_type(text: str) -> bool:
    """Torch fails an assertion where all members of a union are the same."""
    unions = re.findall(r"Union\s*\(([^()]*)\)", text)
    return any(len({each.strip() for each in one.split(",")}) == 1 for one in unions)


# STEPS


def a_kernel_at_a_building_block(step: TorchStep, _readable: frozenset[str]) -> bool:
    """Torch takes it, and a fallback; it reaches no slot, and yet guards others."""
    return getattr(step, "key", None) in BUILDING_BLOCKS


def a_pure_function_with_annotations(
    step: TorchStep, _readable: frozenset[str]
) -> bool:
    """A schema that writes or aliases contradicts PURE_FUNCTION."""
    if not isinstance(step, TorchDefine | TorchDefineWithKernel):
        return False
    return step.alias == "PURE_FUNCTION" and bool(
        re.search(r"Tensor(?:\((?!\))|!)", step.schema)
    )


def a_key_that_torch_cannot_read(step: TorchStep, readable: frozenset[str]) -> bool:
    """Every key with a slot has a name that we read; torch's list of names has gaps."""
    key = getattr(step, "key", None)
    return key is not None and key in DispatchKey and key not in readable


# LEFTOVERS


def half_of_a_failed_definition(
    step: TorchStep, before: Shown, _taken: Mapping[str, str]
) -> bool:
    """Torch defines first and adds the kernel then: if that fails, the schema stays."""
    fresh = "schema: (none)" in before.state or not before.state
    return (
        isinstance(step, TorchDefineWithKernel)
        and fresh
        and " unboxed ]" not in before.state
    )


def an_entry_without_owner(
    step: TorchStep, before: Shown, _taken: Mapping[str, str]
) -> bool:
    """Torch makes the entry before it counts the arguments, and then has to keep it."""
    too_many = isinstance(step, TorchDefine) and step.schema.count(",") >= 64
    return too_many and not before.state


def half_of_a_failed_fallback(
    step: TorchStep, before: Shown, taken: Mapping[str, str]
) -> bool:
    """Torch takes the keys of an alias one by one, and keeps those it got."""
    if not isinstance(step, TorchFallback) or not before.state:
        return False
    key = DispatchKey.parse(step.key)
    if not key.is_alias:
        return False
    for member in members(key):
        if member.name in taken:
            return False
        if member.name not in before.table:
            return True
    return False


# TABLES


def autograd_keys_of_forgotten_backends(
    shown: Shown, fallbacks: Mapping[str, str]
) -> dict[str, str]:
    """A kernel at HIP, VE or MTIA guards its autograd key, as every backend's does."""
    ours = dict(shown.table)
    autograd = _ACTIVE_AUTOGRAD.search(shown.state)
    for backend in FORGOTTEN_BACKENDS:
        slot = f"Autograd{backend}"
        if not ours.get(slot, "").endswith(" [math kernel]"):
            continue
        if f"\n{backend}: " not in shown.state:
            continue
        if autograd:
            through = "fallthrough " if "fallthrough" in autograd[2] else ""
            ours[slot] = f"{through}{autograd[1]} [autograd kernel]"
        elif slot in fallbacks:
            ours[slot] = fallbacks[slot]
        else:
            del ours[slot]
    return ours


PRINTED = (
    a_list_of_equal_ints,
    a_text_for_another_type,
    a_set_of_its_own,
    a_wildcard_with_other_sets,
    the_order_of_alias_sets,
    a_union_with_a_scalar,
    a_union_with_none,
    an_annotation_of_an_optional_element,
)
REFUSED = (
    an_argument_named_twice,
    a_hexadecimal_number,
    a_late_list_without_default,
    an_annotation_inside_a_type,
)
ACCEPTED = (
    a_wildcard_before_other_sets,
    a_complex_default_without_j,
    a_float_that_is_nearly_zero,
    an_optional_none,
    a_union_of_one_type,
)
STEPS_REFUSED = (
    a_kernel_at_a_building_block,
    a_pure_function_with_annotations,
)
STEPS_ACCEPTED = (a_key_that_torch_cannot_read,)
LEFTOVERS = (
    half_of_a_failed_definition,
    an_entry_without_owner,
    half_of_a_failed_fallback,
)
TABLES = (autograd_keys_of_forgotten_backends,)

PREDICTIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for kind in (
        *(PRINTED, REFUSED, ACCEPTED),
        *(STEPS_REFUSED, STEPS_ACCEPTED, LEFTOVERS, TABLES),
    )
    for each in kind
}
