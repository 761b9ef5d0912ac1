"""Laws of a state: what is registered, the tables that follow from it, their masks.

Every registration stands where it belongs, once, and is counted.  The live table, the
one that calls use, is held against the second table.  All 137 slots are compared,
`Undefined` included, by identity of kernel objects and of registrations; two kernels
that look alike are two kernels.  Masks are raw bits, backends low; the second masks
come from the second table, so that a mask shows that was forgotten when a table
changed.

Rules:
- which arguments choose the kernel is judged by the text of their types: exactly four
  texts take part; a size, as the 2 of `Tensor[2]`, is no part of the type;
- only kernels that tell a signature are compared.  A schema and an inferred schema fit
  if they have as many arguments and results, of types that print alike, a symbolic
  integer being an integer; names, defaults, sizes and annotations may differ.
"""

from collections.abc import Sequence
from typing import Any

from everyorder.invariants.law import Finding, group_findings, law
from everyorder.invariants.live import FiledOperator, describe, describe_all, tokens_of
from everyorder.invariants.second_table import AMBIGUOUS as AMBIGUITY
from everyorder.invariants.second_table import (
    BACKENDS,
    KERNEL_KEYS,
    LAYERS,
    MISSING,
    NUMBERS,
    SLOTS,
    Expected,
    second_masks,
)
from everyorder.runtime.dispatch.dispatch_table import AMBIGUOUS
from everyorder.runtime.dispatch.kernel import Kernel
from everyorder.runtime.dispatch.registration_record import (
    ClassRule,
    Definition,
    Fallback,
    Implementation,
    Reservation,
)
from everyorder.runtime.dispatch.state import DispatcherState
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import Argument


@law("state", per_operator=True)
def operators_are_filed_under_their_names(operator: FiledOperator) -> list[Finding]:
    """An operator is filed under its own namespace and its own printed name."""
    name = operator.entry.name
    if operator.text == str(name) and operator.namespace == name.namespace:
        return []
    filed = f"{operator.text} in namespace {operator.namespace}"
    return [(filed, f"{name} in namespace {name.namespace}", filed)]


@law("state", per_operator=True)
def registrations_belong_to_their_operator(operator: FiledOperator) -> list[Finding]:
    """What is registered for an operator names that operator; so does its schema."""
    own = operator.entry.name
    found = [
        (f"{own}, {describe(token)}", str(own), str(token.operator))
        for token in tokens_of(operator.entry)
        if token.operator != own
    ]
    return found + [
        (f"{own}, schema of {describe(token)}", str(own), str(token.schema.name))
        for token in operator.entry.definitions
        if token.schema.name != own
    ]


@law("state", per_operator=True)
def readings_tell_what_is_registered(operator: FiledOperator) -> list[Finding]:
    """What a registration says about itself is true of its operator and kernel."""
    entry = operator.entry
    found: list[Finding] = []
    for token in tokens_of(entry):
        where = f"{entry.name}, {describe(token)}"
        if isinstance(token, (Reservation, ClassRule)):
            continue
        told = f"{token.reading.text} in namespace {token.reading.namespace}"
        true = f"{token.operator} in namespace {token.operator.namespace}"
        if told != true:
            found.append((where, true, told))
        if isinstance(token, Implementation):
            reading, kernel = token.reading, token.kernel
            if reading.through is not (kernel.function is None):
                told = "falls through" if reading.through else "is called"
                found.append((where, f"not that it {told}", told))
            if reading.facts is not kernel.facts:
                found.append((where, kernel.facts.name, reading.facts.name))
    return found


@law("state", per_operator=True)
def an_operator_has_one_definition(operator: FiledOperator) -> list[Finding]:
    """An operator has one definition at most, or equal ones under the 2020 rule."""
    definitions = operator.entry.definitions
    if len(definitions) < 2:
        return []
    where = str(operator.entry.name)
    if not operator.merges_alias_kinds:
        return [(where, "one definition at most", describe_all(definitions))]
    first = definitions[0].schema
    return [
        (where, f"definitions equal to {first}", str(other.schema))
        for other in definitions[1:]
        if other.schema != first
        or other.schema.alias_kind not in (None, first.alias_kind)
    ]


@law("state", per_operator=True)
def definitions_stand_in_order(operator: FiledOperator) -> list[Finding]:
    """Definitions with an alias kind come first, and those alike by their texts."""
    held = operator.entry.definitions
    if len(held) < 2:
        return []
    wanted = sorted(held, key=_rank)
    if wanted == list(held):
        return []
    where = f"{operator.entry.name}, definitions"
    return [(where, describe_all(wanted), describe_all(held))]


