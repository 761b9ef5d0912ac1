"""Build a draft from a name: the registry, its steps, its look-ups, and open questions.

A look-up gets the first arguments with which its answer on an empty registry differs
from that with all steps done; both are queried on a fresh registry, because an answer
may be cached. Proofs with five steps and six uses take seconds; a remark lists the
omitted ones.
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

# Errors of a wrong call, as opposed to a look-up without a result.
CALL_ERRORS = frozenset(
    {"TypeError", "AttributeError", "NameError", "NotImplementedError"}
)

# Limit on the combinations of arguments that are tried of one look-up.
MOST = 12

# Objects that are created before a trial, half of them freed, so that addresses differ.
MOVING_OBJECTS = 5_000

UNORDERED = "this follows the order of the steps; if it must not, delete unordered=True"
ORDERED = "this is another answer when the steps are done in reverse; is that meant?"
PRIVATE = "this is private; what shows it in public?"

# Looks that are not written as method calls.
EXPRESSIONS = {"__len__": "len(registry)", "__iter__": "list(registry)"}
LOOKUP_METHODS = frozenset(SPECIAL) - {
    "__setitem__",
    "__delitem__",
    "__enter__",
    "__exit__",
}


@dataclass(frozen=True, slots=True)
class LookUp:
    """A look-up whose answer changes, its arguments, and the steps that change it.

    `slot` is the variant of the arguments; `plain` is True if its answer is text as it
    is.
    """

    name: str
    use: UseDraft
    arguments: Arguments
    plain: bool
    slot: int = 0
    shows: frozenset[StepDraft] = frozenset()


def look_ups(
    target: Target, sandbox: Sandbox, working: Sequence[WorkingSteps]
) -> list[LookUp]:
    """Return all look-ups whose answers change, in the order of their names.

    If no look-up shows a step, variants that show it are added, if they exist. When
    time is up, the look-ups so far are returned.
    """
    steps = [step for each in working for step in each.steps]
    arguments = tuple(argument for each in working for argument in each.arguments)
    used = {each.name for each in working}
    accepted: list[LookUp] = []
    with suppress(TrialEnded):
        candidates = partial(_candidates, target, sandbox, arguments, used)
        for each in sandbox.run(MEMBERS, candidates) or []:
            accepted += _first_working(each, sandbox, steps, arguments)
        if not accepted:
            for each in sandbox.run(MEMBERS, partial(_private, sandbox)) or []:
                accepted += _first_working(
                    each, sandbox, steps, arguments, private=True
                )
        for step in steps:
            if not any(step in look.shows for look in accepted):
                accepted += _variant(step, accepted, sandbox, steps, arguments)
    return accepted


def _first_working(
    candidate: Sequence[LookUp],
    sandbox: Sandbox,
    steps: Sequence[StepDraft],
    step_arguments: Arguments,
    *,
    private: bool = False,
) -> list[LookUp]:
    """Return the first look-up that works, if any, with the steps that it shows."""
    look = _working_look_up(candidate, sandbox, steps, step_arguments)
    if look is None:
        return []
    if private:
        use = replace(look.use, remark=PRIVATE)
        look = replace(look, use=use, plain=False)
    return [_with_shown_steps(look, sandbox, steps, step_arguments)]


def _with_shown_steps(
    look: LookUp,
    sandbox: Sandbox,
    steps: Sequence[StepDraft],
    step_arguments: Arguments,
) -> LookUp:
    """Return the look-up with the steps that change its answer on an empty registry."""
    needs = _unique((*step_arguments, *look.arguments))
    empty = _answer_in_child(look, (), sandbox, needs)
    shows = [s for s in steps if _answer_in_child(look, (s,), sandbox, needs) != empty]
    return replace(look, shows=frozenset(shows))


def _variant(
    step: StepDraft,
    accepted: Sequence[LookUp],
    sandbox: Sandbox,
    steps: Sequence[StepDraft],
    step_arguments: Arguments,
) -> list[LookUp]:
    """Return one of the look-ups with other arguments, with which it shows the step."""
    for look in accepted:
        for slot in range(1, SLOTS) if look.arguments and not look.slot else ():
            ask = call_text(look.name, look.arguments, slot)
            if look.use.ask.startswith("list("):
                ask = f"list({ask})"
            other = replace(look, use=replace(look.use, ask=ask), slot=slot)
            other = _with_shown_steps(other, sandbox, steps, step_arguments)
            if step in other.shows:
                return [other]
    return []


def _candidates(
    target: Target, sandbox: Sandbox, step_arguments: Arguments, used: set[str]
) -> list[list[LookUp]]:
    """Return the calls to try for each look-up."""
    registry = sandbox.names(step_arguments)["registry"]
    callables, others = members(registry)
    candidates: list[list[LookUp]] = []
    for name in callables:
        if name in used or not (name in LOOKUP_METHODS or is_lookup(name)):
            continue
        if name in EXPRESSIONS:
            candidates.append([_expression(EXPRESSIONS[name])])
            continue
        function = getattr(registry, name)
        tried = combinations(
            function, name, target.module, _unique(step_arguments), most=MOST
        )
        candidates.append(
            [
                LookUp(
                    name, UseDraft(call_text(name, arguments)), arguments, plain=False
                )
                for arguments in tried
            ]
        )
    return candidates + [[_expression(f"registry.{name}")] for name in others]


def _private(sandbox: Sandbox) -> list[list[LookUp]]:
    """Return look-ups of the registry's own attributes, including private ones."""
    own = getattr(sandbox.names()["registry"], "__dict__", {})
    return [[_expression(f"registry.{name}")] for name in own if name.isidentifier()]


