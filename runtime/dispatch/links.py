"""Links: from a keyset to the function of the arguments that runs its kernel.

True only here: what a linked kernel is given, and when its factory is called.  A link
is a plain function of all arguments in the order of the schema, as kernels see them
(codes are objects); it is made once for each keyset and kept on the entry's caller.

Rules:
- the keyset is taken as it is, as by a redispatch;
- a linked kernel and all that lies below it are of one entry, whatever is registered
  while it runs;
- results are converted and checked by the outermost call only, save those of boxed
  kernels, of fallbacks, and of kernels with a keyset, which always are;
- a link holds links below it and never one above: no circle keeps kernels alive;
- the operator that boxed kernels and fallbacks are given is made when they run, from a
  weak reference to the dispatcher.
"""

from collections.abc import Callable
from typing import Any

from runtime.dispatch.kernel import Kernel
from runtime.dispatch.running import Runner, Running
from runtime.dispatch.token import ClassRule
from runtime.dispatch.watch import DEPTH, WATCH
from runtime.keys import SLOTS, DispatchKey, KeySet, full_after, slot_of
from runtime.schema.schema import Schema

Link = Callable[..., Any]


class Below:
    """What a linked kernel calls; `run` is the bare function, for those in a hurry.

    `schema` and `tags` are those of the operator, which a fallback does not know
    otherwise, and `rules` are those of its entry, for whoever asks handlers.
    """

    __slots__ = ("_links", "rules", "run", "schema", "tags")

    def __init__(self, links: "Links", run: Link, running: Running) -> None:
        self._links = links
        self.run = run
        self.schema: Schema = running.schema
        self.tags: tuple[str, ...] = running.tags
        self.rules: tuple[ClassRule, ...] = running.rules

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel of the next key."""
        return self.run(*arguments)

    def at(self, keyset: KeySet) -> Link:
        """The function that runs the kernel of the highest key of `keyset`."""
        return self._links.at(keyset.bits)

    def instead(
        self, kernel: Kernel, keyset: KeySet, key: DispatchKey, fallback: bool
    ) -> Link:
        """The function that runs `kernel` where the linked one stands, at `key`.

        `fallback` says that it gets the operator; `fallthrough` is what lies below.
        """
        function = kernel.function
        if function is None:
            return self.run
        if kernel.facts.kind == "linked":
            made: Link = function(self, keyset)
            return made
        return self._links.ran(kernel, keyset.bits, key, fallback)

    def operator(self) -> Any:
        """The `OperatorHandle` of the operator; keep it no longer than a call."""
        return self._links.operator()


class Links:
    """The links of one entry, for one dispatcher; traced or not."""

    __slots__ = ("_made", "_running", "_tops", "_traced", "operator")

    def __init__(
        self, running: Running, operator: Callable[[], Any], traced: bool
    ) -> None:
        self._running = running
        self.operator = operator
        self._traced = traced
        self._made: dict[int, Link] = {}
        self._tops: dict[int, Link] = {}

    def at(self, bits: int) -> Link:
        """The link of a redispatch with this keyset."""
        found = self._made.get(bits)
        if found is None:
            found = self._made[bits] = self._redispatched(bits)
        return found

    def top(self, bits: int) -> Link:
        """The link of a call with this keyset: it writes no line of its own."""
        found = self._tops.get(bits)
        if found is None:
            found = self._tops[bits] = self._top(bits)
        return found

    def _top(self, bits: int) -> Link:
        number = slot_of(bits)
        running = self._running
        kernel = running.link_at(number)
        if kernel is not None:
            return self.of(kernel, bits, SLOTS[number])
        direct = running.direct_at(number)
        return direct or self._stacked(running.runner(number), bits)

    def of(self, kernel: Kernel, bits: int, key: DispatchKey) -> Link:
        """The link of a linked kernel, as if it were the one of `key`."""
        assert kernel.function is not None, "only `fallthrough` has no function"
        # Links of its own: what it holds on to must not hold on to it.
        links = Links(self._running, self.operator, self._traced)
        # An alias key has no place of its own: what lies below is below the call's key.
        key = key if key.bits else SLOTS[slot_of(bits)]
        below = links.at(bits & full_after(key).bits) if key.bits else links.nothing()
        made: Link = kernel.function(
            Below(links, below, self._running), KeySet.from_bits(bits)
        )
        return made

    def nothing(self) -> Link:
        """The link that says that there is no kernel below."""
        return self._stacked(self._running.missing(DispatchKey.Undefined), 0)

    def ran(self, kernel: Kernel, bits: int, key: DispatchKey, fallback: bool) -> Link:
        """The link of any other kernel, as if it were the one of `key`."""
        return self._stacked(self._running.runner_of(kernel, fallback, key.name), bits)

    def _stacked(self, runner: Runner, bits: int) -> Link:
        """The link of a runner, whose values are those of the stack."""
        operator, stacking = self.operator, self._running.stacking
        return lambda *values: runner(operator, bits, stacking(values))

    def _redispatched(self, bits: int) -> Link:
        link = self.top(bits)
        if not self._traced:
            return link
        name, key = str(self._running.name), SLOTS[slot_of(bits)].name

        def traced(*values: Any) -> Any:
            WATCH.write("redispatch", name, key)
            DEPTH.level += 1
            try:
                return link(*values)
            finally:
                DEPTH.level -= 1

        return traced
