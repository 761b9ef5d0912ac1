"""From a name to a draft: the registry, its steps, its look-ups, and what is unknown.

True only here: how much of what was found is printed.  Five steps and six uses prove
in seconds; what is left out is said in a remark.
"""

import re
import time
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from harness.writing.bench import HUNG, Bench, definitions
from harness.writing.draft import RETURNED, Draft, StepDraft
from harness.writing.errors import NothingRegisters, TrialEnded
from harness.writing.looking import Look, looks
from harness.writing.target import Target, find, is_own, near_registries
from harness.writing.trying import NAMES, Found, Tried, candidates, create, step
from harness.writing.verbs import ALONE, PAIRS

# More steps make proofs long, and the shortest faults take two or three.
MOST_STEPS = 5
MOST_USES = 6

# Steps of one pair: as many as there is room for.
VARIANTS = 2
MOST_VARIANTS = 3

# How much of the time steps may take: without look-ups nothing shows what they did.
FOR_STEPS = 2 / 3

TWICE = (
    "add a step that registers a name for the second time: which of the two should win?"
)


def draft(name: str, folder: str, seconds: float) -> Draft:
    """Try what was named, for so many seconds at most.

    Raises:
        NoTarget: there is nothing of that name.
        NotTried: it acts on the machine.
        CannotCreate: no registry can be made.
        NothingRegisters: nothing of it registers.
        TrialEnded: there was no time to find anything, or it does not tell its names.
    """
    target = find(name, folder)
    owner = getattr(target.value, "__module__", None) or target.module.__name__
    packages = frozenset(
        each.partition(".")[0] for each in (target.module.__name__, str(owner))
    )
    began = time.monotonic()
    until = began + FOR_STEPS * seconds
    bench = Bench(target.name, packages, (target.module.__name__,), until)
    bench.create, bench.given = create(target, bench)
    bench.pace()
    names = bench.apart(NAMES, partial(candidates, target, bench))
    if names is None:
        raise TrialEnded(target=target.name, reason="it does not tell what it has")
    tried: list[Tried] = []
    with suppress(TrialEnded):  # those before are kept, and what was not tried is told
        tried.extend(step(each, bench) for each in names)
    cut, bench.is_cut = bench.is_cut, False
    bench.until = began + seconds
    found = [each.found for each in tried if each.found is not None]
    found.sort(key=lambda each: each.rank)
    chosen = _chosen(found)
    kept = looks(target, bench, chosen) if chosen else []
    shown = {step for look in kept for step in look.shows}
    hidden = [step.do for each in chosen for step in each.steps if step not in shown]
    chosen = [each for each in (_only(each, shown) for each in chosen) if each.steps]
    if not chosen and (cut or bench.is_cut):
        raise TrialEnded(target=target.name, reason="time was up")
    if not chosen:
        raise _nothing(target, tried, bench)
    remarks = _remarks(found, chosen, hidden, bench) + _lost(tried, bench)
    if cut or bench.is_cut:
        remarks.append(_untried([each.name for each in names[len(tried) :]]))
    return _composed(target, bench, chosen, kept, remarks)


def _chosen(found: Sequence[Found]) -> list[Found]:
    """The best, each with as many of its steps as there is room for.

    Two that are undone by the same call are one: it could not tell them apart.
    """
    kept: dict[object, Found] = {}
    for each in found:
        undo = each.steps[0].undo
        own = undo is None or undo == RETURNED or "result" in undo
        kept.setdefault(each.name if own else undo, each)
    variants = MOST_VARIANTS if len(kept) == 1 else VARIANTS
    chosen: list[Found] = []
    room = MOST_STEPS
    for each in kept.values():
        steps = each.steps[: min(variants, room)]
        if steps:
            chosen.append(replace(each, steps=steps))
            room -= len(steps)
    return chosen


def _only(found: Found, steps: Container[StepDraft]) -> Found:
    """The same without its steps that nothing shows: they could prove nothing."""
    return replace(found, steps=tuple(each for each in found.steps if each in steps))


