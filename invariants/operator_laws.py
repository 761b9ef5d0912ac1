"""Laws of what is registered: where it stands, which arguments count, which types fit.

Every registration stands where it belongs, once, and is counted; whether the right
kernels follow from it is the business of `invariants.table_laws`.

Rules:
- which arguments choose the kernel is judged by the text of their types: exactly four
  texts take part; a size, as the 2 of `Tensor[2]`, is no part of the type;
- only kernels that tell a signature are compared.  A schema and an inferred schema fit
  if they have as many arguments and results, of types that print alike, a symbolic
  integer being an integer; names, defaults, sizes and annotations may differ.
"""

from collections.abc import Sequence
from typing import Any

from invariants.law import Finding, law
from invariants.live import described, listed, tokens_of
from invariants.placed import Placed
from invariants.second_table import KERNEL_KEYS, NUMBERS, SLOTS
from runtime.dispatch.state import DispatcherState
from runtime.dispatch.token import (
    ClassRule,
    Definition,
    Fallback,
    Implementation,
    Reservation,
)
from runtime.schema.schema import Schema
from runtime.schema.signature import Argument


@law("state", per_operator=True)
def operators_are_filed_under_their_names(operator: Placed) -> list[Finding]:
    """An operator is filed under its own namespace and its own printed name."""
    name = operator.entry.name
    if operator.text == str(name) and operator.namespace == name.namespace:
        return []
    filed = f"{operator.text} in namespace {operator.namespace}"
    return [(filed, f"{name} in namespace {name.namespace}", filed)]


@law("state", per_operator=True)
def registrations_belong_to_their_operator(operator: Placed) -> list[Finding]:
    """What is registered for an operator names that operator; so does its schema."""
    own = operator.entry.name
    found = [
        (f"{own}, {described(token)}", str(own), str(token.operator))
        for token in tokens_of(operator.entry)
        if token.operator != own
    ]
    return found + [
        (f"{own}, schema of {described(token)}", str(own), str(token.schema.name))
        for token in operator.entry.definitions
        if token.schema.name != own
    ]


@law("state", per_operator=True)
def readings_tell_what_is_registered(operator: Placed) -> list[Finding]:
    """What a registration says about itself is true of its operator and kernel."""
    entry = operator.entry
    found: list[Finding] = []
    for token in tokens_of(entry):
        where = f"{entry.name}, {described(token)}"
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
def an_operator_has_one_definition(operator: Placed) -> list[Finding]:
    """An operator has one definition at most, or equal ones under the 2020 rule."""
    definitions = operator.entry.definitions
    if len(definitions) < 2:
        return []
    where = str(operator.entry.name)
    if not operator.merges_alias_kinds:
        return [(where, "one definition at most", listed(definitions))]
    first = definitions[0].schema
    return [
        (where, f"definitions equal to {first}", str(other.schema))
        for other in definitions[1:]
        if other.schema != first
        or other.schema.alias_kind not in (None, first.alias_kind)
    ]


@law("state", per_operator=True)
def definitions_stand_in_order(operator: Placed) -> list[Finding]:
    """Definitions with an alias kind come first, and those alike by their texts."""
    held = operator.entry.definitions
    if len(held) < 2:
        return []
    wanted = sorted(held, key=_rank)
    if wanted == list(held):
        return []
    where = f"{operator.entry.name}, definitions"
    return [(where, listed(wanted), listed(held))]


@law("state", per_operator=True)
def a_class_has_one_rule(operator: Placed) -> list[Finding]:
    """A class has one rule for an operator at most, and rules stand by their texts."""
    held = operator.entry.rules
    # Classes may compare as they like.
    classes = {id(rule.cls) for rule in held}
    wanted = sorted(held, key=lambda rule: rule.texts)
    if len(classes) == len(held) and wanted == list(held):
        return []
    where = f"{operator.entry.name}, rules"
    return [(where, f"{len(classes)}, by their texts", listed(held))]


@law("state", per_operator=True)
def the_total_counts_what_is_live(operator: Placed) -> list[Finding]:
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
def no_kernel_list_is_empty(operator: Placed) -> list[Finding]:
    """A key that an operator has in its map has a kernel at least."""
    return [
        (f"{operator.entry.name} at {key.name}", "a kernel", "an empty list")
        for key, held in operator.entry.implementations.items()
        if not held
    ]


