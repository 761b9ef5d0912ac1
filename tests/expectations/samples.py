"""Documents, reports and strategies of hypothesis that several tests share."""

from collections.abc import Hashable, Mapping
from itertools import combinations, permutations
from typing import Any

from hypothesis import strategies as st

from everyorder.harness.engine import Counts, Exploration, State
from everyorder.harness.expectations import Body, Digest, Document, Key
from everyorder.harness.report.verdict import Report

PAIR = (("state", "name: demo::f\nCPU: one\n"), ("calls", "one"))


def report(
    states: Mapping[State, Hashable],
    failures: Mapping[tuple[State, int], Hashable] | None = None,
    *,
    steps: int = 2,
    pinned: str | None = None,
    pairs: tuple[tuple[int, int], ...] = (),
    refusals: Mapping[tuple[State, int], Hashable] | None = None,
    strategy: str = "graph",
    transitions: int = 8,
    unproven: tuple[str, ...] = (),
    scenario: str = "scenarios/test_demo/pair",
) -> Report:
    exploration = Exploration(
        strategy=strategy,
        guarantee="graph: any length; walk:2: the last two",
        assumptions=(),
        skipped=(),
        states=states,
        failures=failures or {},
        executed=Counts(transitions=transitions),
        planned=transitions,
        violations=(),
        complete=True,
        seconds=0.0,
        refusals=refusals or {},
        open_strategies=unproven,
    )
    return Report(
        scenario=scenario,
        steps=tuple(f'impl("demo::f", k{i})' for i in range(1, steps + 1)),
        uses=('call("demo::f", "cpu")',),
        order_dependent=pinned,
        exploration=exploration,
        digest="0" * 12,
        pairs=pairs,
    )


def document(**changes: Any) -> Document:
    given: dict[str, Any] = {
        "scenario": "scenarios/test_demo/pair",
        "steps": ("one()", "two()"),
        "uses": (),
        "pinned": None,
        "entries": (
            (Key(()), (("state", "nothing"),)),
            (Key((0,)), PAIR),
            (Key((1,)), PAIR),
            (Key((0, 1)), (("state", "one\ntwo\n"),)),
        ),
    }
    return Document(**(given | changes))


# Text that a file format may trip over, far more often than chance would bring it.
_TRICKY = st.sampled_from(
    [
        *("\\", "\n", "\r", "\t", " ", ":", "=", "|", " | ", ": ", "a: b\n"),
        *("== {} ==", "same as {}", "digest ", "é"),
    ]
)
_CHARACTERS = st.characters(exclude_categories=())
TEXTS = st.lists(_TRICKY | st.text(_CHARACTERS, max_size=4), max_size=5).map("".join)
# Neighbours of equal texts are frequent, and so are parts of several lines.
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b | c", "|", " d", "e:", ":", ": f", "f: "]),
        st.sampled_from("xy"),
    ),
    min_size=3,
    max_size=6,
).map(lambda rows: "".join(f"{name}: {text}\n" for name, text in rows))
_TITLES = st.sampled_from(["digest ", "calls", "<<<<<<<", "|||||||"])
_PARTS = st.tuples(_TITLES | TEXTS, ROWS | TEXTS)
BODIES: st.SearchStrategy[Body] = st.one_of(
    st.lists(_PARTS, max_size=3).map(tuple),
    st.text("0123456789abcdef", min_size=32, max_size=32).map(Digest),
)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    count = draw(st.integers(0, 4))
    pinned = draw(st.none() | TEXTS)
    choose = combinations if pinned is None else permutations
    keys = [
        Key(state, fails)
        for size in range(count + 1)
        for state in choose(range(count), size)
        for fails in (None, *range(count))
    ]
    taken = draw(st.lists(st.sampled_from(keys), unique=True, max_size=6))
    parts = draw(st.lists(_PARTS, min_size=1, max_size=3))
    sharing = st.lists(st.sampled_from(parts), max_size=3).map(tuple)
    pool = draw(st.lists(BODIES | sharing, min_size=1, max_size=4))
    return Document(
        scenario=draw(TEXTS),
        steps=tuple(draw(TEXTS) for _ in range(count)),
        uses=tuple(draw(st.lists(TEXTS, max_size=2))),
        pinned=pinned,
        normalisers=tuple(draw(st.lists(TEXTS, max_size=2))),
        entries=tuple(
            (key, draw(st.sampled_from(pool)))
            for key in sorted(taken, key=lambda key: key.rank)
        ),
    )
