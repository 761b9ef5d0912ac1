"""What is told of a search for complete states: what grew, and what was not read.

True only here: the paths.  Of a search that did not end two states of the same active
steps, of none at best, are compared as portraits; the first path that differs is most
often the counter or the log that keeps states from coming back.  Of one that did,
two histories to the same state show where only the order of a dict differs.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.engine.operations import Key
from harness.engine.protocol import History
from harness.engine.replay import portrait
from harness.engine.session import Session

if TYPE_CHECKING:
    from harness.engine.states import Search

# The last place of a sequence.
_PLACE = re.compile(r"\[\d+\]$")


def not_closed(session: Session, search: "Search", where: str) -> str:
    """Why a search did not end, as far as that is known, and what to write."""
    if search.unseen:
        return (
            f"{where}: what follows from a state depends on what is no part of it, the "
            "order of a set or how often a cache was hit: sort what is read, or use a "
            "dict"
        )
    text = (
        f"{where}: the states did not close: {search.states:,} after "
        f"{search.spent:,} operations"
    )
    path = _growing(session, search)
    if path:
        name, _, values = path.partition(": ")
        place = _PLACE.search(name) if values.startswith("<absent>") else None
        if place is not None:
            # One place more in something: that grows, not the place.
            name = name[: place.start()]
        counts = place is not None or all(
            value.isdecimal() for value in values.split(" / ")
        )
        # A small number of many states is no counter, unless repeating counts on.
        grows = counts and search.grows
        text += f"; {'what grows' if grows else 'two of them differ in'}: {path}"
        if counts:
            text += f'; if no answer depends on it, ignore=["{name}"]'
    return text


def _growing(session: Session, search: "Search") -> str:
    """A path that tells two states of the same active steps apart, of none at best."""
    total = session.ordering.total
    of_key: dict[Key, list[int]] = {}
    for state, key in enumerate(search.keys):
        of_key.setdefault(key, []).append(state)
    same = of_key[search.keys[0]]
    if len(same) < 2:
        same = max(of_key.values(), key=len)
    if len(same) < 2:
        return ""
    left, right = (
        portrait(session.system, search.history(state), order_dependent=total)
        for state in (same[-2], same[-1])
    )
    if left is None or right is None:
        return ""
    return next(iter(session.system.paths(left, right)), "")


def orders_unread(
    session: Session, variants: Iterable[tuple[History, History]]
) -> tuple[str, ...]:
    """Where the order of a dict differs between histories to the same state."""
    total = session.ordering.total
    found: list[str] = []
    for one, other in variants:
        left, right = (
            portrait(session.system, each, order_dependent=total)
            for each in (one, other)
        )
        if left is not None and right is not None:
            found += session.system.paths(left, right)
    paths = dict.fromkeys(
        line.partition(": ")[0].removeprefix("order of ") for line in found
    )
    return tuple(paths) or ("a dict",)