@law("state", per_operator=True)
def a_registration_is_listed_once(operator: Placed) -> list[Finding]:
    """A live registration stands at exactly one place of its operator."""
    tokens = tokens_of(operator.entry)
    if len(set(tokens)) == len(tokens):
        return []
    return [
        (f"{operator.entry.name}, {described(token)}", "one place", "several")
        for token in dict.fromkeys(tokens)
        if tokens.count(token) > 1
    ]


@law("state", per_operator=True)
def kernels_are_listed_under_their_key(operator: Placed) -> list[Finding]:
    """A kernel stands in the list of the key that it was registered for."""
    return [
        (f"{operator.entry.name}, {described(token)}", token.key.name, key.name)
        for key, held in operator.entry.implementations.items()
        for token in held
        if token.key is not key
    ]


@law("state", per_operator=True)
def keys_stand_in_order(operator: Placed) -> list[Finding]:
    """The keys of an operator's kernels stand in the order of their values."""
    keys = list(operator.entry.implementations)
    wanted = sorted(keys, key=lambda key: key.value)
    if keys == wanted:
        return []
    names = [", ".join(key.name for key in each) for each in (wanted, keys)]
    return [(f"{operator.entry.name}, keys", names[0], names[1])]


@law("state", per_operator=True)
def kernels_stand_at_keys_that_take_them(operator: Placed) -> list[Finding]:
    """No kernel stands at Undefined or at a building block."""
    return [
        (str(operator.entry.name), "a runtime key or an alias", key.name)
        for key in operator.entry.implementations
        if key.name not in KERNEL_KEYS
    ]


@law("state")
def no_namespace_is_empty(state: DispatcherState) -> list[Finding]:
    """A namespace that a state has in its map has an operator at least."""
    return [
        (f"namespace {namespace}", "an operator", "none")
        for namespace, operators in state.namespaces.items()
        if not operators
    ]


@law("state")
def claims_are_sorted_and_one_a_namespace(state: DispatcherState) -> list[Finding]:
    """The claims of DEF libraries are sorted, and no namespace is claimed twice."""
    found = [claim.namespace for claim in state.claims]
    wanted = sorted(set(found))
    if found == wanted:
        return []
    return [("the claims", ", ".join(wanted), ", ".join(found))]


@law("state")
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
                both = listed([other, token])
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
        found.append(("the fallbacks", "slot order", listed(held.tokens)))
    return found


@law("state")
def listeners_are_subscribed_once(state: DispatcherState) -> list[Finding]:
    """A subscription stands once in the list of listeners."""
    held = state.subscriptions
    if len(set(held)) == len(held):
        return []
    return [("the listeners", listed(tuple(dict.fromkeys(held))), listed(held))]


def _rank(token: Definition) -> tuple[bool, tuple[Any, ...]]:
    return token.schema.alias_kind is None, token.reading.texts


def _told(token: Fallback | None) -> str:
    return "none" if token is None else described(token)


TENSORS = ("Tensor", "Tensor?")
LISTS = ("Tensor[]", "Tensor?[]")


@law("state", per_operator=True)
def without_a_schema_no_argument_is_looked_at(operator: Placed) -> list[Finding]:
    """An operator without a definition looks at no argument."""
    found = operator.entry.extractor
    if operator.entry.definitions or not (found.tensors or found.lists):
        return []
    where = f"{operator.entry.name}, arguments"
    return [(where, "none", _arguments(found.tensors, found.lists))]


@law("state", per_operator=True)
def the_schema_says_which_arguments_count(operator: Placed) -> list[Finding]:
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
def typed_kernels_agree(operator: Placed) -> list[Finding]:
    """All live typed kernels of an operator have one signature."""
    typed = _typed(operator)
    if len(typed) < 2:
        return []
    first = typed[0].kernel.facts.signature
    return [
        (f"{operator.entry.name}, {described(token)}", str(first), str(signature))
        for token in typed[1:]
        if (signature := token.kernel.facts.signature) != first
    ]


@law("state", per_operator=True)
def typed_kernels_fit_the_schema(operator: Placed) -> list[Finding]:
    """Every live typed kernel takes and returns what the schema says."""
    entry = operator.entry
    if not entry.definitions:
        return []
    schema = entry.definitions[0].schema
    return [
        (f"{entry.name}, {described(token)}", str(schema), str(inferred))
        for token in _typed(operator)
        if (inferred := token.kernel.facts.inferred) and not _fits(schema, inferred)
    ]


def _typed(operator: Placed) -> list[Implementation]:
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
