"""Exit codes: what a script learns without reading.

True only here: the numbers.  `run` says whether everything passed; `gate` says what did
not, the lowest number first where it is several things.  A scenario that skips itself
is told and counted; it is neither as expected nor wrong, so it has no number.

When you add a code, add its sentence to `GATE`: help texts and messages print it.
"""

from collections.abc import Mapping

from harness.outcome import Verdict
from harness.report.unexplored import Failure

OK = 0
FAILED = 1  # `run` and `replay`: something is wrong
REFUSED = 2  # the command could not be carried out as typed
# By Ctrl-C or SIGTERM; as shells have it for the former, 128 and its number.
INTERRUPTED = 130

LAW = 10
ORDER = 11
CHANGED = 12
MISSING = 13
STALE = 14
RANDOM = 15
CUT_SHORT = 16
NOT_LOADED = 17
NOT_EXPLORED = 18
VACUOUS = 19
HIDDEN = 20
NOT_FRESH = 21
CRASHED = 22
HUNG = 23

GATE: Mapping[int, str] = {
    OK: "everything is as expected",
    LAW: "a law is broken",
    ORDER: "something depends on order or history, or a pin pins nothing",
    CHANGED: "an expectation differs, or its file is damaged",
    MISSING: "an expectation is missing",
    STALE: "an expectation is stale",
    RANDOM: "a scenario is not deterministic",
    CUT_SHORT: "an exploration was cut short by its budget",
    NOT_LOADED: "a scenario could not be loaded",
    NOT_EXPLORED: "a scenario could not be explored",
    VACUOUS: "nothing in a scenario could have failed",
    HIDDEN: "a registry has state that cannot be seen",
    NOT_FRESH: "a scenario's `create` does not make a fresh system",
    CRASHED: "a process died of a scenario",
    HUNG: "an operation or a scenario was not over in time",
}

OF_VERDICT: Mapping[Verdict, int] = {
    "nondeterminism": RANDOM,
    "law": LAW,
    "order": ORDER,
    "unpinned": ORDER,
    "not fresh": NOT_FRESH,
    "hidden": HIDDEN,
    "vacuous": VACUOUS,
    "cut short": CUT_SHORT,
    "pinned": OK,
    "holds": OK,
    "proven": OK,
}

OF_FAILURE: Mapping[Failure, int] = {
    "failed": NOT_EXPLORED,
    "crashed": CRASHED,
    "hung": HUNG,
    "skipped": OK,
}

OF_COMPARISON: Mapping[str, int] = {
    "unchanged": OK,
    "changed": CHANGED,
    "missing": MISSING,
    "stale": STALE,
}


def table() -> str:
    """The codes of `gate` for its help, one a line."""
    return "\n".join(f"  {code:>2}  {sentence}" for code, sentence in GATE.items())
