"""Callers: how a call finds its kernel and runs it.

True only here: a caller is a pure function of one immutable entry, built on the first
call and kept on the entry; it can therefore not be stale.  Nothing here takes a lock.

How a call works: bind the arguments to the schema; join the keysets of the tensors
among them; add what the thread includes, take off what it excludes and what falls
through; the highest key left names a slot; run the slot's kernel by its convention.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from runtime.dispatch.dump import listed_keys, reading_of, render_table
from runtime.dispatch.entry import OperatorEntry
from runtime.dispatch.kernel import Kernel, keyword_places
from runtime.dispatch.reading import DefinitionReading
from runtime.dispatch.token import Fallback, Implementation
from runtime.dispatch.watch import DEPTH, UNOBSERVED, WATCH, Observer
from runtime.errors.call import (
    CallWithoutSchema,
    FallthroughCalled,
    MissingKernel,
    StackMismatch,
)
from runtime.keys import (
    BACKEND_BITS,
    LOCAL,
    SLOTS,
    DispatchKey,
    KeySet,
    mask_index,
    slot_of,
)
from runtime.schema.values import presenter

# (operator handle, keyset bits, bound arguments) -> result
Runner = Callable[[Any, int, list[Any]], Any]


# Definitions that one kernel is remembered under: it outlives few of them.
REMEMBERED = 16


# Programs see few keysets; the text of one is for errors only.
@lru_cache(maxsize=256)
def _shown(bits: int) -> str:
    return str(KeySet.from_bits(bits))


class Caller:
    """Everything a call of one entry needs; see `caller_of`."""

    __slots__ = (
        "_lists",
        "_masks",
        "_reading",
        "_tensors",
        "bind",
        "name",
        "returns",
        "runners",
        "schema",
        "strip",
        "table",
    )

    def __init__(self, entry: OperatorEntry, reading: DefinitionReading) -> None:
        # Not the entry itself, which keeps the caller: a circle would keep its kernels
        # alive until the garbage collector comes by.  So nothing below holds `self`.
        self.name = entry.name
        self.table = entry.table
        self.schema = reading.schema
        self._reading = reading
        self.bind, self.strip, self.returns = reading.convention
        self._tensors = entry.extractor.tensors
        self._lists = entry.extractor.lists
        masks = entry.table.masks
        self._masks = masks.by_backend if masks.per_backend else masks.by_backend[:1]
        self.runners: list[Runner | None] = [None] * len(SLOTS)

    def call(
        self, handle: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Bind, dispatch, run."""
        values = self.bind(args, kwargs)
        bits = self.keys_of(values)
        if WATCH.active:
            return self._watched("call", handle, bits, values)
        number = slot_of(bits)
        return (self.runners[number] or self._runner(number))(handle, bits, values)

    def call_boxed(self, handle: Any, values: list[Any]) -> Any:
        """Dispatch and run bound arguments."""
        bits = self.keys_of(values)
        if WATCH.active:
            return self._watched("callBoxed", handle, bits, values)
        return self.run(handle, bits, values)

    def redispatch(
        self, label: str, handle: Any, keyset: KeySet, values: list[Any]
    ) -> Any:
        """Run the kernel of the highest key of `keyset`, taken as it is."""
        if WATCH.active:
            return self._traced(label, handle, keyset.bits, values)
        return self.run(handle, keyset.bits, values)

    def run(self, handle: Any, bits: int, values: list[Any]) -> Any:
        """Run the kernel of the highest key of `bits`."""
        number = slot_of(bits)
        return (self.runners[number] or self._runner(number))(handle, bits, values)

    def keys_of(self, values: Sequence[Any]) -> int:
        """The keyset that a call with these arguments is dispatched by."""
        bits = argument_bits(self._tensors, self._lists, values)
        return _called_by(bits, self._masks)

    def _watched(self, label: str, handle: Any, bits: int, values: list[Any]) -> Any:
        observers = WATCH.observers
        if not observers or self.name.name in UNOBSERVED:
            return self._traced(label, handle, bits, values)
        return self._observed(observers, label, handle, bits, values)

    def _observed(
        self,
        observers: tuple[Observer, ...],
        label: str,
        handle: Any,
        bits: int,
        values: list[Any],
    ) -> Any:
        """Tell the first observer, and run the call inside; the others likewise.

        One call inside of another, so that each hears the end whatever the others do.
        """
        if not observers:
            return self._traced(label, handle, bits, values)
        first, *others = observers
        context = first.before(
            str(self.name), self.schema, tuple(values), KeySet.from_bits(bits)
        )
        try:
            outcome = self._observed(tuple(others), label, handle, bits, values)
        except BaseException as error:
            first.after(context, error)
            raise
        first.after(context, outcome)
        return outcome

    def _traced(self, label: str, handle: Any, bits: int, values: list[Any]) -> Any:
        WATCH.write(label, str(self.name), SLOTS[slot_of(bits)].name)
        DEPTH.level += 1
        try:
            return self.run(handle, bits, values)
        finally:
            DEPTH.level -= 1

    def _runner(self, number: int) -> Runner:
        held = self.table.held(number)
        if isinstance(held, Implementation):
            # What a kernel needs to run depends on it and on the schema alone.
            runner = held.memo.get(self._reading) or self._remembered(held, number)
        elif held is None:
            runner = self._missing(SLOTS[number])
        elif isinstance(held, Fallback):
            runner = self.runner_of(held.kernel, True, SLOTS[number].name)
        else:
            runner = self.runner_of(held, False, SLOTS[number].name)
        self.runners[number] = runner
        return runner

    def _remembered(self, held: Implementation, number: int) -> Runner:
        key = SLOTS[number].name
        if held.kernel.function is None:
            # It refuses by the name of its slot, so each slot has its own.
            return self._fallen_through(key)
        if len(held.memo) >= REMEMBERED:
            held.memo.clear()
        runner = held.memo[self._reading] = self.runner_of(held.kernel, False, key)
        return runner

    def runner_of(self, kernel: Kernel, fallback: bool, key: str) -> Runner:
        """How a kernel is run, by its convention; a fallback gets the operator."""
        function = kernel.function
        if function is None:
            return self._fallen_through(key)
        if kernel.facts.kind == "stack":
            return self._stack(function, kernel.facts.name)
        if fallback or kernel.facts.kind == "python":
            return self._python(function, kernel.with_keyset, fallback)
        return self._typed(function, kernel)

    def _typed(self, function: Callable[..., Any], kernel: Kernel) -> Runner:
        returns = self.returns
        shown = [presenter(argument.type) for argument in self.schema.arguments]
        if kernel.facts.keyword_only or any(shown):
            places = keyword_places(self.schema, kernel.facts.keyword_only)
            named_places = frozenset(places.values())

            def spelled(handle: Any, bits: int, values: list[Any]) -> Any:
                seen = [
                    value if turn is None else turn(value)
                    for value, turn in zip_longest(values, shown)
                ]
                named = {name: seen[place] for name, place in places.items()}
                rest = [v for i, v in enumerate(seen) if i not in named_places]
                first = (KeySet.from_bits(bits),) if kernel.with_keyset else ()
                return returns(function(*first, *rest, **named))

            return spelled
        if kernel.with_keyset:
            return lambda handle, bits, values: returns(
                function(KeySet.from_bits(bits), *values)
            )
        return lambda handle, bits, values: returns(function(*values))

    def _python(
        self, function: Callable[..., Any], with_keyset: bool, fallback: bool
    ) -> Runner:
        strip, returns = self.strip, self.returns
        if not (with_keyset or fallback):

            def plain(handle: Any, bits: int, values: list[Any]) -> Any:
                args, kwargs = strip(values)
                return returns(function(*args, **kwargs))

            return plain

        def leading(handle: Any, bits: int, values: list[Any]) -> Any:
            args, kwargs = strip(values)
            first = (KeySet.from_bits(bits),) if with_keyset else ()
            second = (handle,) if fallback else ()
            return returns(function(*first, *second, *args, **kwargs))

        return leading

    def _stack(self, function: Callable[..., Any], name: str) -> Runner:
        given = len(self.schema.returns)
        fixed = not self.schema.is_varret
        operator, returns = str(self.name), self.returns

        def stacked(handle: Any, bits: int, values: list[Any]) -> Any:
            # What lies below the arguments belongs to somebody else.
            below, taken = object(), len(values)
            stack = [below, *values]
            function(handle, KeySet.from_bits(bits), stack)
            intact = bool(stack) and stack[0] is below
            results = stack[1:] if intact else stack
            if not intact or (fixed and len(results) != given):
                raise StackMismatch(
                    operator=operator,
                    kernel=name,
                    popped=taken if intact else taken + 1,
                    pushed=len(results),
                    expected_popped=taken,
                    expected_pushed=given,
                )
            if fixed and given == 0:
                return None
            return returns(results[0] if fixed and given == 1 else tuple(results))

        return stacked

    def _fallen_through(self, key: str) -> Runner:
        operator = str(self.name)

        def refuse(handle: Any, bits: int, values: list[Any]) -> Any:
            raise FallthroughCalled(operator=operator, key=key)

        return refuse

    def _missing(self, key: DispatchKey) -> Runner:
        operator, reading = str(self.name), reading_of(self.table)
        tensors, lists = self._tensors, self._lists
        masks = self._masks
        texts: list[Any] = []

        def refuse(handle: Any, bits: int, values: list[Any]) -> Any:
            if not texts:
                texts.extend((listed_keys(reading), render_table(reading)))
            given = argument_bits(tensors, lists, values)
            reason, shown = "no kernel", bits
            if not key.slot and slot_of(_called_by(given, masks)):
                reason = "nothing to redispatch to"
            elif not key.slot:
                reason, shown = _why_none_is_left(given), given
            raise MissingKernel(
                operator=operator,
                key=key.name,
                keyset=_shown(shown),
                available=texts[0],
                table=texts[1],
                reason=reason,
            )

        return refuse


