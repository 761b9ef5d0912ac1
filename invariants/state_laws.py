"""Laws of a state: the registrations, the tables that follow from them, their masks.

Every registration is in its place, once, and is counted.  The live table, which calls
use, is compared with the second table.  All 137 slots are compared, `Undefined`
included, by identity of kernel objects and of registrations; two equal kernels are two
kernels.  Masks are raw bits, backends low; the second masks are computed from the
second table, so that an outdated mask is detected after a table changed.

Rules:
- the arguments that choose the kernel are determined by the text of their types:
  exactly four texts take part; a size, as the 2 of `Tensor[2]`, is not part of the
      type;
- only kernels with a signature are compared.  A schema and an inferred schema fit if
  they have as many arguments and results, of types that print alike, where a symbolic
  integer is an integer; names, defaults, sizes and annotations may differ.
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
    """A registration of an operator names that operator; so does its schema."""
    own = operator.entry.name
    findings = [
        (f"{own}, {describe(token)}", str(own), str(token.operator))
        for token in tokens_of(operator.entry)
        if token.operator != own
    ]
    return findings + [
        (f"{own}, schema of {describe(token)}", str(own), str(token.schema.name))
        for token in operator.entry.definitions
        if token.schema.name != own
    ]


@law("state", per_operator=True)
def readings_tell_what_is_registered(operator: FiledOperator) -> list[Finding]:
    """The reading of a registration is true of its operator and kernel."""
    entry = operator.entry
    findings: list[Finding] = []
    for token in tokens_of(entry):
        where = f"{entry.name}, {describe(token)}"
        if isinstance(token, (Reservation, ClassRule)):
            continue
        stated = f"{token.reading.text} in namespace {token.reading.namespace}"
        true = f"{token.operator} in namespace {token.operator.namespace}"
        if stated != true:
            findings.append((where, true, stated))
        if isinstance(token, Implementation):
            reading, kernel = token.reading, token.kernel
            if reading.through is not (kernel.function is None):
                stated = "falls through" if reading.through else "is called"
                findings.append((where, f"not that it {stated}", stated))
            if reading.facts is not kernel.facts:
                findings.append((where, kernel.facts.name, reading.facts.name))
    return findings


@law("state", per_operator=True)
def an_operator_has_one_definition(operator: FiledOperator) -> list[Finding]:
    """An operator has at most one definition, or equal ones under the 2020 rule."""
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
    """Definitions with an alias kind come first; otherwise the texts decide."""
    definitions = operator.entry.definitions
    if len(definitions) < 2:
        return []
    ordered = sorted(definitions, key=_rank)
    if ordered == list(definitions):
        return []
    where = f"{operator.entry.name}, definitions"
    return [(where, describe_all(ordered), describe_all(definitions))]


@law("state", per_operator=True)
def a_class_has_one_rule(operator: FiledOperator) -> list[Finding]:
    """A class has at most one rule for an operator; rules are sorted by their texts."""
    rules = operator.entry.rules
    # By identity: classes may define `==` freely.
    classes = {id(rule.cls) for rule in rules}
    ordered = sorted(rules, key=lambda rule: rule.texts)
    if len(classes) == len(rules) and ordered == list(rules):
        return []
    where = f"{operator.entry.name}, rules"
    return [(where, f"{len(classes)}, by their texts", describe_all(rules))]


@law("state", per_operator=True)
def the_total_counts_what_is_live(operator: FiledOperator) -> list[Finding]:
    """The total counts live tokens except rules; an entry without rules has some."""
    entry = operator.entry
    count = len(entry.definitions) + len(entry.reservations)
    for kernels in entry.implementations.values():
        count += len(kernels)
    if count == entry.total and (count > 0 or entry.rules):
        return []
    where = f"{entry.name}, total"
    expected = str(count) if count or entry.rules else "no such operator"
    return [(where, expected, str(entry.total))]


@law("state", per_operator=True)
def no_kernel_list_is_empty(operator: FiledOperator) -> list[Finding]:
    """A key in the map of an operator has at least one kernel."""
    return [
        (f"{operator.entry.name} at {key.name}", "a kernel", "an empty list")
        for key, kernels in operator.entry.implementations.items()
        if not kernels
    ]


@law("state", per_operator=True)
def a_registration_is_listed_once(operator: FiledOperator) -> list[Finding]:
    """A live registration is at exactly one place of its operator."""
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
    """A kernel is in the list of the key that it was registered for."""
    return [
        (f"{operator.entry.name}, {describe(token)}", token.key.name, key.name)
        for key, tokens in operator.entry.implementations.items()
        for token in tokens
        if token.key is not key
    ]


@law("state", per_operator=True)
def keys_stand_in_order(operator: FiledOperator) -> list[Finding]:
    """The keys of an operator's kernels are in the order of their values."""
    keys = list(operator.entry.implementations)
    ordered = sorted(keys, key=lambda key: key.value)
    if keys == ordered:
        return []
    names = [", ".join(key.name for key in each) for each in (ordered, keys)]
    return [(f"{operator.entry.name}, keys", names[0], names[1])]


