"""`graph`: the proof for all histories, on complete states.

A system whose states may differ while the same steps are active (caches, logs, handles)
is explored state by state (`states.py`, theorem T0).  The order of dicts is ignored
unless it is read.

A *settled* system must have one state for each set of active steps.  The state is
compared, before and after the look, at every arrival; by theorem T1 one visit of every
transition then decides every finite history of any length.  The run is `walk:0` with
this comparison, uses included as loops; up to `DOUBLED` steps it is walked once more
from the far end of the first round, so that every transition is taken from a second
history.  If order counts, the states are arrangements, whose digraph has no Eulerian
circuit; then the run is `arrangements` with this comparison.  It cannot be shown that
the state of a settled system is complete, but it can be refuted: two equal states with
different looks or answers make the proof void.

A search is reported by paths.  If it did not end, two states of the same active steps,
preferably of none, are compared as portraits; the first path that differs is most often
the counter or the log that produces new states.  If it did end, two histories to the
same state show where only the order of a dict differs.
"""

import re
from collections.abc import Hashable, Iterable
from contextlib import suppress

from everyorder.harness.base.errors import BadScenario
from everyorder.harness.engine.histories import (
    arrangements_size,
    run_arrangements,
    run_walk,
    walk_size,
)
from everyorder.harness.engine.limits import SearchLimits, remaining, shared
from everyorder.harness.engine.oracle import portrait
from everyorder.harness.engine.protocol import History, Key, StateForm, state_of
from everyorder.harness.engine.result import Closure
from everyorder.harness.engine.session import ExplorationSession
from everyorder.harness.engine.states import (
    COVER,
    LEAST,
    OrderRead,
    Search,
    SearchPart,
    VariantRead,
)

# Up to this many steps every transition is taken from two histories: 2,048 at 8 steps.
DOUBLED = 8

# The exact forms are explored after the blind ones with at most a tenth of the budget.
EXACT = 10

# The last index of a sequence in a path.
_PLACE = re.compile(r"\[\d+\]$")


def graph_size(steps: int, uses: int, *, ordered: bool) -> int:
    """Return the operations of the run of a settled system when no step fails."""
    if ordered:
        return arrangements_size(steps, uses)
    return walk_size(steps, uses, 0) * (2 if steps <= DOUBLED else 1)


def run_graph(session: ExplorationSession) -> None:
    """Take every operation at every state.

    Raises:
        BadScenario: there is no state to compare, or the state cannot be complete.
    """
    if not session.system.settled:
        _search(session)
        return
    player = session.player
    player.reset()
    if not player.printed:
        raise BadScenario(code="NoFingerprint", strategy="graph")
    player.proving = True
    try:
        if session.ordered or not session.operations.balanced:
            run_arrangements(session)
        else:
            run_walk(session, 0)
            if session.operations.steps <= DOUBLED:
                run_walk(session, 0, resume=True)
    finally:
        player.proving = False
    _refute(session)


def _refute(session: ExplorationSession) -> None:
    """Raise `BadScenario` if two equal fingerprints belong to different states."""
    record = session.record
    met: dict[Hashable, Key] = {}
    for key, state in record.prints.items():
        if state is None:
            raise BadScenario(code="NoFingerprint", strategy="graph")
        other = met.setdefault(checked(state), key)
        looks = [record.seen.get(each) for each in (other, key)]
        uses = range(session.operations.uses)
        answers = [
            [record.answers.get((each, use)) for use in uses] for each in (other, key)
        ]
        if looks[0] != looks[1] or answers[0] != answers[1]:
            what = "look" if looks[0] != looks[1] else "answer"
            one, two = (list(state_of(each)) for each in (other, key))
            raise BadScenario(
                code="BadFingerprint",
                reason=f"it is the same with {one} and with {two} active (steps "
                f"counted from 0), which {what} differently",
            )
    if len(record.prints) > 1 and len(met) == 1:
        session.skipped.append(
            f"graph: all {len(record.prints)} states have one fingerprint; nothing "
            "that a step does shows in it"
        )


def checked(state: Hashable) -> Hashable:
    """Return the state.

    Raises:
        BadScenario: the state is not hashable, so it could change later.
    """
    try:
        hash(state)
    except TypeError:
        kind = type(state).__name__
        raise BadScenario(
            code="BadFingerprint", reason=f"this {kind} is not hashable"
        ) from None
    return state


def _search(session: ExplorationSession) -> None:
    """Explore the complete states of a system that is not settled.

    Sets `session.closure`.

    Raises:
        BadScenario: the system shows no state.
    """
    session.player.watching = False
    try:
        search = _explored(session)
    finally:
        session.player.watching = True
    if search.closed and not session.symmetries:
        session.reached = True
    # Comparing portraits reset the system.
    session.player.reset()


def limits_of(session: ExplorationSession, strategy: str) -> SearchLimits:
    """Return the share of a search: what later strategies do not need of the budget.

    Raises:
        BadScenario: there is no complete state; the error has the name of the strategy.
    """
    require_states(session, strategy)
    return shared(remaining(session))


def require_states(session: ExplorationSession, strategy: str) -> None:
    """Reset the system, and check that it shows a complete state.

    Raises:
        BadScenario: it shows none; the error has the name of the strategy.
    """
    session.player.reset()
    if not isinstance(session.player.state(), StateForm):
        raise BadScenario(code="NoFingerprint", strategy=strategy)


def searched(
    session: ExplorationSession, limits: SearchLimits, part: SearchPart | None = None
) -> tuple[Search, bool]:
    """Return the search through a part, and True if it reads the order of dicts."""
    blind = Search(session, exact=False, limits=limits, part=part)
    try:
        blind.run()
    except OrderRead:
        return _searched_exactly(session, limits, part), True
    except VariantRead:
        pass
    return blind, False