def _expression(ask: str) -> LookUp:
    return LookUp("", UseDraft(ask), (), plain=False)


def _unique(arguments: Arguments) -> Arguments:
    return tuple({each.texts: each for each in arguments}.values())


def _working_look_up(
    candidate: Sequence[LookUp],
    sandbox: Sandbox,
    steps: Sequence[StepDraft],
    step_arguments: Arguments,
) -> LookUp | None:
    """Return the first look-up that shows the registrations at any addresses."""
    for look in candidate:
        needs = _unique((*step_arguments, *look.arguments))
        full = _answer_in_child(look, steps, sandbox, needs)
        if full is not None and full.passes:
            look = replace(look, use=UseDraft(f"list({look.use.ask})"))
            full = _answer_in_child(look, steps, sandbox, needs)
        text = look.use.ask
        if full is None or full.error in CALL_ERRORS:
            continue
        empty = _answer_in_child(look, (), sandbox, needs)
        again = _answer_in_child(look, steps, sandbox, needs, elsewhere=True)
        if empty is None or empty.text == full.text or again != full:
            continue
        back = _answer_in_child(look, steps[::-1], sandbox, needs)
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
    sandbox: Sandbox,
    needs: Arguments,
    *,
    elsewhere: bool = False,
) -> LookUpAnswer | None:
    """Return the answer in a separate process; `elsewhere` is at other addresses."""
    text = look.use.ask
    trial = partial(_answer, text, steps, sandbox, needs, elsewhere)
    return sandbox.run(look.name or text, trial)


def _answer(
    text: str,
    steps: Sequence[StepDraft],
    sandbox: Sandbox,
    needs: Arguments,
    elsewhere: bool,
) -> LookUpAnswer:
    others = [[place] for place in range(MOVING_OBJECTS)] if elsewhere else []
    del others[::2]
    names = sandbox.names(needs)
    undos = [perform_step(step, names) for step in steps]
    result = answer(text, names)
    del undos
    return result


# More steps make proofs long, and the shortest faults need two or three.
MOST_STEPS = 5
MOST_USES = 6

# Limit on the steps of one pair.
VARIANTS = 2
MOST_VARIANTS = 3

# Share of the time for steps: without look-ups their effects are not visible.
STEPS_SHARE = 2 / 3

