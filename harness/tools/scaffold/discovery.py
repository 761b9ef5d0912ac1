"""From a name to a draft: the registry, its steps, its look-ups, and what is unknown.

A look-up is kept with the first arguments with which its answer on an empty registry
differs from that with all steps done; both are asked of a registry that was never asked
before, because an answer may be remembered.  Five steps and six uses prove in seconds;
what is left out is said in a remark.
"""

import re
import time
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from everyorder.harness.base.errors import NotFound, TrialEnded
from everyorder.harness.tools.scaffold.draft import (
    PAIRS,
    REGISTRATION_VERBS,
    RETURNED,
    Draft,
    StepDraft,
    UseDraft,
)
from everyorder.harness.tools.scaffold.sandbox import (
    HANG_TEXT,
    LookUpAnswer,
    Sandbox,
    answer,
    definitions,
    perform_step,
)
from everyorder.harness.tools.scaffold.target import (
    SLOTS,
    SPECIAL,
    Arguments,
    Target,
    combinations,
    find,
    is_lookup,
    is_own,
    members,
    near_registries,
)
from everyorder.harness.tools.scaffold.trials import (
    MEMBERS,
    CandidateTrial,
    WorkingSteps,
    call_text,
    candidates,
    create,
    step,
)

# Errors of a call that was made wrongly, not of a look-up that finds nothing.
CALL_ERRORS = frozenset(
    {"TypeError", "AttributeError", "NameError", "NotImplementedError"}
)

# Combinations of arguments that are tried of one look-up.
MOST = 12

# Objects that are made, and every other one forgotten, so that addresses differ.
MOVING_OBJECTS = 5_000

UNORDERED = "this follows the order of the steps; if it must not, delete unordered=True"
ORDERED = "this is another answer when the steps are done in reverse; is that meant?"
PRIVATE = "this is private; what shows it in public?"

# Looks that are written otherwise than as calls.
EXPRESSIONS = {"__len__": "len(registry)", "__iter__": "list(registry)"}
LOOKUP_METHODS = frozenset(SPECIAL) - {
    "__setitem__",
    "__delitem__",
    "__enter__",
    "__exit__",
}


@dataclass(frozen=True, slots=True)
class LookUp:
    """A look-up that tells something, the arguments in it, and which steps it shows.

    `slot` is the variant of the arguments; `plain` that its answer is text as it is.
    """

    name: str
    use: UseDraft
    arguments: Arguments
    plain: bool
    slot: int = 0
    shows: frozenset[StepDraft] = frozenset()


def look_ups(
    target: Target, bench: Sandbox, found: Sequence[WorkingSteps]
) -> list[LookUp]:
    """All look-ups that tell something, in the order of their names' appearance.

    Where a step is shown by none, variants that show it are added, if there are such.
    Where time is up, it is those that were found by then.
    """
    steps = [step for each in found for step in each.steps]
    given = tuple(argument for each in found for argument in each.arguments)
    used = {each.name for each in found}
    kept: list[LookUp] = []
    with suppress(TrialEnded):
        candidates = partial(_candidates, target, bench, given, used)
        for each in bench.run(MEMBERS, candidates) or []:
            kept += _first_working(each, bench, steps, given)
        if not kept:
            for each in bench.run(MEMBERS, partial(_private, bench)) or []:
                kept += _first_working(each, bench, steps, given, private=True)
        for step in steps:
            if not any(step in look.shows for look in kept):
                kept += _variant(step, kept, bench, steps, given)
    return kept


def _first_working(
    candidate: Sequence[LookUp],
    bench: Sandbox,
    steps: Sequence[StepDraft],
    given: Arguments,
    *,
    private: bool = False,
) -> list[LookUp]:
    """The first of these that tells something, if any, with the steps that it shows."""
    look = _working_look_up(candidate, bench, steps, given)
    if look is None:
        return []
    if private:
        use = replace(look.use, remark=PRIVATE)
        look = replace(look, use=use, plain=False)
    return [_with_shown_steps(look, bench, steps, given)]


def _with_shown_steps(
    look: LookUp, bench: Sandbox, steps: Sequence[StepDraft], given: Arguments
) -> LookUp:
    """The look-up with the steps that change its answer on an empty registry."""
    needs = _unique((*given, *look.arguments))
    empty = _answer_in_child(look, (), bench, needs)
    shows = [s for s in steps if _answer_in_child(look, (s,), bench, needs) != empty]
    return replace(look, shows=frozenset(shows))


def _variant(
    step: StepDraft,
    kept: Sequence[LookUp],
    bench: Sandbox,
    steps: Sequence[StepDraft],
    given: Arguments,
) -> list[LookUp]:
    """One of the look-ups with other arguments, with which it shows the step."""
    for look in kept:
        for slot in range(1, SLOTS) if look.arguments and not look.slot else ():
            ask = call_text(look.name, look.arguments, slot)
            if look.use.ask.startswith("list("):
                ask = f"list({ask})"
            other = replace(look, use=replace(look.use, ask=ask), slot=slot)
            other = _with_shown_steps(other, bench, steps, given)
            if step in other.shows:
                return [other]
    return []


