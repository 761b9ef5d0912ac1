"""The oracle is right about registries made by hand, and does without the harness.

What it decides about the specimens is what they declare: a test for each kind.
"""

import gc
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakSet

import pytest

from tests.zoo.realistic.oracle import (
    Truth,
    longest_of,
    operations_of,
    shows,
    truth,
)
from tests.zoo.realistic.registries import KINDS, all_specimens
from tests.zoo.realistic.specimen import Interface, Registration, Specimen

ROOT = Path(__file__).parents[3]
A, B, USE, LOOK = 0, 1, 2, 3


class Names(list[str]):
    """Names in the order of adding, and what a use has remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: Any = None


def adding(name: str) -> Callable[[Names], Callable[[], None]]:
    def add(names: Names) -> Callable[[], None]:
        names.append(name)
        return lambda: names.remove(name)

    return add


def remembered(names: Names) -> Any:
    if names.memory is None:
        names.memory = len(names)
    return names.memory


def specimen(
    use: Callable[[Names], Any] = len,
    observe: Callable[[Names], str] = lambda names: str(sorted(names)),
    *,
    second: Registration | None = None,
    **more: Any,
) -> Specimen:
    steps = (Registration("a", adding("a")), second or Registration("b", adding("b")))
    return Specimen(Interface("toys", steps, (("use", use),), observe, **more), Names)


def raising(names: Names) -> Callable[[], None]:
    names.append("b")
    position = len(names) - 1

    def undo() -> None:
        del names[position]

    return undo


def refused(names: Names) -> Callable[[], None]:
    if names:
        names.memory = "refused before"
        raise ValueError("a is there")
    names.append("b")
    return lambda: names.remove("b")


def kept_alive(names: Names) -> Callable[[], None]:
    class Cycle:
        """An object that refers to itself."""

    each: Any = Cycle()
    each.itself = each
    names.memory = WeakSet([each])
    names.append("b")
    owner = [each]

    def undo() -> None:
        owner.clear()
        names.remove("b")

    return undo


def alive(names: Names) -> list[str]:
    return ["alive" for _ in names.memory or ()]


# A specimen, the length of a shortest violating history, and one, if it is the first.
CASES: dict[str, tuple[Specimen, int | None, tuple[int, ...] | None]] = {
    "right": (specimen(), None, None),
    "the order shows": (specimen(observe=str), 2, (B, A)),
    "the order of the two is declared": (
        specimen(observe=str, ordered=(("a", "b"),)),
        None,
        None,
    ),
    "b requires a, so that there is one order": (
        specimen(observe=str, second=Registration("b", adding("b"), ("a",))),
        None,
        None,
    ),
    "b follows a, which may leave": (
        specimen(observe=str, second=Registration("b", adding("b"), (), ("a",))),
        4,
        (A, B, A, A),
    ),
    "b lasts": (
        specimen(observe=str, second=Registration("b", adding("b"), lasting=True)),
        2,
        (B, A),
    ),
    "a cache is never dropped": (specimen(remembered), 3, (A, USE, A)),
    "an undo raises": (
        specimen(second=Registration("b", raising)),
        4,
        (A, B, A, B),
    ),
    "a refusal leaves something behind": (
        specimen(lambda n: n.memory, second=Registration("b", refused)),
        3,
        (A, B, USE),
    ),
    "garbage shows once it is collected": (
        specimen(alive, collects=True, second=Registration("b", kept_alive)),
        3,
        (B, B, USE),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_on_registries_made_by_hand(name: str) -> None:
    toy, length, history = CASES[name]
    known = truth(toy)
    assert (known.faulty, known.length) == (length is not None, length), known
    if known.history is not None:
        assert shows(toy, known.history, known.events)
        assert not shows(toy, (), known.events)
    if history is not None:
        assert shows(toy, history, known.events)


def test_a_fault_of_long_histories_only_is_found_without_its_length() -> None:
    def counted(names: Names) -> int:
        names.memory = (names.memory or 0) + 1
        return len(names) + int(names.memory > 8)

    known = truth(specimen(counted))
    assert (known.faulty, known.length) == (True, None)
    assert known.history is not None
    assert len(known.history) > known.bound


def test_of_some_operations_only() -> None:
    """Without the use, nothing is remembered."""
    assert not truth(specimen(remembered), (A, B, LOOK)).faulty
    assert truth(specimen(remembered), (A, USE, LOOK)).length == 3


def test_histories_are_played_in_full() -> None:
    """Two steps, a use and the look: four operations, up to six of them."""
    toy = specimen()
    assert operations_of(toy) == (A, B, USE, LOOK)
    assert longest_of(toy) == 6
    assert truth(toy).histories == sum(4**length for length in range(7))


def test_collecting_is_off_but_where_it_is_an_operation() -> None:
    toy, _, _ = CASES["garbage shows once it is collected"]
    assert gc.isenabled()
    known = truth(toy)
    assert gc.isenabled()
    assert known.history is not None
    assert operations_of(toy)[-1] == LOOK + 1


def test_the_oracle_and_the_registries_do_without_the_harness() -> None:
    program = (
        "import sys\n"
        "from tests.zoo.realistic.oracle import truth\n"
        "from tests.zoo.realistic.registries import all_specimens\n"
        "assert truth(next(all_specimens())).histories > 1000\n"
        "print([name for name in sys.modules if name.startswith('everyorder')])"
    )
    output = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert output.stdout == "[]\n"


def test_there_are_enough_of_each_kind() -> None:
    specimens = [*all_specimens()]
    names = Counter(each.name for each in specimens)
    assert max(names.values()) == 1
    assert len(specimens) >= 200
    kinds = Counter(each.interface.kind for each in specimens)
    right = Counter(each.interface.kind for each in specimens if not each.fault)
    assert len(kinds) == len(KINDS) == 15
    assert min(kinds.values()) >= 14
    assert min(right.values()) >= 5
    assert min((kinds - right).values()) >= 5
    assert {len(each.interface.steps) for each in specimens} <= {2, 3, 4, 5}
    assert {len(each.interface.uses) for each in specimens} <= {1, 2, 3}


def declared(known: Truth) -> str:
    return "faulty" if known.faulty else "right"


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.split(".")[-1])
def test_each_is_what_it_declares(kind: ModuleType) -> None:
    differing = []
    lengths = set()
    for each in kind.specimens():
        known = truth(each)
        lengths.add(known.length)
        look = len(each.interface.steps) + len(each.interface.uses)
        looks = [known.events[q] for q in known.events if q[0] == look]
        assert len(set().union(*looks)) > 1, f"the look of {each.name} is constant"
        if known.faulty != bool(each.fault):
            differing.append(f"{each.name} is {declared(known)}: {known.history}")
    assert differing == []
    # Some faults need more than a change and a look.
    assert max(length or 0 for length in lengths) >= 4
