"""Laws of a run: nothing is left behind, in the state, the thread or the memory.

True only here: these laws look at what no single state shows.
"""

from collections import Counter

from invariants.law import Finding, law
from invariants.laws.thread import changed
from invariants.live import (
    described,
    differing,
    listed,
    live_tokens,
    reading,
    shown,
)
from invariants.run import Call, Run
from invariants.second_table import (
    AMBIGUOUS,
    Expected,
    second_masks,
    second_table,
    slot_reached,
)
from runtime.dispatch.state import DispatcherState, OperatorEntry


@law("run")
def teardown_leaves_nothing(run: Run) -> list[Finding]:
    """When every handle is closed, the state reads as it did at the start."""
    if run.held:
        return []
    return [
        (part, shown(old, "as at the start"), shown(new, "changed"))
        for part, old, new in differing(reading(run.start), reading(run.end))
    ]


@law("run")
def open_handles_own_what_is_live(run: Run) -> list[Finding]:
    """What is live is what was live at the start and what open handles own."""
    wanted = Counter([*live_tokens(run.start, run.end), *run.held])
    found = Counter(live_tokens(run.end, run.start))
    lost, left = wanted - found, found - wanted
    findings = []
    if lost:
        findings.append(("what is live", listed(list(lost)), "not live"))
    if left:
        findings.append(("what is live", "no handle, not live", listed(list(left))))
    return findings


@law("run")
def what_is_gone_is_dead(run: Run) -> list[Finding]:
    """Nothing keeps alive what a step made once the step is undone."""
    return [(name, "dead", "alive") for name, watch in run.gone if watch() is not None]


@law("run")
def calls_restore_their_thread(run: Run) -> list[Finding]:
    """After a call, raised or returned, thread and lock are as they were before it."""
    return [
        finding
        for call in run.calls
        for finding in changed(f"a call of {call.operator}", call.before, call.after)
    ]


@law("run")
def kernels_run_without_the_lock(run: Run) -> list[Finding]:
    """While a kernel or a handler runs, the writer's lock is free."""
    return [
        (f"a kernel of {call.operator}", "the lock is free", "the lock is held")
        for call in run.calls
        if any(sample.locked for sample in call.inside)
    ]


@law("run")
def calls_run_what_the_state_says(run: Run) -> list[Finding]:
    """A call runs the kernel that the published state gives to its arguments."""
    found: list[Finding] = []
    # Many calls of one entry are usual; its table is computed once.
    tables: dict[int, tuple[tuple[Expected, ...], tuple[int, ...]]] = {}
    for call in run.calls:
        entry = _entry(call.state, call.operator)
        where = f"a call of {call.operator}"
        if entry is None or not entry.definitions:
            if call.ran is not None:
                found.append((where, "nothing to call", call.ran))
            continue
        if id(entry) not in tables:
            table = second_table(entry.implementations, call.state.fallbacks.tokens)
            tables[id(entry)] = table, second_masks(table)
        wanted = _slot(call, *tables[id(entry)])
        # What falls through is passed by; reached as the last of all, it cannot run.
        token = None if wanted.falls_through else wanted.token
        expected = None if token is None else token.debug
        if wanted.provenance != AMBIGUOUS and call.ran != expected:
            told = "nothing" if token is None else described(token)
            found.append((f"{where} at {wanted.key}", told, call.ran or "nothing"))
    return found


def _slot(call: Call, table: tuple[Expected, ...], masks: tuple[int, ...]) -> Expected:
    reached = slot_reached(
        call.arguments,
        call.before.included,
        call.before.excluded,
        masks,
    )
    return next(slot for slot in table if slot.key == reached)


def _entry(state: DispatcherState, text: str) -> OperatorEntry | None:
    for operators in state.namespaces.values():
        if text in operators:
            return operators[text]
    return None