def _composed(
    target: Target,
    bench: Bench,
    chosen: Sequence[Found],
    kept: Sequence[Look],
    remarks: Sequence[str],
) -> Draft:
    lines = [look.use for look in kept if look.plain]
    uses = _uses([look for look in kept if not look.plain] or kept[:1])
    arguments = [
        *bench.given,
        *(each for found in chosen for each in found.arguments),
        *(each for look in uses for each in look.arguments),
    ]
    steps = tuple(step for each in chosen for step in each.steps)
    texts = [bench.create, *(look.use.ask for look in uses)]
    texts += [f"{step.do} {step.undo}" for step in steps]
    imports = {target.module.__name__, *(n for each in arguments for n in each.imports)}
    own = [*remarks]
    if any(len(each.arguments) > 1 for each in chosen):
        own.insert(0, TWICE)
    return Draft(
        target=target.name,
        create=bench.create,
        kind=target.kind,
        registry=target.text,
        own=is_own(target.module),
        guessed=bool(bench.given),
        imports=tuple(sorted(imports)),
        definitions=tuple(_needed(definitions(arguments), texts)),
        steps=steps,
        uses=tuple(look.use for look in uses),
        lines=tuple(lines),
        remarks=tuple(own),
    )


def _needed(found: Sequence[str], texts: Iterable[str]) -> list[str]:
    """Those of the definitions that the texts name, and that those name in turn."""
    said, kept = " ".join(texts), list[str]()
    for text in reversed(found):  # what is needed is defined before
        match = re.match(r"(?:def |class )?(\w+)", text)
        if match and re.search(rf"\b{match[1]}\b", said):
            kept.insert(0, text)
            said += text
    return kept


def _uses(kept: Sequence[Look]) -> list[Look]:
    """As many as there may be, those first that show a step that none before did."""
    first, shown = [], set[StepDraft]()
    for look in sorted(kept, key=lambda each: -len(each.shows)):
        if not look.shows <= shown:
            first.append(look)
            shown |= look.shows
    chosen = (*first, *(look for look in kept if look not in first))[:MOST_USES]
    return [look for look in kept if look in chosen]


def _remarks(
    found: Sequence[Found], chosen: Sequence[Found], hidden: Sequence[str], bench: Bench
) -> list[str]:
    told = []
    if hidden:
        why = "nothing shows what it did"
        if bench.is_cut:
            why = "time was up before anything showed what it did"
        told.append(f"left out, because {why}: {', '.join(hidden)}")
    names = {each.name for each in found} - {each.name for each in chosen}
    names -= {each.name for each in found if any(s.do in hidden for s in each.steps)}
    if names:
        told.append(f"these register as well: {', '.join(sorted(names))}")
    return told


def _lost(tried: Sequence[Tried], bench: Bench) -> list[str]:
    """What was left out, or tried no further, because its process died or stood still.

    No more is known of what hung once than that it did with the arguments of then.
    """
    lost = {each.name: None for each in tried if each.lost}
    told = {
        "left out, because no call of it came back": lost.keys() - bench.hung.keys(),
        f"left out, because it {HUNG}": lost.keys() & bench.hung.keys(),
        f"{HUNG}, with some of the arguments tried": (bench.hung.keys() - lost.keys()),
    }
    known = [*lost, *bench.hung]
    return [
        f"{words}: {', '.join(sorted(names, key=known.index))}"
        for words, names in told.items()
        if names
    ]


def _untried(names: Sequence[str]) -> str:
    left = f"these were tried: {', '.join(names)}"
    if not names:
        left = "all look-ups were tried"
    return f"time was up before {left}; --timeout gives more"


def _nothing(target: Target, tried: Sequence[Tried], bench: Bench) -> NothingRegisters:
    pairs = ", ".join(f"{do}/{undo[0]}" for do, undo in list(PAIRS.items())[:10])
    return NothingRegisters(
        target=target.name,
        pairs=f"{pairs} and {len(PAIRS) - 10} more; {', '.join(sorted(ALONE))} alone",
        tried=tuple(each.name for each in tried if not each.lost),
        lost=tuple(
            f"{each.name} (it {HUNG})" if each.name in bench.hung else each.name
            for each in tried
            if each.lost
        ),
        near=near_registries(target),
    )