def _candidates(
    target: Target, bench: Sandbox, given: Arguments, used: set[str]
) -> list[list[LookUp]]:
    """The calls to try for each look-up."""
    registry = bench.names(given)["registry"]
    callables, others = members(registry)
    found: list[list[LookUp]] = []
    for name in callables:
        if name in used or not (name in LOOKUP_METHODS or is_lookup(name)):
            continue
        if name in EXPRESSIONS:
            found.append([_expression(EXPRESSIONS[name])])
            continue
        function = getattr(registry, name)
        tried = combinations(function, name, target.module, _unique(given), most=MOST)
        found.append(
            [
                LookUp(
                    name, UseDraft(call_text(name, arguments)), arguments, plain=False
                )
                for arguments in tried
            ]
        )
    return found + [[_expression(f"registry.{name}")] for name in others]


def _private(bench: Sandbox) -> list[list[LookUp]]:
    """The registry's own attributes, whatever they are called."""
    own = getattr(bench.names()["registry"], "__dict__", {})
    return [[_expression(f"registry.{name}")] for name in own if name.isidentifier()]


def _expression(ask: str) -> LookUp:
    return LookUp("", UseDraft(ask), (), plain=False)


def _unique(given: Arguments) -> Arguments:
    return tuple({each.texts: each for each in given}.values())


def _working_look_up(
    candidate: Sequence[LookUp],
    bench: Sandbox,
    steps: Sequence[StepDraft],
    given: Arguments,
) -> LookUp | None:
    """The first of these that tells what is registered, wherever objects stand."""
    for look in candidate:
        needs = _unique((*given, *look.arguments))
        full = _answer_in_child(look, steps, bench, needs)
        if full is not None and full.passes:
            look = replace(look, use=UseDraft(f"list({look.use.ask})"))
            full = _answer_in_child(look, steps, bench, needs)
        text = look.use.ask
        if full is None or full.error in CALL_ERRORS:
            continue
        empty = _answer_in_child(look, (), bench, needs)
        again = _answer_in_child(look, steps, bench, needs, elsewhere=True)
        if empty is None or empty.text == full.text or again != full:
            continue
        back = _answer_in_child(look, steps[::-1], bench, needs)
        if back is None or back.error in CALL_ERRORS:
            continue
        use = look.use
        if back.text != full.text:
            same = full.members is not None and full.members == back.members
            use = UseDraft(text, same, UNORDERED if same else ORDERED)
        return replace(look, use=use, plain=full.plain and not look.arguments)
    return None


def _answer_in_child(
    look: LookUp,
    steps: Sequence[StepDraft],
    bench: Sandbox,
    needs: Arguments,
    *,
    elsewhere: bool = False,
) -> LookUpAnswer | None:
    """The answer, in a process of its own; `elsewhere` is at other addresses."""
    text = look.use.ask
    trial = partial(_answer, text, steps, bench, needs, elsewhere)
    return bench.run(look.name or text, trial)


def _answer(
    text: str,
    steps: Sequence[StepDraft],
    bench: Sandbox,
    needs: Arguments,
    elsewhere: bool,
) -> LookUpAnswer:
    others = [[place] for place in range(MOVING_OBJECTS)] if elsewhere else []
    del others[::2]
    names = bench.names(needs)
    kept = [perform_step(step, names) for step in steps]
    found = answer(text, names)
    del kept
    return found


# More steps make proofs long, and the shortest faults take two or three.
MOST_STEPS = 5
MOST_USES = 6

# Steps of one pair: as many as there is room for.
VARIANTS = 2
MOST_VARIANTS = 3

# How much of the time steps may take: without look-ups nothing shows what they did.
STEPS_SHARE = 2 / 3

SECOND_NAME = (
    "add a step that registers a name for the second time: which of the two should win?"
)


def draft_of(name: str, folder: str, seconds: float) -> Draft:
    """Try what was named, for so many seconds at most.

    Raises:
        NotFound: there is nothing of that name, or nothing of it registers.
        BadArgument: it acts on the machine, or no registry can be made.
        TrialEnded: there was no time to find anything, or it does not tell its names.
    """
    target = find(name, folder)
    owner = getattr(target.value, "__module__", None) or target.module.__name__
    packages = frozenset(
        each.partition(".")[0] for each in (target.module.__name__, str(owner))
    )
    began = time.monotonic()
    until = began + STEPS_SHARE * seconds
    bench = Sandbox(target.name, packages, (target.module.__name__,), until)
    bench.create, bench.given = create(target, bench)
    bench.measure()
    names = bench.run(MEMBERS, partial(candidates, target, bench))
    if names is None:
        raise TrialEnded(target=target.name, reason="it does not tell what it has")
    tried: list[CandidateTrial] = []
    with suppress(TrialEnded):  # those before are kept, and what was not tried is told
        tried.extend(step(each, bench) for each in names)
    cut, bench.is_cut = bench.is_cut, False
    bench.until = began + seconds
    found = [each.steps for each in tried if each.steps is not None]
    found.sort(key=lambda each: each.rank)
    chosen = _selection(found)
    kept = look_ups(target, bench, chosen) if chosen else []
    shown = {step for look in kept for step in look.shows}
    hidden = [step.do for each in chosen for step in each.steps if step not in shown]
    chosen = [each for each in (_only(each, shown) for each in chosen) if each.steps]
    if not chosen and (cut or bench.is_cut):
        raise TrialEnded(target=target.name, reason="time was up")
    if not chosen:
        raise _nothing_registers(target, tried, bench)
    remarks = _remarks(found, chosen, hidden, bench) + _hang_remarks(tried, bench)
    if cut or bench.is_cut:
        remarks.append(_timeout_remark([each.name for each in names[len(tried) :]]))
    return _draft(target, bench, chosen, kept, remarks)


