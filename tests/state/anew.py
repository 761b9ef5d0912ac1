"""Compare forms of states with new ones: `python -m tests.state.anew SEED [CLASS]`.

Explores the registries of a seed, those of the zoo's classes or of some.  Each form of
a state that the explorer asks for, which goes on where the last one was told, is
compared with the form that a heap tells which has seen nothing before.  What it was
about, and how many were compared, is printed for each class.

It loads nothing that it does not need: what explores looks through all that is loaded.
"""

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from everyorder.harness import explore
from everyorder.harness.engine.protocol import StateForm
from everyorder.harness.state import Heap
from tests.zoo.entry import Entry
from tests.zoo.registries import CLASSES, entries


def compared(entry: Entry) -> int:
    """How many forms of an exploration were compared with those told anew."""
    times = 0
    form = Heap.form

    def both(
        heap: Heap,
        roots: Mapping[str, object],
        lasting: Mapping[str, object] = MappingProxyType({}),
    ) -> StateForm:
        nonlocal times
        times += 1
        found = form(heap, roots, lasting)
        anew = Heap(heap.scope)
        anew._watched = True  # a base of its own, never used, would cost more
        # Only the cost may differ.
        whole = form(anew, roots, lasting)
        assert found == whole._replace(objects=found.objects)
        return found

    Heap.form = both  # type: ignore[assignment, method-assign]  # while it explores
    try:
        with entry.living() as living:
            explore(living.scenario(entry.name))
    finally:
        Heap.form = form  # type: ignore[method-assign]  # as it was
    return times


def main(arguments: Sequence[str]) -> None:
    """Compare them, and print for each class how many there were."""
    seed, *kinds = arguments
    for kind in kinds or CLASSES:
        times = sum(compared(entry) for entry in entries([int(seed)], kind))
        print(f"{kind}: {times} forms", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