def _searched_exactly(
    session: ExplorationSession, limits: SearchLimits, part: SearchPart | None = None
) -> Search:
    session.system.audit_orders()
    exact = Search(session, exact=True, limits=limits, part=part)
    with suppress(VariantRead):
        exact.run()
    return exact


def _explored(session: ExplorationSession) -> Search:
    search, order_read = _covered(session)
    # After a refutation a weaker assumption is useless: seek other faults instead.
    if search.closed and search.covered >= LEAST and not session.findings:
        session.system.audit_walk()
        try:
            search.walk_at_random(shared(remaining(session)).walked)
        except OrderRead:
            limits = shared(remaining(session))
            search, order_read = _searched_exactly(session, limits), True
            if search.closed and search.covered >= LEAST and not session.findings:
                session.system.audit_walk()
                with suppress(VariantRead):
                    search.walk_at_random(shared(remaining(session)).walked)
        except VariantRead:
            pass
    _conclude(session, search, order_read=order_read)
    return search


def _covered(session: ExplorationSession) -> tuple[Search, bool]:
    """Return the strongest search that the budget allows, as `searched` does."""
    limits = limits_of(session, "graph")
    blind, order_read = searched(session, limits)
    operations = session.operations
    few = (operations.look + 1) << operations.steps <= limits.total
    if session.symmetry_used and few and not blind.closed and not blind.grows:
        # Steps are rarely symmetric in such states, and the checks are expensive.
        session.symmetries, session.symmetry_used = (), False
        blind, order_read = searched(session, limits_of(session, "graph"))
    if order_read or blind.variant_read:
        return blind, order_read
    whole = blind.closed and not session.findings
    exact_limits = shared(remaining(session) // EXACT)
    if whole and blind.variants and _is_cheap(session, blind, exact_limits.total):
        exact = _searched_exactly(session, exact_limits)
        if exact.covered >= LEAST:
            return exact, False
    return blind, False


def _is_cheap(session: ExplorationSession, blind: Search, most: int) -> bool:
    """Return True if there are few enough arrangements to explore exact forms."""
    arrangements, term = 1, 1
    for left in range(session.operations.steps, 0, -1):
        term *= left
        arrangements += term
    per_set = blind.states / max(len(set(blind.keys)), 1)
    operations = session.operations.look + 1
    per_operation = blind.spent / max(blind.played, 1)
    return arrangements * per_set * operations * COVER * per_operation <= most


def _conclude(session: ExplorationSession, search: Search, *, order_read: bool) -> None:
    blind = not search.exact and bool(search.variants)
    # All are assumptions of a proof; portraits are expensive, so after a finding only
    # an example is determined.
    variants = search.variants[:1] if session.findings else search.variants
    unread = orders_unread(session, variants) if blind and search.closed else ()
    session.closure = Closure(
        states=search.states,
        transitions=search.transitions,
        histories=search.covered,
        closed=search.closed and search.covered >= LEAST,
        order_read=order_read,
        unread=unread,
        walked=search.walked,
    )
    if search.closed and not session.system.settled:
        session.state_histories = tuple(map(search.history, range(search.states)))
    if not search.closed:
        session.skipped.append(not_closed(session, search, "graph"))
    elif search.covered < LEAST:
        session.skipped.append(
            f"graph: all {search.states:,} states were found, but their operations "
            "were not all taken from a second history: the budget was spent (--steps "
            "raises it)"
        )


def not_closed(session: ExplorationSession, search: Search, where: str) -> str:
    """Return why a search did not end, as far as known, and the advice to the user."""
    if search.variant_read:
        return (
            f"{where}: results depend on the order of a set or on the hits of a "
            "cache, which are not part of the state: sort before reading, or use a "
            "dict"
        )
    text = (
        f"{where}: the states did not close: {search.states:,} after "
        f"{search.played:,} operations"
    )
    if search.too_many:
        text += (
            f"; at least {search.least_needed:,} steps of the budget are needed "
            "(--steps raises it)"
        )
    elif not search.grows:
        text += ", its share of the budget (--steps raises it)"
    path = _growing(session, search)
    if path:
        name, _, values = path.partition(": ")
        place = _PLACE.search(name) if values.startswith("<absent>") else None
        if place is not None:
            # A new last index in a sequence: the sequence grows, so name it.
            name = name[: place.start()]
        counts = place is not None or all(
            value.isdecimal() for value in values.split(" / ")
        )
        # A small number in many states is not a counter unless repetition increases it.
        grows = counts and search.grows
        text += f"; {'what grows' if grows else 'two of them differ in'}: {path}"
        if counts:
            text += f'; if no answer depends on it, ignore=["{name}"]'
    return text


def _growing(session: ExplorationSession, search: Search) -> str:
    """Return a path that differs in two states of the same active steps, or "".

    States without active steps are preferred.
    """
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
    session: ExplorationSession, variants: Iterable[tuple[History, History]]
) -> tuple[str, ...]:
    """Return where the order of a dict differs between histories to the same state."""
    total = session.ordering.total
    differences: list[str] = []
    for one, other in variants:
        left, right = (
            portrait(session.system, each, order_dependent=total)
            for each in (one, other)
        )
        if left is not None and right is not None:
            differences += session.system.paths(left, right)
    paths = dict.fromkeys(
        line.partition(": ")[0].removeprefix("order of ") for line in differences
    )
    return tuple(paths) or ("a dict",)
