"""The warm-up: every operation once, on systems that are dropped, before all else.

Many registries fill something of their process at the first use: a class attribute, a
memo, a table of plugins, settings.  The first performances see another process than all
later ones, so a fresh system is judged only after them.  The single operations and the
two long histories (`rehearsal`) are played on a fresh system each, until one whole pass
over them leaves the form of a fresh system as it was, `PASSES` times at most.

A warm-up must not hide a fault: what the first performances leave behind may change
answers.  So:

- the results of the first performance of each history are compared with those of the
  last pass;
- if the first performances left anything, short histories and some random ones are
  played in processes in which nothing was performed (`System.cold`), each in another
  one, and their results are compared with those of this process.  A memo of a wrong
  answer, the name of the first registration, a flag that is set once: in this process
  each looks like a constant, in those it depends on the operation that came first;
- without such processes the state that was filled is named, and nothing is proven.

A history in one of these processes may also be the only one that shows a fault; results
that differ there are reported as "not fresh", with the history.

What only a longer first history leaves, by an operation that nothing else performs
before, is assumed not to matter (`docs/proofs.md`, "Assumptions").

A registry that leaves more at each performance (a log, a counter) never has the same
fresh form; `reference.check` reports it.
"""

from collections.abc import Hashable, Iterator
from contextlib import suppress
from itertools import islice, product
from random import Random

from everyorder.harness.base.errors import ExplorationRestart, ProcessError
from everyorder.harness.engine.oracle import (
    Replay,
    abandon,
    portrait,
    replay,
    silent_player,
)
from everyorder.harness.engine.player import Broken
from everyorder.harness.engine.protocol import (
    UNORDERED,
    Caveat,
    History,
    Operations,
    StateForm,
    System,
    is_active,
)
from everyorder.harness.engine.result import Exploration
from everyorder.harness.engine.session import (
    FINAL,
    RESULT_WITHOUT_PATH,
    ExplorationSession,
    Halt,
    Incomplete,
    RawViolation,
)

# The second pass shows that the first one filled everything; a third is for what is
# filled at the second performance.
PASSES = 4

# Short histories in processes where nothing was performed, at some 10 milliseconds
# each, and random ones of several operations.
MOST_COLD = 192
RANDOM_COLD = 16

# Replays that distinguish "changed for good", as by the first performance, from
# "different each time": a result that is wrong in one run of two agrees so often once
# in a million times.
REPEATS = 20

# Explorations that are repeated because a later state filled more.
MOST_REPEATS = 3

# Operations of a history after which values that are new each time are looked for.
MOST_PREFIX = 12

# What the caveats say of a container of another package, and of an import.
_CHANGE, _IMPORT = "changed outside of the followed state", "an operation imports"

# State that was filled by an attempt before a restart, if no path shows it.
_EARLIER = "something in an earlier attempt"

# In place of the form of the first system, if that cannot be compared with later ones.
_UNKNOWN = "unknown"

# The number of paths that a caveat names.
_NAMED = 3


def rehearsal(operations: Operations) -> tuple[History, History]:
    """Return the two long histories that are played twice.

    Steps come after those that they require, and are then undone before them.
    Operations that end steps come last, each with the other steps active before it.
    """
    every = (*operations.questions, operations.look)
    ends = operations.relations.ends
    ending = tuple(each for each in operations.changes if each in ends)
    others = [step for step in range(operations.steps) if step not in ends]
    possible = dict.fromkeys(operations.history_to(others))
    upwards = tuple(step for step in possible if step not in ends)
    requires = operations.relations.requires
    histories = []
    for steps, last in ((upwards, ending), (upwards[::-1], ending[::-1])):
        history = list(every)
        for step in (*steps, *(steps[::-1] if requires else steps)):
            history += (step, *every)
        active = UNORDERED.root
        for end in last:
            missing = [step for step in steps if not is_active(active, step)]
            undone = (end,) if end < operations.steps else ()
            for operation in (*missing, end, *undone):
                active = operations.after(active, operation, UNORDERED)
            history += (*missing, end, *every)
            history += (*undone, *every) if undone else ()
        # Steps that end others are also done one after the other.
        for end in last if len(ending) > 1 else ():
            history += (end, *every)
        histories.append(tuple(history))
    return histories[0], histories[1]


def rehearsed_histories(operations: Operations) -> tuple[History, ...]:
    """Return the histories of a pass: the empty one, all of one operation, the long."""
    single = ((each,) for each in range(operations.actions))
    return ((), *single, *rehearsal(operations))


def cold_histories(operations: Operations) -> Iterator[History]:
    """Yield the histories for processes in which nothing was performed.

    The single operations, each step with each use, each pair of operations with all
    uses, and all steps at once.
    """
    steps, actions = range(operations.steps), range(operations.actions)
    uses = (*operations.questions, *operations.changes[operations.steps :])
    yield ()
    for operation in (*actions, operations.look):
        yield (operation,)
    yield from product(steps, uses)
    for history in (tuple(steps), tuple(reversed(steps))):
        yield history
        yield from ((*history, use) for use in uses)
    yield from rehearsal(operations)
    for one, other in product(actions, actions):
        yield (one, other, operations.look, *uses)


