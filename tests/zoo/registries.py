"""All classes of the zoo, and the entry that each has for a seed.

A class draws its entries from `Random(f"{class}/{seed}")`; two thirds of them are
faulty and one third sound, by turns, and the hiding places of a class come by turns.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import Any

from tests.zoo.behaviours import CellModel
from tests.zoo.drawing import SORTS, Sort, draw_model
from tests.zoo.entry import Entry, Living
from tests.zoo.grown import grown_entry
from tests.zoo.grown_caches import FAULTY as CACHE_FAULTY
from tests.zoo.grown_caches import SOUND as CACHE_SOUND
from tests.zoo.grown_failures import (
    COUNTER_FAULTY,
    COUNTER_SOUND,
    FAILED_FAULTY,
    FAILED_SOUND,
)
from tests.zoo.grown_flaky import FLAKY
from tests.zoo.grown_handles import FAULTY as HANDLE_FAULTY
from tests.zoo.grown_handles import SOUND as HANDLE_SOUND
from tests.zoo.grown_orders import RESOLUTION_FAULTY, RESOLUTION_SOUND
from tests.zoo.model import NAMES
from tests.zoo.places import Place
from tests.zoo.places_classes import CLASS_PLACES
from tests.zoo.places_functions import FUNCTION_PLACES
from tests.zoo.places_globals import GLOBAL_PLACES
from tests.zoo.places_live import LIVE_PLACES
from tests.zoo.places_lying import LYING_PLACES
from tests.zoo.places_sealed import SEALED_PLACES
from tests.zoo.places_values import VALUE_PLACES
from tests.zoo.places_weak import WEAK_PLACES
from tests.zoo.sources import (
    CONTAINERS,
    HANDLES,
    STEPS,
    load_module,
    registry_source,
    steps_source,
)

# The test's seeds are not those that anything was tried on while it was built.
SEEDS_BUILDING = range(8)
SEEDS_TEST = range(3023, 3029)

Builder = Callable[[int], Entry]

PLACES = (
    *CLASS_PLACES,
    *GLOBAL_PLACES,
    *FUNCTION_PLACES,
    *VALUE_PLACES,
    *LYING_PLACES,
    *LIVE_PLACES,
    *WEAK_PLACES,
    *SEALED_PLACES,
)

# Where the memory of a class that is named after its fault can be.
PLAIN = tuple(
    place
    for place in PLACES
    if place.kind in ("attribute", "class attribute", "module global")
)


GROWN = (
    ("handle", HANDLE_FAULTY, HANDLE_SOUND),
    ("cache", CACHE_FAULTY, CACHE_SOUND),
    ("resolution", RESOLUTION_FAULTY, RESOLUTION_SOUND),
    ("failed step", FAILED_FAULTY, FAILED_SOUND),
    ("counter", COUNTER_FAULTY, COUNTER_SOUND),
    ("flaky", FLAKY, ()),
)


def wish(seed: int, places: int) -> bool:
    """Whether the entry of a seed is to be faulty: two of three, at each place."""
    return (seed + (seed // places if places % 3 == 0 else 0)) % 3 != 2


def turn(seed: int, places: Sequence[Place]) -> Place:
    """The place whose turn it is."""
    return places[seed % len(places)]


def cell_entry(
    kind: str, places: Sequence[Place], sort: Sort | None, seed: int
) -> Entry:
    """A registry of names with a memory in one of these places."""
    random = Random(f"{kind}/{seed}")
    place = turn(seed, places)
    model = draw_model(
        random,
        sort,
        faulty=wish(seed, len(places)),
        capacity=place.capacity,
        volatile=place.seal == "volatile",
        depth=None if sort is None else 1 + seed % 4,
    )
    container = random.choice(list(CONTAINERS))
    handle = random.choice(list(HANDLES))
    source = registry_source(model, place.source, container, handle)
    return Entry(
        kind=kind,
        seed=seed,
        variant=f"{place.kind}: {place.name}; {container}, {handle}; "
        f"{model.behaviour}, shown {model.shows}",
        model=model,
        build=partial(_cell_living, source, model),
        seal=place.seal,
    )


def waiting_entry(kind: str, chosen: Sequence[str], seed: int) -> Entry:
    """A registry with steps of these kinds, each of its own or all of one.

    Where they wait, `create`, `observe` and the uses may wait, too.
    """
    random = Random(f"{kind}/{seed}")
    place = random.choice(PLAIN)
    sort = random.choice(SORTS)
    model = draw_model(random, sort, faulty=seed % 3 != 2)
    one = chosen[seed % len(chosen)]
    mixed = random.random() < 1 / 2
    kinds = [random.choice(chosen) if mixed else one for _ in range(model.steps)]
    waits = frozenset(
        each
        for each in ("create", "observe", "use")
        if kind == "async" and random.random() < 1 / 2
    )
    source = registry_source(model, place.source, "flags", "closure")
    return Entry(
        kind=kind,
        seed=seed,
        variant=f"{', '.join(kinds)}; waits: {', '.join(sorted(waits))}; "
        f"{place.kind}: {place.name}; {model.behaviour}, shown {model.shows}",
        model=model,
        build=partial(
            _waiting_living, f"{source}\n\n{steps_source(kinds)}", model, waits
        ),
        seal=place.seal,
    )


def _waiting_living(
    source: str, model: CellModel, waits: frozenset[str], name: str
) -> Living:
    plain = _cell_living(source, model, name)
    module = sys.modules[name]
    uses = plain.uses
    if "use" in waits:
        uses = tuple(
            (text, module.count)
            if text == "registry.count()"
            else (text, module.has(NAMES[target]))
            for (text, _), target in zip(uses, model.targets, strict=True)
        )
    return Living(
        create=module.create_async if "create" in waits else plain.create,
        observe=module.show if "observe" in waits else plain.observe,
        steps=tuple(
            (f"do_{name}(registry)", getattr(module, f"do_{name}"))
            for name in NAMES[: model.steps]
        ),
        uses=uses,
    )


def _cell_living(source: str, model: CellModel, name: str) -> Living:
    module = load_module(name, source)
    counted = model.behaviour.asked(0, ()) is not None
    return Living(
        create=module.create,
        observe=lambda registry: registry.show(),
        steps=tuple(
            (f"registry.add({name!r})", _adding(name)) for name in NAMES[: model.steps]
        ),
        uses=tuple(
            ("registry.count()", lambda registry: registry.count())
            if counted and at == 0
            else (f"registry.has({NAMES[target]!r})", _asking(NAMES[target]))
            for at, target in enumerate(model.targets)
        ),
    )


def _adding(name: str) -> Callable[[Any], Any]:
    return lambda registry: registry.add(name)


def _asking(name: str) -> Callable[[Any], Any]:
    return lambda registry: registry.has(name)


def _waits(kind: str) -> bool:
    return kind.startswith(("async", "coroutine"))


def _classes() -> dict[str, Builder]:
    """The classes by name, each a function from a seed to an entry."""
    named: dict[str, Builder] = {
        sort: partial(cell_entry, sort, (*PLAIN[at:], *PLAIN[:at]), sort)
        for at, sort in zip(range(0, len(PLAIN), 3), SORTS, strict=False)
    }
    named["async"] = partial(
        waiting_entry, "async", [kind for kind in STEPS if _waits(kind)]
    )
    named["step kinds"] = partial(
        waiting_entry, "step kinds", [kind for kind in STEPS if not _waits(kind)]
    )
    for kind, faulty, sound in GROWN:
        named[kind] = partial(grown_entry, kind, faulty, sound)
    for kind in dict.fromkeys(place.kind for place in PLACES):
        of_kind = tuple(place for place in PLACES if place.kind == kind)
        named[kind] = partial(cell_entry, kind, of_kind, None)
    return named


CLASSES = _classes()


def entries(seeds: Sequence[int], only: str | None = None) -> Iterator[Entry]:
    """The entries of these seeds, class by class; of one class only if it is named."""
    for kind, build in CLASSES.items():
        if only is None or only == kind:
            yield from map(build, seeds)