SECOND_NAME = (
    "add a step that registers a name for the second time: which of the two should win?"
)


def draft_of(name: str, folder: str, seconds: float) -> Draft:
    """Try the functions of a target, for at most `seconds`.

    Raises:
        NotFound: the target does not exist, or has no functions that register.
        BadArgument: it acts on the machine, or no registry can be created.
        TrialEnded: the time was too short, or the target does not list its names.
    """
    target = find(name, folder)
    owner = getattr(target.value, "__module__", None) or target.module.__name__
    packages = frozenset(
        each.partition(".")[0] for each in (target.module.__name__, str(owner))
    )
    began = time.monotonic()
    until = began + STEPS_SHARE * seconds
    sandbox = Sandbox(target.name, packages, (target.module.__name__,), until)
    sandbox.create, sandbox.create_arguments = create(target, sandbox)
    sandbox.measure()
    names = sandbox.run(MEMBERS, partial(candidates, target, sandbox))
    if names is None:
        raise TrialEnded(target=target.name, reason="it does not list its names")
    tried: list[CandidateTrial] = []
    with suppress(TrialEnded):  # earlier trials count; a remark lists the rest
        tried.extend(step(each, sandbox) for each in names)
    cut, sandbox.is_cut = sandbox.is_cut, False
    sandbox.until = began + seconds
    working = [each.steps for each in tried if each.steps is not None]
    working.sort(key=lambda each: each.rank)
    chosen = _selection(working)
    accepted = look_ups(target, sandbox, chosen) if chosen else []
    visible = {step for look in accepted for step in look.shows}
    hidden = [step.do for each in chosen for step in each.steps if step not in visible]
    chosen = [each for each in (_only(each, visible) for each in chosen) if each.steps]
    if not chosen and (cut or sandbox.is_cut):
        raise TrialEnded(target=target.name, reason="time was up")
    if not chosen:
        raise _nothing_registers(target, tried, sandbox)
    remarks = _remarks(working, chosen, hidden, sandbox) + _hang_remarks(tried, sandbox)
    if cut or sandbox.is_cut:
        remarks.append(_timeout_remark([each.name for each in names[len(tried) :]]))
    return _draft(target, sandbox, chosen, accepted, remarks)


def _selection(working: Sequence[WorkingSteps]) -> list[WorkingSteps]:
    """Return the best candidates, each with as many of its steps as there is room for.

    Two candidates with the same undo are merged: the undo could not distinguish them.
    """
    by_undo: dict[object, WorkingSteps] = {}
    for each in working:
        undo = each.steps[0].undo
        own = undo is None or undo == RETURNED or "result" in undo
        by_undo.setdefault(each.name if own else undo, each)
    variants = MOST_VARIANTS if len(by_undo) == 1 else VARIANTS
    chosen: list[WorkingSteps] = []
    room = MOST_STEPS
    for each in by_undo.values():
        steps = each.steps[: min(variants, room)]
        if steps:
            chosen.append(replace(each, steps=steps))
            room -= len(steps)
    return chosen


def _only(working: WorkingSteps, steps: Container[StepDraft]) -> WorkingSteps:
    """Return the steps that an observation shows; the others prove nothing."""
    return replace(
        working, steps=tuple(each for each in working.steps if each in steps)
    )


def _draft(
    target: Target,
    sandbox: Sandbox,
    chosen: Sequence[WorkingSteps],
    accepted: Sequence[LookUp],
    remarks: Sequence[str],
) -> Draft:
    lines = [look.use for look in accepted if look.plain]
    uses = _uses([look for look in accepted if not look.plain] or accepted[:1])
    arguments = [
        *sandbox.create_arguments,
        *(each for working in chosen for each in working.arguments),
        *(each for look in uses for each in look.arguments),
    ]
    steps = tuple(step for each in chosen for step in each.steps)
    texts = [sandbox.create, *(look.use.ask for look in uses)]
    texts += [f"{step.do} {step.undo}" for step in steps]
    imports = {target.module.__name__, *(n for each in arguments for n in each.imports)}
    own = [*remarks]
    if any(len(each.arguments) > 1 for each in chosen):
        own.insert(0, SECOND_NAME)
    return Draft(
        target=target.name,
        create=sandbox.create,
        kind=target.kind,
        registry=target.text,
        own=is_own(target.module),
        guessed=bool(sandbox.create_arguments),
        imports=tuple(sorted(imports)),
        definitions=tuple(_definitions_for(definitions(arguments), texts)),
        steps=steps,
        uses=tuple(look.use for look in uses),
        lines=tuple(lines),
        remarks=tuple(own),
    )