def random_histories(operations: Operations) -> Iterator[History]:
    """Yield histories of as many operations as there are: what needs several steps."""
    random = Random(operations.actions)  # noqa: S311  # the same ones each time
    while True:
        history = random.choices(range(operations.actions), k=operations.actions)
        yield (*history, operations.look)


def caveats(session: ExplorationSession) -> tuple[Caveat, ...]:
    """Return the state that was filled without a check in another process."""
    if not session.filled:
        return ()
    paths = ", ".join(session.filled[:_NAMED])
    more = len(session.filled) - _NAMED
    paths += f" and {more} more" if more > 0 else ""
    text = f"first performances filled {paths}, and no process can be forked here"
    return (Caveat("outside", f"{text} to repeat them in another order"),)


def warm_up(session: ExplorationSession) -> None:
    """Perform every operation on systems that are thrown away.

    Raises:
        Halt: what the first performances left behind changes results.
    """
    system = session.system
    if system.settled or system.isolated:
        return
    player = _WarmUpPlayer(session)
    system.rehearse(begins=True)
    while True:
        # It ends: each package is new once, and so is garbage of older objects.
        try:
            stable = player.play()
            player.collect_garbage()
            changed = system.rehearse(begins=False)
            break
        except ExplorationRestart as restart:
            player.forget_form(only=restart.code in ("PartsChanged", "CodeRan"))
    session.rehearsed, session.stable = player.last, stable
    if not stable:
        return
    outside = tuple(f"{each}: {_CHANGE}; name it in watch=" for each in changed)
    player.compare_first(outside)
    doubted = _recorded_histories(session)
    if not player.filled and not changed and not session.earlier:
        return
    filled = player.paths() or session.filled_later or outside or (_EARLIER,)
    cold = system.cold()
    if cold is None:
        session.filled = filled
        return
    try:
        short = islice(cold_histories(session.operations), MOST_COLD)
        longer = islice(random_histories(session.operations), RANDOM_COLD)
        for history in (*short, *longer, *islice(doubted, MOST_COLD)):
            session.meter.check_time()
            player.compare_cold(cold, history, filled)
    except (Incomplete, ProcessError) as reason:  # no time; or no child lives
        session.filled = filled
        if isinstance(reason, Incomplete):
            raise


def may_repeat(session: ExplorationSession, exploration: Exploration) -> bool:
    """Return True if the exploration should be repeated, as more is known now.

    Values that are new each time are left out from now on; or a state that is met
    later filled something of the process, as the warm-up does for short histories.
    """
    if session.system.settled:
        return False
    for violation in exploration.violations:
        if violation.kind in ("hidden", *FINAL):
            history = violation.shown
            for length in range(min(len(history), MOST_PREFIX) + 1):
                if set_aside(session, history[:length]):
                    return True
    if _is_filled_outside(exploration):
        return not session.repeats and session.system.cold() is not None
    fresh = [each for each in session.findings if each.kind == "not fresh"]
    if not fresh or not session.stable or session.repeats >= MOST_REPEATS:
        return False
    differs = not fresh[0].history and fresh[0].expected is fresh[0].found is None
    return differs and session.system.cold() is not None


def _is_filled_outside(exploration: Exploration) -> bool:
    """Return True if only changes of other packages are against a proof.

    They may be memos, which a repetition finds filled.
    """
    obstacles = [each for each in exploration.caveats if each.kind != "assumed"]
    closed = exploration.closure is not None and exploration.closure.closed
    return (
        exploration.holds
        and closed
        and bool(obstacles)
        and all(each.kind == "outside" for each in obstacles)
        and all(_CHANGE in each.text or _IMPORT in each.text for each in obstacles)
    )


def set_aside(session: ExplorationSession, history: History) -> bool:
    """Leave out of the state what is new each time after this history.

    Return True if there was anything new.
    """
    total = session.ordering.total
    with suppress(Broken):
        one, other = (
            portrait(session.system, history, order_dependent=total) for _ in range(2)
        )
        return session.system.set_aside(one, other)
    return False


def compare_attempts(session: ExplorationSession) -> None:
    """Compare all results with those of explorations before more was filled.

    If they differ, that is the only finding: what was filled changes results.
    """
    if any(each.kind in FINAL for each in session.findings):
        return
    record = session.record
    now = {(key, operation): value for key, operation, value in record.results()}
    for before in session.earlier:
        for key, operation, value in before.results():
            found = now.get((key, operation), value)
            if found != value:
                finding = RawViolation(
                    *("not fresh", key, value, found, record.canonical.get(key, ())),
                    paths=session.filled_later or (RESULT_WITHOUT_PATH,),
                )
                session.findings[:] = [finding]
                return


def _recorded_histories(session: ExplorationSession) -> tuple[History, ...]:
    """Return the histories to states that earlier explorations met, with each use."""
    operations = session.operations
    uses = range(operations.steps, operations.actions)
    return tuple(
        dict.fromkeys(
            each
            for record in session.earlier
            for history in record.canonical.values()
            for each in (history, *((*history, use) for use in uses))
        )
    )