@law("state", per_operator=True)
def kernels_stand_at_keys_that_take_them(operator: FiledOperator) -> list[Finding]:
    """No kernel is at Undefined or at a building block."""
    return [
        (str(operator.entry.name), "a runtime key or an alias", key.name)
        for key in operator.entry.implementations
        if key.name not in KERNEL_KEYS
    ]


@law("state", "namespaces")
def no_namespace_is_empty(state: DispatcherState) -> list[Finding]:
    """A namespace in the map of a state has at least one operator."""
    return [
        (f"namespace {namespace}", "an operator", "none")
        for namespace, operators in state.namespaces.items()
        if not operators
    ]


@law("state", "claims")
def claims_are_sorted_and_one_a_namespace(state: DispatcherState) -> list[Finding]:
    """The claims of DEF libraries are sorted, and no namespace is claimed twice."""
    namespaces = [claim.namespace for claim in state.claims]
    expected = sorted(set(namespaces))
    if namespaces == expected:
        return []
    return [("the claims", ", ".join(expected), ", ".join(namespaces))]


@law("state", "fallbacks")
def fallbacks_stand_where_their_tokens_say(state: DispatcherState) -> list[Finding]:
    """A slot has a fallback exactly if a live fallback names its key, and only one."""
    fallbacks = state.fallbacks
    slots: list[Fallback | None] = [None] * len(SLOTS)
    findings: list[Finding] = []
    present = through = 0
    for token in fallbacks.tokens:
        for key in token.keys:
            number = NUMBERS[key.name]
            other = slots[number]
            if other is not None:
                both = describe_all([other, token])
                findings.append((f"the fallbacks at {key.name}", "one", both))
            slots[number] = token
            present |= 1 << number
            through |= (token.kernel.function is None) << number
    if tuple(slots) != fallbacks.slots:
        for name, ours, theirs in zip(SLOTS, slots, fallbacks.slots, strict=True):
            if ours is not theirs:
                findings.append(
                    (
                        f"the fallbacks at {name}",
                        _fallback_text(ours),
                        _fallback_text(theirs),
                    )
                )
    if present != fallbacks.present:
        where = "the fallbacks, slots that have one"
        findings.append((where, f"{present:#x}", f"{fallbacks.present:#x}"))
    if through != fallbacks.through:
        where = "the fallbacks, slots that fall through"
        findings.append((where, f"{through:#x}", f"{fallbacks.through:#x}"))
    texts = tuple(
        (
            sum(1 << NUMBERS[key.name] for key in token.keys),
            token.debug,
            token.kernel.function is None,
        )
        for token in fallbacks.tokens
    )
    if texts != fallbacks.texts.texts:
        findings.append(
            ("the fallbacks, texts", repr(texts), repr(fallbacks.texts.texts))
        )
    order = [NUMBERS[token.keys[0].name] for token in fallbacks.tokens]
    if order != sorted(order):
        findings.append(("the fallbacks", "slot order", describe_all(fallbacks.tokens)))
    return findings


@law("state", "subscriptions")
def listeners_are_subscribed_once(state: DispatcherState) -> list[Finding]:
    """A subscription is in the list of listeners once."""
    subscriptions = state.subscriptions
    if len(set(subscriptions)) == len(subscriptions):
        return []
    return [
        (
            "the listeners",
            describe_all(tuple(dict.fromkeys(subscriptions))),
            describe_all(subscriptions),
        )
    ]


def _rank(token: Definition) -> tuple[bool, tuple[Any, ...]]:
    return token.schema.alias_kind is None, token.reading.texts


def _fallback_text(token: Fallback | None) -> str:
    return "none" if token is None else describe(token)


TENSORS = ("Tensor", "Tensor?")
LISTS = ("Tensor[]", "Tensor?[]")