def _definitions_for(ordered: Sequence[str], texts: Iterable[str]) -> list[str]:
    """Return the definitions that the texts name, directly or through others."""
    source, needed = " ".join(texts), list[str]()
    for text in reversed(ordered):  # a definition precedes its users
        match = re.match(r"(?:def |class )?(\w+)", text)
        if match and re.search(rf"\b{match[1]}\b", source):
            needed.insert(0, text)
            source += text
    return needed


def _uses(accepted: Sequence[LookUp]) -> list[LookUp]:
    """Return as many as allowed, first those that show steps that none before did."""
    first, visible = [], set[StepDraft]()
    for look in sorted(accepted, key=lambda each: -len(each.shows)):
        if not look.shows <= visible:
            first.append(look)
            visible |= look.shows
    chosen = (*first, *(look for look in accepted if look not in first))[:MOST_USES]
    return [look for look in accepted if look in chosen]


def _remarks(
    working: Sequence[WorkingSteps],
    chosen: Sequence[WorkingSteps],
    hidden: Sequence[str],
    sandbox: Sandbox,
) -> list[str]:
    remarks = []
    if hidden:
        why = "nothing shows what it did"
        if sandbox.is_cut:
            why = "time was up before anything showed what it did"
        remarks.append(f"left out, because {why}: {', '.join(hidden)}")
    names = {each.name for each in working} - {each.name for each in chosen}
    names -= {each.name for each in working if any(s.do in hidden for s in each.steps)}
    if names:
        remarks.append(f"these register as well: {', '.join(sorted(names))}")
    return remarks


def _hang_remarks(tried: Sequence[CandidateTrial], sandbox: Sandbox) -> list[str]:
    """Return remarks on functions whose process died or hung.

    For a trial that hung once, it is only known that it hung with those arguments.
    """
    lost = {each.name: None for each in tried if each.is_hung}
    names_by_remark = {
        "left out, because no call of it came back": lost.keys() - sandbox.hangs.keys(),
        f"left out, because it {HANG_TEXT}": lost.keys() & sandbox.hangs.keys(),
        f"{HANG_TEXT}, with some of the arguments tried": (
            sandbox.hangs.keys() - lost.keys()
        ),
    }
    order = [*lost, *sandbox.hangs]
    return [
        f"{words}: {', '.join(sorted(names, key=order.index))}"
        for words, names in names_by_remark.items()
        if names
    ]


def _timeout_remark(names: Sequence[str]) -> str:
    left = f"these were tried: {', '.join(names)}"
    if not names:
        left = "all look-ups were tried"
    return f"time was up before {left}; --timeout gives more"


def _nothing_registers(
    target: Target, tried: Sequence[CandidateTrial], sandbox: Sandbox
) -> NotFound:
    pairs = ", ".join(f"{do}/{undo[0]}" for do, undo in list(PAIRS.items())[:10])
    verbs = ", ".join(sorted(REGISTRATION_VERBS))
    return NotFound(
        code="NothingRegisters",
        wanted=target.name,
        pairs=f"{pairs} and {len(PAIRS) - 10} more; {verbs} alone",
        tried=tuple(each.name for each in tried if not each.is_hung),
        lost=tuple(
            f"{each.name} (it {HANG_TEXT})" if each.name in sandbox.hangs else each.name
            for each in tried
            if each.is_hung
        ),
        near=near_registries(target),
    )