@law("state", per_operator=True)
def a_class_has_one_rule(operator: FiledOperator) -> list[Finding]:
    """A class has one rule for an operator at most, and rules stand by their texts."""
    held = operator.entry.rules
    # Classes may compare as they like.
    classes = {id(rule.cls) for rule in held}
    wanted = sorted(held, key=lambda rule: rule.texts)
    if len(classes) == len(held) and wanted == list(held):
        return []
    where = f"{operator.entry.name}, rules"
    return [(where, f"{len(classes)}, by their texts", describe_all(held))]


@law("state", per_operator=True)
def the_total_counts_what_is_live(operator: FiledOperator) -> list[Finding]:
    """The total of an operator counts what is live save rules; alone it is not zero."""
    entry = operator.entry
    count = len(entry.definitions) + len(entry.reservations)
    for held in entry.implementations.values():
        count += len(held)
    if count == entry.total and (count > 0 or entry.rules):
        return []
    where = f"{entry.name}, total"
    wanted = str(count) if count or entry.rules else "no such operator"
    return [(where, wanted, str(entry.total))]


@law("state", per_operator=True)
def no_kernel_list_is_empty(operator: FiledOperator) -> list[Finding]:
    """A key that an operator has in its map has a kernel at least."""
    return [
        (f"{operator.entry.name} at {key.name}", "a kernel", "an empty list")
        for key, held in operator.entry.implementations.items()
        if not held
    ]


@law("state", per_operator=True)
def a_registration_is_listed_once(operator: FiledOperator) -> list[Finding]:
    """A live registration stands at exactly one place of its operator."""
    tokens = tokens_of(operator.entry)
    if len(set(tokens)) == len(tokens):
        return []
    return [
        (f"{operator.entry.name}, {describe(token)}", "one place", "several")
        for token in dict.fromkeys(tokens)
        if tokens.count(token) > 1
    ]


@law("state", per_operator=True)
def kernels_are_listed_under_their_key(operator: FiledOperator) -> list[Finding]:
    """A kernel stands in the list of the key that it was registered for."""
    return [
        (f"{operator.entry.name}, {describe(token)}", token.key.name, key.name)
        for key, held in operator.entry.implementations.items()
        for token in held
        if token.key is not key
    ]


@law("state", per_operator=True)
def keys_stand_in_order(operator: FiledOperator) -> list[Finding]:
    """The keys of an operator's kernels stand in the order of their values."""
    keys = list(operator.entry.implementations)
    wanted = sorted(keys, key=lambda key: key.value)
    if keys == wanted:
        return []
    names = [", ".join(key.name for key in each) for each in (wanted, keys)]
    return [(f"{operator.entry.name}, keys", names[0], names[1])]


@law("state", per_operator=True)
def kernels_stand_at_keys_that_take_them(operator: FiledOperator) -> list[Finding]:
    """No kernel stands at Undefined or at a building block."""
    return [
        (str(operator.entry.name), "a runtime key or an alias", key.name)
        for key in operator.entry.implementations
        if key.name not in KERNEL_KEYS
    ]


@law("state", "namespaces")
def no_namespace_is_empty(state: DispatcherState) -> list[Finding]:
    """A namespace that a state has in its map has an operator at least."""
    return [
        (f"namespace {namespace}", "an operator", "none")
        for namespace, operators in state.namespaces.items()
        if not operators
    ]


@law("state", "claims")
def claims_are_sorted_and_one_a_namespace(state: DispatcherState) -> list[Finding]:
    """The claims of DEF libraries are sorted, and no namespace is claimed twice."""
    found = [claim.namespace for claim in state.claims]
    wanted = sorted(set(found))
    if found == wanted:
        return []
    return [("the claims", ", ".join(wanted), ", ".join(found))]


@law("state", "fallbacks")
def fallbacks_stand_where_their_tokens_say(state: DispatcherState) -> list[Finding]:
    """A slot has a fallback exactly if a live fallback names its key, and only one."""
    held = state.fallbacks
    wanted: list[Fallback | None] = [None] * len(SLOTS)
    found: list[Finding] = []
    present = through = 0
    for token in held.tokens:
        for key in token.keys:
            number = NUMBERS[key.name]
            other = wanted[number]
            if other is not None:
                both = describe_all([other, token])
                found.append((f"the fallbacks at {key.name}", "one", both))
            wanted[number] = token
            present |= 1 << number
            through |= (token.kernel.function is None) << number
    if tuple(wanted) != held.slots:
        for name, ours, theirs in zip(SLOTS, wanted, held.slots, strict=True):
            if ours is not theirs:
                found.append((f"the fallbacks at {name}", _told(ours), _told(theirs)))
    if present != held.present:
        where = "the fallbacks, slots that have one"
        found.append((where, f"{present:#x}", f"{held.present:#x}"))
    if through != held.through:
        where = "the fallbacks, slots that fall through"
        found.append((where, f"{through:#x}", f"{held.through:#x}"))
    told = tuple(
        (
            sum(1 << NUMBERS[key.name] for key in token.keys),
            token.debug,
            token.kernel.function is None,
        )
        for token in held.tokens
    )
    if told != held.texts.texts:
        found.append(("the fallbacks, texts", repr(told), repr(held.texts.texts)))
    order = [NUMBERS[token.keys[0].name] for token in held.tokens]
    if order != sorted(order):
        found.append(("the fallbacks", "slot order", describe_all(held.tokens)))
    return found