@law("state", per_operator=True)
def without_a_schema_no_argument_is_looked_at(operator: FiledOperator) -> list[Finding]:
    """An operator without a definition does not dispatch on arguments."""
    extractor = operator.entry.extractor
    if operator.entry.definitions or not (extractor.tensors or extractor.lists):
        return []
    where = f"{operator.entry.name}, arguments"
    return [(where, "none", _arguments(extractor.tensors, extractor.lists))]


@law("state", per_operator=True)
def the_schema_says_which_arguments_count(operator: FiledOperator) -> list[Finding]:
    """An operator dispatches on exactly the tensors and tensor lists of its schema."""
    entry = operator.entry
    if not entry.definitions:
        return []
    types = [str(argument.type) for argument in entry.definitions[0].schema.arguments]
    tensors = tuple(at for at, text in enumerate(types) if text in TENSORS)
    lists = tuple(at for at, text in enumerate(types) if text in LISTS)
    extractor = entry.extractor
    if (tensors, lists) == (extractor.tensors, extractor.lists):
        return []
    where = f"{entry.name}, arguments"
    return [
        (
            where,
            _arguments(tensors, lists),
            _arguments(extractor.tensors, extractor.lists),
        )
    ]


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
    """Every live typed kernel fits the schema."""
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
        for tokens in operator.entry.implementations.values()
        for token in tokens
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
    """The fallbacks in an operator's table are those of the state."""
    fallbacks = operator.entry.table.fallbacks
    if fallbacks is operator.fallbacks:
        return []
    return group_findings(
        operator.entry.name,
        (
            (key, _debug(ours), _debug(theirs))
            for key, ours, theirs in zip(
                (slot.key for slot in operator.expected),
                operator.fallbacks.slots,
                fallbacks.slots,
                strict=True,
            )
            if ours is not theirs
        ),
    )


@law("state", per_operator=True)
def callers_belong_to_their_entry(operator: FiledOperator) -> list[Finding]:
    """The cached invoker of an entry was built from its own parts."""
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
            (expected.key, *_apart(_expected_text(expected), repr(slot.debug)))
            for expected, slot in zip(operator.expected, operator.live, strict=True)
            if slot.token is not expected.token
            or slot.kernel is not _kernel(expected)
            or slot.key.name != expected.key
        ),
    )


@law("state", per_operator=True)
def slots_say_which_rule_filled_them(operator: FiledOperator) -> list[Finding]:
    """The provenance of every slot is the rule that gives it its kernel."""
    return group_findings(
        operator.entry.name,
        (
            (expected.key, expected.provenance, slot.provenance)
            for expected, slot in zip(operator.expected, operator.live, strict=True)
            if slot.provenance != expected.provenance
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


def _kernel(expected: Expected) -> Kernel | None:
    if expected.token is not None:
        return expected.token.kernel
    return AMBIGUOUS if expected.provenance == AMBIGUITY else None


def _expected_text(slot: Expected) -> str:
    return repr(slot.provenance if slot.token is None else slot.token.debug)


def _debug(token: Fallback | None) -> str:
    return "no fallback" if token is None else repr(token.debug)


def _apart(expected: str, actual: str) -> tuple[str, str]:
    """Return two texts; mark different things with one description."""
    return expected, actual if actual != expected else f"another {actual}"


_BACKEND_BITS = (1 << len(BACKENDS)) - 1


@law("state", per_operator=True)
def masks_leave_out_what_falls_through(operator: FiledOperator) -> list[Finding]:
    """A backend's mask lacks a functionality exactly if its slot falls through."""
    findings = []
    masks = operator.entry.table.masks.by_backend
    expected = second_masks(operator.expected)
    for backend, ours, theirs in zip(BACKENDS, expected, masks, strict=True):
        if (ours ^ theirs) & ~_BACKEND_BITS:
            where = f"{operator.entry.name}, mask of {backend}"
            findings.append((where, f"without {_cut(ours)}", f"without {_cut(theirs)}"))
    return findings


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
        (f"{operator.entry.name}, mask of {backend}", "all backends", f"{backends:#x}")
        for backend, mask in zip(
            BACKENDS, operator.entry.table.masks.by_backend, strict=True
        )
        if (backends := mask & _BACKEND_BITS) != _BACKEND_BITS
    ]


def _cut(mask: int) -> str:
    left = [
        layer.replace("*", "") or "Dense"
        for index, layer in enumerate(LAYERS)
        if not mask >> (len(BACKENDS) + index) & 1
    ]
    return ", ".join(left) or "nothing"
