"""Runners: functions that run a kernel by its convention.

The seven conventions of `runtime.dispatch.kernel`, as runners.  A runner is
`run(operator, bits, values)`: its arguments are a function that returns a handle of the
operator, for kernels that take one, the keyset of the call and the bound arguments, and
it returns the operator's result, converted and checked.

Rules:
- everything here is a function of one entry; no lock is acquired;
- `Runners` refers to no invoker and no bound kernel, so that no reference cycle keeps
  one alive;
- a runner depends on the kernel and on the schema alone, and is cached on the
  registration; linked kernels depend on the table and are cached on the invoker.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from everyorder.runtime.dispatch.kernel import Kernel, keyword_places
from everyorder.runtime.dispatch.registration_record import (
    Fallback,
    Implementation,
    OperatorSpec,
)
from everyorder.runtime.dispatch.state import (
    OperatorEntry,
    listed_keys,
    render_table,
    table_reading,
)
from everyorder.runtime.errors.call import KernelError, MissingKernel
from everyorder.runtime.keys import (
    BACKEND_BITS,
    LOCAL,
    SLOTS,
    DispatchKey,
    KeySet,
    mask_index,
    slot_of,
)
from everyorder.runtime.schema.defaults import stripping
from everyorder.runtime.schema.values import MISMATCH, converter

# (function that returns the operator, keyset bits, bound arguments) -> result
Runner = Callable[[Callable[[], Any], int, list[Any]], Any]


def _linked(operator: Any, bits: int, values: list[Any]) -> Any:
    raise AssertionError("a linked kernel is run by its bound kernel")


# Marks a linked kernel, which runs as a bound kernel instead.
LINKED: Runner = _linked

# Definitions under which the runner of one kernel is cached: it outlives few of them.
REMEMBERED = 16


# Programs see few keysets; the text of one is for errors only.
@lru_cache(maxsize=256)
def _keyset_text(bits: int) -> str:
    return str(KeySet.from_bits(bits))


class Runners:
    """The runners of one entry, by slot."""

    __slots__ = (
        "_lists",
        "_masks",
        "_reading",
        "_runners",
        "_tensors",
        "_texts",
        "name",
        "presenters",
        "returns",
        "rules",
        "schema",
        "strip",
        "table",
        "tags",
    )

    def __init__(self, entry: OperatorEntry, reading: OperatorSpec) -> None:
        self.name = entry.name
        self.table = entry.table
        self.schema = reading.schema
        self.rules = entry.rules
        self.tags = reading.tags
        self._reading = reading
        _, self.strip, self.returns, self.presenters = reading.convention
        self._tensors = entry.extractor.tensors
        self._lists = entry.extractor.lists
        masks = entry.table.masks
        self._masks = masks.by_backend if masks.per_backend else masks.by_backend[:1]
        self._runners: dict[int, Runner] = {}
        # Texts of the table for errors, made when one is first raised.
        self._texts: list[Any] = []

    def keyset_bits(self, values: Sequence[Any]) -> int:
        """Return the keyset by which a call with these arguments is dispatched."""
        bits = argument_bits(self._tensors, self._lists, values)
        return _call_bits(bits, self._masks)

    def call_bits(self, bits: int) -> int:
        """Return the keyset of a call whose arguments have these bits."""
        return _call_bits(bits, self._masks)

    def linked_kernel(self, number: int) -> Kernel | None:
        """Return the linked kernel of a slot, or None for another kind or none."""
        content = self.table.content(number)
        if content is None or isinstance(content, Kernel):
            return None
        return content.kernel if content.kernel.facts.kind == "linked" else None

    def direct_function(self, number: int) -> Callable[..., Any] | None:
        """Return the function of a slot that takes arguments as kernels see them.

        None if the kernel needs more than the arguments, such as the keyset.
        """
        content = self.table.content(number)
        if not isinstance(content, Implementation) or content.kernel.with_keyset:
            return None
        facts, function = content.kernel.facts, content.kernel.function
        if facts.kind == "direct" or (facts.kind == "typed" and not facts.keyword_only):
            return function
        if facts.kind == "python":
            assert function is not None, "only `fallthrough` has no function"
            return stripping(self.schema, function)
        return None

    def presented(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` for values of the stack, converted to what kernels see."""
        if not any(self.presenters):
            return function
        return lambda *values: function(*self.from_stack(values))

    def from_stack(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return stack values as kernels see them: enums as objects, lists fresh."""
        return [
            value if turn is None else turn(value)
            for value, turn in zip_longest(values, self.presenters)
        ]

    def to_stack(self, values: Sequence[Any]) -> list[Any]:
        """Return arguments as kernels see them, as values of the stack."""
        stacked = list(values)
        for place, turn in enumerate(self.presenters):
            if turn is not None:
                stacked[place] = self._on_stack(place, stacked[place])
        return stacked

    def _on_stack(self, place: int, value: Any) -> Any:
        argument = self.schema.arguments[place]
        converted = converter(argument.type, argument.size)(value)
        return value if converted is MISMATCH else converted

    def runner(self, number: int) -> Runner:
        """Return the runner of a slot, or `LINKED` for a linked kernel."""
        runner = self._runners.get(number)
        if runner is not None:
            return runner
        content = self.table.content(number)
        if isinstance(content, Implementation):
            runner = content.memo.get(self._reading) or self._remembered(
                content, number
            )
        elif content is None:
            runner = self.missing(SLOTS[number])
        elif isinstance(content, Fallback):
            runner = self.runner_of(content.kernel, True, SLOTS[number].name)
        else:
            runner = self.runner_of(content, False, SLOTS[number].name)
        self._runners[number] = runner
        return runner

    def _remembered(self, token: Implementation, number: int) -> Runner:
        key = SLOTS[number].name
        if token.kernel.function is None:
            # The error names the slot, so each slot has a separate runner.
            return self._fallen_through(key)
        if len(token.memo) >= REMEMBERED:
            token.memo.clear()
        runner = token.memo[self._reading] = self.runner_of(token.kernel, False, key)
        return runner

    def runner_of(self, kernel: Kernel, fallback: bool, key: str) -> Runner:
        """Return the runner of a kernel by its convention; fallbacks get a handle."""
        function = kernel.function
        if function is None:
            return self._fallen_through(key)
        if kernel.facts.kind == "linked":
            return LINKED
        if kernel.facts.kind == "stack":
            return self._stack(function, kernel.facts.name)
        if fallback or kernel.facts.kind == "python":
            return self._python(function, kernel.with_keyset, fallback)
        if kernel.facts.kind == "direct":
            return self._direct(self.presented(function), kernel.with_keyset)
        return self._typed(function, kernel)

    def _direct(self, function: Callable[..., Any], with_keyset: bool) -> Runner:
        returns = self.returns
        if with_keyset:
            return lambda operator, bits, values: returns(
                function(KeySet.from_bits(bits), *values)
            )
        return lambda operator, bits, values: returns(function(*values))

    def _typed(self, function: Callable[..., Any], kernel: Kernel) -> Runner:
        returns, presenters = self.returns, self.presenters
        if not kernel.facts.keyword_only and not any(presenters):
            return self._direct(function, kernel.with_keyset)
        places = keyword_places(self.schema, kernel.facts.keyword_only)
        named_places = frozenset(places.values())

        def spelled(operator: Any, bits: int, values: list[Any]) -> Any:
            presented = [
                value if turn is None else turn(value)
                for value, turn in zip_longest(values, presenters)
            ]
            named = {name: presented[place] for name, place in places.items()}
            rest = [v for i, v in enumerate(presented) if i not in named_places]
            first = (KeySet.from_bits(bits),) if kernel.with_keyset else ()
            return returns(function(*first, *rest, **named))

        return spelled

    def _python(
        self, function: Callable[..., Any], with_keyset: bool, fallback: bool
    ) -> Runner:
        strip, returns = self.strip, self.returns
        if not (with_keyset or fallback):

            def plain(operator: Any, bits: int, values: list[Any]) -> Any:
                args, kwargs = strip(values)
                return returns(function(*args, **kwargs))

            return plain

        def leading(operator: Any, bits: int, values: list[Any]) -> Any:
            args, kwargs = strip(values)
            first = (KeySet.from_bits(bits),) if with_keyset else ()
            second = (operator(),) if fallback else ()
            return returns(function(*first, *second, *args, **kwargs))

        return leading

    def _stack(self, function: Callable[..., Any], name: str) -> Runner:
        expected = len(self.schema.returns)
        fixed = not self.schema.is_varret
        text, returns = str(self.name), self.returns

        def stacked(operator: Any, bits: int, values: list[Any]) -> Any:
            # A sentinel below the arguments: the kernel must not pop it.
            below, count = object(), len(values)
            stack = [below, *values]
            function(operator(), KeySet.from_bits(bits), stack)
            intact = bool(stack) and stack[0] is below
            results = stack[1:] if intact else stack
            if not intact or (fixed and len(results) != expected):
                raise KernelError(
                    code="StackMismatch",
                    operator=text,
                    kernel=name,
                    popped=count if intact else count + 1,
                    pushed=len(results),
                    expected_popped=count,
                    expected_pushed=expected,
                )
            if fixed and expected == 0:
                return None
            return returns(results[0] if fixed and expected == 1 else tuple(results))

        return stacked

    def _fallen_through(self, key: str) -> Runner:
        text = str(self.name)

        def refuse(operator: Any, bits: int, values: list[Any]) -> Any:
            raise KernelError(code="FallthroughCalled", operator=text, key=key)

        return refuse

    def missing(self, key: DispatchKey) -> Runner:
        """Return a runner that raises `MissingKernel` for `key`."""
        text, table, texts = self._reading.text, self.table, self._texts
        tensors, lists = self._tensors, self._lists
        masks = self._masks

        def refuse(operator: Any, bits: int, values: list[Any]) -> Any:
            if not texts:
                reading = table_reading(table)
                texts.extend((listed_keys(reading), render_table(reading)))
            own = argument_bits(tensors, lists, values)
            reason, keyset = "no kernel", bits
            if not key.slot and slot_of(_call_bits(own, masks)):
                reason = "nothing to redispatch to"
            elif not key.slot:
                reason, keyset = _reason_of_no_key(own), own
            raise MissingKernel(
                operator=text,
                key=key.name,
                keyset=_keyset_text(keyset),
                available=texts[0],
                table=texts[1],
                reason=reason,
            )

        return refuse


def _call_bits(bits: int, masks: tuple[int, ...]) -> int:
    mask = masks[0] if len(masks) == 1 else masks[mask_index(bits)]
    view = LOCAL.view
    return (bits | view.included) & (BACKEND_BITS | ~view.excluded) & mask


def argument_bits(
    tensors: tuple[int, ...], lists: tuple[int, ...], values: Sequence[Any]
) -> int:
    """Return the union of the keysets of all tensors at these positions."""
    bits: int = 0
    for position in tensors:
        value = values[position]
        if value is not None:
            bits |= value.key_bits
    for position in lists:
        for value in values[position]:
            if value is not None:
                bits |= value.key_bits
    return bits


def _reason_of_no_key(bits: int) -> str:
    """Return why a call of tensors with these keys has no key left."""
    keys = bits & ~BACKEND_BITS
    if not keys:
        return "no tensor arguments"
    left = keys & ~LOCAL.excluded
    return "all keys fell through" if left else "all keys excluded"