@law("state", "subscriptions")
def listeners_are_subscribed_once(state: DispatcherState) -> list[Finding]:
    """A subscription stands once in the list of listeners."""
    held = state.subscriptions
    if len(set(held)) == len(held):
        return []
    return [
        ("the listeners", describe_all(tuple(dict.fromkeys(held))), describe_all(held))
    ]


def _rank(token: Definition) -> tuple[bool, tuple[Any, ...]]:
    return token.schema.alias_kind is None, token.reading.texts


def _told(token: Fallback | None) -> str:
    return "none" if token is None else describe(token)


TENSORS = ("Tensor", "Tensor?")
LISTS = ("Tensor[]", "Tensor?[]")


@law("state", per_operator=True)
def without_a_schema_no_argument_is_looked_at(operator: FiledOperator) -> list[Finding]:
    """An operator without a definition looks at no argument."""
    found = operator.entry.extractor
    if operator.entry.definitions or not (found.tensors or found.lists):
        return []
    where = f"{operator.entry.name}, arguments"
    return [(where, "none", _arguments(found.tensors, found.lists))]


@law("state", per_operator=True)
def the_schema_says_which_arguments_count(operator: FiledOperator) -> list[Finding]:
    """An operator looks at exactly the tensors and lists of tensors of its schema."""
    entry = operator.entry
    if not entry.definitions:
        return []
    types = [str(argument.type) for argument in entry.definitions[0].schema.arguments]
    tensors = tuple(at for at, text in enumerate(types) if text in TENSORS)
    lists = tuple(at for at, text in enumerate(types) if text in LISTS)
    held = entry.extractor
    if (tensors, lists) == (held.tensors, held.lists):
        return []
    where = f"{entry.name}, arguments"
    return [(where, _arguments(tensors, lists), _arguments(held.tensors, held.lists))]


def _arguments(tensors: Sequence[int], lists: Sequence[int]) -> str:
    return f"tensors {list(tensors)}, lists {list(lists)}"


@law("state", per_operator=True)
def typed_kernels_agree(operator: FiledOperator) -> list[Finding]:
    """All live typed kernels of an operator have one signature."""
    typed = _typed(operator)
    if len(typed) < 2:
        return []
    first = typed[0].kernel.facts.signature
    return [
        (f"{operator.entry.name}, {describe(token)}", str(first), str(signature))
        for token in typed[1:]
        if (signature := token.kernel.facts.signature) != first
    ]


@law("state", per_operator=True)
def typed_kernels_fit_the_schema(operator: FiledOperator) -> list[Finding]:
    """Every live typed kernel takes and returns what the schema says."""
    entry = operator.entry
    if not entry.definitions:
        return []
    schema = entry.definitions[0].schema
    return [
        (f"{entry.name}, {describe(token)}", str(schema), str(inferred))
        for token in _typed(operator)
        if (inferred := token.kernel.facts.inferred) and not _fits(schema, inferred)
    ]


def _typed(operator: FiledOperator) -> list[Implementation]:
    return [
        token
        for held in operator.entry.implementations.values()
        for token in held
        if token.kernel.facts.signature is not None
    ]


def _fits(schema: Schema, inferred: Schema) -> bool:
    return _types(schema.arguments) == _types(inferred.arguments) and _types(
        schema.returns
    ) == _types(inferred.returns)


def _types(arguments: Sequence[Argument]) -> list[str]:
    return [str(argument.type).replace("SymInt", "int") for argument in arguments]


@law("state", per_operator=True)
def tables_hold_the_fallbacks_of_the_state(operator: FiledOperator) -> list[Finding]:
    """The fallbacks that an operator's table is built on are those of the state."""
    held = operator.entry.table.fallbacks
    if held is operator.fallbacks:
        return []
    return group_findings(
        operator.entry.name,
        (
            (key, _debug(wanted), _debug(found))
            for key, wanted, found in zip(
                (slot.key for slot in operator.expected),
                operator.fallbacks.slots,
                held.slots,
                strict=True,
            )
            if wanted is not found
        ),
    )


