"""Which look-ups tell what is registered, found out by trying.

True only here: a look-up is kept with the first arguments with which its answer on an
empty registry differs from that with all steps done; both are asked of a registry that
was never asked before, because an answer may be remembered.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from harness.writing.arguments import SLOTS, Arguments, combinations
from harness.writing.bench import Answer, Bench, answer, performed
from harness.writing.draft import StepDraft, UseDraft
from harness.writing.errors import TrialEnded
from harness.writing.target import SPECIAL, Target, is_look, members
from harness.writing.trying import NAMES, Found, called

# Errors of a call that was made wrongly, not of a look-up that finds nothing.
MISTAKEN = frozenset(
    {"TypeError", "AttributeError", "NameError", "NotImplementedError"}
)

# Combinations of arguments that are tried of one look-up.
MOST = 12

# Objects that are made, and every other one forgotten, so that addresses differ.
ELSEWHERE = 5_000

UNORDERED = "this follows the order of the steps; if it must not, delete unordered=True"
DEPENDS = "this is another answer when the steps are done in reverse; is that meant?"
PRIVATE = "this is private; what shows it in public?"

# Looks that are written otherwise than as calls.
WRITTEN = {"__len__": "len(registry)", "__iter__": "list(registry)"}
LOOKS = frozenset(SPECIAL) - {"__setitem__", "__delitem__", "__enter__", "__exit__"}


@dataclass(frozen=True, slots=True)
class Look:
    """A look-up that tells something, the arguments in it, and which steps it shows.

    `slot` is the variant of the arguments; `plain` that its answer is text as it is.
    """

    name: str
    use: UseDraft
    arguments: Arguments
    plain: bool
    slot: int = 0
    shows: frozenset[StepDraft] = frozenset()


def looks(target: Target, bench: Bench, found: Sequence[Found]) -> list[Look]:
    """All look-ups that tell something, in the order of their names' appearance.

    Where a step is shown by none, variants that show it are added, if there are such.
    Where time is up, it is those that were found by then.
    """
    steps = [step for each in found for step in each.steps]
    given = tuple(argument for each in found for argument in each.arguments)
    used = {each.name for each in found}
    kept: list[Look] = []
    with suppress(TrialEnded):
        candidates = partial(_candidates, target, bench, given, used)
        for each in bench.apart(NAMES, candidates) or []:
            kept += _telling(each, bench, steps, given)
        if not kept:
            for each in bench.apart(NAMES, partial(_private, bench)) or []:
                kept += _telling(each, bench, steps, given, private=True)
        for step in steps:
            if not any(step in look.shows for look in kept):
                kept += _variant(step, kept, bench, steps, given)
    return kept


def _telling(
    candidate: Sequence[Look],
    bench: Bench,
    steps: Sequence[StepDraft],
    given: Arguments,
    *,
    private: bool = False,
) -> list[Look]:
    """The first of these that tells something, if any, with the steps that it shows."""
    look = _tried(candidate, bench, steps, given)
    if look is None:
        return []
    if private:
        use = replace(look.use, remark=PRIVATE)
        look = replace(look, use=use, plain=False)
    return [_shown(look, bench, steps, given)]


def _shown(
    look: Look, bench: Bench, steps: Sequence[StepDraft], given: Arguments
) -> Look:
    """The look-up with the steps that change its answer on an empty registry."""
    needs = _unique((*given, *look.arguments))
    empty = _asked(look, (), bench, needs)
    shows = [s for s in steps if _asked(look, (s,), bench, needs) != empty]
    return replace(look, shows=frozenset(shows))


def _variant(
    step: StepDraft,
    kept: Sequence[Look],
    bench: Bench,
    steps: Sequence[StepDraft],
    given: Arguments,
) -> list[Look]:
    """One of the look-ups with other arguments, with which it shows the step."""
    for look in kept:
        for slot in range(1, SLOTS) if look.arguments and not look.slot else ():
            ask = called(look.name, look.arguments, slot)
            other = replace(look, use=replace(look.use, ask=ask), slot=slot)
            other = _shown(other, bench, steps, given)
            if step in other.shows:
                return [other]
    return []


def _candidates(
    target: Target, bench: Bench, given: Arguments, used: set[str]
) -> list[list[Look]]:
    """Of each look-up, what to try."""
    registry = bench.fresh(given)["registry"]
    callables, others = members(registry)
    found: list[list[Look]] = []
    for name in callables:
        if name in used or not (name in LOOKS or is_look(name)):
            continue
        if name in WRITTEN:
            found.append([_plainly(WRITTEN[name])])
            continue
        function = getattr(registry, name)
        tried = combinations(function, name, target.module, _unique(given), most=MOST)
        found.append(
            [
                Look(name, UseDraft(called(name, arguments)), arguments, plain=False)
                for arguments in tried
            ]
        )
    return found + [[_plainly(f"registry.{name}")] for name in others]


def _private(bench: Bench) -> list[list[Look]]:
    """The registry's own attributes, whatever they are called."""
    own = getattr(bench.fresh()["registry"], "__dict__", {})
    return [[_plainly(f"registry.{name}")] for name in own if name.isidentifier()]


def _plainly(ask: str) -> Look:
    return Look("", UseDraft(ask), (), plain=False)


def _unique(given: Arguments) -> Arguments:
    return tuple({each.texts: each for each in given}.values())


def _tried(
    candidate: Sequence[Look],
    bench: Bench,
    steps: Sequence[StepDraft],
    given: Arguments,
) -> Look | None:
    """The first of these that tells what is registered, wherever objects stand."""
    for look in candidate:
        text = look.use.ask
        needs = _unique((*given, *look.arguments))
        full = _asked(look, steps, bench, needs)
        if full is None or full.error in MISTAKEN:
            continue
        empty = _asked(look, (), bench, needs)
        again = _asked(look, steps, bench, needs, elsewhere=True)
        if empty is None or empty.text == full.text or again != full:
            continue
        back = _asked(look, steps[::-1], bench, needs)
        if back is None or back.error in MISTAKEN:
            continue
        use = look.use
        if back.text != full.text:
            same = full.members is not None and full.members == back.members
            use = UseDraft(text, same, UNORDERED if same else DEPENDS)
        return replace(look, use=use, plain=full.plain and not look.arguments)
    return None


def _asked(
    look: Look,
    steps: Sequence[StepDraft],
    bench: Bench,
    needs: Arguments,
    *,
    elsewhere: bool = False,
) -> Answer | None:
    """The answer, in a process of its own; `elsewhere` is at other addresses."""
    text = look.use.ask
    trial = partial(_answered, text, steps, bench, needs, elsewhere)
    return bench.apart(look.name or text, trial)


def _answered(
    text: str,
    steps: Sequence[StepDraft],
    bench: Bench,
    needs: Arguments,
    elsewhere: bool,
) -> Answer:
    others = [[place] for place in range(ELSEWHERE)] if elsewhere else []
    del others[::2]
    names = bench.fresh(needs)
    kept = [performed(step, names) for step in steps]
    found = answer(text, names)
    del kept
    return found