def _called_by(bits: int, masks: tuple[int, ...]) -> int:
    """The keyset of a call whose arguments have these bits."""
    mask = masks[0] if len(masks) == 1 else masks[mask_index(bits)]
    return (bits | LOCAL.included) & (BACKEND_BITS | ~LOCAL.excluded) & mask


def argument_bits(
    tensors: tuple[int, ...], lists: tuple[int, ...], values: Sequence[Any]
) -> int:
    """The keysets of all tensors at these positions, joined."""
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


def _why_none_is_left(given: int) -> str:
    """Why a call of tensors with these keys has no key to go to."""
    keys = given & ~BACKEND_BITS
    if not keys:
        return "no tensor arguments"
    left = keys & ~LOCAL.excluded
    return "all keys fell through" if left else "all keys excluded"


def caller_of(entry: OperatorEntry | None, name: str) -> Caller:
    """The caller of an entry, kept on it.

    Raises:
        CallWithoutSchema: the operator has kernels and no schema.
    """
    if entry is not None:
        found = entry.memo.get("caller")
        if found is not None:
            return found  # type: ignore[no-any-return]  # the memo holds what was put there
        if entry.definitions:
            caller = Caller(entry, entry.definitions[0].reading)
            entry.memo["caller"] = caller
            return caller
    raise CallWithoutSchema(operator=name)
