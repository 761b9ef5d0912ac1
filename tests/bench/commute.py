"""Upstream's exploration as upstream plays it: its own loop, on the real torch.

True only here: what a step costs *there*.  For every order of registering and every
order of removing, after each step: torch's own check, the dumped state and the dumped
table, compared as texts with those that the same set of live registrations gave first.
The engine's `full` plays the same steps with less around them; a row that speaks of
dispatchers compares under the engine, one that speaks of `commute` compares with this.
"""

from collections.abc import Callable
from itertools import permutations
from typing import Any

Register = Callable[[Any], object]

NAMESPACE = "everyorder_c"
OPERATOR = f"{NAMESPACE}::foo"


def founding_steps(keys: tuple[str, ...]) -> tuple[Register, ...]:
    """The five steps, on a library of torch's."""

    def kernel(key: str) -> Register:
        return lambda library: library.impl_t_t("foo", dispatch=key, debug="impl_t_t")

    return (lambda library: library.def_("foo(Tensor x) -> Tensor"), *map(kernel, keys))


def commute(steps: tuple[Register, ...]) -> int:
    """Play all orders; returns how many steps that were.

    Raises:
        AssertionError: two orders of the same set gave two texts.
    """
    import torch

    native: Any = torch._C
    seen: dict[frozenset[int], tuple[str, str, str]] = {}
    played = 0

    def check(active: set[int], history: str) -> None:
        native._dispatch_check_invariants(OPERATOR)
        state = native._dispatch_dump(OPERATOR)
        table = native._dispatch_dump_table(OPERATOR)
        found = (state, table, history)
        expected = seen.setdefault(frozenset(active), found)
        told = f"expected from {expected[2]}; found after {history}"
        assert expected[:2] == (state, table), told

    for adds in permutations(range(len(steps))):
        for removes in permutations(range(len(steps))):
            libraries: list[Any] = [None] * len(steps)
            active: set[int] = set()
            for count, step in enumerate(adds, 1):
                library = native._dispatch_library("FRAGMENT", NAMESPACE, "")
                steps[step](library)
                libraries[step] = library
                del library
                active.add(step)
                check(active, f"registering {adds[:count]}")
            for count, step in enumerate(removes, 1):
                libraries[step] = None
                active.remove(step)
                check(active, f"registering {adds}, removing {removes[:count]}")
            played += 2 * len(steps)
    return played
