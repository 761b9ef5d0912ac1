"""Callers: how a call finds its kernel and runs it.

True only here: a caller is a pure function of one immutable entry, built on the first
call and kept on the entry; it can therefore not be stale.  Nothing here takes a lock.

How a call works: bind the arguments to the schema; join the keysets of the tensors
among them; add what the thread includes, take off what it excludes and what falls
through; the highest key left names a slot; run the slot's kernel by its convention.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from runtime.dispatch.dump import dump_table, list_keys
from runtime.dispatch.entry import OperatorEntry
from runtime.dispatch.kernel import Kernel
from runtime.dispatch.reading import DefinitionReading
from runtime.dispatch.table import Slot
from runtime.dispatch.token import Fallback
from runtime.dispatch.watch import DEPTH, UNOBSERVED, WATCH
from runtime.errors.call import (
    CallWithoutSchema,
    FallthroughCalled,
    MissingKernel,
    StackMismatch,
)
from runtime.keys import BACKEND_BITS, LOCAL, SLOTS, KeySet, mask_index, slot_of

# (operator handle, keyset bits, bound arguments) -> result
Runner = Callable[[Any, int, list[Any]], Any]


# Programs see few keysets; the text of one is for errors only.
@lru_cache(maxsize=256)
def _shown(bits: int) -> str:
    return str(KeySet.from_bits(bits))


class Caller:
    """Everything a call of one entry needs; see `caller_of`."""

    __slots__ = (
        "_lists",
        "_masks",
        "_tensors",
        "bind",
        "entry",
        "returns",
        "runners",
        "schema",
        "strip",
    )

    def __init__(self, entry: OperatorEntry, reading: DefinitionReading) -> None:
        self.entry = entry
        self.schema = reading.schema
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

    def argument_bits(self, values: Sequence[Any]) -> int:
        """The keysets of all tensors among the arguments, joined."""
        bits: int = 0
        for position in self._tensors:
            value = values[position]
            if value is not None:
                bits |= value.key_bits
        for position in self._lists:
            for value in values[position]:
                if value is not None:
                    bits |= value.key_bits
        return bits

    def keys_of(self, values: Sequence[Any]) -> int:
        """The keyset that a call with these arguments is dispatched by."""
        bits = self.argument_bits(values)
        masks = self._masks
        mask = masks[0] if len(masks) == 1 else masks[mask_index(bits)]
        return (bits | LOCAL.included) & (BACKEND_BITS | ~LOCAL.excluded) & mask

    def _watched(self, label: str, handle: Any, bits: int, values: list[Any]) -> Any:
        observers = WATCH.observers
        if not observers or str(self.entry.name) in UNOBSERVED:
            return self._traced(label, handle, bits, values)
        keyset, arguments = KeySet.from_bits(bits), tuple(values)
        name = str(self.entry.name)
        outcome: object = None
        begun: list[tuple[Any, object]] = []
        try:
            for observer in observers:
                context = observer.before(name, self.schema, arguments, keyset)
                begun.append((observer, context))
            outcome = self._traced(label, handle, bits, values)
        except BaseException as error:
            outcome = error
            raise
        finally:
            for observer, context in reversed(begun):
                observer.after(context, outcome)
        return outcome

    def _traced(self, label: str, handle: Any, bits: int, values: list[Any]) -> Any:
        WATCH.write(label, str(self.entry.name), SLOTS[slot_of(bits)].name)
        DEPTH.level += 1
        try:
            return self.run(handle, bits, values)
        finally:
            DEPTH.level -= 1

    def _runner(self, number: int) -> Runner:
        slot = self.entry.table.slot(number)
        if slot.kernel is None:
            runner = self._missing(slot)
        else:
            fallback = isinstance(slot.token, Fallback)
            runner = self.runner_of(slot.kernel, fallback, slot.key.name)
        self.runners[number] = runner
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
        start = self.schema.kwarg_only_start
        if kernel.facts.keyword_only and start < len(self.schema.arguments):
            names = tuple(a.name for a in self.schema.arguments[start:])

            def by_name(handle: Any, bits: int, values: list[Any]) -> Any:
                first = (KeySet.from_bits(bits),) if kernel.with_keyset else ()
                named = dict(zip(names, values[start:], strict=True))
                return returns(function(*first, *values[:start], **named))

            return by_name
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
        taken, given = len(self.schema.arguments), len(self.schema.returns)
        fixed = not (self.schema.is_vararg or self.schema.is_varret)
        operator, returns = str(self.entry.name), self.returns

        def stacked(handle: Any, bits: int, values: list[Any]) -> Any:
            # What lies below the arguments belongs to somebody else.
            below = object()
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
        operator = str(self.entry.name)

        def refuse(handle: Any, bits: int, values: list[Any]) -> Any:
            raise FallthroughCalled(operator=operator, key=key)

        return refuse

    def _missing(self, slot: Slot) -> Runner:
        entry = self.entry

        def refuse(handle: Any, bits: int, values: list[Any]) -> Any:
            raise MissingKernel(
                operator=str(entry.name),
                key=slot.key.name,
                keyset=_shown(bits),
                available=list_keys(entry),
                table=dump_table(entry),
                reason=self._why_missing(slot, values),
            )

        return refuse

    def _why_missing(self, slot: Slot, values: Sequence[Any]) -> str:
        if slot.key.slot:
            return "no kernel"
        given = self.argument_bits(values) & ~BACKEND_BITS
        if not given:
            return "no tensor arguments"
        left = given & ~LOCAL.excluded
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