@law("state", per_operator=True)
def callers_belong_to_their_entry(operator: FiledOperator) -> list[Finding]:
    """What an entry remembers for calling was built from its own parts."""
    caller = operator.entry.memo.get("caller")
    if caller is None:
        return []
    where = f"{operator.entry.name}, remembered caller"
    if caller.table is not operator.entry.table:
        return [(where, "built from this entry", "built from another")]
    if caller.schema is not operator.entry.schema:
        return [(where, str(operator.entry.schema), str(caller.schema))]
    if caller.runners.rules is not operator.entry.rules:
        return [
            (
                where,
                describe_all(operator.entry.rules),
                describe_all(caller.runners.rules),
            )
        ]
    return []


@law("state", per_operator=True)
def slots_run_what_the_rules_say(operator: FiledOperator) -> list[Finding]:
    """Every slot runs the kernel that the rules of the dispatch table give it."""
    return group_findings(
        operator.entry.name,
        (
            (wanted.key, *_apart(_wanted(wanted), repr(slot.debug)))
            for wanted, slot in zip(operator.expected, operator.live, strict=True)
            if slot.token is not wanted.token
            or slot.kernel is not _kernel(wanted)
            or slot.key.name != wanted.key
        ),
    )


@law("state", per_operator=True)
def slots_say_which_rule_filled_them(operator: FiledOperator) -> list[Finding]:
    """The provenance of every slot is the rule that gives it its kernel."""
    return group_findings(
        operator.entry.name,
        (
            (wanted.key, wanted.provenance, slot.provenance)
            for wanted, slot in zip(operator.expected, operator.live, strict=True)
            if slot.provenance != wanted.provenance
        ),
    )


@law("state", per_operator=True)
def a_slot_without_kernel_says_missing(operator: FiledOperator) -> list[Finding]:
    """A slot has no kernel exactly if its provenance is `missing`."""
    return group_findings(
        operator.entry.name,
        (
            (slot.key.name, "no kernel", slot.debug)
            if slot.provenance == MISSING
            else (slot.key.name, f"a kernel, being {slot.provenance}", "none")
            for slot in operator.live
            if (slot.kernel is None) != (slot.provenance == MISSING)
        ),
    )


def _kernel(wanted: Expected) -> Kernel | None:
    if wanted.token is not None:
        return wanted.token.kernel
    return AMBIGUOUS if wanted.provenance == AMBIGUITY else None


def _wanted(slot: Expected) -> str:
    return repr(slot.provenance if slot.token is None else slot.token.debug)


def _debug(token: Fallback | None) -> str:
    return "no fallback" if token is None else repr(token.debug)


def _apart(wanted: str, found: str) -> tuple[str, str]:
    """Two texts; things that differ may be described alike."""
    return wanted, found if found != wanted else f"another {found}"


_BACKEND_BITS = (1 << len(BACKENDS)) - 1


@law("state", per_operator=True)
def masks_leave_out_what_falls_through(operator: FiledOperator) -> list[Finding]:
    """A backend's mask lacks a functionality exactly if its slot falls through."""
    found = []
    masks = operator.entry.table.masks.by_backend
    wanted = second_masks(operator.expected)
    for backend, ours, theirs in zip(BACKENDS, wanted, masks, strict=True):
        if (ours ^ theirs) & ~_BACKEND_BITS:
            where = f"{operator.entry.name}, mask of {backend}"
            found.append((where, f"without {_cut(ours)}", f"without {_cut(theirs)}"))
    return found


@law("state", per_operator=True)
def a_mask_a_backend_only_where_two_differ(operator: FiledOperator) -> list[Finding]:
    """An operator chooses its mask by backend only if two of its masks differ."""
    masks = operator.entry.table.masks
    if not masks.per_backend or len(set(masks.by_backend)) > 1:
        return []
    return [(f"{operator.entry.name}, masks", "one for all", "one a backend")]


@law("state", per_operator=True)
def one_mask_for_all_only_where_none_differ(operator: FiledOperator) -> list[Finding]:
    """An operator has one mask for all backends only if all its masks are that one."""
    masks = operator.entry.table.masks
    if masks.per_backend or len(set(masks.by_backend)) == 1:
        return []
    return [(f"{operator.entry.name}, masks", "one a backend", "one for all")]


@law("state", per_operator=True)
def masks_hold_every_backend(operator: FiledOperator) -> list[Finding]:
    """Every mask has the bits of all backends: fallthroughs cut functionalities."""
    return [
        (f"{operator.entry.name}, mask of {backend}", "all backends", f"{held:#x}")
        for backend, mask in zip(
            BACKENDS, operator.entry.table.masks.by_backend, strict=True
        )
        if (held := mask & _BACKEND_BITS) != _BACKEND_BITS
    ]


def _cut(mask: int) -> str:
    left = [
        layer.replace("*", "") or "Dense"
        for index, layer in enumerate(LAYERS)
        if not mask >> (len(BACKENDS) + index) & 1
    ]
    return ", ".join(left) or "nothing"
