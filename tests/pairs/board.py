"""One operator on which registrations are played in every order.

After every step the laws of the state and of the step are checked, and both dumps are
compared with texts made from the set of live registrations alone, by the laws' own
second table: a live table that depends on its history cannot equal such a text.
"""

from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from everyorder.invariants import check, check_step, second_table
from everyorder.runtime.dispatch import Dispatcher, Library, Registration, fallthrough
from everyorder.runtime.dispatch.state import dump_state, dump_table, fingerprint
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.schema.signature import OperatorName

# All keys that a kernel can be registered at: 136 runtime keys and 6 aliases.
KEYS = tuple(
    key.name for key in DispatchKey if key.is_alias or (key.is_runtime and key.slot)
)
OPERATOR = OperatorName("pairs::f")
HEAD = (
    "schema: pairs::f(Tensor x) -> Tensor\ndebug: defined\n"
    "alias analysis kind: FROM_SCHEMA\n"
)


def _kernel(*arguments):  # type: ignore[no-untyped-def]  # without annotations: boxed
    return arguments


# What is registered at the first key, the second, the third: all unlike each other.
KERNELS = (_kernel, fallthrough, _kernel)
NAMES = ("first", "second", "third")
SUFFIXES = tuple(
    " :: (none) [ fallthrough boxed ]"
    if each is fallthrough
    else " :: (none) [ boxed ]"
    for each in KERNELS
)
# Live registrations, oldest first: (key, index into KERNELS).
Live = tuple[tuple[str, int], ...]


class Board:
    """A dispatcher with one operator; `defined` says whether it has a schema."""

    def __init__(self, *, builtin: bool, defined: bool) -> None:
        self.dispatcher = Dispatcher(
            builtin_fallbacks=builtin, warns_of_overrides=False
        )
        self.defined = defined
        self._definitions = self._library("FRAGMENT", "defined")
        if defined:
            self._definitions.define("f(Tensor x) -> Tensor")
        self._libraries = [self._library("IMPL", name) for name in NAMES]
        self._rest = fingerprint(self.dispatcher.snapshot())
        self._tokens = self.dispatcher.snapshot().fallbacks.tokens
        self.steps = 0

    def play(
        self, keys: tuple[str, ...], adds: tuple[int, ...], removes: tuple[int, ...]
    ) -> str | None:
        """Add the kernels at `keys` in one order, remove them in another.

        Returns what was wrong after the first wrong step, None if nothing was.
        """
        handles: dict[int, Registration] = {}
        live: Live = ()
        for index in adds:
            before = self.dispatcher.snapshot()
            handles[index] = self._libraries[index].impl(
                "f", KERNELS[index], keys[index], debug=NAMES[index]
            )
            live = (*live, (keys[index], index))
            wrong = self._wrong(before, live, "add")
            if wrong:
                break
        else:
            for index in removes:
                before = self.dispatcher.snapshot()
                handles.pop(index).close()
                live = tuple([each for each in live if each[1] != index])
                wrong = self._wrong(before, live, "remove")
                if wrong:
                    break
        for handle in handles.values():
            handle.close()
        return f"{keys} added {adds} removed {removes}: {wrong}" if wrong else None

    def at_rest(self) -> bool:
        """Whether nothing of what was played is left."""
        return fingerprint(self.dispatcher.snapshot()) == self._rest

    def _wrong(self, before: Any, live: Live, change: Any) -> str | None:
        self.steps += 1
        state = self.dispatcher.snapshot()
        broken = check(state, before) + check_step(before, state, change)
        if broken:
            return "; ".join(map(str, broken))
        entry = state.entry(OPERATOR)
        if entry is None:
            return None if not (live or self.defined) else "the operator is gone"
        wanted_state = _state_text(_canonical(live), self.defined)
        if dump_state(entry) != wanted_state:
            return f"state\n{dump_state(entry)}instead of\n{wanted_state}"
        wanted_table = _table_text(_active(live), self._tokens)
        if dump_table(entry) != wanted_table:
            return f"table\n{dump_table(entry)}instead of\n{wanted_table}"
        return None

    def _library(self, kind: str, origin: str) -> Library:
        return Library("pairs", kind, dispatcher=self.dispatcher, origin=origin)


def _canonical(live: Live) -> Live:
    """The same registrations by key; those of one key newest first."""
    return tuple(sorted(live, key=lambda each: (each[0], -live.index(each))))


def _active(live: Live) -> Live:
    """The newest registration of each key, by key."""
    return tuple(sorted(dict(live).items()))


@lru_cache(maxsize=65536)
def _state_text(live: Live, defined: bool) -> str:
    lines = []
    seen: set[str] = set()
    for key, index in sorted(live, key=lambda each: DispatchKey.parse(each[0]).value):
        shown = key + "[alias]" * DispatchKey.parse(key).is_alias
        shown += " (inactive)" * (key in seen)
        seen.add(key)
        lines.append(f"{shown}: {NAMES[index]}{SUFFIXES[index]}\n")
    head = HEAD if defined else "schema: (none)\n"
    return f"name: pairs::f\n{head}{''.join(lines)}"


@lru_cache(maxsize=65536)
def _table_text(active: Live, fallbacks: Any) -> str:
    tokens: Any = {
        DispatchKey.parse(key): (
            SimpleNamespace(
                debug=NAMES[index], kernel=SimpleNamespace(function=_through(index))
            ),
        )
        for key, index in active
    }
    lines = []
    for slot in second_table(tokens, fallbacks):
        through = "fallthrough " * slot.falls_through
        if slot.token is not None:
            held = f"{through}{slot.token.debug} [{slot.provenance}]"
        elif slot.provenance == "missing":
            continue
        else:
            held = f"ambiguous_autogradother [{slot.provenance}]"
        lines.append(f"{slot.key}: {held}\n")
    return "".join(lines)


def _through(index: int) -> object:
    return None if KERNELS[index] is fallthrough else KERNELS[index]