def _selection(found: Sequence[WorkingSteps]) -> list[WorkingSteps]:
    """The best, each with as many of its steps as there is room for.

    Two that are undone by the same call are one: it could not tell them apart.
    """
    kept: dict[object, WorkingSteps] = {}
    for each in found:
        undo = each.steps[0].undo
        own = undo is None or undo == RETURNED or "result" in undo
        kept.setdefault(each.name if own else undo, each)
    variants = MOST_VARIANTS if len(kept) == 1 else VARIANTS
    chosen: list[WorkingSteps] = []
    room = MOST_STEPS
    for each in kept.values():
        steps = each.steps[: min(variants, room)]
        if steps:
            chosen.append(replace(each, steps=steps))
            room -= len(steps)
    return chosen


def _only(found: WorkingSteps, steps: Container[StepDraft]) -> WorkingSteps:
    """The draft without the steps that no observation shows, which prove nothing."""
    return replace(found, steps=tuple(each for each in found.steps if each in steps))


def _draft(
    target: Target,
    bench: Sandbox,
    chosen: Sequence[WorkingSteps],
    kept: Sequence[LookUp],
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
        own.insert(0, SECOND_NAME)
    return Draft(
        target=target.name,
        create=bench.create,
        kind=target.kind,
        registry=target.text,
        own=is_own(target.module),
        guessed=bool(bench.given),
        imports=tuple(sorted(imports)),
        definitions=tuple(_definitions_for(definitions(arguments), texts)),
        steps=steps,
        uses=tuple(look.use for look in uses),
        lines=tuple(lines),
        remarks=tuple(own),
    )


def _definitions_for(found: Sequence[str], texts: Iterable[str]) -> list[str]:
    """The definitions that the texts name, directly or through other definitions."""
    said, kept = " ".join(texts), list[str]()
    for text in reversed(found):  # what is needed is defined before
        match = re.match(r"(?:def |class )?(\w+)", text)
        if match and re.search(rf"\b{match[1]}\b", said):
            kept.insert(0, text)
            said += text
    return kept


def _uses(kept: Sequence[LookUp]) -> list[LookUp]:
    """As many as there may be, those first that show a step that none before did."""
    first, shown = [], set[StepDraft]()
    for look in sorted(kept, key=lambda each: -len(each.shows)):
        if not look.shows <= shown:
            first.append(look)
            shown |= look.shows
    chosen = (*first, *(look for look in kept if look not in first))[:MOST_USES]
    return [look for look in kept if look in chosen]


def _remarks(
    found: Sequence[WorkingSteps],
    chosen: Sequence[WorkingSteps],
    hidden: Sequence[str],
    bench: Sandbox,
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


def _hang_remarks(tried: Sequence[CandidateTrial], bench: Sandbox) -> list[str]:
    """Remarks on functions whose process died or hung.

    No more is known of what hung once than that it did with the arguments of then.
    """
    lost = {each.name: None for each in tried if each.is_hung}
    told = {
        "left out, because no call of it came back": lost.keys() - bench.hangs.keys(),
        f"left out, because it {HANG_TEXT}": lost.keys() & bench.hangs.keys(),
        f"{HANG_TEXT}, with some of the arguments tried": (
            bench.hangs.keys() - lost.keys()
        ),
    }
    known = [*lost, *bench.hangs]
    return [
        f"{words}: {', '.join(sorted(names, key=known.index))}"
        for words, names in told.items()
        if names
    ]


def _timeout_remark(names: Sequence[str]) -> str:
    left = f"these were tried: {', '.join(names)}"
    if not names:
        left = "all look-ups were tried"
    return f"time was up before {left}; --timeout gives more"


def _nothing_registers(
    target: Target, tried: Sequence[CandidateTrial], bench: Sandbox
) -> NotFound:
    pairs = ", ".join(f"{do}/{undo[0]}" for do, undo in list(PAIRS.items())[:10])
    verbs = ", ".join(sorted(REGISTRATION_VERBS))
    return NotFound(
        code="NothingRegisters",
        wanted=target.name,
        pairs=f"{pairs} and {len(PAIRS) - 10} more; {verbs} alone",
        tried=tuple(each.name for each in tried if not each.is_hung),
        lost=tuple(
            f"{each.name} (it {HANG_TEXT})" if each.name in bench.hangs else each.name
            for each in tried
            if each.is_hung
        ),
        near=near_registries(target),
    )