class _WarmUpPlayer:
    """The passes of one warm-up, with the results of the first performances."""

    def __init__(self, session: ExplorationSession) -> None:
        self._session = session
        self._system = session.system
        self._total = session.ordering.total
        self._first: dict[History, Replay] = {}
        self.last: dict[History, Replay] = {}
        # The form and the portrait of the very first system.
        self._form: Hashable | None = None
        self._portrait: object = None
        self._begun = False
        # True if forms of now cannot be compared with the first one.
        self._renumbered = False
        self._now: Hashable | None = None

    @property
    def filled(self) -> bool:
        """Return True if the first system looked different from the present ones."""
        if self._renumbered and self._portrait is not None:
            return self._portrait != self._current_portrait()
        return _exact(self._form) != _exact(self._now)

    def play(self) -> bool:
        """Play passes; return True if the last one left a fresh system as it was."""
        passes = PASSES
        while passes:
            passes -= 1
            forms: set[Hashable] = set()
            for history in rehearsed_histories(self._session.operations):
                forms.add(_exact(self._fresh()))
                played = self._replay(self._system, history)
                self._first.setdefault(history, played)
                self.last[history] = played
            forms.add(_exact(self._fresh()))
            if len(forms) == 1:
                return True
            if set_aside(self._session, ()):
                passes = PASSES
                self.forget_form()
        return False

    def collect_garbage(self) -> None:
        """Collect garbage after each history, if a state may show it.

        Garbage of older objects ends an attempt; after this, only that of states which
        no history of the warm-up meets.

        Raises:
            ExplorationRestart: there was some.
        """
        if not (isinstance(self._now, StateForm) and self._now.weak):
            return
        operations = self._session.operations
        for history in rehearsed_histories(operations):
            history = (*history, operations.collect)
            abandon(self._system, history, order_dependent=self._total)
        self._fresh()

    def compare_first(self, outside: tuple[str, ...]) -> None:
        """Compare the results of the first performances with those of the last.

        `outside` are the changes that no path of the state shows.

        Raises:
            Halt: one differs, and the later ones agree.
        """
        for history, first in self._first.items():
            self._compare(history, first, self.last[history], outside)

    def compare_cold(
        self, cold: System, history: History, filled: tuple[str, ...]
    ) -> None:
        """Compare a history in a new process with the same one in this process.

        Raises:
            Halt: they differ, and each agrees with itself.
        """
        now = self.last.get(history) or self._replay(self._system, history)
        try:
            there = self._replay(cold, history)
        except ExplorationRestart:  # from now on it follows more
            there = self._replay(cold, history)
        if there.actions == now.actions:
            return
        again = [self._replay(cold, history) for _ in range(REPEATS)]
        if all(each.actions == there.actions for each in again):
            self._compare(history, there, now, filled)

    def paths(self) -> tuple[str, ...]:
        """Return what the first performances changed in a fresh system."""
        now = self._current_portrait()
        if self._portrait is None or now is None:
            return ()
        return self._system.paths(self._portrait, now)

    def forget_form(self, *, only: bool = False) -> None:
        """Start again with the next form: more is followed from now on.

        If `only` forms cannot be compared, portraits still can.
        """
        if only:
            self._renumbered = True
        else:
            self._begun, self._form, self._portrait = False, _UNKNOWN, None

    def _current_portrait(self) -> object:
        player = silent_player(self._system, order_dependent=self._total)
        now = self._system.portrait(player.handles)
        player.drop()
        return now

    def _compare(
        self, history: History, first: Replay, now: Replay, paths: tuple[str, ...]
    ) -> None:
        if first.actions == now.actions:
            return
        if any(
            self._replay(self._system, history).actions != now.actions
            for _ in range(REPEATS)
        ):
            return  # each time different: that is not a matter of the first one
        paths = self.paths() or paths or (RESULT_WITHOUT_PATH,)
        pairs = zip(first.actions, now.actions, strict=False)
        at = next((n for n, (one, two) in enumerate(pairs) if one != two), 0)
        one, two = first.actions[at], now.actions[at]
        key = self._session.ordering.key(two.state)
        finding = RawViolation(
            "not fresh", key, one.value, two.value, history[: at + 1], paths=paths
        )
        self._session.findings.append(finding)
        raise Halt

    def _replay(self, system: System, history: History) -> Replay:
        return replay(system, history, order_dependent=self._total)

    def _fresh(self) -> Hashable | None:
        """Return the form of a fresh system."""
        player = silent_player(self._system, order_dependent=self._total)
        form = player.state()
        if isinstance(form, StateForm) and form.weak:
            # It may show older garbage, which a later collection removes.
            self._system.collect()
            form = player.state()
        self._now = form
        if not self._begun:
            self._begun = True
            self._form = form if self._form is None else self._form
            if form is not None:
                self._portrait = self._system.portrait(player.handles)
        player.drop()
        return form


def _exact(form: Hashable | None) -> Hashable | None:
    return form.exact if isinstance(form, StateForm) else form
